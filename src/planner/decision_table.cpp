// The best plan as a function of the size, as libraries need it for their decision tables.
//
// The plan is a step function of the size. An interval whose ends have the same plan, and which is not longer than a
// factor of kTrusted, is taken to have it throughout; any other is halved (in the logarithm) until the crossover is
// known to one element or one part in ten thousand.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/planner.hpp"
#include "planner/changes.hpp"

namespace gar {

namespace {

constexpr double kTrusted = 8;
constexpr double kResolution = 1e-4;

/// Plans sizes, each of them once.
class TableSearch {
 public:
  explicit TableSearch(const DecisionTableRequest& request)
      : request_(request),
        plan_(request.plan),
        work_(kTableLimit, fmt::format("the network '{}'", request.plan.topology.name())) {}

  const DecisionPoint& at(std::int64_t count) {
    const auto it = known_.find(count);
    if (it != known_.end()) return it->second;
    plan_.size_floats = static_cast<double>(count) * static_cast<double>(request_.element_bytes) / 4;
    plan_.model.work = nullptr;
    plan_.model = metered(plan_.model, plan_.topology);
    PlanAnswer answer = gar::plan(plan_);
    work_.spend(plan_.model.work->spent());
    DecisionPoint point{count, std::move(answer.spec), std::move(answer.switches), answer.plan.num_chunks,
                        answer.terms};
    if (request_.progress) request_.progress(static_cast<std::int64_t>(known_.size()) + 1, count);
    return known_.emplace(count, std::move(point)).first->second;
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
  std::map<std::int64_t, DecisionPoint> known_;
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
  TableSearch search(request);
  const std::vector<std::int64_t> starts = search.starts();
  std::vector<DecisionRow> out;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t last = i + 1 < starts.size() ? starts[i + 1] - 1 : request.to;
    out.push_back({search.at(starts[i]), search.at(last)});
  }
  return out;
}

}  // namespace gar
