// The critical path of a simulation, condensed.
#include "gar/critical_path.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace gar {
namespace {

class PartBuilder {
 public:
  explicit PartBuilder(std::size_t stage) { part_.stage = stage; }

  void add(const PathHop& hop) {
    if (part_.num_hops == 0) {
      part_.from = hop.from;
      part_.first_chunk = part_.last_chunk = hop.chunk;
      part_.first_step = part_.last_step = hop.step;
      part_.begin = hop.begin;
    }
    ++part_.num_hops;
    part_.rank = hop.rank;
    part_.first_chunk = std::min(part_.first_chunk, hop.chunk);
    part_.last_chunk = std::max(part_.last_chunk, hop.chunk);
    part_.first_step = std::min(part_.first_step, hop.step);
    part_.last_step = std::max(part_.last_step, hop.step);
    part_.end = hop.end;
    part_.terms += hop.terms;
    if (!hop.is_message) return;
    part_.has_message = true;
    const auto key = std::make_tuple(hop.link.node.rank, hop.link.node.depth, hop.link.is_down);
    seconds_[key] += hop.terms.beta + hop.terms.epsilon;
  }

  PathPart done() {
    const auto most = std::max_element(seconds_.begin(), seconds_.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != seconds_.end()) {
      part_.link = {{std::get<0>(most->first), std::get<1>(most->first)}, std::get<2>(most->first)};
    }
    part_.num_links = static_cast<std::int64_t>(seconds_.size());
    return part_;
  }

 private:
  PathPart part_;
  std::map<std::tuple<std::int64_t, int, bool>, double> seconds_;
};

}  // namespace

std::size_t stage_of_step(const std::vector<StageUse>& stages, std::int64_t step) {
  const auto after = std::upper_bound(stages.begin(), stages.end(), step,
                                      [](std::int64_t s, const StageUse& stage) { return s < stage.first_step; });
  if (after == stages.begin()) return stages.size();
  return static_cast<std::size_t>(after - stages.begin() - 1);
}

std::vector<PathPart> path_hops(const Simulation& simulation) {
  std::vector<PathPart> out;
  for (const PathHop& hop : simulation.path) {
    PartBuilder builder(stage_of_step(simulation.stages, hop.step));
    builder.add(hop);
    out.push_back(builder.done());
  }
  return out;
}

std::vector<PathPart> path_parts(const Simulation& simulation) {
  std::vector<PathPart> out;
  for (std::size_t i = 0; i < simulation.path.size();) {
    const std::size_t stage = stage_of_step(simulation.stages, simulation.path[i].step);
    PartBuilder builder(stage);
    while (i < simulation.path.size() && stage_of_step(simulation.stages, simulation.path[i].step) == stage) {
      builder.add(simulation.path[i++]);
    }
    out.push_back(builder.done());
  }
  return out;
}

std::vector<PathPart> path_by_stage(const Simulation& simulation) {
  std::map<std::size_t, PartBuilder> builders;
  for (const PathHop& hop : simulation.path) {
    const std::size_t stage = stage_of_step(simulation.stages, hop.step);
    builders.try_emplace(stage, stage).first->second.add(hop);
  }
  std::vector<PathPart> out;
  for (auto& [stage, builder] : builders) out.push_back(builder.done());
  return out;
}

}  // namespace gar
