// What the executor needs from whatever connects a rank with the others.
//
// A collective operation (a Signature, which all ranks share, and this rank's Operands) is cut into chunks. The
// executor keeps several chunks (flights) under way, each in a slot of its own, and runs the steps of each in order.
// For a step it calls try_send once the step may start, then try_receive until the data have arrived, reduces, and
// calls consumed. All try_* functions return at once; false means "not yet", and then wait() sleeps until something may
// have changed. Every function throws TransportError when a peer has died, does not answer, or has called something
// else than this rank.
//
// Two things only some transports have, and they stand in interfaces of their own: DeviceSide where buffers lie in the
// memory of a GPU, OwnCollectives where a library such as NCCL runs whole operations itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gar/communicator.hpp"
#include "gar/movement.hpp"
#include "gar/planner.hpp"
#include "gar/reduction.hpp"
#include "runtime/compute.hpp"
#include "runtime/program.hpp"

namespace gar {

struct Schedule;

/// What all ranks must agree on.
struct Signature {
  std::uint64_t sequence = 0;  ///< number of the operation on this communicator; below kFirstSequence: its set-up
  Collective collective = Collective::kAllReduce;
  std::int64_t count = 0;  ///< elements (of a block, for ReduceScatter and AllGather)
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::uint64_t plan = 0;  ///< fingerprint of the plan and its chunking; of a movement: its root
  /// This instead of the collective.
  std::optional<Movement> movement = {};
  bool operator==(const Signature&) const = default;
};
/// The collective or movement as a number, and back. 0 to kNumSignatureCodes - 1.
inline constexpr int kNumSignatureCodes = 3 + kNumMovements;
int code_of(const Signature& signature);
void set_code(Signature& signature, int code);
/// "all_reduce of 100 float32, sum"
std::string describe(const Signature& signature);
std::string describe_movement(const Signature& signature);
/// Says in which way `theirs` differs from `ours`: "rank 3 called all_reduce of 100 float32, sum; rank 0 called ..."
std::string describe_mismatch(const Signature& ours, int our_rank, const Signature& theirs, int their_rank);

/// What one rank brings to an operation.
struct Operands {
  const void* in = nullptr;
  void* out = nullptr;
  std::int64_t in_bytes = 0;
  std::int64_t out_bytes = 0;
  std::optional<Stream> stream;        ///< without one, the operation is complete when the call returns
  const Schedule* schedule = nullptr;  ///< null: nothing to communicate, or the library's own collectives run
};

/// One chunk under way.
struct Flight {
  const ChunkProgram* program = nullptr;
  std::uint32_t serial = 0;  ///< number of the chunk on this communicator, across operations
  int slot = 0;              ///< below limits().num_slots; free again when try_close has returned true
  std::int64_t chunk = 0;    ///< within the operation
  SpaceView input;
  SpaceView work;
  std::int64_t element_size = 1;
};

/// How a transport wants an operation to be cut.
struct TransportLimits {
  int num_slots = 2;               ///< chunks under way at once
  std::int64_t staging_bytes = 0;  ///< staging space of a slot; 0: sends come out of the user's memory, no limit
  std::int64_t chunk_bytes = 0;    ///< preferred size of a chunk of an AllReduce; 0: as the plan says
  /// The planner makes no smaller chunks. Where all steps compete for the same cores, overlapping them gains nothing,
  /// and this is as large as a number can be.
  std::int64_t least_chunk_bytes = 64 << 10;
  /// Receivers read the senders' memory where it lies: programs need to know where that is (runtime/peers.hpp).
  bool needs_sources = false;
  /// ReduceScatter and AllGather move data in the same way, so that each costs what the model says of its half.
  bool has_equal_halves = true;
};

/// What a transport adds whose buffers lie in the memory of a GPU. An operation is put into a stream; the host does not
/// wait for what the GPU does unless it is asked to.
class DeviceSide {
 public:
  /// The calling thread works on the transport's device as long as the object lives.
  [[nodiscard]] virtual std::shared_ptr<void> enter() = 0;
  /// After an exception: has the operation begun on no rank, so that others may follow?
  [[nodiscard]] virtual bool is_intact() const = 0;
  /// For an operation without a schedule: has every rank begun it?
  virtual bool try_meet() = 0;
  /// The whole operation has been handed over: is it complete, as far as the caller wants to wait?
  virtual bool try_complete() = 0;
  /// Is everything in the stream done?
  virtual bool is_idle(Stream stream) = 0;

 protected:
  DeviceSide() = default;
  DeviceSide(const DeviceSide&) = default;
  DeviceSide& operator=(const DeviceSide&) = default;
  ~DeviceSide() = default;
};

/// A library that runs whole operations itself, without a plan of ours.
class OwnCollectives {
 public:
  /// Its name and version: "NCCL 2.28.3".
  [[nodiscard]] virtual std::string_view library() const = 0;
  /// Runs the operation; called when all ranks have met.
  virtual void run(const Signature& signature, const Operands& operands) = 0;

 protected:
  OwnCollectives() = default;
  OwnCollectives(const OwnCollectives&) = default;
  OwnCollectives& operator=(const OwnCollectives&) = default;
  ~OwnCollectives() = default;
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// "threads", "shm", "mpi", "shm+mpi", "cuda-ipc", "nccl"
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual TransportLimits limits() const = 0;
  /// May a thread other than the user's call it (one at a time)?
  [[nodiscard]] virtual bool allows_threads() const = 0;

  /// What reduces and copies.
  [[nodiscard]] virtual Compute& compute() { return host_; }
  /// Null where buffers lie in host memory.
  [[nodiscard]] virtual DeviceSide* device() { return nullptr; }
  /// Null where plans run, which is the rule.
  [[nodiscard]] virtual OwnCollectives* own_collectives() { return nullptr; }

  /// An operation begins: throws when the transport has failed before.
  virtual void begin(const Signature& signature, const Operands& operands) = 0;
  /// Is the slot of this flight free? Called before its first step.
  virtual bool try_open(Flight& flight) = 0;
  /// Hands the sends of a step over.
  virtual bool try_send(Flight& flight, int step) = 0;
  /// Have all messages of a step arrived? Then `operands[i]` points to the elements of recvs[i] (for a direct receive
  /// it may be the target itself).
  virtual bool try_receive(Flight& flight, int step, std::span<const std::byte*> operands) = 0;
  /// The operands of a step have been used.
  virtual void consumed(Flight& flight, int step) = 0;
  /// The executor has run all steps of the flight: may its memory be given back to the user? (The slot may still be in
  /// use.)
  virtual bool try_close(Flight& flight) = 0;
  /// Sleeps until something that a try_* function waited for may have changed, a moment at most.
  virtual void wait() = 0;
  /// Something was done since the last wait: the time limit for silent peers starts again.
  virtual void progressed() = 0;
  /// Tells the other ranks that this rank gives up.
  virtual void fail(std::string_view reason) noexcept = 0;

  /// How it runs the plan `gather` by itself: every rank gets all operands at once. The default: it does not.
  [[nodiscard]] virtual QuickGather quick_gather() const { return {}; }
  /// How long these may be.
  [[nodiscard]] std::int64_t max_exchange_bytes() const { return static_cast<std::int64_t>(quick_gather().max_bytes); }
  /// Publishes `bytes` at `in`, and returns true with pointers to the bytes of all ranks (in the order of ranks) when
  /// they have arrived. To be called again, with the same arguments, after false. The pointers stay valid until the
  /// next operation begins.
  virtual bool try_exchange(const void* in, std::int64_t bytes, std::span<const std::byte*> operands) {
    static_cast<void>(in);
    static_cast<void>(bytes);
    static_cast<void>(operands);
    return false;
  }

 private:
  HostCompute host_;
};

/// A communicator on a transport. `default_topology` is used where the options give none.
Communicator make_communicator(std::unique_ptr<Transport> transport, const CommunicatorOptions& options,
                               const Topology& default_topology);

}  // namespace gar
