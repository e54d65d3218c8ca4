// Sub-plans under construction.
#include "planner/fragment.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "gar/algorithms.hpp"

namespace gar {

namespace {

constexpr std::int64_t kManyUnits = std::int64_t{1} << 50;

SubPlanId add_to_plan(const FragmentPtr& f, Plan& plan, std::map<const Fragment*, SubPlanId>& known) {
  if (!f) return kLeaf;
  if (const auto it = known.find(f.get()); it != known.end()) return it->second;
  SubPlan sp;
  for (const auto& [child, count] : f->children) {
    const SubPlanId id = add_to_plan(child, plan, known);
    if (!sp.children.empty() && sp.children.back().subplan == id) {
      sp.children.back().count += count;
    } else {
      sp.children.push_back({id, count});
    }
  }
  sp.stages = f->stages;
  sp.label = f->label;
  plan.subplans.push_back(std::move(sp));
  return known[f.get()] = static_cast<SubPlanId>(plan.subplans.size()) - 1;
}

std::vector<Piece> shifted(const std::vector<Piece>& pieces, std::int64_t first) {
  std::vector<Piece> out = pieces;
  for (Piece& p : out) p.owner += static_cast<std::int32_t>(first);
  return out;
}

}  // namespace

std::int64_t units_for(const Topology& topology) {
  std::int64_t common = topology.num_servers();
  for (NodeId id = 0; id < topology.num_nodes() && common > 0; ++id) {
    const std::int64_t q = topology.num_servers(id) / std::gcd(common, topology.num_servers(id));
    common = q > kManyUnits / common ? 0 : common * q;
  }
  if (common == 0) common = topology.num_servers();
  return kManyUnits / common * common;
}

Plan to_plan(const FragmentPtr& root, std::string algorithm, std::int64_t num_units) {
  Plan plan;
  plan.algorithm = std::move(algorithm);
  plan.num_ranks = ranks_of(root);
  plan.num_units = num_units;
  std::map<const Fragment*, SubPlanId> known;
  plan.root = add_to_plan(root, plan, known);
  return plan;
}

const std::vector<Piece>& placement_of(const FragmentPtr& fragment, std::int64_t num_units) {
  static const std::vector<Piece> kNone;
  if (!fragment) return kNone;
  if (!fragment->placement) {
    const Plan plan = to_plan(fragment, "", num_units);
    fragment->placement = PlanIndex(plan).placement_after(plan.root);
  }
  return *fragment->placement;
}

bool is_same(const FragmentPtr& a, const FragmentPtr& b) {
  if (a == b) return true;
  if (!a || !b || a->num_ranks != b->num_ranks || a->num_active != b->num_active || a->stages != b->stages)
    return false;
  std::size_t i = 0;
  std::size_t j = 0;
  std::int64_t left_a = 0;
  std::int64_t left_b = 0;
  while (i < a->children.size() && j < b->children.size()) {  // runs may be cut differently
    if (left_a == 0) left_a = a->children[i].second;
    if (left_b == 0) left_b = b->children[j].second;
    if (!is_same(a->children[i].first, b->children[j].first)) return false;
    const std::int64_t n = std::min(left_a, left_b);
    left_a -= n;
    left_b -= n;
    if (left_a == 0) ++i;
    if (left_b == 0) ++j;
  }
  return i == a->children.size() && j == b->children.size();
}

bool holds_same(const FragmentPtr& a, const FragmentPtr& b, std::int64_t num_units) {
  if (is_same(a, b)) return true;
  if (active_of(a) != active_of(b)) return false;
  const auto by_rank = [&](const FragmentPtr& f) {
    std::vector<Piece> pieces = f ? placement_of(f, num_units) : std::vector<Piece>{{0, num_units, 0}};
    std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& x, const Piece& y) { return x.owner < y.owner; });
    std::int32_t active = -1;  // the k-th active rank instead of its number
    std::int32_t last = -1;
    for (Piece& p : pieces) {
      if (p.owner != last) ++active;
      last = p.owner;
      p.owner = active;
    }
    return pieces;
  };
  return by_rank(a) == by_rank(b);
}

FragmentPtr digits_fragment(FragmentRuns children, const Digits& digits, std::string label) {
  auto f = std::make_shared<Fragment>();
  std::int64_t stride = active_of(children.front().first);
  f->label = std::move(label);
  for (const auto& [child, count] : children) {
    f->num_ranks += count * ranks_of(child);
    f->num_active += count * active_of(child);
  }
  f->children = std::move(children);
  for (std::size_t s = 0; s < digits.radices.size(); ++s) {
    f->stages.push_back({digits.kind_of(s), stride, digits.radices[s], {}});
    stride *= digits.radices[s];
  }
  return f;
}

FragmentPtr rhd_fragment(const FragmentRuns& children, std::int64_t num_units, const std::string& label,
                         StageKind kind) {
  std::vector<FragmentPtr> each;
  for (const auto& [child, count] : children) each.insert(each.end(), static_cast<std::size_t>(count), child);
  const std::size_t p = std::bit_floor(each.size());
  std::vector<std::int64_t> twos;
  for (std::size_t f = p; f > 1; f /= 2) twos.push_back(2);
  FragmentRuns runs;
  const auto append = [&](const FragmentPtr& f) {
    if (!runs.empty() && runs.back().first == f) {
      ++runs.back().second;
    } else {
      runs.emplace_back(f, 1);
    }
  };
  std::map<std::pair<const Fragment*, const Fragment*>, FragmentPtr> pairs;
  const std::size_t folded = each.size() - p;
  for (std::size_t i = 0; i < folded; ++i) {
    FragmentPtr& known = pairs[{each[2 * i].get(), each[2 * i + 1].get()}];
    if (!known) {
      auto pair = std::make_shared<Fragment>();
      pair->children = {{each[2 * i], 1}, {each[2 * i + 1], 1}};
      pair->label = label + ", fold into a partner";
      pair->num_ranks = 2 * ranks_of(each[0]);
      pair->num_active = active_of(each[0]);
      std::vector<Piece> target{{0, num_units, 0}};
      if (each[0]) target = placement_of(each[0], num_units);
      pair->stages = {{StageKind::kPlace, 1, 1, std::move(target)}};
      known = pair;
    }
    append(known);
  }
  for (std::size_t i = 2 * folded; i < each.size(); ++i) append(each[i]);
  return digits_fragment(std::move(runs), {twos, kind}, label);
}

FragmentPtr acps_fragment(FragmentRuns children, std::int64_t num_units, std::string label) {
  auto f = std::make_shared<Fragment>();
  f->label = std::move(label);
  std::vector<std::vector<Piece>> held;
  for (const auto& [child, count] : children) {
    for (std::int64_t c = 0; c < count; ++c) {
      if (child) {
        held.push_back(shifted(placement_of(child, num_units), f->num_ranks));
      } else {
        held.push_back({{0, num_units, static_cast<std::int32_t>(f->num_ranks)}});
      }
      f->num_ranks += ranks_of(child);
      f->num_active += active_of(child);
    }
  }
  f->children = std::move(children);
  f->stages = {{StageKind::kPlace, 1, 1, acps_target(held, f->num_ranks, num_units)}};
  return f;
}

FragmentPtr rearranged_fragment(const FragmentPtr& fragment, std::int64_t subset, std::int64_t num_units) {
  auto f = std::make_shared<Fragment>(*fragment);
  f->placement.reset();
  std::vector<std::int32_t> active;
  for (const Piece& p : placement_of(fragment, num_units)) active.push_back(p.owner);
  std::sort(active.begin(), active.end());
  active.erase(std::unique(active.begin(), active.end()), active.end());
  Stage move{StageKind::kPlace, 1, 1, {}};
  const auto num_active = static_cast<std::int64_t>(active.size());
  __extension__ using Wide = __int128;
  const auto boundary = [&](std::int64_t i) {
    return static_cast<std::int64_t>(static_cast<Wide>(num_units) * i / subset);
  };
  for (std::int64_t i = 0; i < subset; ++i) {
    move.target.push_back({boundary(i), boundary(i + 1), active[static_cast<std::size_t>(i * num_active / subset)]});
  }
  f->stages.push_back(std::move(move));
  f->num_active = subset;
  f->label += fragment->label.empty() ? "rearranged" : ", rearranged";
  return f;
}

}  // namespace gar
