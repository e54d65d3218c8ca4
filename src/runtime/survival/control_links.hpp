// Connections that carry letters: one between every two ranks, beside those for data, and untouched when these fail.
// Sockets that are connected already, of whatever family. Nothing here waits but wait().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/survival/letters.hpp"
#include "runtime/transports/shared/meeting_place.hpp"

namespace gar {

class ControlLinks {
 public:
  struct Event {
    int from = 0;
    bool is_end = false;  ///< nothing follows; otherwise: a letter
    Letter letter{};
  };

  /// By rank; the own one is empty. Makes them non-blocking.
  explicit ControlLinks(std::vector<File> sockets);

  /// Leaves as soon as the link takes it. Signs of life are dropped where something else waits to leave.
  void send(int to, const Letter& letter);
  /// Waits at most this long; returns all that has come: the letters of a link before its end.
  [[nodiscard]] std::vector<Event> wait(int milliseconds);
  /// Gives what is still to leave that many milliseconds.
  void flush(int milliseconds) noexcept;
  /// When something came from this rank last; of the steady clock.
  [[nodiscard]] std::int64_t heard_ns(int rank) const { return links_[static_cast<std::size_t>(rank)].heard_ns; }
  void close_all() noexcept {
    for (Link& link : links_) link.socket = File();
  }
  [[nodiscard]] bool is_open(int rank) const { return links_[static_cast<std::size_t>(rank)].socket.fd >= 0; }

 private:
  struct Link {
    File socket{};
    std::string in{};
    std::string out{};
    std::int64_t heard_ns = 0;
  };
  void write(Link& link);
  /// False: it has ended.
  bool read(int from, Link& link, std::vector<Event>& events);
  static bool take_letters(int from, Link& link, std::vector<Event>& events);

  std::vector<Link> links_;
};

/// Of the steady clock.
std::int64_t steady_ns();

}  // namespace gar
