// The data of steps that are under way.
//
// A *lane* is a rank in one chunk: its program counter. An *active step* is a step of a lane, from its start until
// nothing refers to it any more: it can be finished (everything received and reduced) while its own messages are still
// flowing, or while a receiver still names it as the one that it waited for.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/path_recorder.hpp"
#include "sim/worlds/world.hpp"

namespace gar::sim {

using StepIndex = std::uint32_t;

/// How far a message of an active step is.
enum class SendState : std::uint8_t { kUnsent, kWaiting, kFlowing, kArrived };

/// A message that has arrived.
struct Delivery {
  StepIndex sender = kNone;
  std::uint32_t bottleneck = kNone;  ///< the link that limited it in the end
  Route route;
  double time = 0;
  double incast = 0;  ///< seconds that incast has cost it
};

struct ActiveStep {
  std::uint32_t rank = 0;
  std::uint32_t chunk = 0;
  std::uint32_t stage = 0;
  std::int64_t number = 0;
  std::uint64_t program_step = 0;  ///< of the world
  bool is_mirror = false;
  bool is_finished = false;
  bool is_sending = false;  ///< its messages are being handled and have not left yet
  std::uint32_t num_flows_left = 0;
  std::uint32_t num_references = 0;  ///< deliveries that name it as their sender
  std::uint32_t num_expected = 0;    ///< messages
  std::uint32_t num_arrived = 0;
  double start = 0;
  double sent = 0;                 ///< when its messages had been handled and left
  double received = 0;             ///< when the last message had arrived
  double latency_factor = 1;       ///< by jitter
  double handling_share = 0;       ///< of its work after `received`: handling what has arrived
  double gamma_share = 0;          ///< of its calculation
  PathEnd path;                    ///< at its start
  Delivery last;                   ///< the message that arrived last
  StepIndex chunk_before = kNone;  ///< the same step of the chunk before, while that has flows
  StepIndex chunk_behind = kNone;  ///< and of the one behind
  std::vector<SendState> sends;
};

struct Lane {
  std::uint64_t program_step = 0;
  std::int64_t repetition = 0;  ///< of this step
  std::int64_t num_finished = 0;
  StepIndex active = kNone;
  bool is_mirror = false;
};

/// A step that may start, if its lane is still where it was.
struct ReadyStep {
  std::uint32_t rank = 0;
  std::uint32_t chunk = 0;
  std::int64_t num_finished = 0;  ///< steps of the lane
  PathEnd path;
};

}  // namespace gar::sim
