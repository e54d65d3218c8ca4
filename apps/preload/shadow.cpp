#include "apps/preload/shadow.hpp"

#include <algorithm>
#include <utility>

#include "apps/preload/real.hpp"
#include "runtime/transports/mpi/mpi_call.hpp"

namespace gar::preload {

std::string_view name_of(const Operation& operation) {
  switch (operation.call.collective) {
    case Collective::kAllReduce:
      return operation.is_blocking ? "MPI_Allreduce" : "MPI_Iallreduce";
    case Collective::kReduceScatter:
      return "MPI_Reduce_scatter_block";
    case Collective::kAllGather:
      return "MPI_Allgather";
  }
  return {};
}

Shadow::Shadow(Communicator communicator, OwnedComm check_comm, Observer observer)
    : check_comm_(std::move(check_comm)), observer_(std::move(observer)), communicator_(std::move(communicator)) {}

bool Shadow::is_checked(const Operation& operation) const {
  return check_comm_.get() != MPI_COMM_NULL &&
         in_bytes(operation.call, size()) + out_bytes(operation.call, size()) <= observer_.most_checked_bytes;
}

/// What comes before an operation runs.
void Shadow::prepare(Job& job) {
  const CollectiveCall& call = job.operation.call;
  if (observer_.on_run) {
    PlanReport report = communicator_.report(call.collective, call.count, call.type, call.op);
    const auto [entry, is_new] =
        reports_.try_emplace({call.collective, call.count, call.type, report.algorithm}, std::move(report));
    job.report = &entry->second;
  }
  job.begin = Clock::now();
}

/// What follows when an operation has run.
void Shadow::observe(Job& job) {
  // It did not run before those that came before it were over.
  const std::chrono::duration<double> seconds = Clock::now() - std::max(job.begin, idle_since_.load());
  if (job.report != nullptr) observer_.on_run(job.operation, *job.report, seconds.count());
  if (observer_.on_time) observer_.on_time(seconds.count());
  if (!job.check) return;
  observer_.on_check();
  if (const auto difference = job.check->finish(job.operation)) observer_.on_difference(job.operation, *difference);
}

void Shadow::run_unobserved(const CollectiveCall& call) {
  const Inside inside;
  communicator_.run(call);
}

void Shadow::run(const Operation& operation) {
  const Inside inside;
  Job job;
  job.operation = operation;
  if (is_checked(operation) && observer_.on_turns) {
    const auto ours = [&] {
      prepare(job);
      communicator_.run(operation.call);
    };
    const Turns turns = job.check.emplace().take_turns(operation, check_comm_.get(), is_ours_first_, ours);
    is_ours_first_ = !is_ours_first_;
    observer_.on_turns(operation, turns);
    job.begin = Clock::now() - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(turns.ours));
  } else {
    if (is_checked(operation)) job.check.emplace().start(operation, check_comm_.get());
    prepare(job);
    communicator_.run(operation.call);
  }
  observe(job);
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
  const auto job = std::make_shared<Job>();
  job->operation = operation;
  if (is_checked(operation)) job->check.emplace().start(operation, check_comm_.get());
  job->pending = std::make_shared<Pending>();
  auto state = std::make_unique<std::shared_ptr<Pending>>(job->pending);
  check_mpi(MPI_Grequest_start(query, release, cancel, state.get(), &job->pending->request), "MPI_Grequest_start");
  static_cast<void>(state.release());  // MPI's from now on
  *request = job->pending->request;
  try {
    prepare(*job);
    communicator_.start(operation.call, [this, job](std::exception_ptr error) { complete(*job, error); }).detach();
  } catch (...) {
    complete(*job, std::current_exception());  // the program learns of it when it waits for the request
  }
}

/// The program may free everything that belongs to the request, the communicator included, as soon as the request is
/// complete; so that comes last.
void Shadow::complete(Job& job, std::exception_ptr error) {
  const Inside inside;
  try {
    if (error) std::rethrow_exception(error);
    observe(job);
  } catch (const std::exception& e) {
    job.pending->error = MPI_ERR_OTHER;
    observer_.on_error(e.what());
  }
  idle_since_ = Clock::now();
  MPI_Grequest_complete(job.pending->request);
}

}  // namespace gar::preload
