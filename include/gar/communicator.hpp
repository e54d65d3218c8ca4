// AllReduce, ReduceScatter and AllGather between threads, between the processes of a host, and (gar/mpi.hpp) between
// the ranks of an MPI job.
//
//   auto ranks = gar::thread_communicators(4);          // one per thread
//   ranks[r].all_reduce(gradient);                      // in place, sum
//
// Every rank of a communicator makes the same calls in the same order, as in MPI. A communicator may be used by one
// thread at a time; different communicators are independent. See docs/runtime.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gar/decisions.hpp"
#include "gar/errors.hpp"
#include "gar/movement.hpp"
#include "gar/plan.hpp"
#include "gar/reduction.hpp"
#include "gar/topology.hpp"

namespace gar {

/// A cudaStream_t, for communicators on GPUs (gar/cuda.hpp). Null is CUDA's default stream.
struct Stream {
  void* handle = nullptr;  ///< the cudaStream_t
};

/// One collective operation as one rank calls it.
struct CollectiveCall {
  Collective collective = Collective::kAllReduce;  ///< what is computed
  const void* in = nullptr;                        ///< this rank's input, in_bytes() long
  void* out = nullptr;                             ///< gets this rank's result, out_bytes() long
  std::int64_t count = 0;  ///< elements: of the vector for AllReduce, of one block for ReduceScatter and AllGather
  DataType type = DataType::kFloat32;  ///< of the elements
  ReduceOp op = ReduceOp::kSum;        ///< means nothing to AllGather
};
/// Bytes at `in`: ReduceScatter has a block for every rank there.
inline std::int64_t in_bytes(const CollectiveCall& call, int num_ranks) {
  return call.count * size_of(call.type) * (call.collective == Collective::kReduceScatter ? num_ranks : 1);
}
/// Bytes at `out`: AllGather has a block for every rank there.
inline std::int64_t out_bytes(const CollectiveCall& call, int num_ranks) {
  return call.count * size_of(call.type) * (call.collective == Collective::kAllGather ? num_ranks : 1);
}
/// Bytes of the whole vector.
inline std::int64_t vector_bytes(const CollectiveCall& call, int num_ranks) {
  return call.count * size_of(call.type) * (call.collective == Collective::kAllReduce ? 1 : num_ranks);
}

/// What happens when a rank dies, or is silent for the time limit (docs/failures.md).
enum class OnFailure {
  kReport,         ///< every rank gets an error that names it; the communicator is over
  kShrink,         ///< the others agree who is left, run the operation again and go on
  kShrinkAndGrow,  ///< the same, and Communicator::grow takes newcomers in; over TCP
};

/// Who belongs to a communicator that may shrink or grow.
struct Members {
  /// Ascending; their ranks when the communicator was made. Newcomers have numbers that nobody has had before. The i-th
  /// is rank i now.
  std::vector<int> ranks;
  std::uint64_t generation = 0;  ///< grows when members are lost, or newcomers taken in
};

/// What Communicator::grow has come to.
struct Growth {
  int num_new = 0;  ///< newcomers that are members now
  /// Why those who wait were not taken in, or nobody knows whether somebody waits, as far as this rank has seen it;
  /// empty: nothing went wrong.
  std::string problem;
};

/// How a communicator plans and runs its operations. The defaults suit most programs.
struct CommunicatorOptions {
  /// As on the command line ("ring", "hcps:4x2", "gentree+"); empty: what the model finds best (docs/runtime.md).
  /// GAR_ALGO in the environment is taken when this is empty.
  std::string algorithm;
  /// Use this AllReduce plan instead.
  std::optional<Plan> plan;
  /// The network with its parameters, one server per rank; otherwise built-in parameters refined by a measurement
  /// when the communicator is made. GAR_TOPOLOGY names a file.
  std::optional<Topology> topology;
  /// The same bits for any number of ranks, plan and transport; slower (docs/runtime.md).
  bool reproducible = false;
  /// A peer that does not answer for this long is an error on every rank. GAR_TIMEOUT.
  double timeout_s = 30;
  /// Shared memory that each rank stages its data in; 0: chosen from the caches of the machine. GAR_STAGING.
  std::int64_t staging_bytes = 0;
  /// Vectors up to this many bytes are gathered by all ranks at once, as far as the transport can do that; -1: where
  /// the model finds it best; 0: never. Only where the algorithm is not given, or is "gather".
  std::int64_t latency_bytes = -1;
  /// Where the network was fitted: its Profile::overlap. GAR_TOPOLOGY brings it along when it names a profile.
  double overlap = 1;
  /// The thread that runs non-blocking operations may use every core, even where the process is bound to one on which
  /// the program computes.
  bool unbinds_thread = false;
  /// AllReduces of a size class run in several ways in turns, and the fastest stays (docs/runtime.md). Never with an
  /// algorithm, a plan or `reproducible`. GAR_EXPLORE is taken when this is not set; without it: over MPI they do.
  /// While MPI's own AllReduce runs there, `timeout_s` does not hold, and different calls on different ranks are not
  /// found out.
  std::optional<bool> explores;
  /// What looking at slower ways may cost: this share of the time in calls of a size class, and at first six calls for
  /// each way and a millisecond.
  double explore_share = 0.02;
  /// Go on without ranks that are lost? The same on all ranks. Over threads, shared memory and TCP; every operation
  /// costs one exchange of a few bytes more, and one whose input and output overlap a copy of the input. Such
  /// communicators do not explore, and take all_reduce, reduce_scatter, all_gather and barrier.
  OnFailure on_failure = OnFailure::kReport;
  /// Begin with what earlier jobs found. False: measure anew; what is found replaces it.
  bool believes_decisions = true;
  /// Where notes go: which plan runs and why, once per size class. GAR_DEBUG=INFO without this: standard error.
  std::function<void(std::string_view)> log;
};

/// Elements that lie one after the other: what a std::span can be made of.
template <class Range>
concept ContiguousRange = requires(std::remove_reference_t<Range>& range) {
  std::span(range);
};
/// One whose elements live on after the statement: a named range, or a std::span.
template <class Range>
concept LastingRange = ContiguousRange<Range> &&
    (std::is_lvalue_reference_v<Range> || std::ranges::enable_borrowed_range<std::remove_cvref_t<Range>>);

/// What ran, for reports.
struct PlanReport {
  std::string algorithm;          ///< "cps", "gather", "copy", ...
  std::string transport;          ///< "threads", "shm", "mpi", "shm+mpi", "cuda-ipc", "nccl"
  std::string reason;             ///< in words
  std::int64_t num_chunks = 1;    ///< parts that follow each other
  double predicted_seconds = -1;  ///< by the model with the parameters in use; -1: no prediction
};

/// Called when an operation that was started is complete, exactly once for each start: with null, or with what the
/// operation failed with. The call comes from the thread that completes the operation (the communicator's own, or one
/// that is inside a call of the library) while no lock is held. The request counts as complete, and the communicator
/// can be destroyed, only when the function has returned. So it must not throw, wait for an operation of the same
/// communicator, or destroy that communicator.
using Completion = std::function<void(std::exception_ptr error)>;

/// A non-blocking or persistent operation. Its buffers must live, and must not be touched, until it is complete.
class Request {
 public:
  Request() = default;
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request();  ///< waits, and swallows errors
  /// Starts a persistent operation (again). Throws InvalidArgument while it is running.
  void start();
  /// True when the operation is complete. Throws what it failed with.
  bool test();
  /// Returns when the operation is complete. Throws what it failed with.
  void wait();
  /// Between whom the operation has run, once it is complete (and for a persistent one the last time).
  [[nodiscard]] Members members() const;
  /// Leaves the operation to run without this request, which is empty afterwards. The communicator still completes it
  /// before it is destroyed, and its Completion is still called.
  void detach();

 private:
  friend class Communicator;
  struct Impl;
  explicit Request(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

/// This rank's end of a group of ranks that run collective operations together.
class Communicator {
 public:
  struct Impl;
  /// For the library's own use: communicators come from the functions below, and from gar/mpi.hpp, cuda.hpp and
  /// nccl.hpp.
  explicit Communicator(std::unique_ptr<Impl> impl);
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Requests that are under way are completed first.
  ~Communicator();

  /// This rank's number, from 0 to size() - 1.
  [[nodiscard]] int rank() const;
  /// The number of ranks. With OnFailure::kShrink both change when ranks are lost, and only inside of calls that give
  /// an operation to the caller: run, barrier, wait, and test that returns true. Every rank that is given the operation
  /// sees the same members after it.
  [[nodiscard]] int size() const;
  /// Who they are.
  [[nodiscard]] Members members() const;
  /// Takes in the newcomers that wait (join_tcp of gar/tcp.hpp), behind the others; a barrier, for all ranks. Plans are
  /// made anew for the network with them, which is measured. Where nobody waits, or the newcomers die or are silent,
  /// the communicator stays as it is, and says so. Needs OnFailure::kShrinkAndGrow; throws InvalidArgument without it.
  Growth grow();

  /// Runs the operation; it is complete when this returns.
  void run(const CollectiveCall& call);
  /// On GPUs: returns when the operation is in the stream, where it happens after what was there before. Without a
  /// stream (above, and requests) an operation on device memory runs on a stream of the communicator, after what CUDA's
  /// default stream has, and is complete when the call returns. Throws InvalidArgument on communicators for host
  /// memory.
  void run(const CollectiveCall& call, Stream stream);
  /// Non-blocking: completes without further calls where the transport allows a thread of its own; otherwise inside
  /// test and wait (of any request).
  [[nodiscard]] Request start(const CollectiveCall& call, Completion on_complete = {});
  /// Persistent: planned once, run with Request::start as often as needed.
  [[nodiscard]] Request prepare(const CollectiveCall& call, Completion on_complete = {});

  /// out = in of all ranks combined; `count` elements each. `out` may be `in`.
  void all_reduce(const void* in, void* out, std::int64_t count, DataType type, ReduceOp op = ReduceOp::kSum) {
    run({Collective::kAllReduce, in, out, count, type, op});
  }
  /// Rank r gets block r (`block_count` elements) of the combined vector of size() * block_count elements. `out` may be
  /// any block of `in`.
  void reduce_scatter(const void* in, void* out, std::int64_t block_count, DataType type,
                      ReduceOp op = ReduceOp::kSum) {
    run({Collective::kReduceScatter, in, out, block_count, type, op});
  }
  /// out = the blocks of all ranks in the order of ranks. `in` may be this rank's block of `out`.
  void all_gather(const void* in, void* out, std::int64_t block_count, DataType type) {
    run({Collective::kAllGather, in, out, block_count, type, ReduceOp::kSum});
  }
  /// No rank returns before every rank has called it.
  void barrier();

  /// An operation that no plan is made for; complete when this returns. In host memory only, here and below.
  void move(const MovementCall& call);
  /// Non-blocking, as start() above.
  [[nodiscard]] Request start_move(const MovementCall& call, Completion on_complete = {});
  /// Every rank gets the root's vector.
  void broadcast(void* data, std::int64_t count, DataType type, int root) {
    move({.movement = Movement::kBroadcast, .in = data, .out = data, .count = count, .type = type, .root = root});
  }
  /// The root gets in of all ranks combined. Its `out` may be its `in`; that of the others means nothing.
  void reduce(const void* in, void* out, std::int64_t count, DataType type, ReduceOp op, int root) {
    move({Movement::kReduce, in, out, count, type, op, root});
  }
  /// Rank r gets block r of the root's `in`, which means nothing on the others. The root's `out` may be its block.
  void scatter(const void* in, void* out, std::int64_t block_count, DataType type, int root) {
    move({Movement::kScatter, in, out, block_count, type, ReduceOp::kSum, root});
  }
  /// The root gets the blocks of all ranks. Its `in` may be its block of `out`, which means nothing on the others.
  void gather(const void* in, void* out, std::int64_t block_count, DataType type, int root) {
    move({Movement::kGather, in, out, block_count, type, ReduceOp::kSum, root});
  }
  /// Block r of `out` becomes this rank's block of rank r's `in`. Blocks of different lengths: MovementCall::in_counts.
  void all_to_all(const void* in, void* out, std::int64_t block_count, DataType type) {
    move({Movement::kAllToAll, in, out, block_count, type});
  }
  /// Between two ranks, which are the whole communicator: the other one calls receive() with the same count and type.
  /// Returns when the data have left. Two ranks that both send first wait for each other in vain; a communicator for
  /// each direction avoids that.
  void send(const void* data, std::int64_t count, DataType type) {
    move({Movement::kTransfer, data, nullptr, count, type, ReduceOp::kSum, rank()});
  }
  /// The other end of send().
  void receive(void* data, std::int64_t count, DataType type) {
    move({Movement::kTransfer, nullptr, data, count, type, ReduceOp::kSum, 1 - rank()});
  }

  /// As run() with a stream.
  void all_reduce(const void* in, void* out, std::int64_t count, DataType type, ReduceOp op, Stream stream) {
    run({Collective::kAllReduce, in, out, count, type, op}, stream);
  }
  /// reduce_scatter, in a stream in the same sense.
  void reduce_scatter(const void* in, void* out, std::int64_t block_count, DataType type, ReduceOp op, Stream stream) {
    run({Collective::kReduceScatter, in, out, block_count, type, op}, stream);
  }
  /// all_gather, in a stream in the same sense.
  void all_gather(const void* in, void* out, std::int64_t block_count, DataType type, Stream stream) {
    run({Collective::kAllGather, in, out, block_count, type, ReduceOp::kSum}, stream);
  }
  /// Returns when everything in the stream is done. Unlike cudaStreamSynchronize it notices a peer that has died or
  /// failed, and throws TransportError.
  void synchronize(Stream stream);

  /// As start().
  [[nodiscard]] Request start_all_reduce(const void* in, void* out, std::int64_t count, DataType type,
                                         ReduceOp op = ReduceOp::kSum) {
    return start({Collective::kAllReduce, in, out, count, type, op});
  }
  /// reduce_scatter, non-blocking in the same sense.
  [[nodiscard]] Request start_reduce_scatter(const void* in, void* out, std::int64_t block_count, DataType type,
                                             ReduceOp op = ReduceOp::kSum) {
    return start({Collective::kReduceScatter, in, out, block_count, type, op});
  }
  /// all_gather, non-blocking in the same sense.
  [[nodiscard]] Request start_all_gather(const void* in, void* out, std::int64_t block_count, DataType type) {
    return start({Collective::kAllGather, in, out, block_count, type, ReduceOp::kSum});
  }

  /// As prepare().
  [[nodiscard]] Request prepare_all_reduce(const void* in, void* out, std::int64_t count, DataType type,
                                           ReduceOp op = ReduceOp::kSum) {
    return prepare({Collective::kAllReduce, in, out, count, type, op});
  }
  /// reduce_scatter, persistent in the same sense.
  [[nodiscard]] Request prepare_reduce_scatter(const void* in, void* out, std::int64_t block_count, DataType type,
                                               ReduceOp op = ReduceOp::kSum) {
    return prepare({Collective::kReduceScatter, in, out, block_count, type, op});
  }
  /// all_gather, persistent in the same sense.
  [[nodiscard]] Request prepare_all_gather(const void* in, void* out, std::int64_t block_count, DataType type) {
    return prepare({Collective::kAllGather, in, out, block_count, type, ReduceOp::kSum});
  }

  /// What an operation of this size does (the same decision as the operation itself takes). The operator matters where
  /// the MPI library's own takes part in the choice, which is not there for all types and operators.
  [[nodiscard]] PlanReport report(Collective collective, std::int64_t count, DataType type,
                                  ReduceOp op = ReduceOp::kSum);
  /// On rank 0 of a communicator that explores: where it is, and what was measured so far, in the order of sizes.
  /// Without decisions on all others.
  [[nodiscard]] Decisions decisions() const;
  /// Keeps them for the next job (decisions_folder()), which also happens when the communicator ends. Returns what went
  /// wrong in words; empty: nothing, or nothing is to be kept.
  std::string keep_decisions();
  /// Is nothing left to be measured for AllReduces of this size? The same on all ranks between two operations; also
  /// true where nothing is explored.
  [[nodiscard]] bool is_settled(std::int64_t count, DataType type) const;

  /// The same for contiguous ranges: a std::vector, a std::array, a std::span, an array of C. The type of the elements
  /// is theirs, and so are the numbers of elements. Throws InvalidArgument when the sizes do not fit each other.
  ///
  ///   comm.all_reduce(gradient);         // in place
  ///   comm.all_reduce(gradient, total);  // gradient stays as it is
  ///
  /// In place.
  template <ContiguousRange Values>
  void all_reduce(Values&& values, ReduceOp op = ReduceOp::kSum) {
    run(call_of<Collective::kAllReduce>(values, values, op));
  }
  /// `in` and `out` have the same size.
  template <ContiguousRange In, ContiguousRange Out>
  void all_reduce(In&& in, Out&& out, ReduceOp op = ReduceOp::kSum) {
    run(call_of<Collective::kAllReduce>(in, out, op));
  }
  /// `in` is size() times as long as `out`.
  template <ContiguousRange In, ContiguousRange Out>
  void reduce_scatter(In&& in, Out&& out, ReduceOp op = ReduceOp::kSum) {
    run(call_of<Collective::kReduceScatter>(in, out, op));
  }
  /// `out` is size() times as long as `in`.
  template <ContiguousRange In, ContiguousRange Out>
  void all_gather(In&& in, Out&& out) {
    run(call_of<Collective::kAllGather>(in, out, ReduceOp::kSum));
  }
  /// all_reduce in place, non-blocking. What is passed must outlive the operation, so here and below the compiler
  /// refuses a vector that ends with the statement.
  template <LastingRange Values>
  [[nodiscard]] Request start_all_reduce(Values&& values, ReduceOp op = ReduceOp::kSum) {
    return start(call_of<Collective::kAllReduce>(values, values, op));
  }
  /// all_reduce, non-blocking.
  template <LastingRange In, LastingRange Out>
  [[nodiscard]] Request start_all_reduce(In&& in, Out&& out, ReduceOp op = ReduceOp::kSum) {
    return start(call_of<Collective::kAllReduce>(in, out, op));
  }
  /// reduce_scatter, non-blocking.
  template <LastingRange In, LastingRange Out>
  [[nodiscard]] Request start_reduce_scatter(In&& in, Out&& out, ReduceOp op = ReduceOp::kSum) {
    return start(call_of<Collective::kReduceScatter>(in, out, op));
  }
  /// all_gather, non-blocking.
  template <LastingRange In, LastingRange Out>
  [[nodiscard]] Request start_all_gather(In&& in, Out&& out) {
    return start(call_of<Collective::kAllGather>(in, out, ReduceOp::kSum));
  }
  /// all_reduce in place, persistent.
  template <LastingRange Values>
  [[nodiscard]] Request prepare_all_reduce(Values&& values, ReduceOp op = ReduceOp::kSum) {
    return prepare(call_of<Collective::kAllReduce>(values, values, op));
  }
  /// all_reduce, persistent.
  template <LastingRange In, LastingRange Out>
  [[nodiscard]] Request prepare_all_reduce(In&& in, Out&& out, ReduceOp op = ReduceOp::kSum) {
    return prepare(call_of<Collective::kAllReduce>(in, out, op));
  }
  /// reduce_scatter, persistent.
  template <LastingRange In, LastingRange Out>
  [[nodiscard]] Request prepare_reduce_scatter(In&& in, Out&& out, ReduceOp op = ReduceOp::kSum) {
    return prepare(call_of<Collective::kReduceScatter>(in, out, op));
  }
  /// all_gather, persistent.
  template <LastingRange In, LastingRange Out>
  [[nodiscard]] Request prepare_all_gather(In&& in, Out&& out) {
    return prepare(call_of<Collective::kAllGather>(in, out, ReduceOp::kSum));
  }

 private:
  /// The operation on two ranges. Throws InvalidArgument when their sizes do not fit each other.
  template <Collective kWhat, class In, class Out>
  [[nodiscard]] CollectiveCall call_of(In& in, Out& out, ReduceOp op) const {
    const std::span from(in);
    const std::span to(out);
    using Element = typename decltype(from)::value_type;
    static_assert(std::is_same_v<Element, typename decltype(to)::value_type>,
                  "`in` and `out` must have elements of the same type");
    static_assert(!std::is_const_v<typename decltype(to)::element_type>,
                  "the result needs elements that are not const");
    check_lengths(kWhat, from.size(), to.size());
    const std::size_t count = kWhat == Collective::kReduceScatter ? to.size() : from.size();
    return {kWhat, from.data(), to.data(), static_cast<std::int64_t>(count), data_type_of<Element>(), op};
  }
  Request make_request(const CollectiveCall& call, Completion on_complete);
  void check_lengths(Collective what, std::size_t in, std::size_t out) const;
  std::unique_ptr<Impl> impl_;
};

/// How the ranks of an MPI job reach each other (gar/mpi.hpp).
enum class MpiPath {
  kHierarchy,  ///< shared memory inside a host, messages between hosts
  kMessages,   ///< messages everywhere
  kShared,     ///< shared memory only; throws InvalidArgument when the ranks are on several hosts
};

/// One communicator per thread of this process.
std::vector<Communicator> thread_communicators(int num_ranks, const CommunicatorOptions& options = {});

/// Joins the processes of this host that call this with the same `name` (letters, digits, '-', '_', '.'; at most 100)
/// and `size`; rank 0 makes the shared memory. Returns when all have joined; throws TransportError when one does not
/// within the timeout. Nothing is left in the file system afterwards, even when processes are killed.
Communicator shared_memory_communicator(std::string_view name, int rank, int size,
                                        const CommunicatorOptions& options = {});

}  // namespace gar
