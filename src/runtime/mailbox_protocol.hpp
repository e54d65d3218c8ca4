// How streams of several ranks keep out of each other's way while receivers read the senders' memory.
//
// Every rank has two boxes (numbers in its memory) for every peer. In `published` the peer writes how many of its steps
// it has begun: what these steps send may be read. In `consumed` the peer writes how many of its steps it has
// completed: what it read for these may be overwritten. All writes and waits happen in the order of a stream. A
// receiver empties `published` before it says that it has read the peer's last message, a sender empties `consumed`
// when it has seen all of that; so all boxes are 0 between two operations, every operation uses the same numbers, and a
// graph that has captured them can be launched again and again.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/program.hpp"

namespace gar {

struct Box {
  enum class Kind : std::uint8_t { kPublished, kConsumed };
  int owner = 0;
  Kind kind = Kind::kPublished;
  int writer = 0;  ///< the peer that fills it
};

/// Something that a stream does with a box.
struct BoxAction {
  Box box;
  bool is_wait = false;  ///< until the box has at least `value`; otherwise: write
  std::uint32_t value = 0;
};

/// What the stream of one rank does, in this order: for every step `send`, `receive`, the step's reductions, `consume`;
/// after the last step `close`. Programs must have gone through find_peer_memory.
class MailboxProtocol {
 public:
  MailboxProtocol(const ChunkProgram& program, int rank) : program_(program), rank_(rank) {}
  void send(int step, std::vector<BoxAction>& out) const;
  void receive(int step, std::vector<BoxAction>& out) const;
  void consume(int step, std::vector<BoxAction>& out) const;
  void close(std::vector<BoxAction>& out) const;

 private:
  [[nodiscard]] const ChunkStep& step_at(int step) const { return program_.steps[static_cast<std::size_t>(step)]; }
  [[nodiscard]] Box own(Box::Kind kind, int writer) const { return {rank_, kind, writer}; }

  const ChunkProgram& program_;
  int rank_;
};

}  // namespace gar
