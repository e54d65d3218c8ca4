// What benchmarks print, read back: gar bench, nccl-tests, OSU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gar {

/// One measured AllReduce out of a benchmark's output.
struct ResultRow {
  std::int64_t line = 0;  ///< where it stands; 0 in a document
  double bytes = 0;       ///< of the vector
  double seconds = 0;     ///< of one operation
  std::string algorithm;  ///< as on the command line; empty: unknown, or the library's own choice
  std::string label;      ///< what the benchmark says about it: "auto: cps, 4 chunks", "in place"
};
/// What a benchmark printed.
struct Results {
  std::string format;           ///< "gar bench", "nccl-tests" or "OSU"
  std::int64_t num_ranks = 0;   ///< 0: the file does not say
  std::vector<ResultRow> rows;  ///< in the order of the file
};
/// The last column of gar bench's table: what was asked for and what ran.
struct BenchLabel {
  std::string name;              ///< as in --algo: "auto", "native"
  bool is_reproducible = false;  ///< measured in the reproducible mode
  std::string plan = {};         ///< what ran, where that is not the name: "cps", "Open MPI 4.1.4"
  std::int64_t num_chunks = 1;   ///< parts of the vector that follow each other
  bool operator==(const BenchLabel&) const = default;
};
/// "auto: cps, 4 chunks", "ring, reproducible", "native: Open MPI 4.1.4".
std::string to_string(const BenchLabel& label);
/// The inverse of to_string; any text is some label.
BenchLabel parse_bench_label(std::string_view text);

/// Reads the output of `gar bench` (table or --json), of nccl-tests' all_reduce_perf or of osu_allreduce; the format is
/// recognised by its content. The result has at least one row. Throws ParseError that names file, line and what is
/// accepted.
Results read_results_file(const std::string& path);
Results parse_results(std::string_view text, const std::string& source);  ///< from text; messages name `source`

}  // namespace gar
