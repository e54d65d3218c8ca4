// Where a member of a job is called: it listens on one address, and lets in who knows the secret.
//
// A stranger costs a descriptor and the fixed state of a handshake, for some seconds. There is room for a fixed number
// of callers who have not proved themselves, half of it for those who have said who they are; when it is full, the
// oldest one goes. A member that is turned away in such a crowd calls again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/transports/tcp/handshake.hpp"
#include "runtime/transports/tcp/sockets.hpp"

namespace gar {

/// One end of a handshake over a socket that does not block.
class Greeter {
 public:
  Greeter(File socket, const Handshake& handshake) : socket_(std::move(socket)), handshake_(handshake) {}

  /// Does what can be done now. True when it is over: see is_welcome.
  bool advance();
  [[nodiscard]] bool is_welcome() const { return is_welcome_; }
  [[nodiscard]] bool wants_to_write() const { return !handshake_.output().empty(); }
  [[nodiscard]] const Handshake& handshake() const { return handshake_; }
  [[nodiscard]] int fd() const { return socket_.fd; }
  [[nodiscard]] File take() { return std::move(socket_); }

 private:
  File socket_;
  Handshake handshake_;
  bool is_welcome_ = false;
};

/// Somebody who knows the secret.
struct Guest {
  int rank = 0;
  File socket;
};

class Reception {
 public:
  /// `own`: what callers must name.
  Reception(File listening, const Digest& key, const Introduction& own);

  /// Readable (for poll and epoll) when `serve` has something to do.
  [[nodiscard]] int fd() const { return epoll_.fd; }
  /// Does what can be done now; returns who has come in. To be called once a second at least, so that the silent go.
  std::vector<Guest> serve();
  [[nodiscard]] std::size_t num_strangers() const { return callers_.size(); }

 private:
  struct Caller {
    Greeter greeter;
    std::int64_t since_ns = 0;
  };
  void accept_some();
  void make_room();

  File listening_;
  Digest key_;
  Introduction own_;
  File epoll_;
  std::deque<Caller> callers_;  ///< oldest first
};

}  // namespace gar
