#include "io/json_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "gar/errors.hpp"
#include "gar/format.hpp"
#include "io/json_text.hpp"
#include "io/text_file.hpp"

namespace gar {
namespace {

constexpr std::size_t kMaxDocumentBytes = std::size_t{16} << 20U;
// A topology of 64 levels takes two per level.
constexpr int kMaxDocumentNesting = 200;

/// Follows the parser and refuses what the finished document would not show.
class DocumentGuard {
 public:
  explicit DocumentGuard(const std::string& source) : source_(source) {}

  bool operator()(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (depth > kMaxDocumentNesting)
      throw ParseError(
          fmt::format("{}: is nested deeper than {} levels, the most that is accepted", source_, kMaxDocumentNesting));
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key && !keys_.back().insert(parsed.get_ref<const std::string&>()).second)
      throw ParseError(fmt::format("{}: the field \"{}\" appears twice in an object; expected once", source_,
                                   printable(parsed.get_ref<const std::string&>())));
    return true;
  }

 private:
  const std::string& source_;
  std::vector<std::set<std::string>> keys_;
};

/// Stops at the first "schema" of the outermost object.
struct SchemaPeek : nlohmann::json_sax<nlohmann::json> {
  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool string(string_t& text) override {
    if (is_schema && depth == 1) schema = text;
    return value();
  }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return --depth > 0; }
  bool end_array() override { return --depth > 0; }
  bool key(string_t& name) override {
    is_schema = depth == 1 && name == "schema";
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  [[nodiscard]] bool value() const { return !(is_schema && depth == 1); }
  bool open() {
    ++depth;
    return depth < kMaxDocumentNesting;
  }

  int depth = 0;
  bool is_schema = false;
  std::string schema;
};

std::string described(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return fmt::format("\"{}\"", printable(value.get_ref<const std::string&>()));
  return printable(value.dump());
}

/// Are both of one kind, and is the version of `found` ("gar.profile/3") above that of `newest` ("gar.profile/2")?
bool is_newer(std::string_view found, std::string_view newest) {
  const std::size_t slash = newest.rfind('/') + 1;
  if (found.substr(0, slash) != newest.substr(0, slash)) return false;
  const auto version_of = [&](std::string_view schema) {
    int number = 0;
    const char* end = schema.data() + schema.size();
    const auto [rest, error] = std::from_chars(schema.data() + slash, end, number);
    return error == std::errc() && rest == end ? number : 0;
  };
  return version_of(found) > version_of(newest);
}

std::string number_words(double least, double most) { return fmt::format("a number from {:g} to {:g}", least, most); }

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& source) {
  if (text.size() > kMaxDocumentBytes)
    throw ParseError(fmt::format("{}: has {} bytes; expected at most {}", source, text.size(), kMaxDocumentBytes));
  try {
    DocumentGuard guard(source);
    return nlohmann::json::parse(text, [&guard](int depth, nlohmann::json::parse_event_t event,
                                                nlohmann::json& parsed) { return guard(depth, event, parsed); });
  } catch (const nlohmann::json::exception& error) {
    throw ParseError(fmt::format("{}: not valid JSON: {}", source, problem_of(error)));
  }
}

std::string peek_schema(std::string_view text) {
  SchemaPeek peek;
  (void)nlohmann::json::sax_parse(text, &peek);
  return peek.schema;
}

void JsonPlace::fail(const std::string& problem) const {
  throw ParseError(fmt::format("{}: {}: {}", *source_, path_.empty() ? "document" : path_, problem));
}

void JsonPlace::refuse(const std::string& accepted) const {
  fail(fmt::format("is {}; expected {}", described(*value_), accepted));
}

void JsonPlace::expect_fields(std::span<const std::string_view> fields) const {
  if (!value_->is_object()) refuse(fmt::format("an object with the fields {}", fmt::join(fields, ", ")));
  for (const auto& [name, ignored] : value_->items()) {
    if (std::find(fields.begin(), fields.end(), name) == fields.end())
      fail(fmt::format("unknown field \"{}\"; expected {}", printable(name), fmt::join(fields, ", ")));
  }
}

std::optional<JsonPlace> JsonPlace::find(std::string_view field) const {
  const auto found = value_->find(std::string(field));
  if (found == value_->end()) return std::nullopt;
  return JsonPlace(*found, *source_, path_.empty() ? std::string(field) : fmt::format("{}.{}", path_, field));
}

JsonPlace JsonPlace::at(std::string_view field, std::string_view accepted) const {
  const auto found = find(field);
  if (!found) fail(fmt::format("the field \"{}\" is missing; expected {}", field, accepted));
  return *found;
}

double JsonPlace::number(double least, double most) const {
  if (!value_->is_number()) refuse(number_words(least, most));
  const double result = value_->get<double>();
  if (!(result >= least && result <= most)) refuse(number_words(least, most));
  return std::abs(result) < kLeastParameter ? 0 : result;
}

std::int64_t JsonPlace::whole(std::int64_t least, std::int64_t most) const {
  const auto words = [&] { return fmt::format("a whole number from {} to {}", least, most); };
  if (!value_->is_number()) refuse(words());
  // 4, 4.0 and 4e0 are the same number; the bounds are below 2^53.
  const double number = value_->get<double>();
  if (!(number >= static_cast<double>(least) && number <= static_cast<double>(most)) || number != std::floor(number))
    refuse(words());
  return static_cast<std::int64_t>(number);
}

std::string JsonPlace::text() const {
  if (!value_->is_string()) refuse("a text");
  return escaped(value_->get_ref<const std::string&>());
}

bool JsonPlace::boolean() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::vector<JsonPlace> JsonPlace::items(std::string_view accepted) const {
  if (!value_->is_array()) refuse(std::string(accepted));
  std::vector<JsonPlace> result;
  result.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    result.emplace_back((*value_)[i], *source_, fmt::format("{}[{}]", path_, i));
  return result;
}

std::string_view check_schema(const JsonPlace& document, std::span<const std::string_view> schemas,
                              std::string_view made_by) {
  const std::string accepted = fmt::format("\"{}\"", fmt::join(schemas, "\" or \""));
  if (!document.value().is_object()) document.refuse(fmt::format("an object with the schema {}", accepted));
  const JsonPlace place = document.at("schema", fmt::format("{} ({})", accepted, made_by));
  const std::string found = place.text();
  if (const auto gar_version = document.find("gar_version")) (void)gar_version->text();
  const auto known = std::find(schemas.begin(), schemas.end(), found);
  if (known != schemas.end()) return *known;
  if (is_newer(found, schemas.front())) {
    place.fail(fmt::format("is \"{}\", written by a newer gar than this one; expected {}", printable(found), accepted));
  }
  place.fail(fmt::format("is \"{}\"; expected {} ({})", printable(found), accepted, made_by));
}

}  // namespace gar
