// GenTree+: what GenTree fixes is searched.
//
// The plans that are searched, for the subtree below a switch with c children:
//
//   1. Every child has a plan of its own; children of the same shape have the same one.
//
//   2. The results of children that are switches may be moved to a subset of their servers, evenly spaced: as many as
//      GenTree's convergence ratio says, or 1, 2, 4, 8, ... of them; one size for all children of a switch.
//
//   3. Children that hold the same intervals are combined by digits: every ordered factorisation of c, as direct
//      exchanges (CPS, HCPS, RHD) or as rings. If their plans are the same as well, also by RHD with a fold where c is
//      no power of two, and by two levels of groups as even as possible where c has a prime factor of 5 or more and the
//      groups differ. Children whose plans differ are (also) combined by Asymmetric CPS.
//
//   4. Or the structure below the switch is ignored: its servers (up to kMaxFlat) are combined by digits as if it were
//      one switch.
//
//   5. At the root, children that hold the same intervals may exchange these whole instead of scattering them, so that
//      no AllGather has to bring them back: in the last digit or in all of them, and by recursive doubling with a fold
//      where that is RHD with one. Such a plan moves more and takes fewer steps, so it is for short vectors: it is
//      considered only where the best plan without exchanges takes the vector in one piece because cutting it would not
//      pay. It has no halves, so it is searched for an AllReduce only (ModelOptions::exchanges).
//
//   6. Every rank may own the share of the vector that fits what it, and the links above it, can do: see shares.cpp.
//      The blocks of a ReduceScatter or an AllGather are equal: there the shares are those between, and one stage more
//      brings every block to its rank, or from there. Only where the children of some switch differ, and up to
//      kMaxShared servers.
//
//   7. The whole vector runs in one piece or in k chunks that follow each other through the stages.
//
// These are compared with both forms of GenTree and with the flat algorithms: up to kMaxComparedFlat servers
// reduce-broadcast, ring, rhd and cps, and the flat hcps and hring that are best in one piece (above kMaxFlat servers
// only if that already is better); for larger networks any of reduce-broadcast, ring, rhd and cps whose bound leaves a
// chance. Each in one piece or in chunks. So are, with exchanges, the algorithms for short vectors (recursive-doubling,
// recursive-multiplying, binomial, gather) that beat all of these, whatever the size.
//
// Method: dynamic programming over distinct subtrees (search.cpp, combine.cpp). What a subtree's plan means for the
// stages above is its footprint (active ranks below each link, how busy links and servers are, latency and time so
// far). For every k of a geometric series the two plans with the least time in k chunks are kept, which keeps plans
// that finish early, plans with few stages and plans that spare the bottleneck. Trees of up to kExhaustive servers keep
// everything, so that there the result is the optimum of the space above, by price. Finalists are priced exactly by
// PricedPlan, and those in chunks that may be chosen are simulated (finals.cpp).
//
// Complexity: O(distinct subtrees * kept plans * factorisations * distinct links); subsets and unequal children cost
// O(servers below) each. Deterministic: no randomness, ties go to the earlier candidate.
#include <algorithm>
#include <optional>
#include <set>

#include "gar/algorithms.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "planner/flat.hpp"
#include "planner/flat_prices.hpp"
#include "planner/gentree_plus/finals.hpp"
#include "planner/gentree_plus/search.hpp"
#include "planner/gentree_plus/shares.hpp"
#include "planner/subtree.hpp"
#include "planner/switch_names.hpp"

namespace gar {

namespace {

using plus::Decision;
using plus::DecisionPtr;
using plus::Finals;
using plus::Option;
using plus::Search;

constexpr std::int64_t kMaxComparedFlat = 4096;  // servers up to which every flat algorithm is compared
constexpr std::int64_t kLarge = 20'000;          // servers above which only the best finalist and GenTree are priced
constexpr std::size_t kMaxFinalists = 12;
constexpr std::int64_t kMaxShared = 2048;    // servers up to which shares may be unequal
constexpr std::int64_t kMaxManyShared = 64;  // and up to which many forms of that are priced
constexpr std::int64_t kMaxRefined = 12;     // and up to which they are refined by exact prices
constexpr int kNumRefined = 2400;            // prices of a form, times servers

/// Lists the switches of a decision, lowest first and identical ones once.
class SwitchList {
 public:
  explicit SwitchList(const Topology& topology)
      : topology_(topology), names_(topology), counts_(instance_counts(topology)) {}

  [[nodiscard]] std::vector<SwitchChoice> of(const DecisionPtr& decision) const {
    std::vector<SwitchChoice> out;
    std::set<const Decision*> seen;
    add(decision, seen, out);
    return out;
  }

 private:
  void add(const DecisionPtr& d, std::set<const Decision*>& seen, std::vector<SwitchChoice>& out) const {
    if (!d || !seen.insert(d.get()).second) return;
    for (const DecisionPtr& b : d->below) add(b, seen, out);
    SwitchChoice c;
    c.node = d->node;
    c.name = names_.of(d->node);
    c.count = 0;
    for (NodeId id = 0; id < topology_.num_nodes(); ++id) {
      if (topology_.shape(id) == topology_.shape(d->node)) c.count += counts_[static_cast<std::size_t>(id)];
    }
    c.algorithm = d->algorithm;
    c.factors = d->factors;
    c.is_uneven = d->is_uneven;
    c.is_rearranged = d->subset > 0;
    c.terms = d->terms;
    if (!d->note.empty()) c.rearrangements.push_back({d->subset > 0, d->subset, 0, 0, d->note});
    if (d->candidates) {
      c.candidates = *d->candidates;
      std::stable_sort(
          c.candidates.begin(), c.candidates.end(),
          [](const SwitchCandidate& a, const SwitchCandidate& b) { return a.terms.total() < b.terms.total(); });
    }
    out.push_back(std::move(c));
  }

  const Topology& topology_;
  SwitchNames names_;
  std::vector<std::int64_t> counts_;
};

/// How many plans that a search has found are priced exactly.
std::size_t num_finalists(const std::vector<Option>& found, const Topology& topology) {
  const std::int64_t n = topology.num_servers();
  const std::size_t most = n <= plus::kExhaustive ? found.size() : n > kLarge ? 1 : kMaxFinalists;
  return std::min(most, found.size());
}

void offer_searched(const Topology& topology, Search& search, Finals& finals) {
  const std::vector<Option> found = search.run();
  const SwitchList switches(topology);
  for (std::size_t i = 0; i < num_finalists(found, topology); ++i) {
    finals.offer(to_plan(found[i].fragment, "gentree+", search.units()), switches.of(found[i].decision));
  }
}

void offer_exchanges(const Topology& topology, const Search& search, Finals& finals) {
  const std::vector<Option> found = search.ending_in_exchanges();
  const SwitchList switches(topology);
  for (std::size_t i = 0; i < num_finalists(found, topology); ++i) {
    finals.offer_if_better(to_plan(found[i].fragment, "gentree+", search.units()), switches.of(found[i].decision));
  }
}

/// How groups and shares are tried.
std::vector<plus::ShareOptions> share_variants(const Topology& topology, Collective collective) {
  std::int64_t most = 2;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) most = std::max(most, topology.num_children(id));
  const bool many = topology.num_servers() <= kMaxManyShared;
  const bool has_levels = topology.height(topology.root()) > 1;
  std::vector<plus::ShareOptions> out;
  const auto add = [&](std::int64_t all, bool is_flat, bool is_whole) {
    for (const std::int64_t members : {all, std::int64_t{8}, std::int64_t{4}, std::int64_t{3}, std::int64_t{2}}) {
      if (members != all && members >= all) continue;
      if (!many && members != all && members != 8) continue;
      for (const double strength : {1.0, 0.75, 0.5, 0.25}) {
        if (many || strength == 1) out.push_back({members, strength, is_flat, is_whole});
      }
    }
  };
  for (const bool is_whole : {true, false}) {
    if (!is_whole && collective == Collective::kAllReduce) continue;
    add(most, false, is_whole);
    if (many && has_levels) add(topology.num_servers(), true, is_whole);
  }
  return out;
}

/// Returns the plan with unequal shares, if it has the least price of all so far.
std::optional<plus::SharedPlan> offer_shares(const Topology& topology, const ModelOptions& options,
                                             std::int64_t num_units, Finals& finals) {
  if (!options.shares || topology.num_servers() > kMaxShared || !plus::may_share_unequally(topology))
    return std::nullopt;
  const auto price = [&](const FragmentPtr& f) { return finals.seconds_of(to_plan(f, "gentree+", num_units)); };
  const int num_refined =
      topology.num_servers() <= kMaxRefined ? kNumRefined / static_cast<int>(topology.num_servers()) : 0;
  std::optional<plus::SharedPlan> shared = plus::plan_with_shares(
      topology, options, share_variants(topology, options.collective), num_units, price, num_refined);
  if (!shared) return std::nullopt;
  Plan plan = to_plan(shared->fragment, "gentree+", num_units);
  if (!(finals.seconds_of(plan) < finals.least_price())) return std::nullopt;
  finals.offer(std::move(plan), shared->switches);
  return shared;
}

void offer_gentree(const Topology& topology, double size_floats, const ModelOptions& options, Finals& finals) {
  for (const bool rearrange : {true, false}) {
    if (topology.num_servers() > kLarge && !rearrange) continue;
    TreePlan tree = gentree(topology, size_floats, {rearrange, options});
    finals.offer(std::move(tree.plan), std::move(tree.switches));
  }
}

void offer_flat(const Topology& topology, double size_floats, const ModelOptions& options,
                const std::shared_ptr<FlatPrices>& prices, Finals& finals) {
  const std::int64_t n = topology.num_servers();
  const auto offer = [&](const AlgorithmSpec& spec, const Terms& terms) {
    Plan plan = build_plan(spec, n);
    if (!has_halves(plan)) return;  // a plan of gentree+ may have to be halved; see offer_short
    finals.offer_flat(std::move(plan), spec, flat_choice(topology, spec, terms));
  };
  std::vector<AlgorithmSpec> single = classic_algorithms();
  single.push_back({"binomial", {}, false});
  std::erase_if(single, [](const AlgorithmSpec& spec) { return spec.name == "hcps"; });
  if (n > kMaxComparedFlat) {  // bounds settle most of them
    Predictor predictor(topology, single, options, prices);
    for (const Prediction& p : predictor.below(size_floats, finals.least())) offer(p.spec, p.terms);
    return;
  }
  for (const AlgorithmSpec& spec : single) offer(spec, {});
  Predictor predictor(topology, {{"hcps", {}, false}, {"hring", {}, false}}, options, prices);
  const bool is_small = n <= plus::kMaxFlat;
  for (const Prediction& p : is_small ? predictor.at(size_floats) : predictor.below(size_floats, finals.least())) {
    offer(p.spec, p.terms);
  }
}

void offer_short(const Topology& topology, double size_floats, const ModelOptions& options, Finals& finals) {
  std::vector<AlgorithmSpec> specs;  // of two that are the same, the one with the simpler name comes first
  for (const char* name : {"gather", "recursive-doubling", "binomial", "recursive-multiplying"}) {
    specs.push_back({name, {}, false});
  }
  Predictor predictor(topology, specs, options);
  const bool is_exhaustive = topology.num_servers() <= plus::kExhaustive;
  const std::vector<Prediction> found =
      is_exhaustive ? predictor.at(size_floats) : predictor.below(size_floats, finals.least());
  for (const Prediction& p : found) {
    finals.offer_if_better(build_plan(p.spec, topology.num_servers()), {flat_choice(topology, p.spec, p.terms)});
  }
}

}  // namespace

TreePlan gentree_plus(const Topology& topology, double size_floats, const ModelOptions& options) {
  return gentree_plus(topology, size_floats, options, nullptr);
}

TreePlan gentree_plus(const Topology& topology, double size_floats, const ModelOptions& given,
                      const std::shared_ptr<FlatPrices>& prices) {
  const ModelOptions options = metered(given, topology);
  if (topology.num_servers() == 1) {
    TreePlan out;
    out.plan = as_collective(cps(1), options.collective);
    out.plan.algorithm = "gentree+";
    out.priced = std::make_shared<const PricedPlan>(out.plan, topology, options);
    return out;
  }
  Finals finals(topology, size_floats, options, prices);
  Search search(topology, size_floats, options);
  offer_searched(topology, search, finals);
  offer_gentree(topology, size_floats, options, finals);
  offer_flat(topology, size_floats, options, prices, finals);
  std::optional<plus::SharedPlan> shared = offer_shares(topology, options, search.units(), finals);
  if (options.exchanges && finals.is_short()) offer_exchanges(topology, search, finals);
  if (options.exchanges) offer_short(topology, size_floats, options, finals);
  TreePlan out = finals.take();
  const auto has_shares = [](const SwitchChoice& choice) { return !choice.shares.empty(); };
  if (shared && std::any_of(out.switches.begin(), out.switches.end(), has_shares)) {
    plus::price_switches(*shared, topology, size_floats, options, search.units());
    out.switches = std::move(shared->switches);
  }
  out.plan.algorithm = "gentree+";
  return out;
}

}  // namespace gar
