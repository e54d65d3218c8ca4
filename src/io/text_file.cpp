#include "io/text_file.hpp"

#include <fmt/format.h>

#include <iterator>

#include "io/input_file.hpp"

namespace gar {

std::string read_text_file(const std::string& path, std::int64_t max_bytes) {
  InputFile file(path, max_bytes);
  return {std::istreambuf_iterator<char>(&file), std::istreambuf_iterator<char>()};
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string out;
  for (const char c : text.substr(0, max_bytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  if (text.size() > max_bytes) out += "...";
  return out;
}

}  // namespace gar
