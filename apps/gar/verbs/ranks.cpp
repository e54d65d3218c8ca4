#include "apps/gar/verbs/ranks.hpp"

#include <fmt/format.h>

#include <csignal>
#include <exception>

#include "apps/gar/cli/common.hpp"
#include "apps/gar/cli/device.hpp"
#include "gar/errors.hpp"
#include "gar/tcp.hpp"

namespace gar::cli {

int run_once_or_in_job(const std::function<int(const std::optional<MpiJob>&)>& action) {
  // A reader that has gone away is an error of the output, not the death of a rank.
  std::signal(SIGPIPE, SIG_IGN);
  const std::optional<MpiJob> job = current_mpi_job();
  try {
    return action(job);
  } catch (...) {
    if (!job || job->rank == 0) throw;
    return describe_failure(std::current_exception()).code;
  }
}

void prepare_ranks(const RankOptions& options, const std::optional<MpiJob>& job) {
  if (job && options.device == Device::kCuda) throw UsageError(kNoGpusUnderMpirun);
  become_program_of(options.device);
  if (!job) return;
  if (options.local && !is_started_by_us()) {
    throw UsageError(fmt::format(
        "--local {} cannot be combined with mpirun, which has started {} processes already; leave one of them out",
        *options.local, job->size));
  }
  if (options.transport == TransportKind::kThreads) {
    throw UsageError(
        "--transport threads cannot be combined with mpirun; expected auto shm mpi, or gar bench without mpirun");
  }
}

bool is_rank_over_tcp(const RankOptions& options) {
  return is_tcp(options.transport) && !options.local && environment_job().has_value();
}

bool is_first_rank(const RankOptions& options, const std::optional<MpiJob>& job) {
  if (job) return job->rank == 0;
  return !is_rank_over_tcp(options) || environment_job()->rank == 0;
}

RankStart rank_start(const std::optional<MpiJob>& job, int num_ranks) {
  RankStart out;
  out.job = job;
  out.num_ranks = num_ranks;
  out.report = print_failure;
  return out;
}

}  // namespace gar::cli
