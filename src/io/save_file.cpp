// Writing result files.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "gar/files.hpp"

namespace gar {

void save_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  const bool replace = !fs::exists(status) || fs::is_regular_file(status);  // not /dev/stdout or a pipe
  const std::string target = replace ? fmt::format("{}.{}.part", path, getpid()) : path;
  errno = 0;
  std::ofstream out(target, std::ios::binary);
  try {
    if (out) write(out);
  } catch (...) {
    if (replace) fs::remove(target, ignored);
    throw;
  }
  out.close();
  bool ok = static_cast<bool>(out);
  if (ok && replace) ok = std::rename(target.c_str(), path.c_str()) == 0;
  if (ok) return;
  const std::string reason = errno != 0 ? std::strerror(errno) : "unknown reason";
  if (replace) fs::remove(target, ignored);
  throw std::runtime_error(fmt::format("{}: cannot be written: {}", path, reason));
}

void check_writable(std::string_view flag, const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string where = folder.empty() ? "." : folder.string();
  const bool is_new = !std::filesystem::exists(path);
  errno = std::filesystem::is_directory(path) ? EISDIR : 0;
  if (errno != 0 || access(is_new ? where.c_str() : path.c_str(), W_OK) != 0) {
    throw std::runtime_error(
        fmt::format("{} {}: cannot be written: {}; accepted is a file in a folder that exists and can be written", flag,
                    path, std::strerror(errno)));
  }
}

}  // namespace gar
