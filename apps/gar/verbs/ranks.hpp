// What `gar bench` and `gar fit` have in common: verbs that start ranks, or are one of an mpirun's ranks themselves.
#pragma once

#include <functional>
#include <optional>

#include "gar/measure/launch.hpp"

namespace gar::cli {

/// Runs `action` with the MPI job that this process is in, if any. All ranks of a job read the same command line, so
/// what it throws is left to rank 0 to say; the others return the exit code.
int run_once_or_in_job(const std::function<int(const std::optional<measure::MpiJob>&)>& action);

/// Refuses flags that cannot be combined with an mpirun, and becomes the program with CUDA where one is needed. Throws
/// UsageError, and std::runtime_error when there is no such program.
void prepare_ranks(const measure::RankOptions& options, const std::optional<measure::MpiJob>& job);

/// For run_ranks: failures go to standard error.
measure::RankStart rank_start(const std::optional<measure::MpiJob>& job, int num_ranks);

/// Is this process a rank that something else than an MPI has started, and that is to run over TCP?
bool is_rank_over_tcp(const measure::RankOptions& options);

/// Does this process speak for all ranks, and write the files?
bool is_first_rank(const measure::RankOptions& options, const std::optional<measure::MpiJob>& job);

}  // namespace gar::cli
