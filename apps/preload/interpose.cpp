// What happens to a call of the program (exports.cpp).
//
// Whether a call is taken over follows from what MPI wants to be the same on all ranks (lengths in bytes, types,
// operators), never from anything else.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <limits>

#include "apps/preload/exports.hpp"
#include "apps/preload/library.hpp"
#include "apps/preload/real.hpp"
#include "apps/preload/types.hpp"

namespace gar::preload {

namespace {

/// The MPI library's own function, timed for the table.
template <class F>
int leave(const char* function, Left reason, const F& native) {
  Library& library = Library::instance();
  if (!library.reports()) return native();
  const auto begin = std::chrono::steady_clock::now();
  const int code = native();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  library.statistics().add_left(function, reason, seconds.count());
  return code;
}

/// An error of the runtime is one of the program's communicator.
int fail(MPI_Comm comm, const char* function, const char* what) {
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

/// The arguments of a reduction.
struct Reduction {
  const void* in = nullptr;
  void* out = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
};

/// Nothing: left to the library, for `reason`.
std::optional<Operation> operation_of(const Reduction& call, Collective collective, std::int64_t min_bytes,
                                      Left& reason) {
  reason = Left::kArguments;
  if (call.count <= 0 || call.out == nullptr || call.in == nullptr || call.comm == MPI_COMM_NULL) return std::nullopt;
  const std::optional<Elements> elements = elements_of(call.type, call.op);
  if (!elements) {
    reason = op_of(call.op) ? Left::kType : Left::kOperator;
    return std::nullopt;
  }
  Operation out;
  out.collective = collective;
  out.in = call.in == MPI_IN_PLACE ? call.out : call.in;
  out.out = call.out;
  out.count = static_cast<std::int64_t>(call.count) * elements->num_parts;
  out.type = elements->type;
  out.op = elements->op;
  out.mpi_count = call.count;
  out.mpi_type = call.type;
  out.mpi_op = call.op;
  reason = Left::kSmall;
  int num_ranks = 1;
  if (collective == Collective::kReduceScatter) MPI_Comm_size(call.comm, &num_ranks);
  if (out.bytes(num_ranks) < min_bytes) return std::nullopt;
  return out;
}

bool passes() { return Inside::is_inside() || !Library::instance().is_active(); }

template <class F>
int reduce_blocking(const Reduction& call, Collective collective, const char* function, const F& native) {
  Left reason{};
  const std::optional<Operation> operation =
      operation_of(call, collective, Library::instance().settings().min_bytes, reason);
  if (!operation) return leave(function, reason, native);
  const Library::Beside beside = Library::instance().beside(call.comm, true);
  if (beside.shadow == nullptr) return leave(function, beside.reason, native);
  return run(call.comm, function, [&] { beside.shadow->run(*operation); });
}

int all_reduce(const Reduction& call) {
  const auto native = [&] { return real().all_reduce(call.in, call.out, call.count, call.type, call.op, call.comm); };
  return reduce_blocking(call, Collective::kAllReduce, "MPI_Allreduce", native);
}

int reduce_scatter_block(const Reduction& call) {
  const auto native = [&] {
    return real().reduce_scatter_block(call.in, call.out, call.count, call.type, call.op, call.comm);
  };
  return reduce_blocking(call, Collective::kReduceScatter, "MPI_Reduce_scatter_block", native);
}

int iall_reduce(const Reduction& call, MPI_Request* request) {
  constexpr const char* kName = "MPI_Iallreduce";
  Library& library = Library::instance();
  const auto native = [&] {
    return real().iall_reduce(call.in, call.out, call.count, call.type, call.op, call.comm, request);
  };
  if (!library.allows_threads() || request == nullptr) return leave(kName, Left::kThreads, native);
  if (library.settings().min_bytes_nonblocking < 0) return leave(kName, Left::kSpinning, native);
  Left reason{};
  std::optional<Operation> operation =
      operation_of(call, Collective::kAllReduce, library.settings().min_bytes_nonblocking, reason);
  if (!operation) return leave(kName, reason, native);
  const Library::Beside beside = library.beside(call.comm, false);
  if (beside.shadow == nullptr) return leave(kName, beside.reason, native);
  operation->is_blocking = false;
  return run(call.comm, kName, [&] { beside.shadow->start(*operation, request); });
}

// --- AllGather: bytes, whatever they mean
// -----------------------------------------------------------------------------

struct Gather {
  const void* in = nullptr;
  int in_count = 0;
  MPI_Datatype in_type = MPI_DATATYPE_NULL;
  void* out = nullptr;
  int out_count = 0;
  MPI_Datatype out_type = MPI_DATATYPE_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
};

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

/// Bytes of a block, the same on all ranks; 0: left to the library.
std::int64_t block_bytes(const Gather& call) {
  if (call.out_count <= 0 || call.out_type == MPI_DATATYPE_NULL || call.comm == MPI_COMM_NULL) return 0;
  if (call.out == nullptr && is_dense(call.out_type)) return 0;  // otherwise the type may say where (MPI_BOTTOM)
  int out_bytes = 0;
  if (MPI_Type_size(call.out_type, &out_bytes) != MPI_SUCCESS) return 0;
  const std::int64_t bytes = static_cast<std::int64_t>(out_bytes) * call.out_count;
  if (call.in == MPI_IN_PLACE) return bytes;
  if (call.in_count <= 0 || call.in_type == MPI_DATATYPE_NULL) return 0;
  if (call.in == nullptr && is_dense(call.in_type)) return 0;
  int in_bytes = 0;
  if (MPI_Type_size(call.in_type, &in_bytes) != MPI_SUCCESS) return 0;
  return static_cast<std::int64_t>(in_bytes) * call.in_count == bytes ? bytes : 0;
}

/// Copies between typed memory and bytes, as MPI would do it in a message to ourselves. (MPI_Pack of MPICH does not
/// take MPI_BOTTOM.) An error of MPI, as of a type that was not committed, is thrown as its code.
void copy_typed(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type) {
  const int code = MPI_Sendrecv(in, in_count, in_type, 0, 0, out, out_count, out_type, 0, 0,
                                Library::instance().self_comm(), MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) throw MpiCode{code};
}

/// Blocks that are not dense travel packed.
void gather(const Gather& call, std::int64_t bytes, Shadow& shadow) {
  const Inside inside;
  int rank = 0;
  MPI_Comm_rank(call.comm, &rank);
  const bool is_in_place = call.in == MPI_IN_PLACE;
  const bool is_out_dense = is_dense(call.out_type);
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(call.out_type, &lower, &extent);
  const auto own = [&](std::int64_t block) {
    return static_cast<std::byte*>(call.out) + block * call.out_count * static_cast<std::int64_t>(extent);
  };
  std::vector<std::byte> packed_in;
  std::vector<std::byte> packed_out(is_out_dense ? 0 : static_cast<std::size_t>(bytes * shadow.size()));

  Operation operation;
  operation.collective = Collective::kAllGather;
  operation.count = bytes;
  operation.mpi_count = static_cast<int>(bytes);
  operation.out = is_out_dense ? call.out : packed_out.data();
  operation.in = is_in_place ? own(rank) : call.in;
  const MPI_Datatype type = is_in_place ? call.out_type : call.in_type;
  const int count = is_in_place ? call.out_count : call.in_count;
  if (!is_dense(type)) {
    packed_in.resize(static_cast<std::size_t>(bytes));
    copy_typed(operation.in, count, type, packed_in.data(), static_cast<int>(bytes), MPI_PACKED);
    operation.in = packed_in.data();
  }
  shadow.run(operation);
  for (int block = 0; !is_out_dense && block < shadow.size(); ++block) {
    copy_typed(packed_out.data() + block * bytes, static_cast<int>(bytes), MPI_PACKED, own(block), call.out_count,
               call.out_type);
  }
}

int all_gather(const Gather& call) {
  constexpr const char* kName = "MPI_Allgather";
  const auto native = [&] {
    return real().all_gather(call.in, call.in_count, call.in_type, call.out, call.out_count, call.out_type, call.comm);
  };
  const std::int64_t bytes = block_bytes(call);
  if (bytes == 0 || bytes > std::numeric_limits<int>::max()) return leave(kName, Left::kArguments, native);
  int size = 1;
  MPI_Comm_size(call.comm, &size);
  Library& library = Library::instance();
  if (bytes * size < library.settings().min_bytes) return leave(kName, Left::kSmall, native);
  const Library::Beside beside = library.beside(call.comm, true);
  if (beside.shadow == nullptr) return leave(kName, beside.reason, native);
  return run(call.comm, kName, [&] { gather(call, bytes, *beside.shadow); });
}

// --- begin and end
// ----------------------------------------------------------------------------------------------------

/// Who waits in MPI_Wait must let our thread have the core.
void make_mpi_yield() {
#ifdef OPEN_MPI
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);  // NOLINT(concurrency-mt-unsafe): before MPI_Init
#endif
}

int init(int* argc, char*** argv) {
  Library& library = Library::instance();
  if (!library.prepare() || !library.upgrades_threads()) {
    const int code = real().init(argc, argv);
    if (code == MPI_SUCCESS) library.start();
    return code;
  }
  int provided = MPI_THREAD_SINGLE;
  make_mpi_yield();
  const int code = real().init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
  if (code == MPI_SUCCESS) library.start();
  return code;
}

int init_thread(int* argc, char*** argv, int required, int* provided) {
  Library& library = Library::instance();
  const bool upgrades = library.prepare() && library.upgrades_threads();
  if (upgrades) make_mpi_yield();
  const int code = real().init_thread(argc, argv, upgrades ? MPI_THREAD_MULTIPLE : required, provided);
  if (code == MPI_SUCCESS) library.start();
  return code;
}

int finalize() {
  try {
    if (Library::instance().stop()) MPI_Abort(MPI_COMM_WORLD, 1);
  } catch (const std::exception& e) {
    Library::say(fmt::format("MPI_Finalize: {}", e.what()));
  }
  return real().finalize();
}

}  // namespace

}  // namespace gar::preload

namespace {

using namespace gar::preload;

/// Nothing of C++ gets into the program.
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

int all_reduce_of(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return guarded([&] { return all_reduce({in, out, count, type, op, comm}); });
}

int iall_reduce_of(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  return guarded([&] { return iall_reduce({in, out, count, type, op, comm}, request); });
}

int reduce_scatter_block_of(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return guarded([&] { return reduce_scatter_block({in, out, count, type, op, comm}); });
}

int all_gather_of(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type,
                  MPI_Comm comm) {
  return guarded([&] { return all_gather({in, in_count, in_type, out, out_count, out_type, comm}); });
}

/// A function whose arguments come as words.
template <class Out, class In>
Out of_words(In function) {
  return reinterpret_cast<Out>(reinterpret_cast<void (*)()>(function));  // NOLINT(*-reinterpret-cast): see exports.cpp
}

}  // namespace

/// Called once, before MPI_Init, by exports.cpp.
extern "C" const Hooks* gar_preload_attach(void* (*look_up)(const char*), const char* version) {
  look_up_real(look_up);
  Library::instance().set_version(version);
  static const Hooks kHooks{
      passes,
      init,
      init_thread,
      finalize,
      of_words<decltype(Hooks::all_reduce)>(all_reduce_of),
      of_words<decltype(Hooks::iall_reduce)>(iall_reduce_of),
      of_words<decltype(Hooks::reduce_scatter_block)>(reduce_scatter_block_of),
      of_words<decltype(Hooks::all_gather)>(all_gather_of),
  };
  return &kHooks;
}
