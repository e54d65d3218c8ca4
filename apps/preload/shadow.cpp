#include "apps/preload/shadow.hpp"

#include <sched.h>

#include <chrono>

#include "apps/preload/real.hpp"
#include "runtime/transports/mpi/mpi_call.hpp"

namespace gar::preload {

std::string_view name_of(const Operation& operation) {
  switch (operation.collective) {
    case Collective::kAllReduce:
      return operation.is_blocking ? "MPI_Allreduce" : "MPI_Iallreduce";
    case Collective::kReduceScatter:
      return "MPI_Reduce_scatter_block";
    case Collective::kAllGather:
      return "MPI_Allgather";
  }
  return {};
}

Shadow::Shadow(Communicator communicator, MPI_Comm check_comm, Observer observer)
    : communicator_(std::move(communicator)), check_comm_(check_comm), observer_(std::move(observer)) {}

Shadow::~Shadow() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable()) worker_.join();
  const Inside inside;
  if (check_comm_ != MPI_COMM_NULL) MPI_Comm_free(&check_comm_);
}

const PlanReport& Shadow::report_of(const Operation& operation) {
  const auto [entry, is_new] = reports_.try_emplace({operation.collective, operation.count, operation.type});
  if (is_new) entry->second = communicator_.report(operation.collective, operation.count, operation.type);
  return entry->second;
}

void Shadow::execute(const Operation& operation, std::optional<Check>& check) {
  const auto begin = std::chrono::steady_clock::now();
  const auto& [collective, in, out, count, type, op, is_blocking, mpi_count, mpi_type, mpi_op] = operation;
  switch (collective) {
    case Collective::kAllReduce:
      communicator_.all_reduce(in, out, count, type, op);
      break;
    case Collective::kReduceScatter:
      communicator_.reduce_scatter(in, out, count, type, op);
      break;
    case Collective::kAllGather:
      communicator_.all_gather(in, out, count, type);
      break;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (observer_.on_run) observer_.on_run(operation, report_of(operation), seconds.count());
  observer_.on_result(operation);
  if (!check) return;
  if (const auto difference = check->finish(operation)) observer_.on_difference(operation, *difference);
}

void Shadow::run(const Operation& operation) {
  const Inside inside;
  std::optional<Check> check;
  if (check_comm_ != MPI_COMM_NULL) check.emplace().start(operation, check_comm_);
  bool is_done = false;
  std::exception_ptr error;
  {
    std::unique_lock lock(mutex_);
    if (!queue_.empty()) {
      queue_.push_back({operation, std::move(check), nullptr, &is_done, &error});
      changed_.notify_all();
      changed_.wait(lock, [&] { return is_done; });
    }
  }
  if (!is_done) {
    execute(operation, check);
  } else if (error) {
    std::rethrow_exception(error);
  }
}

int Shadow::query(void* state, MPI_Status* status) {
  MPI_Status_set_elements(status, MPI_BYTE, 0);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return (*static_cast<std::shared_ptr<Pending>*>(state))->error;
}

int Shadow::release(void* state) {
  delete static_cast<std::shared_ptr<Pending>*>(state);
  return MPI_SUCCESS;
}

int Shadow::cancel(void* /*state*/, int /*is_complete*/) { return MPI_SUCCESS; }

void Shadow::start(const Operation& operation, MPI_Request* request) {
  const Inside inside;
  if (!worker_.joinable()) worker_ = std::thread([this] { work(); });
  Job job{operation, std::nullopt, nullptr, nullptr, nullptr};
  if (check_comm_ != MPI_COMM_NULL) job.check.emplace().start(operation, check_comm_);
  job.pending = std::make_shared<Pending>();
  auto state = std::make_unique<std::shared_ptr<Pending>>(job.pending);
  check_mpi(MPI_Grequest_start(query, release, cancel, state.get(), &job.pending->request), "MPI_Grequest_start");
  static_cast<void>(state.release());  // MPI's from now on
  *request = job.pending->request;
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(job));
  changed_.notify_all();
}

namespace {

/// A rank may be bound to one core, on which the program computes: the thread that works beside it may use any.
void use_all_cores() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all);
  sched_setaffinity(0, sizeof all, &all);
}

}  // namespace

void Shadow::work() {
  const Inside inside;
  use_all_cores();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Job& job = queue_.front();  // others only append, which moves nothing in a deque
    lock.unlock();
    std::exception_ptr error;
    try {
      execute(job.operation, job.check);
    } catch (...) {
      error = std::current_exception();
    }
    if (job.pending != nullptr) finish(job, error);
    lock.lock();
    if (job.is_done != nullptr) {
      *job.error = error;
      *job.is_done = true;
    }
    queue_.pop_front();
    changed_.notify_all();
  }
}

/// The program may free everything about the request as soon as it is complete.
void Shadow::finish(Job& job, std::exception_ptr error) {
  if (error) {
    job.pending->error = MPI_ERR_OTHER;
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      observer_.on_error(e.what());
    }
  }
  MPI_Grequest_complete(job.pending->request);
}

}  // namespace gar::preload
