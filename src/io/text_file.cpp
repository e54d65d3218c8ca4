#include "io/text_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "gar/errors.hpp"

namespace gar {

std::string read_text_file(const std::string& path, std::int64_t max_bytes) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (status.type() == fs::file_type::not_found) throw ParseError(fmt::format("{}: there is no such file", path));
  if (!fs::status_known(status)) throw ParseError(fmt::format("{}: {}", path, failure.message()));
  if (fs::is_directory(status)) throw ParseError(fmt::format("{}: is a directory; a file is accepted", path));
  const auto refuse_size = [&](const std::string& size) {
    throw ParseError(fmt::format("{}: has {} bytes; at most {} are accepted (\"repeat\" keeps large networks short)",
                                 path, size, max_bytes));
  };
  if (fs::is_regular_file(status)) {
    const std::uintmax_t size = fs::file_size(path, failure);
    if (!failure && size > static_cast<std::uintmax_t>(max_bytes)) refuse_size(std::to_string(size));
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throw ParseError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  std::string text;
  std::string chunk(std::size_t{1} << 16U, '\0');
  while (true) {
    const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), file.get());
    text.append(chunk, 0, got);
    if (static_cast<std::int64_t>(text.size()) > max_bytes) refuse_size("more than " + std::to_string(max_bytes));
    if (got < chunk.size()) break;
  }
  if (std::ferror(file.get()) != 0) throw ParseError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return text;
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
