// Runs a rank's part of one operation over a transport.
//
// Chunks follow each other: a step of a chunk starts when the chunk's previous step is complete and the chunk before
// has started the same step (the simulator follows the same order). As many chunks are under way as the transport
// has slots, so that reducing one overlaps waiting for another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/schedule.hpp"
#include "runtime/transport.hpp"

namespace gar {

class Execution {
 public:
  /// `serial` is the communicator's number of the first chunk; chunks take consecutive ones.
  Execution(Transport& transport, const Schedule& schedule, const CollectiveCall& call, std::uint64_t serial);
  /// Does what can be done now. True when all steps have run. (On a GPU they may still be in the stream.)
  bool advance();

 private:
  struct Chunk {
    Flight flight;
    int step = 0;
    bool has_sent = false;  ///< the sends of `step`
    bool is_finished = false;
  };

  bool open_chunks();
  bool advance_chunk(std::size_t i);
  bool may_start(std::size_t i) const;
  void reduce_step(const Chunk& chunk);
  void prologue(const Chunk& chunk);
  void epilogue(const Chunk& chunk);
  [[nodiscard]] std::byte* block_of(const Chunk& chunk, const std::byte* base, std::int64_t block) const;

  Transport& transport_;
  const Schedule& schedule_;
  const std::byte* in_;
  std::byte* out_;
  DataType type_;
  ReduceOp op_;
  std::uint64_t serial_;
  TransportLimits limits_;
  Compute& compute_;
  std::byte* scratch_ = nullptr;
  Stores stores_ = Stores::kCached;
  std::int64_t next_chunk_ = 0;
  std::deque<Chunk> chunks_;  ///< under way, oldest first
  std::vector<const std::byte*> received_;
  std::vector<const void*> operands_;
};

}  // namespace gar
