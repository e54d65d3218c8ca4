// The ways in which GenTree+ combines the children of a switch: as they are or with their results on fewer servers, by
// digits, by RHD with a fold, in uneven groups, by Asymmetric CPS, or as if the levels below did not exist; at the root
// also by digits whose last one is, or which all are, exchanges.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "gar/algorithms.hpp"
#include "planner/gentree_plus/search.hpp"
#include "planner/subtree.hpp"

namespace gar::plus {

namespace {

constexpr std::size_t kMaxFactorisations = 2000;

/// Has n a prime factor of 5 or more, so that its factorisations are few or coarse?
bool has_large_prime(std::int64_t n) {
  for (const std::int64_t p : {2, 3}) {
    while (n % p == 0) n /= p;
  }
  return n > 1;
}

/// Whether all children are like the first one.
template <class Same>
bool are_alike(const FragmentRuns& runs, const Same& same) {
  return std::all_of(runs.begin() + 1, runs.end(), [&](const auto& run) { return same(run.first, runs[0].first); });
}

}  // namespace

DecisionPtr Search::Joint::decide(const char* algorithm, std::vector<std::int64_t> factors, const Terms& terms) const {
  auto out = std::make_shared<Decision>(decision);
  out->algorithm = algorithm;
  out->factors = std::move(factors);
  out->terms = terms;
  return out;
}

void Search::combine(NodeId id, const std::vector<Option>& children, bool with_subsets, std::vector<Option>& found) {
  if (topology_.num_children(id) == 1) {
    Option o = children.front();
    put_below(o.footprint, topology_.node(id));
    found.push_back(std::move(o));
    return;
  }
  combine_as_they_are(id, children, 0, found);
  if (!with_subsets) return;
  for (const std::int64_t subset : subsets(id, children)) {
    const std::vector<Option> moved = rearranged(id, children, subset);
    if (!moved.empty()) combine_as_they_are(id, moved, subset, found);
  }
}

Search::Joint Search::join(NodeId id, const std::vector<Option>& children, std::int64_t subset) {
  const Node& node = topology_.node(id);
  Joint out;
  out.id = id;
  out.label = fmt::format("{} level", names_.of(id));
  out.decision.node = id;
  out.decision.subset = subset;
  out.decision.note = note_on(id, children, subset);
  out.decision.candidates = std::make_shared<std::vector<SwitchCandidate>>();
  std::vector<Footprint> prints;
  std::vector<double> latencies;
  for (std::size_t i = 0; i < children.size(); ++i) {
    out.runs.emplace_back(children[i].fragment, node.children[i].count);
    latencies.insert(latencies.end(), node.children[i].count > 1 ? 2 : 1, children[i].footprint.latency);
    prints.push_back(children[i].footprint);
    if (children[i].decision) out.decision.below.push_back(children[i].decision);
  }
  std::sort(latencies.rbegin(), latencies.rend());
  out.pair_latency = node.alpha + latencies[0] + latencies[1];
  out.below = joined(prints);
  return out;
}

void Search::combine_as_they_are(NodeId id, const std::vector<Option>& children, std::int64_t subset,
                                 std::vector<Option>& found) {
  const Joint joint = join(id, children, subset);
  const std::int64_t c = topology_.num_children(id);
  const bool one_kind = are_alike(joint.runs, [](const FragmentPtr& a, const FragmentPtr& b) { return is_same(a, b); });
  if (!one_kind) {
    add_priced(id, acps_fragment(joint.runs, units_, joint.label), joint.decide("acps", {c}, {}), found);
    const auto hold_same = [&](const FragmentPtr& a, const FragmentPtr& b) { return holds_same(a, b, units_); };
    if (!are_alike(joint.runs, hold_same)) return;
  }
  for (const auto& factors : ordered_factorisations(c, kMaxFactorisations)) {
    add_digits_option(joint, factors.size() == 1 ? "cps" : "hcps", {factors, StageKind::kDirect}, found);
    add_digits_option(joint, "ring", {factors, StageKind::kRing}, found);
  }
  if (options_.exchanges && id == top_) exchanges(joint, one_kind);
  if (!one_kind || topology_.num_servers(id) > kMaxManySubsets) return;
  if ((c & (c - 1)) != 0) {
    add_priced(id, rhd_fragment(joint.runs, units_, joint.label), joint.decide("rhd", {2}, {}), found);
  }
  if (has_large_prime(c)) groups(joint, found);
}

void Search::add_digits_option(const Joint& joint, const char* algorithm, const Digits& digits,
                               std::vector<Option>& found) {
  Option o{nullptr, joint.below, nullptr};
  const StagePrice price = add_digits(o.footprint, digits, joint.pair_latency, options_);
  put_below(o.footprint, topology_.node(joint.id));
  o.decision = joint.decide(algorithm, digits.radices, price.at(size_));
  joint.decision.candidates->push_back({algorithm, digits.radices, price.at(size_)});
  if (!is_worth_keeping(o, found)) return;
  o.fragment = digits_fragment(joint.runs, digits, joint.label);
  found.push_back(std::move(o));
}

// What the children hold is exchanged whole, by the last digit or by all of them. These are kept apart: they are for
// short vectors, and what is compared with them is in a list of its own.
void Search::exchanges(const Joint& joint, bool one_kind) {
  Joint own = joint;
  own.decision.candidates = std::make_shared<std::vector<SwitchCandidate>>(*joint.decision.candidates);
  const std::int64_t c = topology_.num_children(joint.id);
  for (const auto& factors : ordered_factorisations(c, kMaxFactorisations)) {
    const bool is_doubling = std::all_of(factors.begin(), factors.end(), [](std::int64_t f) { return f == 2; });
    const char* all = is_doubling ? "recursive-doubling" : factors.size() == 1 ? "gather" : "recursive-multiplying";
    add_digits_option(own, all, {factors, StageKind::kDirect, factors.size()}, exchanged_);
    if (factors.size() == 1) continue;
    add_digits_option(own, "hcps+exchange", {factors, StageKind::kDirect, 1}, exchanged_);
    add_digits_option(own, "ring+exchange", {factors, StageKind::kRing, 1}, exchanged_);
  }
  if (!one_kind || (c & (c - 1)) == 0 || topology_.num_servers(joint.id) > kMaxManySubsets) return;
  add_priced(joint.id, rhd_fragment(joint.runs, units_, joint.label, StageKind::kExchange),
             own.decide("recursive-doubling", {2}, {}), exchanged_);
}

// What uneven groups of the children cost at least. Nothing where that is not known: children that differ and are no
// servers, and children whose ranks hold unequal parts, or parts in pieces.
std::optional<GroupsFloor> Search::groups_floor_of(const Joint& joint, std::int64_t groups, std::int64_t large) {
  if (is_exhaustive_) return std::nullopt;
  const Node& node = topology_.node(joint.id);
  UnevenGroups uneven{topology_.num_children(joint.id), groups, large, joint.pair_latency, true};
  const auto is_leaf = [](const auto& run) { return !run.first; };
  if (std::all_of(joint.runs.begin(), joint.runs.end(), is_leaf)) {
    double nearest = std::numeric_limits<double>::infinity();
    for (const ChildRun& run : node.children) nearest = std::min(nearest, topology_.node(run.node).alpha);
    uneven.pair_latency = node.alpha + 2 * nearest;
    return groups_floor(best_server(joint.below), uneven, size_, options_);
  }
  const NodeId child = node.children.front().node;
  const auto is_alike = [&](const ChildRun& run) { return topology_.shape(run.node) == topology_.shape(child); };
  if (!std::all_of(node.children.begin(), node.children.end(), is_alike)) return std::nullopt;
  const FragmentPtr& fragment = joint.runs.front().first;
  if (!fragment) return std::nullopt;
  const std::vector<Piece>& held = placement_of(fragment, units_);
  const auto [least, most] = std::minmax_element(
      held.begin(), held.end(), [](const Piece& a, const Piece& b) { return a.end - a.begin < b.end - b.begin; });
  const bool are_equal = (most->end - most->begin) - (least->end - least->begin) <= 1;
  if (static_cast<std::int64_t>(held.size()) != fragment->num_active || !are_equal) return std::nullopt;
  uneven.all_are_active = fragment->num_active == fragment->num_ranks;
  return groups_floor(priced_child(child, fragment), uneven, size_, options_);
}

// A child's footprint as it is priced, the child's own uplink included.
const Footprint& Search::priced_child(NodeId child, const FragmentPtr& fragment) {
  const auto key = std::make_pair(fragment.get(), topology_.shape(child));
  const auto it = priced_children_.find(key);
  if (it != priced_children_.end()) return it->second;
  Terms own;
  Footprint f = priced_footprint(child, fragment, true, own);
  kept_alive_.push_back(fragment);
  return priced_children_.emplace(key, std::move(f)).first->second;
}

// Children in two levels of groups as even as possible, where they do not divide evenly. Those that promise most are
// priced first, so that most of the others need not be.
void Search::groups(const Joint& joint, std::vector<Option>& found) {
  const std::int64_t c = topology_.num_children(joint.id);
  struct Grouping {
    std::int64_t groups = 0;
    std::int64_t large = 0;
    std::optional<GroupsFloor> floor;
    std::vector<Option> priced;  // one of them, or none
  };
  std::vector<Grouping> all;
  std::int64_t previous = 0;
  for (std::int64_t g = 2; g <= c / 2; ++g) {
    const std::int64_t large = (c + g - 1) / g;
    if (c % g == 0 || large == previous) continue;
    previous = large;
    all.push_back({g, large, groups_floor_of(joint, g, large), {}});
  }
  Beam beam(size_, chunks_);
  for (const Option& o : found) beam.offer(o.footprint);
  const auto settle = [&](Grouping& one) {
    if (!one.priced.empty() || (one.floor && beam.excludes(*one.floor))) return;
    add_groups(joint, one.groups, one.large, one.priced);
    beam.offer(one.priced.front().footprint);
  };
  for (const std::int64_t k : chunks_) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].floor) order.emplace_back(all[i].floor->seconds(size_, k), i);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < std::min(kBeam, order.size()); ++i) settle(all[order[i].second]);
  }
  for (Grouping& one : all) {
    settle(one);
    std::move(one.priced.begin(), one.priced.end(), std::back_inserter(found));
  }
}

void Search::add_groups(const Joint& joint, std::int64_t groups, std::int64_t large, std::vector<Option>& found) {
  std::vector<FragmentPtr> each;
  for (const auto& [child, count] : joint.runs) each.insert(each.end(), static_cast<std::size_t>(count), child);
  const auto c = static_cast<std::int64_t>(each.size());
  std::map<std::vector<FragmentPtr>, FragmentPtr> known;
  FragmentRuns level;
  auto next = each.begin();
  for (std::int64_t i = 0; i < groups; ++i) {
    const std::int64_t size = i < c - (large - 1) * groups ? large : large - 1;
    const std::vector<FragmentPtr> members(next, next + size);
    next += size;
    FragmentPtr& group = known[members];
    if (!group && size == 1) group = members.front();
    if (!group && size > 1) {
      FragmentRuns inside;
      for (const FragmentPtr& m : members) inside.emplace_back(m, 1);
      group = digits_fragment(std::move(inside), {{size}}, joint.label);
    }
    level.emplace_back(group, 1);
  }
  add_priced(joint.id, acps_fragment(level, units_, joint.label + ", between groups"),
             joint.decide("hcps", {large, groups}, {}), found);
}

// The servers below as if they were on one switch.
void Search::flat(NodeId id, std::vector<Option>& found) {
  const std::int64_t n = topology_.num_servers(id);
  const std::string label = fmt::format("all below {}", names_.of(id));
  Decision decision;
  decision.node = id;
  decision.note = "the levels below are skipped";
  for (const auto& factors : ordered_factorisations(n, kMaxFactorisations)) {
    if (factors.size() > 3 && !is_exhaustive_) continue;
    for (const StageKind kind : {StageKind::kDirect, StageKind::kRing}) {
      decision.algorithm = kind == StageKind::kRing ? "ring" : factors.size() == 1 ? "cps" : "hcps";
      decision.factors = factors;
      add_priced(id, digits_fragment({{nullptr, n}}, {factors, kind}, label),
                 std::make_shared<const Decision>(decision), found);
    }
  }
}

// An option whose footprint has to be counted rank by rank.
void Search::add_priced(NodeId id, const FragmentPtr& fragment, const DecisionPtr& decision,
                        std::vector<Option>& found) {
  Option o{fragment, {}, nullptr};
  Terms own;
  o.footprint = priced_footprint(id, fragment, false, own);
  put_below(o.footprint, topology_.node(id));
  auto d = std::make_shared<Decision>(*decision);
  d->terms = own;
  o.decision = std::move(d);
  found.push_back(std::move(o));
}

Footprint Search::priced_footprint(NodeId id, const FragmentPtr& fragment, bool with_top, Terms& own) {
  const PricedPlan priced(to_plan(fragment, "", units_), subtree_of(id), options_);
  Footprint f = counted_footprint(placement_of(fragment, units_), topology_, id, with_top, &priced.busy());
  own = priced.own_cost(size_);
  const Terms total = priced.cost(size_);
  f.fixed.alpha = total.alpha;
  f.fixed.mu = total.mu;
  f.slope = size_ > 0 ? 1 / size_ * total : priced.cost(1);
  f.slope.alpha = 0;
  f.slope.mu = 0;
  f.steps = priced.steps();
  return f;
}

const Topology& Search::subtree_of(NodeId id) {
  const auto it = subtrees_.find(id);
  return it != subtrees_.end() ? it->second : subtrees_.emplace(id, subtree(topology_, id)).first->second;
}

std::string Search::note_on(NodeId id, const std::vector<Option>& children, std::int64_t subset) const {
  if (topology_.height(id) < 2) return "";
  if (subset > 0)
    return fmt::format("the children's results move to {} servers each first, for fewer senders above", subset);
  return subsets(id, children).empty()
             ? "not considered: no more senders leave the children than their uplinks carry without incast"
             : "not applied: moving the children's results to fewer servers did not pay";
}

// Sizes of subsets worth trying for the children's results.
std::vector<std::int64_t> Search::subsets(NodeId id, const std::vector<Option>& children) const {
  std::set<std::int64_t> sizes;
  const Node& node = topology_.node(id);
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (!children[i].fragment) continue;
    const NodeId child = node.children[i].node;
    const LinkParams& up = topology_.node(child).uplink;
    const std::int64_t active = children[i].footprint.active;
    const bool has_incast = static_cast<double>(active) > up.incast_threshold && up.epsilon > 0;
    const double above = bandwidth_below(topology_, id);
    const double own = bandwidth_below(topology_, child);
    const double ratio = std::isinf(above) || own == 0 ? 1 : std::min(above / own, 1.0);
    const auto by_ratio = static_cast<std::int64_t>(std::ceil(static_cast<double>(active) * ratio - 1e-9));
    if (by_ratio >= 1 && by_ratio < active) sizes.insert(by_ratio);
    if (!is_exhaustive_ && !has_incast) continue;
    if (is_exhaustive_ || topology_.num_servers(child) <= kMaxManySubsets) {
      for (std::int64_t k = 1; k < active; k *= 2) sizes.insert(k);
    } else {
      const auto threshold = static_cast<std::int64_t>(std::max(up.incast_threshold, 1.0));
      if (threshold < active) sizes.insert(threshold);
    }
  }
  return {sizes.begin(), sizes.end()};
}

// The children with their results moved to `subset` servers each; empty when that changes nothing.
std::vector<Option> Search::rearranged(NodeId id, const std::vector<Option>& children, std::int64_t subset) {
  std::vector<Option> out = children;
  bool changed = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!out[i].fragment || subset >= out[i].footprint.active) continue;
    const NodeId child = topology_.node(id).children[i].node;
    const auto key = std::make_tuple(out[i].fragment.get(), topology_.shape(child), subset);
    if (const auto it = moved_.find(key); it != moved_.end()) {
      out[i] = it->second;
    } else {
      Terms own;
      Option o{rearranged_fragment(out[i].fragment, subset, units_), {}, out[i].decision};
      o.footprint = priced_footprint(child, o.fragment, true, own);
      moved_[key] = o;
      kept_alive_.push_back(out[i].fragment);
      out[i] = std::move(o);
    }
    changed = true;
  }
  return changed ? out : std::vector<Option>{};
}

}  // namespace gar::plus
