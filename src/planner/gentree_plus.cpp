// GenTree+: what GenTree fixes is searched.
//
// The plans that are searched, for the subtree below a switch with c children:
//   1. every child has a plan of its own; children of the same shape have the same;
//   2. the results of children that are switches may be moved to a subset of their servers, evenly spaced: as many as
//   GenTree's
//      convergence ratio says, or 1, 2, 4, 8, ... of them; one size for all children of a switch;
//   3. children that hold the same intervals are combined by digits: every ordered factorisation of c, as direct
//   exchanges
//      (CPS, HCPS, RHD) or as rings. If their plans are the same, too: by RHD with a fold where c is no power of two,
//      and by two levels of groups as even as possible where c has a prime factor of 5 or more and the groups differ.
//      Children whose plans differ are (also) combined by Asymmetric CPS;
//   4. or the structure below the switch is ignored: its servers (up to 64) are combined by digits as if it were one
//      switch;
//   5. the whole vector runs in one piece or in k chunks that follow each other through the stages.
// Beside these, both forms of GenTree and the flat algorithms: up to kMaxComparedFlat servers reduce-broadcast, ring,
// rhd and cps, the flat hcps and hring that are best in one piece (beyond kMaxFlat servers: if that already is better);
// for larger networks any of reduce-broadcast, ring, rhd and cps whose bound leaves a chance. Each in one piece or in
// chunks.
//
// Method: dynamic programming over distinct subtrees. What a subtree's plan means for the stages above is its
// footprint (active ranks below each link, how busy links and servers are, latency and time so far). For every k of a
// geometric series the kBeam plans with the least time in k chunks are kept, which keeps plans that finish early, plans
// with few stages and plans that spare the bottleneck. Trees of up to kExhaustive servers keep everything, so that
// there the result is the optimum of the space above. Finalists are priced exactly by PricedPlan.
//
// Complexity: O(distinct subtrees * kept plans * factorisations * distinct links); subsets and unequal children cost
// O(servers below) each. Deterministic: no randomness, ties go to the earlier candidate.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "gar/algorithms.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "planner/footprint.hpp"
#include "planner/fragment.hpp"
#include "planner/subtree.hpp"

namespace gar {

namespace {

constexpr std::int64_t kExhaustive = 8;          // servers
constexpr std::size_t kBeam = 2;                 // kept per number of chunks
constexpr std::int64_t kMaxFlat = 64;            // servers that are also combined as if on one switch
constexpr std::int64_t kMaxManySubsets = 2048;   // servers of a child for which all subset sizes are tried
constexpr std::int64_t kMaxComparedFlat = 4096;  // servers up to which every flat algorithm is compared
constexpr std::size_t kMaxMoved = 2;             // beyond that, plans of the children for which any is tried
constexpr std::int64_t kManyChunks = 64;  // and the one number of chunks, beside 1, for which children are chosen
constexpr std::int64_t kMaxChunks = 1 << 14;
constexpr std::size_t kMaxFactorisations = 2000;

/// Has n a prime factor of 5 or more, so that its factorisations are few or coarse?
bool has_large_prime(std::int64_t n) {
  for (const std::int64_t p : {2, 3}) {
    while (n % p == 0) n /= p;
  }
  return n > 1;
}

/// What was decided at a switch, with what was decided below it.
struct Decision {
  NodeId node = 0;
  std::string algorithm;
  std::vector<std::int64_t> factors;
  std::int64_t subset = 0;  // of the children; 0: not rearranged
  Terms terms;
  std::string note;  // on the children's results
  std::shared_ptr<const std::vector<SwitchCandidate>> candidates;
  std::vector<std::shared_ptr<const Decision>> below;
};
using DecisionPtr = std::shared_ptr<const Decision>;

struct Option {
  FragmentPtr fragment;
  Footprint footprint;
  DecisionPtr decision;
};

class Search {
 public:
  Search(const Topology& topology, double size_floats, const ModelOptions& options)
      : topology_(topology), size_(size_floats), options_(options), units_(units_for(topology)) {
    options_.overlap = true;
    is_exhaustive_ = topology.num_servers() <= kExhaustive;
    const std::int64_t most = options.max_chunks > 0 ? std::min(options.max_chunks, kMaxChunks) : kMaxChunks;
    for (std::int64_t k = 1; k <= most && static_cast<double>(k) <= std::max(size_, 1.0); k *= 4) chunks_.push_back(k);
  }

  /// Plans for the whole tree, most promising first.
  std::vector<Option> run() {
    for (NodeId id = 0; id < topology_.num_nodes(); ++id) {
      const std::int32_t shape = topology_.shape(id);
      if (!options_of_.contains(shape)) options_of_[shape] = build(id);
    }
    std::vector<Option> out = options_of_.at(topology_.shape(topology_.root()));
    std::stable_sort(out.begin(), out.end(), [&](const Option& a, const Option& b) { return least(a) < least(b); });
    return out;
  }

  [[nodiscard]] std::int64_t units() const { return units_; }

 private:
  double least(const Option& o) const {
    double best = std::numeric_limits<double>::infinity();
    for (const std::int64_t k : chunks_) best = std::min(best, o.footprint.pipelined_seconds(size_, k));
    return best;
  }

  std::vector<Option> build(NodeId id) {
    const Node& node = topology_.node(id);
    if (node.is_server()) return {{nullptr, server_footprint(node), nullptr}};
    std::vector<Option> found;
    std::size_t nth = 0;
    for (const std::vector<Option>& children : combinations(node)) {
      // Moving the results of many servers is expensive to price: only for the most promising ones.
      combine(id, children, topology_.num_servers(id) <= kMaxManySubsets || nth < kMaxMoved, found);
      ++nth;
    }
    const bool has_levels = topology_.height(id) > 1;
    if (has_levels && topology_.num_servers(id) <= kMaxFlat) flat(id, found);
    return keep(std::move(found));
  }

  // One option per run of children.
  std::vector<std::vector<Option>> combinations(const Node& node) {
    std::vector<std::int32_t> shapes;
    for (const ChildRun& run : node.children) {
      const std::int32_t s = topology_.shape(run.node);
      if (std::find(shapes.begin(), shapes.end(), s) == shapes.end()) shapes.push_back(s);
    }
    std::vector<std::map<std::int32_t, const Option*>> picks;
    if (shapes.size() == 1 || is_exhaustive_) {
      picks.emplace_back();
      for (const std::int32_t s : shapes) {
        std::vector<std::map<std::int32_t, const Option*>> next;
        for (const auto& pick : picks) {
          for (const Option& o : options_of_.at(s)) {
            next.push_back(pick);
            next.back()[s] = &o;
          }
        }
        picks = std::move(next);
      }
    } else {  // for every number of chunks, what is best for each child
      std::set<std::vector<const Option*>> seen;
      std::int64_t below = 0;
      for (const ChildRun& run : node.children) below += run.count * topology_.num_servers(run.node);
      for (const std::int64_t k : chunks_) {
        if (below > kMaxManySubsets && k != 1 && k != kManyChunks) continue;  // each of them takes long to price
        std::map<std::int32_t, const Option*> pick;
        std::vector<const Option*> key;
        for (const std::int32_t s : shapes) {
          const std::vector<Option>& all = options_of_.at(s);
          pick[s] = &*std::min_element(all.begin(), all.end(), [&](const Option& a, const Option& b) {
            return a.footprint.pipelined_seconds(size_, k) < b.footprint.pipelined_seconds(size_, k);
          });
          key.push_back(pick[s]);
        }
        if (seen.insert(key).second) picks.push_back(std::move(pick));
      }
    }
    std::vector<std::vector<Option>> out;
    for (const auto& pick : picks) {
      std::vector<Option> runs;
      for (const ChildRun& run : node.children) runs.push_back(*pick.at(topology_.shape(run.node)));
      out.push_back(std::move(runs));
    }
    return out;
  }

  void combine(NodeId id, const std::vector<Option>& children, bool with_subsets, std::vector<Option>& found) {
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

  void combine_as_they_are(NodeId id, const std::vector<Option>& children, std::int64_t subset,
                           std::vector<Option>& found) {
    const Node& node = topology_.node(id);
    FragmentRuns runs;
    std::vector<Footprint> prints;
    std::vector<double> latencies;
    std::vector<DecisionPtr> below;
    for (std::size_t i = 0; i < children.size(); ++i) {
      runs.emplace_back(children[i].fragment, node.children[i].count);
      latencies.insert(latencies.end(), node.children[i].count > 1 ? 2 : 1, children[i].footprint.latency);
      prints.push_back(children[i].footprint);
      if (children[i].decision) below.push_back(children[i].decision);
    }
    std::sort(latencies.rbegin(), latencies.rend());
    const double pair_latency = node.alpha + latencies[0] + latencies[1];
    auto candidates = std::make_shared<std::vector<SwitchCandidate>>();
    const std::string note = note_on(id, children, subset);
    const auto decide = [&](const char* algorithm, std::vector<std::int64_t> factors, const Terms& terms) {
      return std::make_shared<const Decision>(
          Decision{id, algorithm, std::move(factors), subset, terms, note, candidates, below});
    };
    const std::string label = fmt::format("{} level", node.name);
    const auto all = [&](auto same) {
      return std::all_of(runs.begin() + 1, runs.end(), [&](const auto& r) { return same(r.first, runs[0].first); });
    };
    if (!all([](const FragmentPtr& a, const FragmentPtr& b) { return is_same(a, b); })) {
      add_priced(id, acps_fragment(runs, units_, label), decide("acps", {topology_.num_children(id)}, {}), found);
      if (!all([&](const FragmentPtr& a, const FragmentPtr& b) { return holds_same(a, b, units_); })) return;
    }
    const Footprint base = joined(prints);
    const std::int64_t c = topology_.num_children(id);
    const auto digits = [&](const char* algorithm, const std::vector<std::int64_t>& radices, StageKind kind) {
      Option o{nullptr, base, nullptr};
      const StagePrice price = add_digits(o.footprint, radices, kind, pair_latency, options_);
      put_below(o.footprint, node);
      o.decision = decide(algorithm, radices, price.at(size_));
      candidates->push_back({algorithm, radices, price.at(size_)});
      if (!is_worth_keeping(o, found)) return;
      o.fragment = digits_fragment(runs, radices, kind, label);
      found.push_back(std::move(o));
    };
    for (const auto& factors : ordered_factorisations(c, kMaxFactorisations)) {
      digits(factors.size() == 1 ? "cps" : "hcps", factors, StageKind::kDirect);
      digits("ring", factors, StageKind::kRing);
    }
    const bool small = topology_.num_servers(id) <= kMaxManySubsets;
    const bool one_kind = all([](const FragmentPtr& a, const FragmentPtr& b) { return is_same(a, b); });
    if (small && one_kind && (c & (c - 1)) != 0) {
      add_priced(id, rhd_fragment(runs, units_, label), decide("rhd", {2}, {}), found);
    }
    if (small && one_kind && has_large_prime(c)) groups(id, runs, label, decide, found);
  }

  // Children in two levels of groups as even as possible, where they do not divide evenly.
  template <class Decide>
  void groups(NodeId id, const FragmentRuns& runs, const std::string& label, Decide decide,
              std::vector<Option>& found) {
    std::vector<FragmentPtr> each;
    for (const auto& [child, count] : runs) each.insert(each.end(), static_cast<std::size_t>(count), child);
    const auto c = static_cast<std::int64_t>(each.size());
    std::int64_t previous = 0;
    for (std::int64_t g = 2; g <= c / 2; ++g) {
      const std::int64_t large = (c + g - 1) / g;
      if (c % g == 0 || large == previous) continue;
      previous = large;
      std::map<std::vector<FragmentPtr>, FragmentPtr> known;
      FragmentRuns level;
      auto next = each.begin();
      for (std::int64_t i = 0; i < g; ++i) {
        const std::int64_t size = i < c - (large - 1) * g ? large : large - 1;
        const std::vector<FragmentPtr> members(next, next + size);
        next += size;
        FragmentPtr& group = known[members];
        if (!group && size == 1) group = members.front();
        if (!group && size > 1) {
          FragmentRuns inside;
          for (const FragmentPtr& m : members) inside.emplace_back(m, 1);
          group = digits_fragment(std::move(inside), {size}, StageKind::kDirect, label);
        }
        level.emplace_back(group, 1);
      }
      add_priced(id, acps_fragment(level, units_, label + ", between groups"), decide("hcps", {large, g}, {}), found);
    }
  }

  // The servers below as if they were on one switch.
  void flat(NodeId id, std::vector<Option>& found) {
    const std::int64_t n = topology_.num_servers(id);
    const std::string label = fmt::format("all below {}", topology_.node(id).name);
    for (const auto& factors : ordered_factorisations(n, kMaxFactorisations)) {
      if (factors.size() > 3 && !is_exhaustive_) continue;
      for (const StageKind kind : {StageKind::kDirect, StageKind::kRing}) {
        const char* name = kind == StageKind::kRing ? "ring" : factors.size() == 1 ? "cps" : "hcps";
        auto decision = std::make_shared<const Decision>(
            Decision{id, name, factors, 0, {}, "the levels below are skipped", nullptr, {}});
        add_priced(id, digits_fragment({{nullptr, n}}, factors, kind, label), decision, found);
      }
    }
  }

  // An option whose footprint has to be counted rank by rank.
  void add_priced(NodeId id, const FragmentPtr& fragment, const DecisionPtr& decision, std::vector<Option>& found) {
    Option o{fragment, {}, nullptr};
    Terms own;
    o.footprint = priced_footprint(id, fragment, false, own);
    put_below(o.footprint, topology_.node(id));
    auto d = std::make_shared<Decision>(*decision);
    d->terms = own;
    o.decision = std::move(d);
    found.push_back(std::move(o));
  }

  Footprint priced_footprint(NodeId id, const FragmentPtr& fragment, bool with_top, Terms& own) {
    const PricedPlan priced(to_plan(fragment, "", units_), subtree_of(id), options_);
    Footprint f = counted_footprint(placement_of(fragment, units_), topology_, id, with_top, &priced.busy());
    own = priced.own_cost(size_);
    const Terms total = priced.cost(size_);
    f.fixed.alpha = total.alpha;
    f.slope = size_ > 0 ? 1 / size_ * total : priced.cost(1);
    f.slope.alpha = 0;
    f.steps = priced.steps();
    return f;
  }

  const Topology& subtree_of(NodeId id) {
    const auto it = subtrees_.find(id);
    return it != subtrees_.end() ? it->second : subtrees_.emplace(id, subtree(topology_, id)).first->second;
  }

  std::string note_on(NodeId id, const std::vector<Option>& children, std::int64_t subset) {
    if (topology_.height(id) < 2) return "";
    if (subset > 0)
      return fmt::format("the children's results move to {} servers each first, for fewer senders above", subset);
    return subsets(id, children).empty()
               ? "not considered: no more senders leave the children than their uplinks carry without incast"
               : "not applied: moving the children's results to fewer servers did not pay";
  }

  // Sizes of subsets worth trying for the children's results.
  std::vector<std::int64_t> subsets(NodeId id, const std::vector<Option>& children) {
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
  std::vector<Option> rearranged(NodeId id, const std::vector<Option>& children, std::int64_t subset) {
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

  // Analytic options are many: skip those that an option at hand beats in every respect.
  bool is_worth_keeping(const Option& o, const std::vector<Option>& found) const {
    if (is_exhaustive_) return true;
    const Footprint& f = o.footprint;
    return std::none_of(found.begin(), found.end(), [&](const Option& other) {
      const Footprint& g = other.footprint;
      return g.active == f.active && g.fixed.alpha <= f.fixed.alpha && g.slope.total() <= f.slope.total() &&
             g.busiest() <= f.busiest() && g.links.size() <= f.links.size();
    });
  }

  std::vector<Option> keep(std::vector<Option> found) const {
    if (is_exhaustive_) return found;
    std::set<std::size_t> kept;
    for (const std::int64_t k : chunks_) {
      std::vector<std::pair<double, std::size_t>> order;
      for (std::size_t i = 0; i < found.size(); ++i)
        order.emplace_back(found[i].footprint.pipelined_seconds(size_, k), i);
      std::sort(order.begin(), order.end());
      for (std::size_t i = 0; i < std::min(kBeam, order.size()); ++i) kept.insert(order[i].second);
    }
    std::vector<Option> out;
    for (const std::size_t i : kept) out.push_back(std::move(found[i]));
    std::stable_sort(out.begin(), out.end(), [&](const Option& a, const Option& b) { return least(a) < least(b); });
    return out;
  }

  const Topology& topology_;
  double size_;
  ModelOptions options_;
  std::int64_t units_;
  bool is_exhaustive_ = false;
  std::vector<std::int64_t> chunks_;
  std::map<std::int32_t, std::vector<Option>> options_of_;
  std::map<NodeId, Topology> subtrees_;
  std::map<std::tuple<const Fragment*, std::int32_t, std::int64_t>, Option> moved_;
  std::vector<FragmentPtr> kept_alive_;  // keys of moved_
};

/// Lists the switches of a decision, lowest first; identical ones once.
void list_switches(const Topology& topology, const DecisionPtr& d, std::set<const Decision*>& seen,
                   std::vector<SwitchChoice>& out, const std::vector<std::int64_t>& counts) {
  if (!d || !seen.insert(d.get()).second) return;
  for (const DecisionPtr& b : d->below) list_switches(topology, b, seen, out, counts);
  SwitchChoice c;
  c.node = d->node;
  c.name = topology.node(d->node).name;
  c.count = 0;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    if (topology.shape(id) == topology.shape(d->node)) c.count += counts[static_cast<std::size_t>(id)];
  }
  c.algorithm = d->algorithm;
  c.factors = d->factors;
  c.is_rearranged = d->subset > 0;
  c.terms = d->terms;
  if (!d->note.empty()) c.rearrangements.push_back({d->subset > 0, d->subset, 0, 0, d->note});
  if (d->candidates) {
    c.candidates = *d->candidates;
    std::stable_sort(c.candidates.begin(), c.candidates.end(), [](const SwitchCandidate& a, const SwitchCandidate& b) {
      return a.terms.total() < b.terms.total();
    });
  }
  out.push_back(std::move(c));
}

/// The cheapest finalist.
class Finals {
 public:
  Finals(const Topology& topology, double size_floats, const ModelOptions& options)
      : topology_(topology), size_(size_floats), options_(options) {
    options_.overlap = true;
    limit_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(size_floats, 1e15)), 1, kMaxChunks);
    if (options.max_chunks > 0) limit_ = std::min(limit_, options.max_chunks);
  }

  void offer(Plan plan, std::vector<SwitchChoice> switches) {
    const PricedPlan priced(plan, topology_, options_);
    plan.num_chunks = priced.best_chunks(size_, limit_);
    const double seconds = priced.pipelined_cost(size_, plan.num_chunks).total();
    std::string words = plan.algorithm;
    if (words == "gentree+") {
      words = "";
      for (const SwitchChoice& c : switches) {
        words += fmt::format("{}{} {} {}{}", words.empty() ? "" : "; ", c.name, c.algorithm, fmt::join(c.factors, "x"),
                             c.is_rearranged ? " rearranged" : "");
      }
    }
    best_.considered.push_back({words, plan.num_chunks, seconds});
    if (seconds >= least_) return;
    least_ = seconds;
    best_.plan = std::move(plan);
    best_.switches = std::move(switches);
  }

  [[nodiscard]] double least() const { return least_; }
  TreePlan take() {
    std::stable_sort(best_.considered.begin(), best_.considered.end(),
                     [](const PlanCandidate& a, const PlanCandidate& b) { return a.seconds < b.seconds; });
    return std::move(best_);
  }

 private:
  const Topology& topology_;
  double size_;
  ModelOptions options_;
  std::int64_t limit_ = 1;
  double least_ = std::numeric_limits<double>::infinity();
  TreePlan best_;
};

SwitchChoice flat_choice(const Topology& topology, const AlgorithmSpec& spec, const Terms& terms) {
  SwitchChoice c;
  c.node = topology.root();
  c.name = topology.node(topology.root()).name;
  c.algorithm = spec.name == "hring" ? "ring" : spec.name;
  c.factors = spec.factors.empty() ? std::vector<std::int64_t>{topology.num_servers()} : spec.factors;
  c.terms = terms;
  return c;
}

}  // namespace

TreePlan gentree_plus(const Topology& topology, double size_floats, const ModelOptions& options) {
  if (topology.num_servers() == 1) {
    TreePlan out;
    out.plan = cps(1);
    out.plan.algorithm = "gentree+";
    return out;
  }
  constexpr std::size_t kMaxFinalists = 12;
  constexpr std::int64_t kLarge = 20'000;
  Finals finals(topology, size_floats, options);
  Search search(topology, size_floats, options);
  const std::vector<std::int64_t> counts = instance_counts(topology);
  const std::vector<Option> options_found = search.run();
  const bool exhaustive = topology.num_servers() <= kExhaustive;
  const std::size_t finalists = exhaustive ? options_found.size() : topology.num_servers() > kLarge ? 1 : kMaxFinalists;
  for (std::size_t i = 0; i < std::min(finalists, options_found.size()); ++i) {
    std::vector<SwitchChoice> switches;
    std::set<const Decision*> seen;
    list_switches(topology, options_found[i].decision, seen, switches, counts);
    finals.offer(to_plan(options_found[i].fragment, "gentree+", search.units()), std::move(switches));
  }
  for (const bool rearrange : {true, false}) {
    TreePlan t = gentree(topology, size_floats, {rearrange, options});
    if (topology.num_servers() > kLarge && !rearrange) continue;
    finals.offer(std::move(t.plan), std::move(t.switches));
  }
  if (topology.num_servers() <= kMaxComparedFlat) {
    const auto offer = [&](const AlgorithmSpec& spec, const Terms& terms) {
      finals.offer(build_plan(spec, topology.num_servers()), {flat_choice(topology, spec, terms)});
    };
    for (const AlgorithmSpec& spec : classic_algorithms()) {
      if (spec.name != "hcps") offer(spec, {});
    }
    Predictor predictor(topology, {{"hcps", {}, false}, {"hring", {}, false}}, options);
    const bool few = topology.num_servers() <= kMaxFlat;
    for (const Prediction& p : few ? predictor.at(size_floats) : predictor.below(size_floats, finals.least())) {
      offer(p.spec, p.terms);
    }
  }
  if (topology.num_servers() > kMaxComparedFlat) {  // bounds settle most of them
    std::vector<AlgorithmSpec> single = classic_algorithms();
    std::erase_if(single, [](const AlgorithmSpec& spec) { return spec.name == "hcps"; });
    Predictor predictor(topology, single, options);
    for (const Prediction& p : predictor.below(size_floats, finals.least())) {
      finals.offer(build_plan(p.spec, topology.num_servers()), {flat_choice(topology, p.spec, p.terms)});
    }
  }
  TreePlan out = finals.take();
  out.plan.algorithm = "gentree+";
  return out;
}

}  // namespace gar
