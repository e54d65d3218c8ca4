// What readers and writers of JSON text share.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace gar {

/// The types that the JSON library hands to a reader of its events.
struct JsonEvents {
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;
};

/// A JSON string; what is not UTF-8 is replaced.
std::string quoted(const std::string& text);

/// What the JSON library says is wrong, fit for a message and without the library's own error code.
std::string problem_of(const nlohmann::json::exception& error);

}  // namespace gar
