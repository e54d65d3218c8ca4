// gar/gar.h on top of gar/communicator.hpp: checks arguments, and turns exceptions into codes and texts.
#include "runtime/c_api.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "gar/plan_io.hpp"
#include "gar/reduction.hpp"
#include "gar/topology_io.hpp"
#include "gar/version.hpp"

static_assert(GAR_FLOAT64 == static_cast<int>(gar::DataType::kFloat64) && GAR_FLOAT64 + 1 == gar::kNumDataTypes);
static_assert(GAR_FLOAT16 == static_cast<int>(gar::DataType::kFloat16));
static_assert(GAR_INT8 == static_cast<int>(gar::DataType::kInt8));
static_assert(GAR_LXOR == static_cast<int>(gar::ReduceOp::kLxor) && GAR_LXOR + 1 == gar::kNumReduceOps);
static_assert(GAR_MAX == static_cast<int>(gar::ReduceOp::kMax));
static_assert(GAR_SUM == static_cast<int>(gar::ReduceOp::kSum));

namespace gar::c_api {

namespace {

constexpr std::int64_t kMostBlockBytes = std::int64_t{1} << 50;  // the engine refuses more

// No allocation, so that "out of memory" can be said, too.
thread_local char last_error[2048] = "";

gar_status keep(gar_status status, const char* text) noexcept {
  static_cast<void>(std::snprintf(last_error, sizeof last_error, "%s", text));
  return status;
}

}  // namespace

gar_status status_of_current_exception() noexcept {
  try {
    throw;
  } catch (const InvalidArgument& error) {
    return keep(GAR_ERROR_ARGUMENT, error.what());
  } catch (const TransportError& error) {
    return keep(GAR_ERROR_TRANSPORT, error.what());
  } catch (const PlanError& error) {
    return keep(GAR_ERROR_PLAN, error.what());
  } catch (const ParseError& error) {
    return keep(GAR_ERROR_PARSE, error.what());
  } catch (const DeviceError& error) {
    return keep(GAR_ERROR_DEVICE, error.what());
  } catch (const std::bad_alloc&) {
    return keep(GAR_ERROR_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return keep(GAR_ERROR_INTERNAL, error.what());
  } catch (...) {
    return keep(GAR_ERROR_INTERNAL, "an exception of an unknown type");
  }
}

void require(bool condition, const char* function, const std::string& message) {
  if (!condition) {
    throw InvalidArgument(std::string(function) + ": " + message);
  }
}

void require_name(const char* name, gar_comm** comm, const char* function) {
  require(comm != nullptr, function, "`comm` is NULL; expected where the communicator shall be written");
  require(name != nullptr, function, "`name` is NULL; expected letters, digits, '-', '_' and '.'");
}

CommunicatorOptions communicator_options(const gar_options* options, const char* function) {
  // Fields are only ever added at the end: a program that was compiled with fewer gets the defaults of the others.
  constexpr std::size_t kFirstSize = offsetof(gar_options, log_user) + sizeof(void*);
  gar_options known = GAR_OPTIONS_INIT;
  if (options != nullptr) {
    require(options->size == kFirstSize || options->size == sizeof known, function,
            "`options->size` is " + std::to_string(options->size) + "; expected " + std::to_string(sizeof known) +
                ", or " + std::to_string(kFirstSize) + " of programs that were built before there was `on_failure`, " +
                "as GAR_OPTIONS_INIT fills it in");
    std::memcpy(&known, options, options->size);
  }
  CommunicatorOptions result;
  result.algorithm = known.algorithm != nullptr ? known.algorithm : "";
  if (known.plan_file != nullptr) {
    result.plan = read_plan_file(known.plan_file);
  }
  if (known.topology != nullptr) {
    result.topology = load_topology(known.topology);
  }
  result.reproducible = known.reproducible != 0;
  result.timeout_s = known.timeout_s;
  result.staging_bytes = known.staging_bytes;
  result.latency_bytes = known.latency_bytes;
  require(known.on_failure >= GAR_ON_FAILURE_REPORT && known.on_failure <= GAR_ON_FAILURE_SHRINK_AND_GROW, function,
          "`options->on_failure` is " + std::to_string(known.on_failure) +
              "; expected GAR_ON_FAILURE_REPORT (0), GAR_ON_FAILURE_SHRINK (1) or GAR_ON_FAILURE_SHRINK_AND_GROW (2)");
  result.on_failure = static_cast<OnFailure>(known.on_failure);
  if (known.log != nullptr) {
    result.log = [log = known.log, user = known.log_user](std::string_view text) {
      log(std::string(text).c_str(), user);
    };
  }
  return result;
}

Communicator& communicator_of(gar_comm* comm, const char* function) {
  require(comm != nullptr, function, "`comm` is NULL; expected a communicator that a gar_comm_create_* function made");
  return comm->communicator;
}

DataType checked_type(gar_type type, const char* function) {
  require(type >= 0 && type < kNumDataTypes, function,
          "`type` is " + std::to_string(type) + "; expected GAR_INT8 (0) to GAR_FLOAT64 (11)");
  return static_cast<DataType>(type);
}

ReduceOp checked_op(gar_op op, const char* function) {
  require(op >= 0 && op < kNumReduceOps, function,
          "`op` is " + std::to_string(op) + "; expected GAR_SUM (0) to GAR_LXOR (9)");
  return static_cast<ReduceOp>(op);
}

const void* block_in(const void* vector, std::int64_t count, DataType type, int rank) {
  const std::int64_t size = size_of(type);
  if (vector == nullptr || count > kMostBlockBytes / size) return vector;
  return static_cast<const std::byte*>(vector) + rank * count * size;
}

namespace {

Request& request_of(gar_request* request, const char* function) {
  require(request != nullptr, function,
          "`request` is NULL; expected what a gar_*_start or gar_*_prepare function made");
  return request->request;
}

void check_count(std::int64_t count, const char* name, const char* function) {
  require(count >= 0, function,
          '`' + std::string(name) + "` is " + std::to_string(count) + "; expected a number of elements from 0");
}

/// A collective as C programs call it.
struct Arguments {
  Collective collective;
  gar_comm* comm;
  const void* in;
  void* out;
  std::int64_t count;
  gar_type type;
  gar_op op = GAR_SUM;
};

CollectiveCall checked(const Arguments& given, int rank, const char* function) {
  check_count(given.count, given.collective == Collective::kAllReduce ? "count" : "block_count", function);
  const DataType type = checked_type(given.type, function);
  const ReduceOp op = checked_op(given.op, function);
  require(given.out != GAR_IN_PLACE, function, "`out` is GAR_IN_PLACE; accepted only as `in`");
  if (given.count > 0) {
    require(given.out != nullptr, function, "`out` is NULL; accepted only when there are no elements");
    require(given.in != nullptr, function,
            "`in` is NULL; accepted only when there are no elements (GAR_IN_PLACE stands for operands in `out`)");
  }
  const void* in = given.in;
  if (in == GAR_IN_PLACE) {
    in = given.out;
    if (given.collective == Collective::kAllGather) in = block_in(in, given.count, type, rank);
  }
  return {given.collective, in, given.out, given.count, type, op};
}

gar_status run(const Arguments& arguments, const char* name) noexcept {
  return guarded(name, [&](const char* function) {
    Communicator& communicator = communicator_of(arguments.comm, function);
    communicator.run(checked(arguments, communicator.rank(), function));
  });
}

gar_status enqueue(const Arguments& arguments, void* stream, const char* name) noexcept {
  return guarded(name, [&](const char* function) {
    Communicator& communicator = communicator_of(arguments.comm, function);
    communicator.run(checked(arguments, communicator.rank(), function), Stream{stream});
  });
}

/// Communicator::start or Communicator::prepare.
using MakeRequest = Request (Communicator::*)(const CollectiveCall& call, Completion on_complete);

gar_status make_request(const Arguments& arguments, gar_request** request, const char* name,
                        MakeRequest make) noexcept {
  return guarded(name, [&](const char* function) {
    require(request != nullptr, function, "`request` is NULL; expected where the request shall be written");
    // The memory first: an operation that has started must be able to hand its request over.
    auto result = std::make_unique<gar_request>();
    Communicator& communicator = communicator_of(arguments.comm, function);
    result->request = (communicator.*make)(checked(arguments, communicator.rank(), function), {});
    *request = result.release();
  });
}

}  // namespace

Reduction checked_reduction(const ReduceArguments& given, const char* function) {
  const DataType type = checked_type(given.type, function);
  const ReduceOp op = checked_op(given.op, function);
  check_count(given.count, "count", function);
  require(given.num_operands >= 1, function,
          "`num_operands` is " + std::to_string(given.num_operands) + "; expected 1 or more");
  require(given.operands != nullptr, function, "`operands` is NULL; expected an array of num_operands pointers");
  const std::span<const void* const> all(given.operands, static_cast<std::size_t>(given.num_operands));
  require(given.count == 0 || given.out != nullptr, function,
          "`out` is NULL; accepted only when there are no elements");
  require(given.count == 0 || std::find(all.begin(), all.end(), nullptr) == all.end(), function,
          "one of `operands` is NULL; accepted only when there are no elements");
  return {type, op, all};
}

}  // namespace gar::c_api

using gar::Collective;
using gar::Communicator;
using gar::c_api::enqueue;
using gar::c_api::guarded;
using gar::c_api::make_request;
using gar::c_api::require;
using gar::c_api::run;

extern "C" const char gar_in_place_address = 0;

const char* gar_version(void) { return gar::version().data(); }

const char* gar_last_error(void) { return gar::c_api::last_error; }

const char* gar_status_name(gar_status status) {
  switch (status) {
    case GAR_OK:
      return "GAR_OK";
    case GAR_ERROR_ARGUMENT:
      return "GAR_ERROR_ARGUMENT";
    case GAR_ERROR_TRANSPORT:
      return "GAR_ERROR_TRANSPORT";
    case GAR_ERROR_PLAN:
      return "GAR_ERROR_PLAN";
    case GAR_ERROR_PARSE:
      return "GAR_ERROR_PARSE";
    case GAR_ERROR_MEMORY:
      return "GAR_ERROR_MEMORY";
    case GAR_ERROR_INTERNAL:
      return "GAR_ERROR_INTERNAL";
    case GAR_ERROR_DEVICE:
      return "GAR_ERROR_DEVICE";
    default:
      return "unknown";
  }
}

size_t gar_type_size(gar_type type) {
  return type >= 0 && type < gar::kNumDataTypes ? static_cast<size_t>(gar::size_of(static_cast<gar::DataType>(type)))
                                                : 0;
}

gar_status gar_comm_create_threads(int num_ranks, const gar_options* options, gar_comm** comms) {
  return guarded(__func__, [&](const char* function) {
    require(comms != nullptr, function, "`comms` is NULL; expected an array of num_ranks pointers");
    require(num_ranks >= 1, function, "`num_ranks` is " + std::to_string(num_ranks) + "; expected 1 or more");
    std::vector<std::unique_ptr<gar_comm>> made;
    for (auto& communicator :
         gar::thread_communicators(num_ranks, gar::c_api::communicator_options(options, function))) {
      made.push_back(std::make_unique<gar_comm>(gar_comm{std::move(communicator)}));
    }
    std::transform(made.begin(), made.end(), comms, [](auto& comm) { return comm.release(); });
  });
}

gar_status gar_comm_create_shm(const char* name, int rank, int size, const gar_options* options, gar_comm** comm) {
  return guarded(__func__, [&](const char* function) {
    gar::c_api::require_name(name, comm, function);
    *comm = new gar_comm{
        gar::shared_memory_communicator(name, rank, size, gar::c_api::communicator_options(options, function))};
  });
}

void gar_comm_free(gar_comm* comm) { delete comm; }

int gar_comm_rank(const gar_comm* comm) { return comm != nullptr ? comm->communicator.rank() : -1; }

int gar_comm_size(const gar_comm* comm) { return comm != nullptr ? comm->communicator.size() : -1; }

int gar_comm_members(const gar_comm* comm, int* ranks, int capacity, uint64_t* generation) {
  int size = -1;
  gar::c_api::guarded(__func__, [&](const char* /*function*/) {
    if (comm == nullptr) return;
    const gar::Members members = comm->communicator.members();
    size = static_cast<int>(members.ranks.size());
    if (ranks != nullptr) std::copy_n(members.ranks.begin(), std::clamp(capacity, 0, size), ranks);
    if (generation != nullptr) *generation = members.generation;
  });
  return size;
}

gar_status gar_comm_grow(gar_comm* comm, int* num_new) {
  return gar::c_api::guarded(__func__, [&](const char* function) {
    const gar::Growth growth = gar::c_api::communicator_of(comm, function).grow();
    if (num_new != nullptr) *num_new = growth.num_new;
  });
}

gar_status gar_all_reduce(gar_comm* comm, const void* in, void* out, int64_t count, gar_type type, gar_op op) {
  return run({Collective::kAllReduce, comm, in, out, count, type, op}, __func__);
}

gar_status gar_reduce_scatter(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                              gar_op op) {
  return run({Collective::kReduceScatter, comm, in, out, block_count, type, op}, __func__);
}

gar_status gar_all_gather(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type) {
  return run({Collective::kAllGather, comm, in, out, block_count, type}, __func__);
}

gar_status gar_barrier(gar_comm* comm) {
  return guarded(__func__, [&](const char* function) { gar::c_api::communicator_of(comm, function).barrier(); });
}

gar_status gar_all_reduce_on_stream(gar_comm* comm, const void* in, void* out, int64_t count, gar_type type, gar_op op,
                                    void* stream) {
  return enqueue({Collective::kAllReduce, comm, in, out, count, type, op}, stream, __func__);
}

gar_status gar_reduce_scatter_on_stream(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                                        gar_op op, void* stream) {
  return enqueue({Collective::kReduceScatter, comm, in, out, block_count, type, op}, stream, __func__);
}

gar_status gar_all_gather_on_stream(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                                    void* stream) {
  return enqueue({Collective::kAllGather, comm, in, out, block_count, type}, stream, __func__);
}

gar_status gar_stream_synchronize(gar_comm* comm, void* stream) {
  return guarded(__func__, [&](const char* function) {
    gar::c_api::communicator_of(comm, function).synchronize(gar::Stream{stream});
  });
}

gar_status gar_all_reduce_start(gar_comm* comm, const void* in, void* out, int64_t count, gar_type type, gar_op op,
                                gar_request** request) {
  return make_request({Collective::kAllReduce, comm, in, out, count, type, op}, request, __func__,
                      &Communicator::start);
}

gar_status gar_reduce_scatter_start(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                                    gar_op op, gar_request** request) {
  return make_request({Collective::kReduceScatter, comm, in, out, block_count, type, op}, request, __func__,
                      &Communicator::start);
}

gar_status gar_all_gather_start(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                                gar_request** request) {
  return make_request({Collective::kAllGather, comm, in, out, block_count, type}, request, __func__,
                      &Communicator::start);
}

gar_status gar_all_reduce_prepare(gar_comm* comm, const void* in, void* out, int64_t count, gar_type type, gar_op op,
                                  gar_request** request) {
  return make_request({Collective::kAllReduce, comm, in, out, count, type, op}, request, __func__,
                      &Communicator::prepare);
}

gar_status gar_reduce_scatter_prepare(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                                      gar_op op, gar_request** request) {
  return make_request({Collective::kReduceScatter, comm, in, out, block_count, type, op}, request, __func__,
                      &Communicator::prepare);
}

gar_status gar_all_gather_prepare(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                                  gar_request** request) {
  return make_request({Collective::kAllGather, comm, in, out, block_count, type}, request, __func__,
                      &Communicator::prepare);
}

gar_status gar_request_start(gar_request* request) {
  return guarded(__func__, [&](const char* function) { gar::c_api::request_of(request, function).start(); });
}

gar_status gar_request_test(gar_request* request, int* is_complete) {
  return guarded(__func__, [&](const char* function) {
    require(is_complete != nullptr, function, "`is_complete` is NULL; expected where 0 or 1 shall be written");
    *is_complete = gar::c_api::request_of(request, function).test() ? 1 : 0;
  });
}

gar_status gar_request_wait(gar_request* request) {
  return guarded(__func__, [&](const char* function) { gar::c_api::request_of(request, function).wait(); });
}

void gar_request_free(gar_request* request) { delete request; }

gar_status gar_reduce(gar_type type, gar_op op, void* out, const void* const* operands, int num_operands,
                      int64_t count) {
  return guarded(__func__, [&](const char* function) {
    const gar::c_api::Reduction call =
        gar::c_api::checked_reduction({type, op, out, operands, num_operands, count}, function);
    gar::reduce(call.type, call.op, out, call.operands, count);
  });
}
