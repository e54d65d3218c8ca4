// What `gar bench` prints for people: lines as they come.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/cli/common.hpp"
#include "gar/measure/bench.hpp"
#include "gar/measure/bench_config.hpp"

namespace gar::cli {

/// The lines before the results: what runs, and the columns.
std::string bench_header(const BenchConfig& config, const std::string& world);
/// One line of the table.
std::string bench_line(const BenchResult& result, bool color);
/// The same for programs: a line of titles, and one for each result with all digits.
std::string bench_csv_titles();
std::string bench_csv_line(const BenchResult& result);

/// "auto is 2.31 times as fast as native (...)", "auto, reproducible takes 3.10 times as long as auto (...)".
std::string ratio_words(const BenchRatio& ratio);
/// The lines after the results.
std::string bench_footer(const std::vector<BenchResult>& results, const BenchOutcome& outcome);

}  // namespace gar::cli
