// Asymmetric CPS: CPS inside groups of any sizes, then every piece straight to its owner, and how the owners are found.
//
// Problem. The groups hold different cuts of the vector. Every rank is to own an equal share (or one of a given size),
// cut out of what it already holds, so that its own contribution does not travel.
//
// Idea. Every position of the vector is held by one rank of each group. A rank may take a position while its own
// holding covers it, and must have taken its share before its holding ends: unit-machine scheduling with release times
// and deadlines. Serving the earliest deadline first finds a schedule whenever there is one, and with equal shares and
// whole holdings there always is: inside any window, a group with n_c ranks has at most window * n_c / U whole
// holdings, which need at most window / U * (sum of n_c) * U / n = window units. Where holdings consist of several
// pieces (deadline: the end of the last one) a remainder may be left; it goes to any rank that holds the position.
//
// 2 steps; the fan-ins are the group sizes, then the number of groups. O(pieces * log(pieces)) to find the owners.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/topology.hpp"
#include "plan/algorithms/building.hpp"

namespace gar {

namespace {

/// Walks through the vector and gives every position to the holder with the earliest deadline that still needs some.
class ShareScheduler {
 public:
  ShareScheduler(const std::vector<std::vector<Piece>>& held, std::int64_t num_ranks, std::int64_t num_units,
                 const std::vector<std::int64_t>& shares)
      : num_units_(num_units),
        deadline_(static_cast<std::size_t>(num_ranks), 0),
        need_(static_cast<std::size_t>(num_ranks), 0) {
    for (const std::vector<Piece>& group : held) {
      for (const Piece& p : group) {
        holdings_.push_back(p);
        std::int64_t& deadline = deadline_[static_cast<std::size_t>(p.owner)];
        deadline = std::max(deadline, p.end);
      }
    }
    std::sort(holdings_.begin(), holdings_.end(), [](const Piece& a, const Piece& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.owner < b.owner;
    });
    if (shares.empty()) {
      share_equally();
    } else {
      need_ = shares;
    }
  }

  std::vector<Piece> run() {
    std::vector<Piece> target;
    for (std::int64_t unit = 0; unit < num_units_;) {
      admit_holders(unit);
      const Piece next = assign_from(unit);
      if (!target.empty() && target.back().owner == next.owner) {
        target.back().end = next.end;
      } else {
        target.push_back(next);
      }
      unit = next.end;
    }
    return target;
  }

 private:
  struct Candidate {
    std::int64_t deadline = 0;
    std::int64_t end = 0;
    std::int32_t owner = 0;
    bool operator<(const Candidate& o) const {  // the earliest deadline is on top of the queue
      return deadline != o.deadline ? deadline > o.deadline : owner > o.owner;
    }
  };

  // The ranks that hold anything need equal shares, rounded to whole units.
  void share_equally() {
    std::int64_t num_holders = 0;
    for (const std::int64_t deadline : deadline_) num_holders += deadline > 0 ? 1 : 0;
    const auto boundary = [&](std::int64_t k) {
      __extension__ using Wide = __int128;
      return static_cast<std::int64_t>(static_cast<Wide>(num_units_) * k / num_holders);
    };
    std::int64_t seen = 0;
    for (std::size_t r = 0; r < need_.size(); ++r) {
      if (deadline_[r] == 0) continue;
      need_[r] = boundary(seen + 1) - boundary(seen);
      ++seen;
    }
  }

  // Queues the holdings that begin at or before `unit`, and drops those that ended or whose owner has its share.
  void admit_holders(std::int64_t unit) {
    for (; next_ < holdings_.size() && holdings_[next_].begin <= unit; ++next_) {
      const Piece& h = holdings_[next_];
      ready_.push({deadline_[static_cast<std::size_t>(h.owner)], h.end, h.owner});
      last_ = {0, h.end, h.owner};
    }
    while (!ready_.empty() && (ready_.top().end <= unit || need_[static_cast<std::size_t>(ready_.top().owner)] == 0)) {
      if (ready_.top().end > unit) last_ = ready_.top();
      ready_.pop();
    }
  }

  // The piece that begins at `unit`.
  Piece assign_from(std::int64_t unit) {
    const std::int64_t until = next_ < holdings_.size() ? holdings_[next_].begin : num_units_;
    if (!ready_.empty()) {
      const Candidate& first = ready_.top();
      std::int64_t& need = need_[static_cast<std::size_t>(first.owner)];
      const std::int64_t end = std::min({until, first.end, unit + need});
      need -= end - unit;
      return {unit, end, first.owner};
    }
    if (last_.end <= unit) last_ = any_holder_of(unit);
    return {unit, std::min(until, last_.end), last_.owner};
  }

  [[nodiscard]] Candidate any_holder_of(std::int64_t unit) const {
    const auto it = std::find_if(holdings_.begin(), holdings_.end(),
                                 [&](const Piece& h) { return h.begin <= unit && unit < h.end; });
    if (it == holdings_.end()) throw InvalidArgument(fmt::format("acps: no rank holds unit {}", unit));
    return {0, it->end, it->owner};
  }

  std::int64_t num_units_;
  std::vector<std::int64_t> deadline_;  // per rank: the end of its last holding; 0: it holds nothing
  std::vector<std::int64_t> need_;      // per rank: what is missing to its share
  std::vector<Piece> holdings_;         // of all groups, sorted by begin
  std::size_t next_ = 0;                // the first holding that begins after the current unit
  std::priority_queue<Candidate> ready_;
  Candidate last_;  // the last holder that was met; takes what is left when no rank needs any more
};

}  // namespace

std::vector<Piece> acps_target(const std::vector<std::vector<Piece>>& held, std::int64_t num_ranks,
                               std::int64_t num_units, const std::vector<std::int64_t>& shares) {
  return ShareScheduler(held, num_ranks, num_units, shares).run();
}

Plan acps(const std::vector<std::int64_t>& group_sizes) {
  std::int64_t n = 0;
  for (const std::int64_t g : group_sizes) {
    if (g < 1 || g > kMaxServers || n > kMaxServers) {
      throw InvalidArgument(
          fmt::format("acps:{}: expected group sizes from 1 to {} in all", fmt::join(group_sizes, "+"), kMaxServers));
    }
    n += g;
  }
  if (group_sizes.empty()) throw InvalidArgument("acps needs group sizes, as in acps:4+3");
  Plan plan =
      building::empty_plan(fmt::format("acps:{}", fmt::join(group_sizes, "+")), n, building::units_for(n, group_sizes));
  std::map<std::int64_t, SubPlanId> known;
  SubPlan top;
  std::vector<std::vector<Piece>> held;
  std::int64_t first = 0;
  for (const std::int64_t g : group_sizes) {
    if (g > 1 && !known.contains(g)) {
      known[g] = building::add(plan, {{{kLeaf, g}}, {{StageKind::kDirect, 1, g, {}}}, fmt::format("group of {}", g)});
    }
    const SubPlanId child = g == 1 ? kLeaf : known[g];
    if (!top.children.empty() && top.children.back().subplan == child) {
      ++top.children.back().count;
    } else {
      top.children.push_back({child, 1});
    }
    held.push_back(building::placement_of(plan, child, g));
    for (Piece& p : held.back()) p.owner += static_cast<std::int32_t>(first);
    first += g;
  }
  if (group_sizes.size() > 1) {
    top.stages = {{StageKind::kPlace, 1, 1, acps_target(held, n, plan.num_units)}};
    top.label = fmt::format("between {} groups", group_sizes.size());
  }
  plan.root = n == 1 ? kLeaf : building::add(plan, std::move(top));
  return plan;
}

Plan build_acps(const AlgorithmSpec& spec, std::int64_t num_ranks) {
  std::int64_t sum = 0;
  for (const std::int64_t g : spec.factors) sum += g;
  if (sum != num_ranks) {
    throw InvalidArgument(
        fmt::format("{}: the group sizes add up to {}, not to {} servers", to_string(spec), sum, num_ranks));
  }
  return acps(spec.factors);
}

}  // namespace gar
