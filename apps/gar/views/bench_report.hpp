// What `gar bench` prints: lines as they come for people, one document for scripts.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/cli/common.hpp"
#include "apps/gar/views/json_output.hpp"
#include "gar/measure/bench.hpp"
#include "gar/measure/bench_config.hpp"

namespace gar::cli {

/// The lines before the results: what runs, and the columns.
std::string bench_header(const BenchConfig& config, const std::string& world);
/// One line of the table.
std::string bench_line(const BenchResult& result, bool color);

/// How often one is as fast as the other, over the sizes that both were measured at.
struct BenchRatio {
  std::string fast;
  std::string slow;
  double mean = 1;  ///< geometric
  double least = 1;
  double most = 1;
  std::int64_t least_at = 0;  ///< bytes
  std::int64_t most_at = 0;
  std::size_t num_sizes = 0;
  bool is_price = false;  ///< of the reproducible mode, not a contest
};
/// Every algorithm of ours against native; the reproducible mode against the ordinary one.
std::vector<BenchRatio> bench_ratios(const std::vector<BenchResult>& results);
/// "auto is 2.31 times as fast as native (...)", "auto, reproducible takes 3.10 times as long as auto (...)".
std::string ratio_words(const BenchRatio& ratio);
/// The lines after the results.
std::string bench_footer(const std::vector<BenchResult>& results, const BenchOutcome& outcome);

/// Everything about a run.
struct BenchRecord {
  int num_ranks = 1;
  std::string world;
  std::vector<BenchResult> results;
  std::vector<std::string> notes;
  BenchOutcome outcome;
};
Json bench_document(const BenchConfig& config, const BenchRecord& record);

}  // namespace gar::cli
