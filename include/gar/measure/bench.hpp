// A benchmark of collectives: the measurement on one rank, and what is said about its results.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gar/measure/bench_config.hpp"
#include "gar/measure/world.hpp"
#include "gar/results_io.hpp"
#include "gar/stats.hpp"

namespace gar::measure {

/// One line of the table.
struct BenchResult {
  BenchEntry entry;                                ///< which algorithm, or the library's own collective
  Collective collective = Collective::kAllReduce;  ///< which collective
  BenchCase kind;                                  ///< element type and operator
  BenchSize size;                                  ///< size of the vector
  std::string plan;                                ///< what ran: "cps", "latency"; native: the library
  std::string transport;                           ///< "shm"; native: "mpi"
  std::string reason;                              ///< why that
  std::int64_t num_chunks = 1;                     ///< parts of the vector that follow each other
  std::int64_t batch = 1;                          ///< operations in one timed iteration
  std::int64_t iterations = 0;                     ///< timed iterations
  Spread seconds;                                  ///< of one operation on the slowest rank
  double algbw = 0;                                ///< as algorithm_bandwidth
  double busbw = 0;                                ///< as bus_bandwidth
  std::optional<std::int64_t> wrong;               ///< elements, over all ranks and both checks
  double predicted_seconds = -1;                   ///< with the correction
  double correction = 1;                           ///< a profile's factor for this size
  bool is_on_gpu = false;                          ///< the vectors are in the memory of GPUs
  double bound_seconds = -1;                       ///< of what must pass through the GPUs' memory; -1: not known
  double resent = -1;  ///< share of its segments that TCP sent again, between hosts; -1: not known
};

/// Bytes per second: algbw is the vector over the time; busbw what the busiest link of a bandwidth-optimal algorithm
/// carries, 2 (n-1)/n of that for AllReduce and (n-1)/n for ReduceScatter and AllGather.
double algorithm_bandwidth(double bytes, double seconds);
/// The bandwidth of the busiest link, in the sense above.
double bus_bandwidth(Collective collective, int num_ranks, double algbw);

/// The relative error of a prediction: measured / predicted - 1.
double prediction_error(double measured_s, double predicted_s);
/// What the rank that prints is told as it happens. Functions may be empty.
struct BenchWatch {
  std::function<void(const BenchResult&)> on_result;    ///< a result is complete
  std::function<void(const std::string&)> on_note;      ///< something is left out, and why
  std::function<void(const std::string&)> on_progress;  ///< "16 MiB, iteration 3 of 20"
};

/// How a benchmark ended.
struct BenchOutcome {
  std::int64_t num_wrong = 0;   ///< wrong elements in all results together
  double copy_bytes_per_s = 0;  ///< reads plus writes of a copy in GPU memory, in the same run; 0: no GPU
  bool is_complete = true;      ///< false: stopped before the end
};

/// The same on all ranks, and agreed on by all.
BenchOutcome run_bench(World& world, const BenchConfig& config, const BenchWatch& watch);

/// The last column of a result's line: what was asked for and what ran.
BenchLabel label_of(const BenchResult& result);
/// The operator of a result: "sum"; "none" for AllGather, which reduces nothing.
std::string_view operator_word(const BenchResult& result);

/// How many times as fast one entry is as another, over the sizes that both were measured at.
struct BenchRatio {
  std::string fast;           ///< the entry that the ratio is about: "ring"
  std::string slow;           ///< the entry that it is compared with: "native"
  double mean = 1;            ///< geometric
  double least = 1;           ///< smallest ratio at any size
  double most = 1;            ///< largest ratio at any size
  std::int64_t least_at = 0;  ///< bytes
  std::int64_t most_at = 0;   ///< bytes at which it is largest
  std::size_t num_sizes = 0;  ///< sizes that both were measured at
  bool is_price = false;      ///< of the reproducible mode, not a contest
};
/// Every algorithm of ours against native; the reproducible mode against the ordinary one.
std::vector<BenchRatio> bench_ratios(const std::vector<BenchResult>& results);

/// Everything about a run.
struct BenchRecord {
  int num_ranks = 1;                 ///< ranks that took part
  std::string world;                 ///< as World::words
  std::vector<BenchResult> results;  ///< in the order in which they were measured
  std::vector<std::string> notes;    ///< what was left out, and why; one sentence each
  BenchOutcome outcome;              ///< how the run ended
  Origin origin = {};                ///< of rank 0
};
/// Schema "gar.bench/2": the text of the document that `gar bench --json` prints, with a newline at its end.
std::string bench_document(const BenchConfig& config, const BenchRecord& record);

}  // namespace gar::measure
