// How close measured AllReduces come to what the links of a network allow, where nobody has measured that network: its
// speed is what somebody says it is.
#pragma once

#include <string>
#include <vector>

#include "gar/fit.hpp"
#include "gar/fit_report.hpp"
#include "gar/topology.hpp"

namespace gar {

/// One measured AllReduce next to what the links allow.
struct LimitRow {
  double bytes = 0;            ///< of the vector
  double measured_s = 0;       ///< its time
  double limit_s = 0;          ///< that links and the latency of one path need, whatever the algorithm
  double expected_s = 0;       ///< that links and latency need with the algorithm that ran; limit_s where none is known
  double bus_bytes_per_s = 0;  ///< 2 (N - 1) / N of the vector in the measured time
  bool is_judged = false;      ///< one of the longest vectors, for which links decide and not latency
  Verdict verdict = Verdict::kUnknown;  ///< unknown where it is not judged
  /// Share of what the links allow, 1 for all of it.
  [[nodiscard]] double share() const { return limit_s / measured_s; }
};

/// What is said about all rows together.
struct LimitDiagnosis {
  bool is_normal = true;           ///< at most a tenth of the judged rows is slow, none is too fast
  bool is_judged = true;           ///< false: all vectors are too short for that
  double least_share = 0;          ///< of expected_s, below which a row is slow
  std::vector<LimitRow> rows;      ///< one for each row of the results
  std::vector<std::string> words;  ///< one sentence each
};

/// What share of a stated speed is normal: packet headers take 3 to 6%, and no library is perfect.
inline constexpr double kUsualShare = 0.7;

/// Judges results of the first `num_ranks` servers by the network's links and latencies alone: what servers need to add
/// and copy is not counted. Throws InvalidArgument when there are no results, or the links are said to cost nothing.
LimitDiagnosis diagnose_by_links(const Topology& topology, const std::vector<ResultRow>& rows, std::int64_t num_ranks,
                                 double least_share = kUsualShare);

}  // namespace gar
