// What a priced plan costs at a size: the critical path through its sub-plans, in one piece or in chunks.
#include <algorithm>

#include "gar/model.hpp"

namespace gar {

// Seconds per term of every placed sub-plan with its slowest child, children first.
std::vector<PricedPlan::Critical> PricedPlan::critical(double size_floats, bool gather) const {
  std::vector<Critical> out(placed_.size());
  for (std::size_t u = 0; u < placed_.size(); ++u) {
    double worst = -1;
    for (const std::int32_t child : placed_[u].children) {
      const double t = out[static_cast<std::size_t>(child)].terms.total();
      if (t <= worst) continue;
      worst = t;
      out[u].child = child;
    }
    if (out[u].child >= 0) out[u].terms = out[static_cast<std::size_t>(out[u].child)].terms;
    for (const StageCost& s : gather ? placed_[u].gather : placed_[u].scatter) out[u].terms += s.at(size_floats);
  }
  return out;
}

// Calls f(fixed, slope) for every kind of step; the steps of a ring stage are alike.
template <class F>
void PricedPlan::for_steps(F f) const {
  for (const PlacedSubPlan& u : placed_) {
    for (const bool gather : {false, true}) {
      if (!(gather ? has_gather_ : has_scatter_)) continue;
      for (const StageCost& s : gather ? u.gather : u.scatter) {
        const double share = 1.0 / static_cast<double>(s.num_steps);
        f(share * s.fixed, share * s.slope);
      }
    }
  }
}

const Resource& PricedPlan::busiest(double chunk_floats) const {
  const Resource* most = &busiest_;
  for (const Resource& server : handlers_) {
    if (server.at(chunk_floats).total() > most->at(chunk_floats).total()) most = &server;
  }
  return *most;
}

Terms PricedPlan::cost(double size_floats) const {
  Terms terms = pipelined_cost(size_floats, num_chunks_);
  terms.beta += waiting_ * size_floats;
  return terms;
}

// One chunk's way through all stages, then one more chunk per turn of whatever is slowest to take the next one: the
// busiest link direction or server, or the slowest step, which takes one chunk at a time. All chunks begin their first
// step at once, and a server shares itself among their messages: no byte flows before it has handled all of these.
Terms PricedPlan::pipelined_cost(double size_floats, std::int64_t chunks) const {
  const double chunk = size_floats / static_cast<double>(chunks);
  Terms terms = sequential_cost(chunk);
  if (chunks == 1) return terms;
  Terms turn = busiest_.at(chunk);
  turn.mu += first_sending_;
  const Terms busy = busiest(chunk).at(chunk);
  if (busy.total() > turn.total()) turn = busy;
  for_steps([&](const Terms& fixed, const Terms& slope) {
    const Terms step = fixed + chunk * slope;
    if (step.total() > turn.total()) turn = step;
  });
  return terms + static_cast<double>(chunks - 1) * turn;
}

std::vector<std::pair<double, double>> PricedPlan::steps() const {
  std::vector<std::pair<double, double>> out;
  for_steps([&](const Terms& fixed, const Terms& slope) { out.emplace_back(fixed.total(), slope.total()); });
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::int64_t PricedPlan::best_chunks(double size_floats, std::int64_t limit) const {
  std::int64_t best = 1;
  double least = pipelined_cost(size_floats, 1).total();
  const auto offer = [&](std::int64_t chunks) {
    if (chunks < 1 || chunks > limit) return;
    const double seconds = pipelined_cost(size_floats, chunks).total();
    if (seconds < least * (1 - 1e-12)) {
      least = seconds;
      best = chunks;
    }
  };
  for (std::int64_t k = 2; k <= limit; k *= 2) offer(k);
  for (std::int64_t step = best / 2; step >= 1; step /= 2) {
    const std::int64_t middle = best;
    offer(middle - step);
    offer(middle + step);
  }
  return best;
}

std::int64_t PricedPlan::few_chunks(double size_floats, std::int64_t limit) const {
  constexpr double kAllowed = 1.001;
  std::int64_t enough = best_chunks(size_floats, limit);
  const double most = kAllowed * pipelined_cost(size_floats, enough).total();
  if (pipelined_cost(size_floats, 1).total() <= most) return 1;
  std::int64_t too_few = 1;
  while (enough - too_few > 1) {
    const std::int64_t middle = too_few + (enough - too_few) / 2;
    (pipelined_cost(size_floats, middle).total() <= most ? enough : too_few) = middle;
  }
  return enough;
}

Terms PricedPlan::sequential_cost(double size_floats) const {
  Terms terms;
  if (placed_.empty()) return terms;
  if (has_scatter_) terms += critical(size_floats, false).back().terms;
  if (has_gather_) terms += critical(size_floats, true).back().terms;
  return terms;
}

// With the parts of the top sub-plan that are on the critical path.
Terms PricedPlan::own_cost(double size_floats) const {
  Terms terms;
  if (placed_.empty()) return terms;
  for (const bool gather : {false, true}) {
    if (!(gather ? has_gather_ : has_scatter_)) continue;
    const std::vector<Critical> way = critical(size_floats, gather);
    for (std::size_t u = placed_.size() - 1;;) {
      for (const StageCost& s : gather ? placed_[u].gather : placed_[u].scatter) terms += s.at(size_floats);
      if (way[u].child < 0 || !placed_[static_cast<std::size_t>(way[u].child)].is_inner) break;
      u = static_cast<std::size_t>(way[u].child);
    }
  }
  return terms;
}

std::vector<StageCost> PricedPlan::critical_stages(double size_floats) const {
  std::vector<StageCost> out;
  if (placed_.empty()) return out;
  for (const bool gather : {false, true}) {
    if (!(gather ? has_gather_ : has_scatter_)) continue;
    const std::vector<Critical> way = critical(size_floats, gather);
    std::vector<std::size_t> path;
    for (auto u = static_cast<std::int32_t>(placed_.size()) - 1; u >= 0; u = way[path.back()].child) {
      path.push_back(static_cast<std::size_t>(u));
    }
    if (!gather) std::reverse(path.begin(), path.end());
    for (const std::size_t u : path) {
      const std::vector<StageCost>& stages = gather ? placed_[u].gather : placed_[u].scatter;
      out.insert(out.end(), stages.begin(), stages.end());
    }
  }
  return out;
}

Terms cost_of_programs(const Plan& plan, const Topology& topology, double size_floats, const ModelOptions& options) {
  return PricedPlan(make_explicit(plan), topology, options).cost(size_floats);
}

}  // namespace gar
