// GenTree: the paper's Algorithms 1 (`generate_basic_plan`) and 2 (`generate_final_plan`).
//
// Problem: an AllReduce plan for a tree network, built switch by switch from the bottom. Each switch combines what its
// children have reduced, by the algorithm that GenModel finds cheapest there; a child's results may first be moved to a
// subset of its servers (data rearrangement), so that fewer senders converge on the links above.
//
// Notation: c children with n_i servers each; a switch's servers end with equal shares of the vector. Identical
// subtrees are planned once, so the work follows the distinct subtrees and the factorisations of their numbers of
// children.
//
// Deviation: Algorithm 1 deals out whole blocks greedily (N blocks, floor and remainder). Where children are alike we
// cut by digits, which gives the same shares with contiguous intervals, and where they differ by earliest interval end
// (see acps_target), which gives exactly equal shares.
//
// Deviation: `num_total_blocks` and the dropped argument of the recursive calls do not matter here, because blocks are
// not counted.
//
// Deviation: the convergence ratio is "the total bandwidth of A to its children divided by that of C_i". We read it as
// the sum of 1/beta over A's children by the sum of 1/beta over C_i's children, and the subset as that share of C_i's
// servers, rounded up. Nothing is rearranged when the ratio is 1 or more.
//
// Deviation: Algorithm 2 keeps the final placement on all servers after a rearrangement. Then the AllGather, which is
// the mirror image, would start from all servers, and the links above would see them all. We follow the text ("a subset
// of C_i's children performing the switch-local ReduceScatter on A"): the subset also ends with the results.
//
// Deviation: children with equally many servers whose plans differ (their links differ) do not hold equal intervals and
// are combined by Asymmetric CPS.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "gar/algorithms.hpp"
#include "gar/planner.hpp"
#include "planner/footprint.hpp"
#include "planner/fragment.hpp"
#include "planner/subtree.hpp"
#include "planner/switch_names.hpp"

namespace gar {

namespace {

struct Built {
  FragmentPtr fragment;
  Footprint footprint;
};

class GenTree {
 public:
  GenTree(const Topology& topology, double size_floats, const GenTreeOptions& options)
      : topology_(topology),
        names_(topology),
        size_(size_floats),
        options_(options),
        units_(units_for(topology)),
        counts_(instance_counts(topology)) {}

  TreePlan run(std::string name) {
    TreePlan out;
    for (NodeId id = 0; id < topology_.num_nodes(); ++id) {
      const std::int32_t shape = topology_.shape(id);
      if (const auto it = index_of_shape_.find(shape); it != index_of_shape_.end()) {
        if (it->second >= 0)
          choices_[static_cast<std::size_t>(it->second)].count += counts_[static_cast<std::size_t>(id)];
        continue;
      }
      index_of_shape_[shape] = -1;
      built_[shape] = build(id);
      if (!choices_.empty() && choices_.back().node == id) {
        index_of_shape_[shape] = static_cast<std::int32_t>(choices_.size()) - 1;
      }
    }
    out.plan = to_plan(built_.at(topology_.shape(topology_.root())).fragment, std::move(name), units_);
    out.switches = std::move(choices_);
    return out;
  }

 private:
  Built build(NodeId id) {
    const Node& node = topology_.node(id);
    if (node.is_server()) return {nullptr, server_footprint(node)};
    SwitchChoice choice;
    choice.node = id;
    choice.name = names_.of(id);
    choice.count = counts_[static_cast<std::size_t>(id)];

    FragmentRuns runs;
    std::vector<Footprint> prints;
    std::vector<double> latencies;  // the two slowest children
    for (const ChildRun& run : node.children) {
      Built child = built_.at(topology_.shape(run.node));
      if (options_.rearrange && child.fragment) rearrange(id, run.node, child, choice);
      runs.emplace_back(child.fragment, run.count);
      latencies.insert(latencies.end(), run.count > 1 ? 2 : 1, child.footprint.latency);
      prints.push_back(std::move(child.footprint));
    }
    std::sort(latencies.rbegin(), latencies.rend());
    Footprint below = joined(prints);
    if (topology_.num_children(id) == 1) {  // a switch that only passes on
      put_below(below, node);
      return {runs.front().first, std::move(below)};
    }
    const double pair_latency = node.alpha + latencies[0] + latencies[1];
    const bool alike =
        std::all_of(runs.begin(), runs.end(), [&](const auto& r) { return is_same(r.first, runs[0].first); });
    Built out = alike ? best_of_all(id, runs, below, pair_latency, choice) : asymmetric(id, runs, choice);
    put_below(out.footprint, node);
    choices_.push_back(std::move(choice));
    return out;
  }

  // "All state-of-the-art algorithms": CPS, HCPS in every factorisation, Ring, RHD.
  Built best_of_all(NodeId id, const FragmentRuns& runs, const Footprint& below, double pair_latency,
                    SwitchChoice& choice) {
    const std::int64_t c = topology_.num_children(id);
    struct Try {
      SwitchCandidate candidate;
      Footprint footprint;
    };
    Try best;
    double least = std::numeric_limits<double>::infinity();
    const auto offer = [&](const char* algorithm, const std::vector<std::int64_t>& factors, StageKind kind, bool fold) {
      Try t{{algorithm, factors, {}}, below};
      if (fold) t.candidate.terms += add_fold(t.footprint, pair_latency, options_.model).at(size_);
      t.candidate.terms += add_digits(t.footprint, {factors, kind}, pair_latency, options_.model).at(size_);
      const double seconds = t.candidate.terms.total();
      choice.candidates.push_back(t.candidate);
      if (seconds < least) {
        least = seconds;
        best = std::move(t);
      }
    };
    offer("cps", {c}, StageKind::kDirect, false);
    for (const auto& factors : ordered_factorisations(c, kMaxFactorisations)) {
      if (factors.size() > 1) offer("hcps", factors, StageKind::kDirect, false);
    }
    offer("ring", {c}, StageKind::kRing, false);
    std::vector<std::int64_t> twos;
    std::int64_t p = 1;
    for (; 2 * p <= c; p *= 2) twos.push_back(2);
    offer("rhd", twos, StageKind::kDirect, p != c);

    std::stable_sort(choice.candidates.begin(), choice.candidates.end(),
                     [](const auto& a, const auto& b) { return a.terms.total() < b.terms.total(); });
    choice.algorithm = best.candidate.algorithm;
    choice.factors = best.candidate.factors;
    choice.terms = best.candidate.terms;
    const std::string label = fmt::format("{} level", names_.of(id));
    const StageKind kind = choice.algorithm == "ring" ? StageKind::kRing : StageKind::kDirect;
    Built out;
    out.fragment = choice.algorithm == "rhd" ? rhd_fragment(runs, units_, label)
                                             : digits_fragment(runs, {choice.factors, kind}, label);
    out.footprint = choice.algorithm == "rhd" && p != c ? counted(out.fragment, id, false) : best.footprint;
    return out;
  }

  Built asymmetric(NodeId id, const FragmentRuns& runs, SwitchChoice& choice) {
    Built out;
    out.fragment = acps_fragment(runs, units_, fmt::format("{} level", topology_.node(id).name));
    out.footprint = counted(out.fragment, id, false);
    choice.algorithm = "acps";
    choice.factors = {topology_.num_children(id)};
    choice.terms = own_cost(out.fragment, id);
    choice.candidates = {{"acps", choice.factors, choice.terms}};
    return out;
  }

  Footprint counted(const FragmentPtr& fragment, NodeId id, bool with_top) const {
    return counted_footprint(placement_of(fragment, units_), topology_, id, with_top);
  }

  // Cost of the stages of the fragment's top sub-plan when it runs on the subtree of `id`.
  Terms own_cost(const FragmentPtr& fragment, NodeId id) const {
    return PricedPlan(to_plan(fragment, "", units_), subtree(topology_, id), options_.model).own_cost(size_);
  }

  void rearrange(NodeId parent, NodeId id, Built& child, SwitchChoice& choice) {
    Rearrangement r;
    const double above = bandwidth_below(topology_, parent);
    const double own = bandwidth_below(topology_, id);
    const double ratio = std::isinf(above) || own == 0 ? std::numeric_limits<double>::infinity() : above / own;
    const auto active = static_cast<double>(child.footprint.active);
    r.subset = static_cast<std::int64_t>(std::ceil(active * std::min(ratio, 1.0) - 1e-9));
    r.seconds_without = transfer_out(child.footprint, size_, options_.model);
    const std::string name = topology_.node(id).name;
    if (r.subset < 1 || r.subset >= child.footprint.active) {
      r.subset = child.footprint.active;
      r.reason = fmt::format("{}: not considered, the links above carry {} what its own carry", name,
                             std::isinf(ratio) ? "any multiple of" : fmt::format("{:.3g} times", ratio));
    } else {
      Built moved;
      moved.fragment = rearranged_fragment(child.fragment, r.subset, units_);
      moved.footprint = counted(moved.fragment, id, true);
      const Terms with = own_cost(moved.fragment, id);
      const Terms without = own_cost(child.fragment, id);
      r.seconds_with = with.total() - without.total() + transfer_out(moved.footprint, size_, options_.model);
      r.is_applied = r.seconds_with < r.seconds_without;
      r.reason = fmt::format(
          "{}: {} of {} servers {} its results; leaving it takes {:.3g} s from all, {:.3g} s by way of them", name,
          r.subset, child.footprint.active, r.is_applied ? "collect" : "could collect", r.seconds_without,
          r.seconds_with);
      if (r.is_applied) {
        child = std::move(moved);
        choice.is_rearranged = true;
      }
    }
    choice.rearrangements.push_back(std::move(r));
  }

  static constexpr std::size_t kMaxFactorisations = 20'000;
  const Topology& topology_;
  SwitchNames names_;
  double size_;
  GenTreeOptions options_;
  std::int64_t units_;
  std::vector<std::int64_t> counts_;
  std::map<std::int32_t, Built> built_;
  std::map<std::int32_t, std::int32_t> index_of_shape_;
  std::vector<SwitchChoice> choices_;
};

}  // namespace

TreePlan gentree(const Topology& topology, double size_floats, const GenTreeOptions& options) {
  GenTreeOptions counted{.rearrange = options.rearrange, .model = metered(options.model, topology)};
  counted.model.collective = Collective::kAllReduce;
  return GenTree(topology, size_floats, counted).run(options.rearrange ? "gentree" : "gentree-norearrange");
}

}  // namespace gar
