// Sub-plans under construction: immutable, shared, and turned into a Plan at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gar/plan.hpp"
#include "gar/topology.hpp"

namespace gar {

struct Fragment;
/// Null stands for a single rank.
using FragmentPtr = std::shared_ptr<const Fragment>;

struct Fragment {
  std::vector<std::pair<FragmentPtr, std::int64_t>> children;
  std::vector<Stage> stages;
  std::string label;
  std::int64_t num_ranks = 0;
  std::int64_t num_active = 0;                          ///< after the stages
  mutable std::optional<std::vector<Piece>> placement;  ///< filled on first use
};

inline std::int64_t ranks_of(const FragmentPtr& f) { return f ? f->num_ranks : 1; }
inline std::int64_t active_of(const FragmentPtr& f) { return f ? f->num_active : 1; }

/// Resolution for plans on a topology: so fine that rounding does not matter, and divisible by the number of servers
/// below every switch if that is possible.
std::int64_t units_for(const Topology& topology);

/// What every rank holds after a fragment, sorted by begin.
const std::vector<Piece>& placement_of(const FragmentPtr& fragment, std::int64_t num_units);

using FragmentRuns = std::vector<std::pair<FragmentPtr, std::int64_t>>;

/// The same stages on the same children, so that equal ranks hold equal intervals.
bool is_same(const FragmentPtr& a, const FragmentPtr& b);

/// Do equal active ranks hold equal intervals?
bool holds_same(const FragmentPtr& a, const FragmentPtr& b, std::int64_t num_units);

/// Radices of digits and what is done with them: the last ones may be exchanges, which only a root may have.
struct Digits {
  std::vector<std::int64_t> radices;    ///< first stage first
  StageKind kind = StageKind::kDirect;  ///< of all but the exchanges
  std::size_t num_exchanges = 0;        ///< at the end
  [[nodiscard]] StageKind kind_of(std::size_t stage) const {
    return stage + num_exchanges < radices.size() ? kind : StageKind::kExchange;
  }
};

/// Children that hold the same (holds_same), combined by digits.
FragmentPtr digits_fragment(FragmentRuns children, const Digits& digits, std::string label);
/// RHD over such children: those beyond a power of two fold into a partner first. With kExchange, recursive doubling.
FragmentPtr rhd_fragment(const FragmentRuns& children, std::int64_t num_units, const std::string& label,
                         StageKind kind = StageKind::kDirect);
/// Children that hold different intervals: Asymmetric CPS.
FragmentPtr acps_fragment(FragmentRuns children, std::int64_t num_units, std::string label);
/// The same fragment with its results moved to `subset` of its active ranks, evenly spaced.
FragmentPtr rearranged_fragment(const FragmentPtr& fragment, std::int64_t subset, std::int64_t num_units);

Plan to_plan(const FragmentPtr& root, std::string algorithm, std::int64_t num_units);

}  // namespace gar
