// What benchmarks print, read back: gar bench, nccl-tests, OSU, IMB; and logs of NCCL.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gar/fit.hpp"
#include "gar/nccl_log.hpp"

namespace gar {

/// What a benchmark says about a row beside its time.
struct ResultDetail {
  double low_s = -1;        ///< nine tenths of the iterations took at least this; -1: not said
  double high_s = -1;       ///< nine tenths of the iterations took at most this; -1: not said
  double predicted_s = -1;  ///< what was predicted; -1: nothing
};
/// What was measured on which machine, and with which commands; empty fields are left out.
struct Origin {
  std::vector<std::pair<std::string, std::string>> facts = {};  ///< "kernel", "Linux 6.1.0"
  std::vector<std::string> commands = {};                       ///< as they could be typed
};
/// What a benchmark printed.
struct Results {
  std::string format;                      ///< "gar bench", "nccl-tests", "OSU" or "IMB-MPI1"
  std::int64_t num_ranks = 0;              ///< 0: the file does not say
  std::vector<ResultRow> rows;             ///< in the order of the file
  std::vector<ResultDetail> details = {};  ///< one for each row, or none
  Origin origin = {};                      ///< what a document of gar bench says about its machine
  std::optional<NcclLog> nccl = {};        ///< what NCCL logged between the rows of nccl-tests
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
/// The same in a narrow table, without what only documents it: "auto: cps", "ring, repr.", "native".
std::string to_short_string(const BenchLabel& label);
/// Stands in a narrow table for a label that has no room; the label is in the next line, a comment.
inline constexpr std::string_view kLabelBelow = "below:";
/// The inverse of to_string, and of to_short_string as far as that goes; any text is some label.
BenchLabel parse_bench_label(std::string_view text);

/// Reads the output of `gar bench` (table or --json), of nccl-tests' all_reduce_perf, of osu_allreduce or of IMB-MPI1;
/// the format is recognised by its content. The result has at least one row. Throws ParseError that names file, line
/// and what is accepted. What launchers put before every line is taken off: `mpirun --tag-output` ("[1,0]<stdout>:"),
/// where lines of standard error count as empty, `srun -l` ("0: ") and MPICH's `mpirun -l` ("[0] ").
Results read_results_file(const std::string& path);
Results read_results(std::istream& in, const std::string& source);        ///< from a stream; messages name `source`
Results parse_results(std::string_view text, const std::string& source);  ///< from text; messages name `source`

/// Is there a document or the beginning of a table that parse_results would read?
bool has_results(std::string_view text);
/// Does the text hold lines of NCCL ("host:12:34 [0] NCCL INFO ...")? It may hold results, too.
bool is_nccl_log(std::string_view text);
/// Reads what NCCL_DEBUG=INFO has written; tags of launchers are taken off, and other lines are passed over. Throws
/// ParseError when there is no line of NCCL. Never more than a bounded part of a log is kept.
NcclLog parse_nccl_log(std::string_view text, const std::string& source);
/// The logs of one job: one file, or one for each rank. Throws ParseError that names the file.
NcclLog read_nccl_log_files(const std::vector<std::string>& paths);

}  // namespace gar
