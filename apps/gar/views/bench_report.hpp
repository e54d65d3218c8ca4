// What `gar bench` prints for people: lines as they come.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/cli/common.hpp"
#include "gar/measure/bench.hpp"
#include "gar/measure/bench_config.hpp"

namespace gar::cli {

/// Columns of the table. A narrow one has those of nccl-tests, as wide as the run needs them, and a short name of what
/// ran; the others stand in a second table below.
struct BenchLayout {
  bool is_wide = true;
  bool is_on_gpu = false;
  std::size_t size = 0;   ///< columns for bytes; this and the next are of narrow tables
  std::size_t count = 0;  ///< columns for elements
  std::size_t type = 0;
  std::size_t op = 0;
};
/// What fits the terminal.
BenchLayout bench_layout(const BenchConfig& config);

/// The lines before the results: what runs, and the columns.
std::string bench_header(const BenchConfig& config, const std::string& world, const std::string& remark = "",
                         const BenchLayout& layout = {});
/// One line of the table.
std::string bench_line(const BenchResult& result, bool color, const BenchLayout& layout = {});
/// The same for programs: a line of titles, and one for each result with all digits.
std::string bench_csv_titles();
std::string bench_csv_line(const BenchResult& result);

/// "auto is 2.31 times as fast as native (...)", "auto, reproducible takes 3.10 times as long as auto (...)".
std::string ratio_words(const BenchRatio& ratio);
/// The lines after the results.
std::string bench_footer(const std::vector<BenchResult>& results, const BenchOutcome& outcome,
                         const BenchLayout& layout = {});

}  // namespace gar::cli
