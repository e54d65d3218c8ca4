// Opening without blocking, and reading with an eye on the clock.
//
// A pipe that nobody writes to blocks open(), and a silent one blocks read(). So files are opened with O_NONBLOCK, and
// poll() waits. On Linux, read() of such a pipe returns 0 as long as there is no writer, as it does at the end; but
// before the first writer has come, poll() does not say that anybody has hung up. The pipe of `<(command)` in a shell
// has its writer from the beginning. Some files of the kernel, such as /proc/kmsg, say that they are regular and are as
// silent as a pipe.
#include "io/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "gar/errors.hpp"
#include "io/patience.hpp"

namespace gar {
namespace {

/// What a file is when it cannot be read as one; empty when it can.
std::string unfit_kind(const struct stat& status) {
  if (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode)) return "";
  if (S_ISDIR(status.st_mode)) return "is a directory";
  return S_ISSOCK(status.st_mode) ? "is a socket" : "is a device";
}

bool is_standard_input(const struct stat& status) {
  struct stat own {};
  return !S_ISREG(status.st_mode) && fstat(STDIN_FILENO, &own) == 0 && own.st_dev == status.st_dev &&
         own.st_ino == status.st_ino;
}

}  // namespace

InputFile::InputFile(std::string path, std::int64_t max_bytes, std::string accepted)
    : path_(std::move(path)), accepted_(std::move(accepted)), max_bytes_(max_bytes), chunk_(std::size_t{1} << 16U) {
  struct stat status {};
  if (stat(path_.c_str(), &status) != 0) {
    if (errno != ENOENT) fail(fmt::format("cannot be opened: {}", std::strerror(errno)));
    throw ParseError(
        fmt::format("{}: there is no such file{}", path_, accepted_.empty() ? "" : "; expected " + accepted_));
  }
  if (is_standard_input(status)) {
    file_.reset(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
    return;
  }
  // Before it is opened, since a device may take that as a command, and after, since it may have been replaced.
  if (const std::string kind = unfit_kind(status); !kind.empty()) fail(kind);
  file_.reset(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file_.is_open() || fstat(file_.number(), &status) != 0)
    fail(fmt::format("cannot be opened: {}", std::strerror(errno)));
  if (const std::string kind = unfit_kind(status); !kind.empty()) fail(kind);
  is_pipe_ = S_ISFIFO(status.st_mode);
  patience_s_ = pipe_patience();
  if (status.st_size > max_bytes_) fail_too_long(fmt::format("{}", status.st_size));
}

void InputFile::fail(const std::string& problem) const {
  throw ParseError(
      fmt::format("{}: {}; {}", path_, problem, accepted_.empty() ? "expected a file" : "expected " + accepted_));
}

void InputFile::fail_too_long(const std::string& size) const {
  throw ParseError(fmt::format("{}: has {} bytes; expected at most {}", path_, size, max_bytes_));
}

std::size_t InputFile::read_some() {
  const auto deadline = seconds_from_now(patience_s_.value_or(0));
  bool has_hung_up = false;
  while (true) {
    const ssize_t got = read(file_.number(), chunk_.data(), chunk_.size());
    if (got > 0) return static_cast<std::size_t>(got);
    const bool waits_for_writer = is_pipe_ && num_bytes_ == 0 && !has_hung_up;
    if (got == 0 && !waits_for_writer) return 0;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
    const int left = patience_s_ ? milliseconds_until(deadline) : -1;
    if (left == 0) {
      fail(fmt::format("{} for {}",
                       got == 0   ? "is a pipe that nobody has written to"
                       : is_pipe_ ? "is a pipe that has been silent"
                                  : "is not a stored file and has given nothing",
                       patience_words(*patience_s_)));
    }
    pollfd ready{file_.number(), POLLIN, 0};
    const int events = poll(&ready, 1, left);
    has_hung_up = events > 0 && (ready.revents & POLLIN) == 0;
  }
}

InputFile::int_type InputFile::underflow() {
  const std::size_t got = read_some();
  if (got == 0) return traits_type::eof();
  num_bytes_ += static_cast<std::int64_t>(got);
  if (num_bytes_ > max_bytes_) fail_too_long(fmt::format("more than {}", max_bytes_));
  setg(chunk_.data(), chunk_.data(), chunk_.data() + got);
  return traits_type::to_int_type(*gptr());
}

}  // namespace gar
