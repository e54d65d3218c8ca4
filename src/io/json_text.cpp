// What readers and writers of JSON text share.
#include "io/json_text.hpp"

#include <string_view>

#include "io/text_file.hpp"

namespace gar {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string problem_of(const nlohmann::json::exception& error) {
  constexpr std::size_t kMaxBytes = 300;
  std::string_view what = error.what();
  if (const auto bracket = what.find("] "); bracket != std::string_view::npos) what.remove_prefix(bracket + 2);
  return printable(what, kMaxBytes);
}

}  // namespace gar
