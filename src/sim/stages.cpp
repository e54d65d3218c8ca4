#include "sim/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gar::sim {

namespace {

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string label;
};

// Stages of the ReduceScatter, cut where any sub-plan's stage begins or ends; the larger sub-plan gives the name.
std::vector<Range> scatter_stages(const PlanIndex& index) {
  const Plan& plan = index.plan();
  std::map<std::int64_t, std::string> named;  // stage begin: label of the last sub-plan that has one there
  std::vector<std::int64_t> cuts;
  for (std::size_t i = 0; i < plan.subplans.size(); ++i) {
    std::int64_t at = index.first_step(static_cast<SubPlanId>(i));
    for (const Stage& stage : plan.subplans[i].stages) {
      const std::int64_t steps = steps_of(stage);
      if (steps > 0) {
        named[at] = stage_label(plan.subplans[i], stage);
        cuts.push_back(at);
        cuts.push_back(at + steps);
      }
      at += steps;
    }
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<Range> out;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const auto it = named.find(cuts[i]);
    const std::string label = it != named.end() ? it->second : out.back().label;
    out.push_back({cuts[i], cuts[i + 1], label});
  }
  return out;
}

}  // namespace

StageTable::StageTable(const PlanIndex& index) {
  const Plan& plan = index.plan();
  const std::int64_t steps = index.num_steps();
  const auto add = [&](const Range& r, bool is_gather) {
    StageUse stage;
    stage.label = r.label;
    stage.is_gather = is_gather;
    stage.is_exchange = !plan.is_explicit() && !is_gather && r.begin >= index.num_mirrored_steps();
    stage.first_step = r.begin;
    stage.num_steps = r.end - r.begin;
    stages_.push_back(stage);
    first_.push_back(r.begin);
  };
  if (plan.is_explicit()) {
    constexpr std::int64_t kMost = 4096;  // beyond, several steps make a stage
    const std::int64_t each = (steps + kMost - 1) / kMost;
    for (std::int64_t s = 0; s < steps; s += std::max<std::int64_t>(each, 1)) {
      const std::int64_t end = std::min(s + std::max<std::int64_t>(each, 1), steps);
      add({s, end, end - s == 1 ? fmt::format("step {}", s) : fmt::format("steps {} to {}", s, end - 1)}, false);
    }
    return;
  }
  const std::vector<Range> scatter = scatter_stages(index);
  if (plan.collective != Collective::kAllGather) {
    for (const Range& r : scatter) add(r, false);
  }
  if (plan.collective != Collective::kReduceScatter) {
    for (auto r = scatter.rbegin(); r != scatter.rend(); ++r) {
      if (r->begin >= index.num_mirrored_steps()) continue;  // an exchange
      add({steps - r->end, steps - r->begin, r->label}, true);
    }
  }
}

std::uint32_t StageTable::of_step(std::int64_t number) const {
  const auto it = std::upper_bound(first_.begin(), first_.end(), number);
  return static_cast<std::uint32_t>(it - first_.begin() - 1);
}

}  // namespace gar::sim
