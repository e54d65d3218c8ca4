// The work of the servers: calculations, and handling messages. What a server does at the same time shares it equally.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/worlds/world.hpp"

namespace gar::sim {

class Processors {
 public:
  explicit Processors(std::uint32_t num_ranks) : processors_(num_ranks) {}

  /// The next change on a server. It is void when the server has a newer version by then.
  struct Next {
    double time = 0;
    std::uint32_t version = 0;
  };

  /// A step of the rank begins a calculation that takes `seconds` when it has the server to itself. Returns when the
  /// first of the server's calculations ends.
  Next add(std::uint32_t rank, std::uint32_t step, double seconds, double now);
  /// Moves the steps whose calculations have ended to `ended`, in the order in which they began. Returns when the next
  /// one ends (kNever: there is none).
  Next end(std::uint32_t rank, double now, std::vector<std::uint32_t>& ended);
  [[nodiscard]] bool is_current(std::uint32_t rank, std::uint32_t version) const {
    return processors_[rank].version == version;
  }

 private:
  struct Calculation {
    double end = 0;  // in the processor's progress
    std::uint64_t number = 0;
    std::uint32_t step = 0;
  };
  struct Processor {
    std::vector<Calculation> running;  // a heap: the first to end is in front
    double progress = 0;               // seconds that each calculation has had since the server was idle
    double updated_at = 0;
    std::uint64_t num_begun = 0;
    std::uint32_t version = 0;
  };

  void update(Processor& processor, double now);
  Next next(Processor& processor, double now);

  std::vector<Processor> processors_;
  std::vector<Calculation> ended_;
};

}  // namespace gar::sim
