// Where the processes of one user on one host find each other.
//
// Rank 0 makes a directory that nobody else may enter (mode 0700, a name that cannot be guessed), with a socket in it,
// and hands a greeting and a descriptor to every process of its user that comes. It lies in a directory of the user's
// own below /dev/shm (gar-UID, mode 0700, made when it is needed and removed when it is empty), or, where another user
// has taken that name, in /dev/shm itself. The others look for directories that belong to them; what other users put
// into /dev/shm is passed over, whatever it is called, and is never opened. A directory whose maker does not hold its
// lock any more is a leftover of a process that was killed; the next rank 0 of the same user removes it.
#pragma once

#include <unistd.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace gar {

inline constexpr const char* kMeetingDirectory = "/dev/shm";

/// A descriptor that is closed with the object.
struct File {
  explicit File(int descriptor = -1) : fd(descriptor) {}
  File(File&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd >= 0) close(fd);
  }
  int fd;
};

/// Rank 0's side. It goes away with the object.
class MeetingPlace {
 public:
  /// Throws TransportError.
  explicit MeetingPlace(std::string_view name);
  ~MeetingPlace();
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;

  /// Is there another one of this name, whose maker lives?
  [[nodiscard]] bool has_rival() const;
  /// Hands the greeting, and the descriptor unless it is -1, to all who have come; waits for the first one at most that
  /// long. Returns how many got it.
  int serve(std::span<const std::byte> greeting, int fd, int milliseconds);

 private:
  [[nodiscard]] bool make();

  std::string prefix_;
  std::string path_;  ///< of the directory
  File directory_;    ///< holds its lock
  File socket_;
  pid_t process_ = getpid();
};

struct Handed {
  std::string greeting;
  File file;
};
/// What rank 0 of that name hands out; nothing when it is not there, or dies meanwhile. A rank 0 that does not answer
/// is waited for as long as that. `everywhere`: also where places are when somebody has taken the name of this user's
/// own directory; that costs a look at everything that strangers have left there.
std::optional<Handed> visit_meeting_place(std::string_view name, bool everywhere, int milliseconds);

/// Removes what killed processes of this user have left.
void sweep_meeting_places();

}  // namespace gar
