// What happens to a call that exports.cpp hands over: the runtime runs it, or the MPI library does.
//
// Whether a call is taken over follows from what MPI wants to be the same on all ranks (lengths in bytes, types,
// operators), never from anything else. Arguments that the MPI library refuses go to it before MPI is asked anything
// about them, so that its own error comes out, once.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "apps/preload/exports.hpp"
#include "apps/preload/library.hpp"
#include "apps/preload/real.hpp"
#include "apps/preload/types.hpp"

namespace gar::preload {

namespace {

/// The MPI library's own function, timed for the table.
template <class F>
int leave(const char* function, PassReason reason, const F& native) {
  Library& library = Library::instance();
  if (!library.reports()) {
    library.statistics().count_passed();
    return native();
  }
  const auto begin = std::chrono::steady_clock::now();
  const int code = native();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  library.statistics().add_passed(function, reason, seconds.count());
  return code;
}

/// An error of the runtime is one of the program's communicator.
int fail(MPI_Comm comm, const char* function, const std::string& what) {
  Library::say(fmt::format("{}: {}", function, what));
  const Inside inside;
  MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

/// An error of MPI about the program's arguments.
struct MpiCode {
  int code;
};

template <class F>
int run(MPI_Comm comm, const char* function, const F& body) {
  try {
    body();
    return MPI_SUCCESS;
  } catch (const MpiCode& e) {
    const Inside inside;
    MPI_Comm_call_errhandler(comm, e.code);
    return e.code;
  } catch (const std::exception& e) {
    return fail(comm, function, e.what());
  }
}

/// What MPI_Allreduce and MPI_Reduce_scatter_block are called with.
struct ReduceArguments {
  const void* in = nullptr;
  void* out = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
};

/// Nothing where the call is left to the library, for `reason`. Calls nothing of MPI.
std::optional<Operation> operation_of(const ReduceArguments& given, Collective collective, const char* function,
                                      PassReason& reason) {
  reason = PassReason::kArguments;
  if (given.count <= 0 || given.out == nullptr || given.in == nullptr || given.out == MPI_IN_PLACE ||
      given.comm == MPI_COMM_NULL) {
    return std::nullopt;
  }
  const std::optional<Elements> elements = elements_of(given.type, given.op);
  if (!elements) {
    reason = op_of(given.op) ? PassReason::kType : PassReason::kOperator;
    return std::nullopt;
  }
  if (Library::instance().deviates(*elements, function)) {
    reason = PassReason::kDeviation;
    return std::nullopt;
  }
  Operation out;
  out.call = {.collective = collective,
              .in = given.in == MPI_IN_PLACE ? given.out : given.in,
              .out = given.out,
              .count = static_cast<std::int64_t>(given.count) * elements->num_parts,
              .type = elements->type,
              .op = elements->op};
  out.mpi_count = given.count;
  out.mpi_type = given.type;
  out.mpi_op = given.op;
  return out;
}

bool passes() { return Inside::is_inside() || !Library::instance().is_active(); }

/// A child of a rank has a copy of everything, but is not that rank.
int fail_in_child(MPI_Comm comm, const char* function) {
  return fail(comm, function,
              fmt::format("process {} was forked by a rank and has no part in its communicators; expected calls of "
                          "the rank itself",
                          getpid()));
}

/// What earlier calls of this thread with the same communicator, type and operator have come to: a call of some hundred
/// nanoseconds must not be looked at from all sides each time. Only where nothing can be refused any more.
struct Recent {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  std::uint64_t num_changes = 0;  ///< Library::num_changes when this was found out; 0: never
  Shadow* shadow = nullptr;
  DataType element = DataType::kFloat32;
  ReduceOp reduces = ReduceOp::kSum;
  int num_parts = 1;
};
constexpr std::size_t kNumRecent = 4;
struct RecentCalls {
  std::array<Recent, kNumRecent> entries;
  std::size_t next = 0;
};
RecentCalls& recent_calls() {
  static thread_local RecentCalls calls;
  return calls;
}

void remember(const ReduceArguments& given, const Operation& operation, Shadow& shadow, std::uint64_t num_changes) {
  if (!shadow.is_unobserved() || given.count == 0) return;
  RecentCalls& calls = recent_calls();
  calls.entries[calls.next++ % kNumRecent] = {
      given.comm, given.type,          given.op,          num_changes,
      &shadow,    operation.call.type, operation.call.op, static_cast<int>(operation.call.count / given.count)};
}

/// The shadow and the call in its words; null: a closer look is needed.
Shadow* find_recent(const ReduceArguments& given, const Library& library, CollectiveCall& call) {
  if (given.count <= 0 || given.in == nullptr || given.out == nullptr || given.out == MPI_IN_PLACE) return nullptr;
  const std::uint64_t num_changes = library.num_changes();
  for (const Recent& recent : recent_calls().entries) {
    if (recent.comm != given.comm || recent.type != given.type || recent.op != given.op) continue;
    if (recent.num_changes != num_changes) continue;
    if (!library.is_own_process()) return nullptr;
    const bool is_in_place = given.in == MPI_IN_PLACE;
    call = {.in = is_in_place ? given.out : given.in,
            .out = given.out,
            .count = static_cast<std::int64_t>(given.count) * recent.num_parts,
            .type = recent.element,
            .op = recent.reduces};
    const auto bytes = static_cast<std::uint64_t>(call.count * size_of(call.type));
    if (static_cast<std::int64_t>(bytes) < library.settings().min_bytes) return nullptr;
    const auto in = reinterpret_cast<std::uintptr_t>(given.in);
    const auto out = reinterpret_cast<std::uintptr_t>(given.out);
    if (!is_in_place && in < out + bytes && out < in + bytes) return nullptr;  // they share memory
    return recent.shadow;
  }
  return nullptr;
}

int reduce_blocking(const ReduceArguments& given, Collective collective) {
  const bool scatters = collective == Collective::kReduceScatter;
  const char* function = scatters ? "MPI_Reduce_scatter_block" : "MPI_Allreduce";
  const auto native = [&] {
    const auto call = scatters ? real().reduce_scatter_block : real().all_reduce;
    return call(given.in, given.out, given.count, given.type, given.op, given.comm);
  };
  Library& library = Library::instance();
  const std::int64_t min_bytes = library.settings().min_bytes;
  if (!scatters) {
    // No element has more bytes than this, and nobody asks why the call was left.
    constexpr std::int64_t kMostElementBytes = 16;
    if (given.count > 0 && given.count * kMostElementBytes < min_bytes && !library.reports()) {
      if (library.settings().closes) library.statistics().count_passed();
      return native();
    }
    CollectiveCall call;
    if (Shadow* shadow = find_recent(given, library, call)) {
      return run(given.comm, function, [&] { shadow->run_unobserved(call); });
    }
  }
  const std::uint64_t num_changes = library.num_changes();
  PassReason reason{};
  std::optional<Operation> operation = operation_of(given, collective, function, reason);
  if (!operation) return leave(function, reason, native);
  if (!scatters && vector_bytes(operation->call, 1) < min_bytes) return leave(function, PassReason::kSmall, native);
  if (!library.is_own_process()) return fail_in_child(given.comm, function);
  const auto [known, code] = library.know(given.comm);
  if (code != MPI_SUCCESS) return code;
  if (known == nullptr) return leave(function, PassReason::kArguments, native);
  const std::int64_t bytes = vector_bytes(operation->call, known->size);
  if (bytes < min_bytes) return leave(function, PassReason::kSmall, native);
  // Before the call is counted: a rank whose arguments MPI refuses calls again, and the others count it once.
  if (given.in != MPI_IN_PLACE && !library.aliases().settle(*operation, known->size, given.out)) {
    return leave(function, PassReason::kArguments, native);
  }
  Shadow* shadow = library.shadow_for_call(*known, bytes);
  if (shadow == nullptr) return leave(function, known->reason, native);
  if (!scatters) remember(given, *operation, *shadow, num_changes);
  return run(given.comm, function, [&] { shadow->run(*operation); });
}

int reduce_nonblocking(const ReduceArguments& given, MPI_Request* request) {
  constexpr const char* kName = "MPI_Iallreduce";
  Library& library = Library::instance();
  const auto native = [&] {
    return real().iall_reduce(given.in, given.out, given.count, given.type, given.op, given.comm, request);
  };
  if (!library.allows_threads() || request == nullptr) return leave(kName, PassReason::kThreads, native);
  const std::int64_t min_bytes = library.settings().min_bytes_nonblocking;
  if (min_bytes < 0) return leave(kName, PassReason::kSpinning, native);
  PassReason reason{};
  std::optional<Operation> operation = operation_of(given, Collective::kAllReduce, kName, reason);
  if (!operation) return leave(kName, reason, native);
  if (vector_bytes(operation->call, 1) < min_bytes) return leave(kName, PassReason::kSmall, native);
  if (!library.is_own_process()) return fail_in_child(given.comm, kName);
  Known* known = library.find(given.comm);
  if (known == nullptr) return leave(kName, PassReason::kNotReady, native);
  if (known->shadow == nullptr) return leave(kName, known->reason, native);
  operation->is_blocking = false;
  if (given.in != MPI_IN_PLACE && !library.aliases().settle(*operation, known->size, given.out)) {
    return leave(kName, PassReason::kArguments, native);
  }
  return run(given.comm, kName, [&] { known->shadow->start(*operation, request); });
}

/// Do `count` elements lie in memory as they would in a message?
bool is_dense(MPI_Datatype type) {
  int bytes = 0;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Aint true_lower = 0;
  MPI_Aint true_extent = 0;
  MPI_Type_size(type, &bytes);
  MPI_Type_get_extent(type, &lower, &extent);
  MPI_Type_get_true_extent(type, &true_lower, &true_extent);
  if (lower != 0 || true_lower != 0 || extent != bytes || true_extent != bytes) return false;
  // The same bytes may still be in another order.
  int num_integers = 0;
  int num_addresses = 0;
  int num_types = 0;
  int combiner = MPI_COMBINER_NAMED;
  MPI_Type_get_envelope(type, &num_integers, &num_addresses, &num_types, &combiner);
  return combiner == MPI_COMBINER_NAMED;
}

/// MPI itself says whether the types are any good: it is called with them, and with no elements.
bool has_valid_types(const GatherArguments& given) {
  const bool is_in_place = given.in == MPI_IN_PLACE;
  if (is_basic(given.out_type) && (is_in_place || is_basic(given.in_type))) return true;
  const auto probe = [&](MPI_Comm comm) {
    return real().all_gather(given.in, 0, given.in_type, given.out, 0, given.out_type, comm);
  };
  return Library::instance().alone(probe) == MPI_SUCCESS;
}

/// False: nothing to do, or what MPI shall judge. Calls nothing of MPI.
bool has_arguments(const GatherArguments& given) {
  if (given.out_count <= 0 || given.out_type == MPI_DATATYPE_NULL || given.out == MPI_IN_PLACE ||
      given.comm == MPI_COMM_NULL) {
    return false;
  }
  return given.in == MPI_IN_PLACE || (given.in_count > 0 && given.in_type != MPI_DATATYPE_NULL);
}

/// Bytes of a block, the same on all ranks; 0: left to the library.
std::int64_t block_bytes(const GatherArguments& given) {
  const bool is_in_place = given.in == MPI_IN_PLACE;
  if (!has_valid_types(given)) return 0;
  if (given.out == nullptr && is_dense(given.out_type)) return 0;  // otherwise the type may say where (MPI_BOTTOM)
  int out_bytes = 0;
  if (MPI_Type_size(given.out_type, &out_bytes) != MPI_SUCCESS) return 0;
  const std::int64_t bytes = static_cast<std::int64_t>(out_bytes) * given.out_count;
  if (is_in_place) return bytes;
  if (given.in == nullptr && is_dense(given.in_type)) return 0;
  int in_bytes = 0;
  if (MPI_Type_size(given.in_type, &in_bytes) != MPI_SUCCESS) return 0;
  return static_cast<std::int64_t>(in_bytes) * given.in_count == bytes ? bytes : 0;
}

/// Copies between typed memory and bytes, as MPI would do it in a message to ourselves. (MPI_Pack of MPICH does not
/// take MPI_BOTTOM.) An error of MPI is thrown as its code.
void copy_typed(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type) {
  const int code = Library::instance().alone([&](MPI_Comm self) {
    return MPI_Sendrecv(in, in_count, in_type, 0, 0, out, out_count, out_type, 0, 0, self, MPI_STATUS_IGNORE);
  });
  if (code != MPI_SUCCESS) throw MpiCode{code};
}

/// An AllGather as the runtime gets it: blocks that are not dense travel packed.
class Gather {
 public:
  /// Throws MpiCode when MPI does not take the input.
  Gather(const GatherArguments& given, std::int64_t bytes, int num_ranks)
      : given_(given), bytes_(bytes), num_ranks_(num_ranks), is_out_dense_(is_dense(given.out_type)) {
    const Inside inside;
    int rank = 0;
    MPI_Comm_rank(given.comm, &rank);
    MPI_Aint lower = 0;
    MPI_Type_get_extent(given.out_type, &lower, &extent_);
    if (!is_out_dense_) packed_out_.resize(static_cast<std::size_t>(bytes * num_ranks));
    const bool is_in_place = given.in == MPI_IN_PLACE;
    CollectiveCall& call = operation_.call;
    call.collective = Collective::kAllGather;
    call.count = bytes;
    call.type = DataType::kUint8;
    call.out = is_out_dense_ ? given.out : packed_out_.data();
    call.in = is_in_place ? block(rank) : given.in;
    operation_.mpi_count = static_cast<int>(bytes);
    if (!is_in_place && Library::instance().aliases().refuses_gather(given, rank)) {
      is_refused_ = true;
      return;
    }
    const MPI_Datatype type = is_in_place ? given.out_type : given.in_type;
    const int count = is_in_place ? given.out_count : given.in_count;
    if (!is_dense(type)) {
      packed_in_.resize(static_cast<std::size_t>(bytes));
      copy_typed(call.in, count, type, packed_in_.data(), static_cast<int>(bytes), MPI_PACKED);
      call.in = packed_in_.data();
    } else if (!is_in_place) {
      Library::instance().aliases().settle(operation_, num_ranks, block(rank));  // refuses no AllGather
    }
  }
  /// The MPI library refuses the buffers.
  [[nodiscard]] bool is_refused() const { return is_refused_; }

  void run(Shadow& shadow) {
    const Inside inside;
    shadow.run(operation_);
    for (int i = 0; !is_out_dense_ && i < num_ranks_; ++i) {
      copy_typed(packed_out_.data() + i * bytes_, static_cast<int>(bytes_), MPI_PACKED, block(i), given_.out_count,
                 given_.out_type);
    }
  }

 private:
  [[nodiscard]] std::byte* block(std::int64_t i) const {
    return static_cast<std::byte*>(given_.out) + i * given_.out_count * static_cast<std::int64_t>(extent_);
  }

  const GatherArguments& given_;
  std::int64_t bytes_;
  int num_ranks_;
  bool is_out_dense_;
  bool is_refused_ = false;
  MPI_Aint extent_ = 0;
  std::vector<std::byte> packed_in_;
  std::vector<std::byte> packed_out_;
  Operation operation_;
};

int gather_blocking(const GatherArguments& given) {
  constexpr const char* kName = "MPI_Allgather";
  const auto native = [&] {
    return real().all_gather(given.in, given.in_count, given.in_type, given.out, given.out_count, given.out_type,
                             given.comm);
  };
  if (!has_arguments(given)) return leave(kName, PassReason::kArguments, native);
  Library& library = Library::instance();
  // Before anything of MPI or a lock, which the parent may have held: what the types are takes both.
  if (!library.is_own_process()) return fail_in_child(given.comm, kName);
  const std::int64_t bytes = block_bytes(given);
  if (bytes == 0 || bytes > std::numeric_limits<int>::max()) return leave(kName, PassReason::kArguments, native);
  const auto [known, code] = library.know(given.comm);
  if (code != MPI_SUCCESS) return code;
  if (known == nullptr) return leave(kName, PassReason::kArguments, native);
  if (bytes * known->size < library.settings().min_bytes) return leave(kName, PassReason::kSmall, native);
  if (known->shadow == nullptr && known->reason != PassReason::kNotReady) return leave(kName, known->reason, native);
  std::optional<Gather> gather;
  const int size = known->size;
  // As above: what can be refused comes before the count.
  const int prepared = run(given.comm, kName, [&] { gather.emplace(given, bytes, size); });
  if (prepared != MPI_SUCCESS) return prepared;
  if (gather->is_refused()) return leave(kName, PassReason::kArguments, native);
  Shadow* shadow = library.shadow_for_call(*known, bytes * size);
  if (shadow == nullptr) return leave(kName, known->reason, native);
  return run(given.comm, kName, [&] { gather->run(*shadow); });
}

/// A thread that waits in MPI_Wait must let ours have the core.
void make_mpi_yield() {
#ifdef OPEN_MPI
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);  // NOLINT(concurrency-mt-unsafe): before MPI_Init
#endif
}

int init(int* argc, char*** argv) {
  Library& library = Library::instance();
  if (!library.prepare() || !library.upgrades_threads()) return real().init(argc, argv);
  int provided = MPI_THREAD_SINGLE;
  make_mpi_yield();
  return real().init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
}

int init_thread(int* argc, char*** argv, int required, int* provided) {
  Library& library = Library::instance();
  const bool upgrades = library.prepare() && library.upgrades_threads();
  if (upgrades) make_mpi_yield();
  return real().init_thread(argc, argv, upgrades ? MPI_THREAD_MULTIPLE : required, provided);
}

void start() { Library::instance().start(); }

int finalize() {
  try {
    if (Library::instance().stop()) MPI_Abort(MPI_COMM_WORLD, 1);
  } catch (const std::exception& e) {
    Library::say(fmt::format("MPI_Finalize: {}", e.what()));
  }
  return real().finalize();
}

/// No exception gets into the program.
template <class F>
int guarded(const F& body) {
  try {
    return body();
  } catch (const std::exception& e) {
    Library::say(e.what());
  } catch (...) {
    Library::say("an error of an unknown kind");
  }
  return MPI_ERR_OTHER;
}

int all_reduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return guarded([&] { return reduce_blocking({in, out, count, type, op, comm}, Collective::kAllReduce); });
}

int reduce_scatter_block(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return guarded([&] { return reduce_blocking({in, out, count, type, op, comm}, Collective::kReduceScatter); });
}

int iall_reduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                MPI_Request* request) {
  return guarded([&] { return reduce_nonblocking({in, out, count, type, op, comm}, request); });
}

int all_gather(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type,
               MPI_Comm comm) {
  return guarded([&] { return gather_blocking({in, in_count, in_type, out, out_count, out_type, comm}); });
}

/// A function whose arguments come as words.
template <class Out, class In>
Out of_words(In function) {
  return reinterpret_cast<Out>(reinterpret_cast<void (*)()>(function));  // NOLINT(*-reinterpret-cast): see exports.cpp
}

}  // namespace

/// Called once, before MPI_Init, by exports.cpp.
extern "C" __attribute__((visibility("default"))) const Hooks* gar_preload_attach(void* (*look_up)(const char*),
                                                                                  const char* version) {
  look_up_real(look_up);
  Library::instance().set_version(version);
  static const Hooks kHooks{
      .passes = passes,
      .init = init,
      .init_thread = init_thread,
      .start = start,
      .finalize = finalize,
      .all_reduce = of_words<decltype(Hooks::all_reduce)>(all_reduce),
      .iall_reduce = of_words<decltype(Hooks::iall_reduce)>(iall_reduce),
      .reduce_scatter_block = of_words<decltype(Hooks::reduce_scatter_block)>(reduce_scatter_block),
      .all_gather = of_words<decltype(Hooks::all_gather)>(all_gather),
  };
  return &kHooks;
}

}  // namespace gar::preload
