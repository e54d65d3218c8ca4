// Writing result files.
//
// A new file is written without a name where the file system can do that (O_TMPFILE), so that nothing is left of it
// when the process is killed; elsewhere under a name that nobody can guess or have taken, next to where it belongs. It
// gets its real name when it is complete. No name follows a link: whatever stands under the real name is replaced.
//
// Pipes, devices and descriptors of this process such as /dev/stdout are written to as they are. Whoever may write to
// the folder can exchange a pipe at any moment, so it is opened without following a link and without waiting, and what
// was opened must be what was looked at: no file is ever opened for writing under a name that somebody else knows.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
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
#include <thread>

#include "base/clock.hpp"
#include "gar/files.hpp"
#include "io/descriptor.hpp"
#include "io/patience.hpp"

namespace gar {
namespace {

constexpr mode_t kPermissions = 0777;

[[noreturn]] void throw_unwritten(const std::string& path, int error) {
  throw std::runtime_error(
      fmt::format("{}: cannot be written: {}", path, error != 0 ? std::strerror(error) : "unknown reason"));
}

[[noreturn]] void refuse_target(const std::string& path, const std::string& problem) {
  throw std::runtime_error(
      fmt::format("{}: {}; expected a file in a folder that can be written, a pipe that somebody reads or a device, "
                  "each under its own name, or /dev/stdout",
                  path, problem));
}

/// A stream to a descriptor; the first error ends it.
class OutputBuffer : public std::streambuf {
 public:
  /// `patience_s`: how long the reader may take nothing; none: any time. Then the error is ETIMEDOUT.
  OutputBuffer(int descriptor, std::optional<double> patience_s) : descriptor_(descriptor), patience_s_(patience_s) {
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
      if (written < 0 && errno == EAGAIN && wait_for_room()) continue;
      if (written < 0) return -1;
      at += written;
    }
    setp(chunk_.data(), chunk_.data() + chunk_.size());
    return 0;
  }

 private:
  bool wait_for_room() const {
    pollfd ready{descriptor_, POLLOUT, 0};
    const auto deadline = seconds_from_now(patience_s_.value_or(0));
    int events = -1;
    do {
      events = poll(&ready, 1, patience_s_ ? milliseconds_until(deadline) : -1);
    } while (events < 0 && errno == EINTR);
    if (events == 0) errno = ETIMEDOUT;
    return events > 0;
  }

  int descriptor_;
  std::optional<double> patience_s_;
  std::array<char, std::size_t{1} << 16U> chunk_{};
};

/// Calls `write` for a descriptor. Returns the error, 0 for none.
int write_all(int descriptor, const std::function<void(std::ostream&)>& write,
              std::optional<double> patience_s = std::nullopt) {
  OutputBuffer buffer(descriptor, patience_s);
  std::ostream out(&buffer);
  errno = 0;
  write(out);
  out.flush();
  return out ? 0 : (errno != 0 ? errno : EIO);
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
  NewFile(const std::string& path, mode_t mode) : path_(path), folder_(std::filesystem::path(path).parent_path()) {
    file_.reset(open(folder_.empty() ? "." : folder_.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode));
    if (file_.is_open() && access(own_link().c_str(), F_OK) == 0) return;
    file_.reset(-1);  // a file system without nameless files, or no /proc through which they get their name
    take_random_name([&](const char* name) {
      file_.reset(open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
      return file_.is_open();
    });
  }
  ~NewFile() {
    if (!name_.empty()) unlink(name_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  [[nodiscard]] int number() const { return file_.number(); }
  /// Closes the file, which is complete, and gives it its name, in place of whatever has it.
  void finish() {
    if (name_.empty()) {  // a nameless file cannot take the place of another one at once
      take_random_name([&](const char* name) {
        return linkat(AT_FDCWD, own_link().c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
      });
    }
    if (!file_.close() || std::rename(name_.c_str(), path_.c_str()) != 0) throw_unwritten(path_, errno);
    name_.clear();
  }

 private:
  [[nodiscard]] std::string own_link() const { return fmt::format("/proc/self/fd/{}", file_.number()); }

  /// Calls `take` with names until it has taken one; it returns false, with errno, where it has not.
  void take_random_name(const std::function<bool(const char*)>& take) {
    constexpr int kMostTries = 100;
    errno = EEXIST;
    for (int i = 0; i < kMostTries && errno == EEXIST; ++i) {
      std::uint64_t random = 0;
      if (getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) break;
      const std::string name = (folder_ / fmt::format(".gar-{:016x}.part", random)).string();
      if (take(name.c_str())) {
        name_ = name;
        return;
      }
    }
    throw_unwritten(path_, errno);
  }

  std::string path_;
  std::filesystem::path folder_;
  std::string name_;  ///< under which the file must not stay
  Descriptor file_;
};

void replace_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  // A file of ours keeps its permissions; a new one gets those that the umask leaves.
  struct stat old {};
  const bool is_ours = lstat(path.c_str(), &old) == 0 && S_ISREG(old.st_mode) && old.st_uid == geteuid();
  const mode_t kept = old.st_mode & kPermissions;
  NewFile created(path,
                  is_ours ? (kept & (S_IRWXU)) | S_IWUSR : S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH);
  if (is_ours && fchmod(created.number(), kept) != 0) throw_unwritten(path, errno);
  if (const int error = write_all(created.number(), write); error != 0) throw_unwritten(path, error);
  created.finish();
}

const char* kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISDIR(mode)) return "a directory";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

/// What stands under a path, if a file cannot simply take its place: nothing for a file, a link to one, or no such
/// name. Throws std::runtime_error, which names it as `shown`, for what can neither be replaced nor written to.
std::optional<struct stat> stream_at(const std::string& path, const std::string& shown) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return std::nullopt;
  if (S_ISLNK(status.st_mode)) {
    struct stat target {};
    if (stat(path.c_str(), &target) != 0 || S_ISREG(target.st_mode)) return std::nullopt;
    refuse_target(shown, fmt::format("is a link to {}, which is not followed", kind_of(target.st_mode)));
  }
  if (S_ISDIR(status.st_mode) || S_ISSOCK(status.st_mode)) {
    refuse_target(shown, fmt::format("is {}", kind_of(status.st_mode)));
  }
  return status;
}

/// Opens the pipe or device that `seen` is; waits for the reader of a pipe for `patience_s`.
Descriptor open_stream(const std::string& path, const struct stat& seen, double patience_s) {
  constexpr std::chrono::milliseconds kPause(5);
  const auto deadline = seconds_from_now(patience_s);
  Descriptor file;
  while (!file.is_open()) {
    file.reset(open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (file.is_open() || errno == EINTR) continue;
    if (errno == ELOOP) refuse_target(path, "has become a link, which is not followed");
    if (errno != ENXIO || !S_ISFIFO(seen.st_mode)) throw_unwritten(path, errno);
    if (milliseconds_until(deadline) == 0) {
      refuse_target(path,
                    fmt::format("is a pipe that nobody has opened for reading for {}", patience_words(patience_s)));
    }
    std::this_thread::sleep_for(kPause);
  }
  struct stat status {};
  if (fstat(file.number(), &status) != 0) throw_unwritten(path, errno);
  if (status.st_dev != seen.st_dev || status.st_ino != seen.st_ino || status.st_mode != seen.st_mode) {
    refuse_target(path, "was exchanged while it was opened");
  }
  return file;
}

void write_stream(const std::string& path, const struct stat& seen, const std::function<void(std::ostream&)>& write) {
  const double patience_s = pipe_patience();
  Descriptor file = open_stream(path, seen, patience_s);
  // A device, such as a terminal, may be slow; it is the system's, and not somebody's.
  const auto patience = S_ISFIFO(seen.st_mode) ? std::optional<double>(patience_s) : std::nullopt;
  const int error = write_all(file.number(), write, patience);
  if (error == ETIMEDOUT && patience) {
    refuse_target(path, fmt::format("is a pipe whose reader has taken nothing for {}", patience_words(patience_s)));
  }
  if (error != 0) throw_unwritten(path, error);
  if (!file.close()) throw_unwritten(path, errno);
}

}  // namespace

void save_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  if (const std::optional<int> own = own_descriptor(path)) {
    Descriptor file(fcntl(*own, F_DUPFD_CLOEXEC, 0));
    if (!file.is_open()) throw_unwritten(path, errno);
    if (const int error = write_all(file.number(), write); error != 0) throw_unwritten(path, error);
    if (!file.close()) throw_unwritten(path, errno);
  } else if (const auto stream = stream_at(path, path)) {
    write_stream(path, *stream, write);
  } else {
    replace_file(path, write);
  }
}

void check_writable(std::string_view flag, const std::string& path) {
  if (path.empty() || own_descriptor(path)) return;
  (void)stream_at(path, fmt::format("{} {}", flag, path));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string where = folder.empty() ? "." : folder.string();
  const bool is_new = !std::filesystem::exists(path);
  if (access(is_new ? where.c_str() : path.c_str(), W_OK) != 0) {
    throw std::runtime_error(
        fmt::format("{} {}: cannot be written: {}; expected a file in a folder that exists and can be written", flag,
                    path, std::strerror(errno)));
  }
}

}  // namespace gar
