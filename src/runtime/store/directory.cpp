// A key is a file. It is written under another name and renamed, so that who finds it finds all of it.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <thread>

#include "gar/errors.hpp"
#include "gar/format.hpp"
#include "gar/store.hpp"
#include "runtime/store/messages.hpp"
#include "runtime/transports/shared/meeting_place.hpp"

namespace gar {

namespace {

using StoreClock = std::chrono::steady_clock;

/// Letters, digits, '-' and '_' stay; what else a key has is written as %XX.
std::string file_name(const std::string& key) {
  std::string out;
  for (const char c : key) {
    const bool stays =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    out += stays ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

class DirectoryStore final : public Store {
 public:
  explicit DirectoryStore(const std::string& path) : path_(path) {
    if (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) refuse(std::strerror(errno));
    directory_ = File(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory_.fd < 0) refuse(std::strerror(errno));
    struct stat about = {};
    if (fstat(directory_.fd, &about) != 0) refuse(std::strerror(errno));
    if (about.st_uid != geteuid())
      refuse("it belongs to another user; expected a directory of the user who runs the job");
    if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
      refuse("others may read or write it, and so join the job; expected mode 0700");
    }
  }

  void set(const std::string& key, const std::string& value) override {
    const std::string name = file_name(key);
    const std::string part = write_part(name, value);
    if (renameat(directory_.fd, part.c_str(), directory_.fd, name.c_str()) != 0) give_up(part);
  }

  std::optional<std::string> look(const std::string& key) override {
    look_again();
    return read_value(file_name(key));
  }

  /// A file gets another name only where there is none of that name yet, on NFS as well.
  bool claim(const std::string& key, const std::string& value) override {
    const std::string name = file_name(key);
    const std::string part = write_part(name, value);
    const bool is_new = linkat(directory_.fd, part.c_str(), directory_.fd, name.c_str(), 0) == 0;
    if (!is_new && errno != EEXIST) give_up(part);
    unlinkat(directory_.fd, part.c_str(), 0);
    return is_new;
  }

  std::string get(const std::string& key, double timeout_s) override {
    const std::string name = file_name(key);
    const auto limit = StoreClock::now() + std::chrono::duration<double>(timeout_s);
    auto pause = std::chrono::milliseconds(1);
    while (true) {
      if (std::optional<std::string> value = read_value(name)) return *value;
      if (StoreClock::now() >= limit) {
        throw TransportError(
            fmt::format("nobody has set '{}' in the store {} within {} s", escaped(key), escaped(path_), timeout_s));
      }
      look_again();
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, std::chrono::milliseconds(50));
    }
  }

  void remove(const std::string& key) override { unlinkat(directory_.fd, file_name(key).c_str(), 0); }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw InvalidArgument(fmt::format("the store {}: {}", escaped(path_), why));
  }

  /// Returns the name that it has until it is complete.
  [[nodiscard]] std::string write_part(const std::string& name, const std::string& value) const {
    std::string part = fmt::format(".{}.{}-{:x}", name, getpid(), own_);
    File file(
        openat(directory_.fd, part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    bool is_written = file.fd >= 0;
    for (std::size_t done = 0; is_written && done < value.size();) {
      const ssize_t wrote = write(file.fd, value.data() + done, value.size() - done);
      is_written = wrote > 0 || (wrote < 0 && errno == EINTR);
      if (wrote > 0) done += static_cast<std::size_t>(wrote);
    }
    // NFS hands data out when a file is closed.
    is_written = is_written && fsync(file.fd) == 0 && close(std::exchange(file.fd, -1)) == 0;
    if (!is_written) give_up(part);
    return part;
  }

  [[noreturn]] void give_up(const std::string& part) const {
    const int error = errno;
    unlinkat(directory_.fd, part.c_str(), 0);
    throw TransportError(fmt::format("cannot write to the store {}: {}", escaped(path_), std::strerror(error)));
  }

  [[nodiscard]] std::optional<std::string> read_value(const std::string& name) const {
    const File file(openat(directory_.fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.fd < 0) return std::nullopt;
    std::string out;
    std::array<char, 4096> part;
    while (true) {
      const ssize_t got = read(file.fd, part.data(), part.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0 || out.size() > kMostValueBytes) break;
      out.append(part.data(), static_cast<std::size_t>(got));
    }
    return out;
  }

  /// NFS remembers for a while that a file is not there; listing the directory makes it look.
  void look_again() const {
    DIR* list = opendir(path_.c_str());
    if (list == nullptr) return;
    while (readdir(list) != nullptr) {
    }
    closedir(list);
  }

  std::string path_;
  File directory_;
  /// Processes in containers and on other hosts may have the same number.
  std::uint64_t own_ = std::random_device()() * (std::uint64_t{1} << 32U) + std::random_device()();
};

}  // namespace

std::unique_ptr<Store> directory_store(const std::string& path) { return std::make_unique<DirectoryStore>(path); }

}  // namespace gar
