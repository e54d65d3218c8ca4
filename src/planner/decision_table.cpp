// The best plan as a function of the size, as libraries need it for their decision tables.
//
// The plan is a step function of the size. An interval whose ends have the same plan, and which is not longer than a
// factor of kTrusted, is taken to have it throughout; any other is halved (in the logarithm) until the crossover is
// known to one element or one part in ten thousand.
//
// Plans that are nearly as good as each other take turns in rows of a few elements, which is of no use to a library. So
// rows are merged: of the plans that are good enough for a row (its own, or that of one of the next rows), the one that
// is so for most of those behind it takes them all. Costs are nearly linear in the size between the ends of a row, so
// what is good enough at both ends is so between them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/planner.hpp"
#include "planner/changes.hpp"
#include "planner/gentree_plus/search.hpp"

namespace gar {

namespace {

constexpr double kTrusted = 8;
constexpr double kResolution = 1e-4;
constexpr std::size_t kLooksAhead = 32;  // rows whose plans are tried for those before them

/// Plans sizes, each of them once.
class TableSearch {
 public:
  explicit TableSearch(const DecisionTableRequest& request)
      : request_(request),
        plan_(request.plan),
        work_(kTableLimit, fmt::format("the network '{}'", request.plan.topology.name())) {}

  const DecisionPoint& at(std::int64_t count) {
    const auto it = known_.find(count);
    if (it != known_.end()) return it->second.point;
    plan_.size_floats = floats(count);
    plan_.model.work = nullptr;
    plan_.model = metered(plan_.model, plan_.topology);
    PlanAnswer answer = gar::plan(plan_);
    work_.spend(plan_.model.work->spent());
    DecisionPoint point{count, std::move(answer.spec), std::move(answer.switches), answer.plan.num_chunks,
                        answer.terms};
    if (request_.progress) request_.progress(static_cast<std::int64_t>(known_.size()) + 1, count);
    return known_.emplace(count, Known{std::move(point), std::move(answer.priced)}).first->second.point;
  }

  /// The plan that is best for `best` elements, at another number of them.
  DecisionPoint at(std::int64_t count, std::int64_t best) {
    (void)at(best);
    const Known& known = known_.at(best);
    if (count == best) return known.point;
    const auto same = known_.find(count);
    if (same != known_.end() && same->second.point.words() == known.point.words()) return same->second.point;
    DecisionPoint out = known.point;
    out.count = count;
    if (known.point.spec.name == "gentree+") {
      const std::int64_t possible = plus::most_chunks(plan_.topology, floats(count), plan_.model);
      const std::int64_t most = plan_.model.max_chunks;
      out.num_chunks = known.priced->few_chunks(floats(count), most > 0 ? std::min(most, possible) : possible);
    }
    // What was found to be waited for counts in proportion to the size.
    out.terms = known.priced->pipelined_cost(floats(count), out.num_chunks);
    out.terms.beta += known.priced->waiting() * floats(count);
    return out;
  }

  /// The sizes at which a new plan begins.
  std::vector<std::int64_t> starts() {
    ChangeSearch<std::int64_t> search;
    search.best = [this](std::int64_t count) { return at(count).words(); };
    search.middle = middle;
    search.is_trusted = [](std::int64_t low, std::int64_t high) {
      return static_cast<double>(high) / static_cast<double>(low) <= kTrusted;
    };
    std::vector<std::int64_t> out{request_.from};
    find_changes<std::int64_t>(search, {request_.from, search.best(request_.from)},
                               {request_.to, search.best(request_.to)}, [&](const KnownBest<std::int64_t>& change) {
                                 out.push_back(change.place);
                                 return true;
                               });
    return out;
  }

 private:
  struct Known {
    DecisionPoint point;
    std::shared_ptr<const PricedPlan> priced;
  };

  [[nodiscard]] double floats(std::int64_t count) const {
    return static_cast<double>(count) * static_cast<double>(request_.element_bytes) / 4;
  }
  static std::optional<std::int64_t> middle(std::int64_t low, std::int64_t high) {
    if (high - low <= 1 || static_cast<double>(high - low) <= kResolution * static_cast<double>(low)) {
      return std::nullopt;
    }
    const double between = std::sqrt(static_cast<double>(low) * static_cast<double>(high));
    return std::clamp<std::int64_t>(std::llround(between), low + 1, high - 1);
  }

  const DecisionTableRequest& request_;
  PlanRequest plan_;
  WorkMeter work_;  // all sizes together
  std::map<std::int64_t, Known> known_;
};

/// Rows, each with one plan, that are merged where one plan is good enough for several of them.
class Merging {
 public:
  Merging(TableSearch& search, std::vector<DecisionRow> rows, double share)
      : search_(search), rows_(std::move(rows)), most_(1 + share) {}

  std::vector<DecisionRow> run() {
    std::vector<DecisionRow> out;
    for (std::size_t begin = 0; begin < rows_.size();) {
      std::size_t best = begin;
      std::size_t end = last_from(begin, begin);
      for (std::size_t i = begin + 1; i < std::min(rows_.size(), begin + kLooksAhead); ++i) {
        if (!is_good_back_to(i, begin)) continue;
        const std::size_t last = last_from(i, i);
        if (last > end) {
          end = last;
          best = i;
        }
      }
      const std::int64_t plan = rows_[best].first.count;
      out.push_back({search_.at(rows_[begin].first.count, plan), search_.at(rows_[end].last.count, plan)});
      begin = end + 1;
    }
    return out;
  }

 private:
  /// Is the plan of row `i` good enough for row `j`?
  bool is_good(std::size_t i, std::size_t j) {
    const auto is_good_at = [&](const DecisionPoint& best) {
      return search_.at(best.count, rows_[i].first.count).terms.total() <= most_ * best.terms.total();
    };
    return i == j || (is_good_at(rows_[j].first) && is_good_at(rows_[j].last));
  }
  /// The last row in a line, from row `j` on, for which the plan of row `i` is good enough.
  std::size_t last_from(std::size_t i, std::size_t j) {
    while (j + 1 < rows_.size() && is_good(i, j + 1)) ++j;
    return j;
  }
  bool is_good_back_to(std::size_t i, std::size_t begin) {
    for (std::size_t j = i; j-- > begin;) {
      if (!is_good(i, j)) return false;
    }
    return true;
  }

  TableSearch& search_;
  std::vector<DecisionRow> rows_;
  double most_;
};

}  // namespace

std::string DecisionPoint::words() const { return to_string(spec) + ": " + plan_words(switches); }

std::vector<DecisionRow> decision_table(const DecisionTableRequest& request) {
  if (request.from < 1 || request.to <= request.from || request.element_bytes < 1) {
    throw InvalidArgument(
        fmt::format("a decision table from {} to {} elements of {} bytes; expected at least 1 element of at least "
                    "1 byte, and a larger last size",
                    request.from, request.to, request.element_bytes));
  }
  if (!(request.merge >= 0 && request.merge <= 1)) {
    throw InvalidArgument(
        fmt::format("rows that are within {} of each other; expected a share from 0 to 1", request.merge));
  }
  TableSearch search(request);
  const std::vector<std::int64_t> starts = search.starts();
  std::vector<DecisionRow> out;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t last = i + 1 < starts.size() ? starts[i + 1] - 1 : request.to;
    out.push_back({search.at(starts[i]), search.at(last)});
  }
  return request.merge > 0 ? Merging(search, std::move(out), request.merge).run() : out;
}

}  // namespace gar
