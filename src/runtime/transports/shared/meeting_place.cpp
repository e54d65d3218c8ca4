#include "runtime/transports/shared/meeting_place.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "base/hash.hpp"
#include "gar/errors.hpp"

namespace gar {

namespace {

constexpr const char* kSocket = "socket";
constexpr const char* kHidden = "~";  // at the end of the name of a directory that is not complete yet
constexpr std::size_t kMostGreeting = 4096;

std::string prefix_of_user() { return fmt::format("gar-{}-", geteuid()); }
std::string prefix_of(std::string_view name) { return fmt::format("{}{:016x}-", prefix_of_user(), mix_in(0, name)); }
/// Where this user's places are, unless somebody else has taken the name.
std::string own_home() { return fmt::format("{}/gar-{}", kMeetingDirectory, geteuid()); }

/// Is it a directory that belongs to this user alone?
bool is_own_directory(const struct stat& status) {
  return S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

/// Opens a directory that belongs to this user alone. Anything else is not for us: -1. Never waits: leases and pipes
/// are not those of directories.
File open_own(const std::string& path) {
  // The first look opens nothing: strangers may have left very many entries, and an open costs more than a look.
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0 || !is_own_directory(status)) return File();
  File out(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  const bool is_own = out.fd >= 0 && fstat(out.fd, &status) == 0 && is_own_directory(status);
  return is_own ? std::move(out) : File();
}

/// Calls f with the path of every entry of a directory that begins like this, until f says that it is enough.
void for_entries(const std::string& directory, const std::string& prefix,
                 const std::function<bool(const std::string&)>& f) {
  DIR* stream = opendir(directory.c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = readdir(stream)) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
    const std::string_view name(static_cast<const char*>(entry->d_name));
    if (name.starts_with(prefix) && f(fmt::format("{}/{}", directory, name))) break;
  }
  closedir(stream);
}

/// The same in all directories where places can be. Only rarely is one outside of this user's own.
void for_places(const std::string& prefix, bool everywhere, const std::function<bool(const std::string&)>& f) {
  bool is_enough = false;
  const auto note = [&](const std::string& path) { return is_enough = f(path); };
  if (open_own(own_home()).fd >= 0) for_entries(own_home(), prefix, note);
  if (everywhere && !is_enough) for_entries(kMeetingDirectory, prefix, note);
}

/// The socket in an open directory; through the descriptor, so that it is that directory and no other.
sockaddr_un address_in(int directory) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", directory, kSocket);
  path.copy(static_cast<char*>(out.sun_path), sizeof(out.sun_path) - 1);
  return out;
}

File make_socket() { return File(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

/// Is the process at the other end one of this user's?
bool is_own_peer(int connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

/// Connected to the one who listens in that directory, if there is one.
File connect_in(int directory) {
  File out = make_socket();
  const sockaddr_un address = address_in(directory);
  const bool is_there = out.fd >= 0 &&
                        connect(out.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                        is_own_peer(out.fd);
  return is_there ? std::move(out) : File();
}

/// Room for one descriptor in a message.
union Control {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

bool send_greeting(int connection, std::span<const std::byte> greeting, int fd) {
  iovec data{const_cast<std::byte*>(greeting.data()), greeting.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  Control control{};
  if (fd >= 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(part), &fd, sizeof fd);
  }
  return sendmsg(connection, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(greeting.size());
}

std::optional<Handed> receive_greeting(int connection, int milliseconds) {
  pollfd waiting{connection, POLLIN, 0};
  if (poll(&waiting, 1, milliseconds) <= 0) return std::nullopt;
  std::string text(kMostGreeting, '\0');
  iovec data{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  Control control{};
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  const ssize_t length = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
  if (length <= 0) return std::nullopt;
  Handed out;
  text.resize(static_cast<std::size_t>(length));
  out.greeting = std::move(text);
  const cmsghdr* part = CMSG_FIRSTHDR(&message);
  if (part != nullptr && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
    // One descriptor is what we expect; of more, the others are closed.
    std::array<int, sizeof(Control) / sizeof(int)> descriptors{};
    const std::size_t number = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::memcpy(descriptors.data(), CMSG_DATA(part), number * sizeof(int));
    if (number > 0) out.file = File(descriptors[0]);
    for (std::size_t i = 1; i < number; ++i) close(descriptors[i]);
  }
  return out;
}

std::string random_ending() {
  std::uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    throw TransportError(fmt::format("cannot get random numbers: {}", std::strerror(errno)));
  }
  return fmt::format("{:016x}", bits);
}

}  // namespace

MeetingPlace::MeetingPlace(std::string_view name) : prefix_(prefix_of(name)) {
  // Somebody who sweeps may take a directory away before its lock is held; another one is made then.
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (make()) return;
  }
  throw TransportError(fmt::format("cannot make a directory in {}: it is removed again and again", kMeetingDirectory));
}

/// False: it was taken away meanwhile.
bool MeetingPlace::make() {
  const auto refuse = [](const char* what) {
    throw TransportError(fmt::format("cannot {} in {}, where the ranks of a host meet: {}", what, kMeetingDirectory,
                                     std::strerror(errno)));
  };
  // In a directory of this user's nobody else can be in the way. Where somebody has taken its name, beside it.
  std::string home = own_home();
  static_cast<void>(mkdir(home.c_str(), S_IRWXU));
  const bool has_home = open_own(home).fd >= 0;
  if (!has_home) home = kMeetingDirectory;
  // Two names that nobody can guess: who sees the first one cannot take the second one before us.
  const std::string hidden = fmt::format("{}/{}{}{}", home, prefix_, random_ending(), kHidden);
  const std::string complete = fmt::format("{}/{}{}", home, prefix_, random_ending());
  if (mkdir(hidden.c_str(), S_IRWXU) != 0) {
    if (has_home && errno == ENOENT) return false;  // it was empty, and its last user has removed it
    refuse("make a directory");
  }
  errno = 0;
  directory_ = open_own(hidden);
  if (directory_.fd < 0 && errno != 0 && errno != ENOENT) {  // too many open files, or a umask without rights for us
    const int error = errno;
    rmdir(hidden.c_str());
    errno = error;
    refuse("open a directory");
  }
  struct stat status {};
  if (directory_.fd < 0 || flock(directory_.fd, LOCK_EX | LOCK_NB) != 0 || fstat(directory_.fd, &status) != 0 ||
      status.st_nlink == 0) {
    rmdir(hidden.c_str());
    return false;
  }
  socket_ = make_socket();
  const sockaddr_un address = address_in(directory_.fd);
  if (socket_.fd < 0 || bind(socket_.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket_.fd, SOMAXCONN) != 0 || rename(hidden.c_str(), complete.c_str()) != 0) {
    const int error = errno;
    unlinkat(directory_.fd, kSocket, 0);
    rmdir(hidden.c_str());
    errno = error;
    refuse("make a socket");
  }
  path_ = complete;
  return true;
}

MeetingPlace::~MeetingPlace() {
  // A child that was forked has a copy of this object.
  if (getpid() != process_) return;
  unlinkat(directory_.fd, kSocket, 0);
  rmdir(path_.c_str());
  rmdir(own_home().c_str());  // if nobody else uses it
}

bool MeetingPlace::has_rival() const {
  bool out = false;
  for_places(prefix_, true, [&](const std::string& path) {
    if (path == path_ || path.ends_with(kHidden)) return false;
    const File directory = open_own(path);
    out = directory.fd >= 0 && connect_in(directory.fd).fd >= 0;
    return out;
  });
  return out;
}

int MeetingPlace::serve(std::span<const std::byte> greeting, int fd, int milliseconds) {
  pollfd waiting{socket_.fd, POLLIN, 0};
  if (poll(&waiting, 1, milliseconds) <= 0) return 0;
  int served = 0;
  while (true) {
    const File connection(accept4(socket_.fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.fd < 0) return served;
    if (is_own_peer(connection.fd) && send_greeting(connection.fd, greeting, fd)) ++served;
  }
}

std::optional<Handed> visit_meeting_place(std::string_view name, bool everywhere, int milliseconds) {
  std::optional<Handed> out;
  for_places(prefix_of(name), everywhere, [&](const std::string& path) {
    if (path.ends_with(kHidden)) return false;
    const File directory = open_own(path);
    if (directory.fd < 0) return false;
    const File connection = connect_in(directory.fd);
    if (connection.fd >= 0) out = receive_greeting(connection.fd, milliseconds);
    return out.has_value();
  });
  return out;
}

void sweep_meeting_places() {
  for_places(prefix_of_user(), true, [](const std::string& path) {
    const File directory = open_own(path);
    if (directory.fd >= 0 && flock(directory.fd, LOCK_EX | LOCK_NB) == 0) {
      unlinkat(directory.fd, kSocket, 0);
      rmdir(path.c_str());
    }
    return false;
  });
  rmdir(own_home().c_str());  // if it is empty
}

}  // namespace gar
