// Every plan that gentree+ says it searches, by plain enumeration: for small trees only.
//
// Written from the list at the top of src/planner/gentree_plus/gentree_plus.cpp and from nothing else of the planner. A
// part is a plan for the servers below one node. Units are so many that no share has to be rounded.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/plan.hpp"
#include "gar/topology.hpp"

namespace gar::test {

class PlanSpace {
 public:
  explicit PlanSpace(const Topology& topology) : topology_(topology) {}

  /// Plans for the whole tree; at least two servers.
  std::vector<Plan> plans() {
    std::vector<Plan> out;
    for (const PartPtr& part : parts_of(topology_.root())) out.push_back(to_plan(*part));
    return out;
  }
  /// Those of them that have digits at the root, ending in exchanges.
  std::vector<Plan> ending_in_exchanges() {
    std::vector<Plan> out;
    for (const Plan& plan : plans()) add_exchanges(plan, out);
    return out;
  }

 private:
  static constexpr std::int64_t kUnits = 720'720LL * 720'720;

  struct Part;
  using PartPtr = std::shared_ptr<const Part>;
  struct Part {
    std::vector<PartPtr> children;  // none: a single server
    std::vector<Stage> stages;
    std::int64_t num_ranks = 1;
    std::vector<std::int32_t> active{0};                     // ranks that hold something at the end, in order
    std::vector<std::vector<Interval>> held{{{0, kUnits}}};  // what each of them holds, in the order of its cuts
    std::vector<Piece> placement{{0, kUnits, 0}};
  };

  // Digits at the root may end in an exchange, or all be exchanges; where levels are skipped only the latter.
  void add_exchanges(const Plan& plan, std::vector<Plan>& out) const {
    const SubPlan& root = plan.subplans[static_cast<std::size_t>(plan.root)];
    if (!std::all_of(root.stages.begin(), root.stages.end(), is_digit)) return;
    NodeId top = topology_.root();
    while (topology_.num_children(top) == 1) top = topology_.node(top).children.front().node;
    const bool is_all_direct = std::all_of(root.stages.begin(), root.stages.end(),
                                           [](const Stage& stage) { return stage.kind == StageKind::kDirect; });
    const auto with = [&](std::size_t num_exchanges) {
      Plan changed = plan;
      std::vector<Stage>& stages = changed.subplans[static_cast<std::size_t>(plan.root)].stages;
      for (std::size_t i = stages.size() - num_exchanges; i < stages.size(); ++i) stages[i].kind = StageKind::kExchange;
      return changed;
    };
    const std::size_t num_stages = root.stages.size();
    const bool skips_levels = std::ssize(root.children) != topology_.num_children(top);
    if (is_all_direct) out.push_back(with(num_stages));
    if (!skips_levels && num_stages > 1) out.push_back(with(1));
  }

  // --- plans ---------------------------------------------------------------------------------------------------------

  static SubPlanId add(const Part& part, Plan& plan, std::map<const Part*, SubPlanId>& known) {
    if (part.children.empty()) return kLeaf;
    if (const auto it = known.find(&part); it != known.end()) return it->second;
    SubPlan sp;
    for (const PartPtr& child : part.children) sp.children.push_back({add(*child, plan, known), 1});
    sp.stages = part.stages;
    plan.subplans.push_back(std::move(sp));
    return known[&part] = static_cast<SubPlanId>(plan.subplans.size()) - 1;
  }

  static Plan to_plan(const Part& part) {
    Plan plan;
    plan.num_ranks = part.num_ranks;
    plan.num_units = kUnits;
    std::map<const Part*, SubPlanId> known;
    plan.root = add(part, plan, known);
    return plan;
  }

  static PartPtr make(std::vector<PartPtr> children, std::vector<Stage> stages) {
    auto part = std::make_shared<Part>();
    part->num_ranks = 0;
    for (const PartPtr& child : children) part->num_ranks += child->num_ranks;
    part->children = std::move(children);
    part->stages = std::move(stages);
    const Plan plan = to_plan(*part);
    const PlanIndex index(plan);
    part->placement = index.placement_after(plan.root);
    std::set<std::int32_t> owners;
    for (const Piece& p : part->placement) owners.insert(p.owner);
    part->active.assign(owners.begin(), owners.end());
    part->held.clear();
    for (const std::int32_t rank : part->active) part->held.push_back(index.held_after(plan.root, rank));
    return part;
  }

  // --- combining children --------------------------------------------------------------------------------------------

  static PartPtr digits(const std::vector<PartPtr>& children, const std::vector<std::int64_t>& radices,
                        StageKind kind) {
    std::vector<Stage> stages;
    auto stride = static_cast<std::int64_t>(children.front()->active.size());
    for (const std::int64_t radix : radices) {
      stages.push_back({kind, stride, radix, {}});
      stride *= radix;
    }
    return make(children, stages);
  }

  static PartPtr asymmetric(const std::vector<PartPtr>& children) {
    std::vector<std::vector<Piece>> held;
    std::int32_t first = 0;
    for (const PartPtr& child : children) {
      held.push_back(child->placement);
      for (Piece& p : held.back()) p.owner += first;
      first += static_cast<std::int32_t>(child->num_ranks);
    }
    return make(children, {{StageKind::kPlace, 1, 1, acps_target(held, first, kUnits)}});
  }

  // Children 2i and 2i + 1 fold for as many i as there are children beyond a power of two.
  static PartPtr rhd_with_fold(const std::vector<PartPtr>& children) {
    std::size_t power = 1;
    std::vector<std::int64_t> twos;
    for (; 2 * power <= children.size(); power *= 2) twos.push_back(2);
    const std::size_t folds = children.size() - power;
    std::vector<PartPtr> parts;
    for (std::size_t i = 0; i < folds; ++i) {
      parts.push_back(
          make({children[2 * i], children[2 * i + 1]}, {{StageKind::kPlace, 1, 1, children[2 * i]->placement}}));
    }
    parts.insert(parts.end(), children.begin() + static_cast<std::ptrdiff_t>(2 * folds), children.end());
    return digits(parts, twos, StageKind::kDirect);
  }

  // Consecutive groups whose sizes differ by one at most, larger ones first: a direct exchange inside each, then
  // Asymmetric CPS between them.
  static PartPtr groups(const std::vector<PartPtr>& children, std::size_t num_groups) {
    std::vector<PartPtr> parts;
    std::size_t next = 0;
    for (std::size_t g = 0; g < num_groups; ++g) {
      const std::size_t size = children.size() / num_groups + (g < children.size() % num_groups ? 1 : 0);
      const std::vector<PartPtr> members(children.begin() + static_cast<std::ptrdiff_t>(next),
                                         children.begin() + static_cast<std::ptrdiff_t>(next + size));
      parts.push_back(size == 1 ? members.front()
                                : digits(members, {static_cast<std::int64_t>(size)}, StageKind::kDirect));
      next += size;
    }
    return asymmetric(parts);
  }

  static void add_digits(const std::vector<PartPtr>& children, std::vector<PartPtr>& out) {
    for (const auto& factors : ordered_factorisations(static_cast<std::int64_t>(children.size()))) {
      out.push_back(digits(children, factors, StageKind::kDirect));
      out.push_back(digits(children, factors, StageKind::kRing));
    }
  }

  static void combine(const std::vector<PartPtr>& children, std::vector<PartPtr>& out) {
    const std::size_t c = children.size();
    const bool alike = std::all_of(children.begin(), children.end(),
                                   [&](const PartPtr& child) { return child->held == children.front()->held; });
    out.push_back(asymmetric(children));
    if (!alike) return;
    add_digits(children, out);
    if (!std::all_of(children.begin(), children.end(),
                     [&](const PartPtr& child) { return is_same(*child, *children.front()); })) {
      return;
    }
    if ((c & (c - 1)) != 0) out.push_back(rhd_with_fold(children));
    std::size_t rest = c;  // without factors 2 and 3
    for (const std::size_t p : {2, 3}) {
      while (rest % p == 0) rest /= p;
    }
    for (std::size_t g = 2; rest > 1 && g <= c / 2; ++g) {
      if (c % g != 0) out.push_back(groups(children, g));
    }
  }

  static bool is_same(const Part& a, const Part& b) {
    return a.stages == b.stages &&
           std::equal(a.children.begin(), a.children.end(), b.children.begin(), b.children.end(),
                      [](const PartPtr& x, const PartPtr& y) { return is_same(*x, *y); });
  }

  // --- subsets -------------------------------------------------------------------------------------------------------

  static PartPtr moved_to(const PartPtr& part, std::size_t subset) {
    const auto size = static_cast<std::int64_t>(subset);
    Stage move{StageKind::kPlace, 1, 1, {}};
    for (std::size_t i = 0; i < subset; ++i) {
      const auto k = static_cast<std::int64_t>(i);
      move.target.push_back(
          {kUnits / size * k, kUnits / size * (k + 1), part->active[i * part->active.size() / subset]});
    }
    std::vector<Stage> stages = part->stages;
    stages.push_back(std::move(move));
    return make(part->children, std::move(stages));
  }

  double speed_below(NodeId id) const {
    double sum = 0;
    for (const ChildRun& run : topology_.node(id).children) {
      const double beta = topology_.node(run.node).uplink.beta;
      sum += beta > 0 ? static_cast<double>(run.count) / beta : std::numeric_limits<double>::infinity();
    }
    return sum;
  }

  // Sizes to which results may be moved: those of the convergence ratio and the powers of two, below what is active.
  std::set<std::size_t> subsets(NodeId id, const std::vector<std::pair<NodeId, PartPtr>>& children) const {
    std::set<std::size_t> out;
    for (const auto& [node, part] : children) {
      const std::size_t active = part->active.size();
      for (std::size_t k = 1; k < active; k *= 2) out.insert(k);
      if (active < 2) continue;
      const double above = speed_below(id);
      const double ratio = std::isinf(above) ? 1 : std::min(above / speed_below(node), 1.0);
      const auto by_ratio = static_cast<std::size_t>(std::ceil(static_cast<double>(active) * ratio - 1e-9));
      if (by_ratio >= 1 && by_ratio < active) out.insert(by_ratio);
    }
    return out;
  }

  // --- the recursion -------------------------------------------------------------------------------------------------

  const std::vector<PartPtr>& parts_of(NodeId id) {
    const std::int32_t shape = topology_.shape(id);
    if (const auto it = known_.find(shape); it != known_.end()) return it->second;
    std::vector<PartPtr> out;
    const Node& node = topology_.node(id);
    if (node.is_server()) {
      out.push_back(std::make_shared<Part>());
    } else if (topology_.num_children(id) == 1) {
      out = parts_of(node.children.front().node);
    } else {
      std::vector<NodeId> children;
      for (const ChildRun& run : node.children)
        children.insert(children.end(), static_cast<std::size_t>(run.count), run.node);
      std::map<std::int32_t, PartPtr> chosen;
      choose(id, children, 0, chosen, out);
      add_digits(std::vector<PartPtr>(static_cast<std::size_t>(topology_.num_servers(id)), std::make_shared<Part>()),
                 out);
    }
    return known_[shape] = std::move(out);
  }

  // One part per shape of child, then every way to combine them.
  void choose(NodeId id, const std::vector<NodeId>& children, std::size_t next, std::map<std::int32_t, PartPtr>& chosen,
              std::vector<PartPtr>& out) {
    if (next < children.size()) {
      const std::int32_t shape = topology_.shape(children[next]);
      if (chosen.contains(shape)) return choose(id, children, next + 1, chosen, out);
      for (const PartPtr& part : std::vector<PartPtr>(parts_of(children[next]))) {
        chosen[shape] = part;
        choose(id, children, next + 1, chosen, out);
      }
      chosen.erase(shape);
      return;
    }
    std::vector<std::pair<NodeId, PartPtr>> all;
    std::vector<PartPtr> parts;
    for (const NodeId child : children) {
      parts.push_back(chosen.at(topology_.shape(child)));
      all.emplace_back(child, parts.back());
    }
    combine(parts, out);
    for (const std::size_t subset : subsets(id, all)) {
      std::map<const Part*, PartPtr> moved;
      std::vector<PartPtr> smaller;
      for (const PartPtr& part : parts) {
        PartPtr& m = moved[part.get()];
        if (!m) m = part->active.size() > subset ? moved_to(part, subset) : part;
        smaller.push_back(m);
      }
      combine(smaller, out);
    }
  }

  const Topology& topology_;
  std::map<std::int32_t, std::vector<PartPtr>> known_;
};

}  // namespace gar::test
