// A rank's program for one chunk of a vector, in elements: what the executor runs and the transports carry.
//
// A chunk's vector has num_blocks blocks of block_count elements each (AllReduce: one block; ReduceScatter and
// AllGather: one block per rank, because a chunk takes the same part out of every block). Messages are intervals of the
// chunk's vector; in memory they are a list of `Part`s, which lie in one block each.
//
// Memory: the *input* is what the user passed and is never written; the *work* space holds what the rank has reduced or
// received so far (AllReduce, AllGather: the user's output; ReduceScatter: a scratch buffer of the executor). A part of
// the vector is read from the input until a step has written it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gar/plan.hpp"

namespace gar {

/// Elements. Chunks, and the pieces of a large chunk, begin at multiples of this, so that two ranks do not write to one
/// cache line.
inline constexpr std::int64_t kGrain = 64;

enum class Space : std::uint8_t { kInput, kWork };

/// `count` contiguous elements of one block.
struct Part {
  Space space = Space::kWork;
  std::int64_t block = 0;
  std::int64_t offset = 0;  ///< in the block's part of the chunk
  std::int64_t count = 0;
};

/// Where a space of a chunk lies.
struct SpaceView {
  std::byte* base = nullptr;      ///< first element of the chunk in block 0
  std::int64_t block_stride = 0;  ///< bytes from one block to the next
};

struct ChunkSend {
  std::int32_t peer = 0;
  std::int64_t begin = 0;  ///< interval of the chunk's vector
  std::int64_t end = 0;
  std::vector<Part> parts;     ///< in order
  std::int64_t staged_at = 0;  ///< element offset in the step's staging space; equal intervals share it
};

struct ChunkRecv {
  std::int32_t peer = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool accumulate = false;
  /// The whole message ends, unchanged, in this one part of the work space: a transport may receive straight into it.
  bool is_direct = false;
  Part target;                   ///< when is_direct
  std::int32_t peer_step = 0;    ///< shared memory: index of the step in the sender's program
  std::int64_t staged_at = 0;    ///< shared memory: element offset in the sender's staging space of the chunk
  bool is_last_of_peer = false;  ///< no later step of the chunk receives from this peer
  Part source;                   ///< find_peer_memory: where the message lies in the sender's memory
};

/// One operand of a reduction: an element range of a received message.
struct Operand {
  std::int32_t recv = 0;    ///< index in ChunkStep::recvs
  std::int64_t offset = 0;  ///< element in that message
};

/// out = operands in the order of ranks, own value (if any) at its place.
struct Reduction {
  Part out;  ///< in the work space
  bool has_own = false;
  Space own = Space::kWork;  ///< where the own value lies now
  std::int32_t own_position = 0;
  std::vector<Operand> operands;
};

/// Another rank has run its step of this index (find_peer_memory).
struct PeerStep {
  std::int32_t peer = 0;
  std::int32_t step = 0;
};

struct ChunkStep {
  std::int64_t number = 0;  ///< of the plan; messages match within it
  std::vector<ChunkSend> sends;
  std::vector<ChunkRecv> recvs;
  std::vector<Reduction> reductions;
  std::int64_t staging_begin = 0;  ///< elements: this step's staging space in that of the chunk
  /// The step writes something that an earlier or the same step of the chunk sends: a transport that sends straight
  /// out of the user's memory must have finished these sends before the reductions.
  bool overwrites_sent = false;
  /// find_peer_memory: what must have happened before the reductions may write, beyond what the messages themselves
  /// imply.
  std::vector<PeerStep> readers;
  /// find_peer_memory: the step overwrites what it sends itself. Ranks that read each other's memory would wait for
  /// each other.
  bool overwrites_lent = false;
};

/// Everything a rank does for one chunk; steps without messages are left out.
struct ChunkProgram {
  std::int64_t num_blocks = 1;
  std::int64_t block_count = 0;    ///< elements of the chunk in each block
  std::int64_t staging_count = 0;  ///< elements of staging space that the sends need
  std::int32_t num_receivers = 0;  ///< distinct peers that something is sent to
  std::vector<ChunkStep> steps;
  std::vector<PeerStep> last_readers;  ///< find_peer_memory: when no rank reads this rank's memory any more
  [[nodiscard]] std::int64_t count() const { return num_blocks * block_count; }
};

/// Compiles the program of `rank` for chunks of num_blocks * block_count elements.
ChunkProgram compile_chunk(const PlanIndex& index, std::int64_t rank, std::int64_t num_blocks,
                           std::int64_t block_count);

/// The most elements of staging space that any rank needs for such a chunk.
std::int64_t largest_staging(const PlanIndex& index, std::int64_t num_blocks, std::int64_t block_count);

/// Address of a part.
inline std::byte* address(const SpaceView& view, const Part& part, std::int64_t element_size) {
  return view.base + part.block * view.block_stride + part.offset * element_size;
}

}  // namespace gar
