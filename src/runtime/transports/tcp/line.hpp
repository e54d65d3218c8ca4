// A connection between a member of a job and somebody who waits to be taken in: messages of a word and a text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/store/messages.hpp"
#include "runtime/transports/tcp/sockets.hpp"

namespace gar {

class Line {
 public:
  /// Both ends know each other already.
  explicit Line(File socket) : socket_(std::move(socket)) {}

  /// Until `limit_ns` of the steady clock, here and below. Throws TransportError when the other end has gone, or the
  /// time is over.
  void say(std::string_view word, std::string_view text, std::int64_t limit_ns);
  /// The next text, which must have this word.
  std::string hear(std::string_view word, std::int64_t limit_ns);
  /// Has the other end gone? Nothing is expected from it now.
  [[nodiscard]] bool has_ended() const;

 private:
  File socket_;
  StoreReader reader_;
};

}  // namespace gar
