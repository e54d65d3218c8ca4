// What a fit has found, made ready for tables and documents: incast curves, residuals in short, verdicts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gar/fit.hpp"
#include "gar/profile.hpp"

namespace gar {

/// The answer of `gar fit`.
struct FitReport {
  Profile profile;                   ///< what was fitted
  const Measurements& measurements;  ///< what it was fitted to; must outlive the report
  bool is_validated = false;         ///< whether the held-out measurements are judged, too
};

/// The same servers and length as a mesh, where every rank sends to all others at once, and as a shift, where every
/// rank sends to one.
struct IncastPoint {
  int level = 0;                  ///< of the links that the set is about, as in LevelProfile
  std::int64_t num_ranks = 0;     ///< servers in the set
  std::int64_t num_children = 0;  ///< of the switch that the set is about
  std::int64_t per_child = 1;     ///< servers of the set below each of these children
  double size_floats = 0;         ///< length of the whole vector
  double mesh_s = 0;              ///< median seconds of the mesh
  double shift_s = -1;            ///< -1: not measured
  double admitted_s = -1;         ///< the mesh when receivers admit senders; -1: not measured
  double mesh_retransmits = -1;   ///< mesh: TCP segments sent again per repetition; -1: unknown
  double shift_retransmits = -1;  ///< the same for the shift
  double mesh_pauses = -1;        ///< mesh: PFC pause frames per repetition; -1: unknown
  double shift_pauses = -1;       ///< the same for the shift
};
/// One point for each set of servers, of the largest length that the set was measured with.
std::vector<IncastPoint> incast_curve(const Measurements& measurements);

/// What was held out and is predicted, by number of ranks and length; empty when the fit is not validated. The
/// report's measurements must outlive the cells.
std::vector<ValidationCell> validation_cells(const FitReport& report);
/// The algorithm of an observation as `--algo` takes it, or "native".
std::string algorithm_name(const Observation& observation);

/// "512 B to 4 KiB: ", the vectors that a score is about; empty when it is about all.
std::string size_class_words(const ValidationScore& score);

/// |fitted / measured - 1| over all residuals.
struct ResidualSummary {
  double median_error = 0;      ///< half of the errors are at most this
  double p95_error = 0;         ///< 95% of the errors are at most this
  std::vector<Residual> worst;  ///< at most five, largest error first
};
ResidualSummary summarise(const std::vector<Residual>& residuals);  ///< all 0 when there are no residuals

/// Residuals by what they are about.
struct ResidualParts {
  std::vector<Residual> network;     ///< collectives, and all to one
  std::vector<Residual> reductions;  ///< ranks that add vectors in their own memory, where caches decide
};
ResidualParts parts_of(const std::vector<Residual>& residuals);  ///< each in the order in which they stand

/// Where a profile cannot be relied on, "is rough for what takes less than 0.74 ms: ..."; empty: nowhere, or nobody
/// knows.
std::string rough_words(const Profile& profile);

/// A profile whose errors are larger cannot tell a slow network from a healthy one.
inline constexpr double kMostTolerance = 0.3;

/// How a measured time compares with the one that the model expects.
enum class Verdict { kNormal, kSlow, kFast, kUnknown };
/// "normal", "slow", "fast", "unknown".
std::string_view to_string(Verdict verdict);
/// `tolerance` is the relative deviation that is normal.
Verdict verdict_of(const Residual& residual, double tolerance);
/// The same for one of a diagnosis' rows; unknown where the profile is too rough for that.
Verdict verdict_of(const Diagnosis& diagnosis, std::size_t row);

}  // namespace gar
