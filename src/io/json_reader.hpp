// A JSON document that is read strictly: every problem is a ParseError that names file, field and what is accepted.
//
// For files of some kilobytes: the document is held as a whole. Topologies and plans have readers of their own.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gar/limits.hpp"

namespace gar {

/// Parses text of a bounded length and depth; a field that stands twice in an object is an error, too.
nlohmann::json parse_json(std::string_view text, const std::string& source);

/// The "schema" of a document if it is found without reading all of it; empty when there is none.
std::string peek_schema(std::string_view text);

/// A value and where it stands. The document and `source` must outlive it.
class JsonPlace {
 public:
  JsonPlace(const nlohmann::json& value, const std::string& source, std::string path = "")
      : value_(&value), source_(&source), path_(std::move(path)) {}

  [[nodiscard]] const nlohmann::json& value() const { return *value_; }
  [[nodiscard]] const std::string& source() const { return *source_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Throws "source: path: problem".
  [[noreturn]] void fail(const std::string& problem) const;
  /// Throws "source: path: is VALUE; expected ACCEPTED".
  [[noreturn]] void refuse(const std::string& accepted) const;

  /// Demands an object with no fields but these.
  void expect_fields(std::initializer_list<std::string_view> fields) const {
    expect_fields(std::span(fields.begin(), fields.size()));
  }
  void expect_fields(std::span<const std::string_view> fields) const;
  [[nodiscard]] std::optional<JsonPlace> find(std::string_view field) const;
  /// The field, which must be there; `accepted` says what should stand in it.
  [[nodiscard]] JsonPlace at(std::string_view field, std::string_view accepted) const;

  /// A number in [least, most]; one that is too small to matter is 0.
  [[nodiscard]] double number(double least = 0, double most = kMaxNumber) const;
  [[nodiscard]] std::int64_t whole(std::int64_t least, std::int64_t most) const;
  /// A text, with control characters escaped: it will be shown.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool boolean() const;
  /// The elements of a list; `accepted` says what should be there.
  [[nodiscard]] std::vector<JsonPlace> items(std::string_view accepted) const;

 private:
  const nlohmann::json* value_;
  const std::string* source_;
  std::string path_;
};

/// Checks "schema" and the optional "gar_version", and returns the schema that was found. `schemas` are those that are
/// accepted, the newest ("gar.profile/2") first; `made_by` tells where such files come from.
std::string_view check_schema(const JsonPlace& document, std::span<const std::string_view> schemas,
                              std::string_view made_by);

}  // namespace gar
