// Writing result files.
//
// A new file is written under a name that nobody can guess or have taken, next to where it belongs, and gets its real
// name when it is complete. Neither name follows a link: whatever stands under the real name is replaced. What is not a
// file (a pipe, a device, a descriptor of this process such as /dev/stdout) is written to as it is.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <streambuf>

#include "gar/files.hpp"
#include "io/descriptor.hpp"

namespace gar {
namespace {

constexpr mode_t kPermissions = 0777;

[[noreturn]] void throw_unwritten(const std::string& path, int error) {
  throw std::runtime_error(
      fmt::format("{}: cannot be written: {}", path, error != 0 ? std::strerror(error) : "unknown reason"));
}

/// A stream to a descriptor; the first error ends it.
class OutputBuffer : public std::streambuf {
 public:
  explicit OutputBuffer(int descriptor) : descriptor_(descriptor) {
    setp(chunk_.data(), chunk_.data() + chunk_.size());
  }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }

  int sync() override {
    const char* at = pbase();
    while (at < pptr()) {
      const ssize_t written = ::write(descriptor_, at, static_cast<std::size_t>(pptr() - at));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return -1;
      at += written;
    }
    setp(chunk_.data(), chunk_.data() + chunk_.size());
    return 0;
  }

 private:
  int descriptor_;
  std::array<char, std::size_t{1} << 16U> chunk_{};
};

/// Calls `write` and closes the file. Returns the error, 0 for none.
int write_and_close(Descriptor& file, const std::function<void(std::ostream&)>& write) {
  OutputBuffer buffer(file.number());
  std::ostream out(&buffer);
  errno = 0;
  write(out);
  out.flush();
  int error = out ? 0 : (errno != 0 ? errno : EIO);
  if (!file.close() && error == 0) error = errno;
  return error;
}

/// The descriptor of this process that a path names: 1 for /dev/stdout.
std::optional<int> own_descriptor(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const std::string_view digits = path.substr(folder.size());
    int number = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size() && number >= 0) return number;
  }
  return std::nullopt;
}

/// A new file in a folder, which goes away again if it is not given a name.
class NewFile {
 public:
  /// Throws std::runtime_error that names `path`. `mode` as for open().
  NewFile(const std::string& path, mode_t mode) : path_(path) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    constexpr int kMostTries = 100;
    for (int i = 0; i < kMostTries && !file_.is_open(); ++i) {
      std::uint64_t random = 0;
      if (getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) throw_unwritten(path_, errno);
      name_ = (folder / fmt::format(".gar-{:016x}.part", random)).string();
      file_.reset(open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
      if (!file_.is_open() && errno != EEXIST) break;
    }
    if (!file_.is_open()) throw_unwritten(path_, errno);
  }
  ~NewFile() {
    if (!name_.empty()) unlink(name_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  [[nodiscard]] Descriptor& file() { return file_; }
  /// Gives the file its name, in place of whatever has it.
  void take_name() {
    if (std::rename(name_.c_str(), path_.c_str()) != 0) throw_unwritten(path_, errno);
    name_.clear();
  }

 private:
  std::string path_;
  std::string name_;
  Descriptor file_;
};

void replace_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  // A file of ours keeps its permissions; a new one gets those that the umask leaves.
  struct stat old {};
  const bool is_ours = lstat(path.c_str(), &old) == 0 && S_ISREG(old.st_mode) && old.st_uid == geteuid();
  const mode_t kept = old.st_mode & kPermissions;
  NewFile created(path,
                  is_ours ? (kept & (S_IRWXU)) | S_IWUSR : S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH);
  if (is_ours && fchmod(created.file().number(), kept) != 0) throw_unwritten(path, errno);
  if (const int error = write_and_close(created.file(), write); error != 0) throw_unwritten(path, error);
  created.take_name();
}

}  // namespace

void save_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  const std::optional<int> own = own_descriptor(path);
  struct stat status {};
  const bool is_there = stat(path.c_str(), &status) == 0;
  if (!own && (!is_there || S_ISREG(status.st_mode))) {
    replace_file(path, write);
    return;
  }
  Descriptor file(own ? fcntl(*own, F_DUPFD_CLOEXEC, 0) : open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.is_open()) throw_unwritten(path, errno);
  if (const int error = write_and_close(file, write); error != 0) throw_unwritten(path, error);
}

void check_writable(std::string_view flag, const std::string& path) {
  if (path.empty() || own_descriptor(path)) return;
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
