// GenModel for any plan on any tree.
//
// Problem: per stage, the longest path, the busiest link direction and the slowest server; over stages, the critical
// path through the tree of sub-plans (the finish times of the paper's Algorithm 2).
//
// Idea: the servers below any link are a range of ranks, so all that a stage must tell is what crosses the borders of a
// range. For a digit stage {stride s, radix r} that is a count: inside a block of s * r active ranks, the groups that a
// range [x, y) cuts fall into at most three runs of equally many members k inside, and each cut group of a direct
// exchange sends k (r - k) pieces from k senders out and as many from r - k senders in (an exchange of everything does
// so with larger pieces, and has no mirror image); a ring sends one piece each way. So a digit stage costs O(1) per
// link, whatever its radix: flat CPS on a million servers is priced without its 10^12 messages. Stages with explicit
// targets, and holdings of unequal size, are counted message by message; targets below one switch in sums per rank
// (place_steps.cpp).
//
// Sub-plans at places that look the same (same sub-plan, same shape of the switch around it, same offset) are priced
// once. Sibling sub-plans that would share a link (groups that straddle a switch) advance in lockstep, step by step, so
// that their loads add up. Several digits in one sub-plan mean the same as sub-plans of one digit each inside each
// other (nested.cpp), and are priced as these.
//
// Complexity: O(instances) per distinct digit stage, O(messages * height) for the rest.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "gar/errors.hpp"
#include "gar/model.hpp"
#include "model/digit_loads.hpp"
#include "model/link_loads.hpp"
#include "model/nested.hpp"
#include "model/place_steps.hpp"

namespace gar {

namespace {

constexpr double kMessageWeight = 4;  // a message that is priced by itself, against a link of a digit stage

/// The lowest switch (or server) that contains a range of ranks.
struct NodeSpan {
  NodeId node = 0;
  std::int64_t first_rank = 0;  // global rank of its first server
  int depth = 0;
};

NodeSpan enclosing_span(const Topology& topology, std::int64_t first, std::int64_t last) {
  NodeSpan p{topology.root(), 0, 0};
  for (;;) {
    const Node& n = topology.node(p.node);
    bool descended = false;
    std::int64_t at = p.first_rank;
    for (const ChildRun& run : n.children) {
      const std::int64_t size = topology.num_servers(run.node);
      if (first < at + run.count * size) {
        const std::int64_t child_first = at + (first - at) / size * size;
        if (last <= child_first + size) {
          p = {run.node, child_first, p.depth + 1};
          descended = true;
        }
        break;
      }
      at += run.count * size;
    }
    if (!descended) return p;
  }
}

}  // namespace

/// Builds the placed sub-plans of a PricedPlan.
class Pricer {
 public:
  Pricer(const Nested& nested, const Topology& topology, const ModelOptions& options, PricedPlan& out)
      : plan_(nested.plan),
        is_inner_(nested.is_inner),
        index_(nested.plan),
        topology_(topology),
        options_(options),
        out_(out) {}

  void run() {
    if (plan_.num_ranks != topology_.num_servers()) {
      throw PlanError(fmt::format("the plan has {} ranks, the topology '{}' has {} servers", plan_.num_ranks,
                                  topology_.name(), topology_.num_servers()));
    }
    const Collective what = plan_.collective == Collective::kAllReduce ? options_.collective : plan_.collective;
    out_.has_scatter_ = what != Collective::kAllGather || plan_.is_explicit();
    out_.has_gather_ = what != Collective::kReduceScatter && !plan_.is_explicit();
    if (plan_.num_ranks == 1) return;
    if (plan_.is_explicit()) {
      Draft draft = make_draft({topology_.root(), 0, 0}, 0, plan_.num_ranks);
      draft.placed.is_first = true;
      lockstep(draft, {0, index_.num_steps()});
      out_.placed_.push_back(std::move(draft.placed));
      if (options_.overlap) find_busiest(draft.busy);
    } else {
      (void)place_of(plan_.root, 0);
      if (options_.overlap) {
        const PricingTree& pt = tree_of({topology_.root(), 0, 0});
        Busy all;
        all.resize(pt.tree.size(), static_cast<std::size_t>(plan_.num_ranks));
        add_busy(plan_.root, 0, pt, all);
        find_busiest(all);
      }
    }
    find_first_sending();
  }

 private:
  /// A sub-plan in one place while its stages are priced.
  struct Draft {
    NodeSpan span;  // around its ranks [base, base + num_ranks)
    std::int64_t base = 0;
    std::int64_t num_ranks = 0;
    PricedPlan::PlacedSubPlan placed;
    Busy busy;  // of the instances and ranks below the span
    [[nodiscard]] std::int64_t offset() const { return base - span.first_rank; }
  };

  Draft make_draft(const NodeSpan& span, std::int64_t base, std::int64_t num_ranks) {
    Draft out;
    out.span = span;
    out.base = base;
    out.num_ranks = num_ranks;
    if (options_.overlap) {
      const ExpandedTree& tree = tree_of(out.span).tree;
      out.busy.resize(tree.size(), static_cast<std::size_t>(tree.num_ranks()));
    }
    return out;
  }

  const PricingTree& tree_of(const NodeSpan& span) {
    const std::int32_t shape = topology_.shape(span.node);
    const auto it = trees_.find(shape);
    if (it != trees_.end()) return it->second;
    options_.work->spend(static_cast<double>(topology_.num_servers(span.node) + topology_.num_switches(span.node)));
    return trees_.emplace(shape, make_pricing_tree(topology_, span.node)).first->second;
  }

  std::int32_t place_of(SubPlanId id, std::int64_t base) {
    const std::int64_t n = index_.num_ranks(id);
    const NodeSpan span = enclosing_span(topology_, base, base + n);
    const auto key = key_of(id, span, base);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
    Draft draft = make_draft(span, base, n);
    PricedPlan::PlacedSubPlan& placed = draft.placed;
    const SubPlan& sp = plan_.subplans[static_cast<std::size_t>(id)];
    const bool shares_links = children_share_links(id, span, base);
    placed.is_inner = is_inner_[static_cast<std::size_t>(id)];
    placed.is_first = shares_links || std::any_of(sp.children.begin(), sp.children.end(),
                                                  [](const SubPlanRun& run) { return run.subplan == kLeaf; });
    if (shares_links) {
      if (!digits_in_lockstep(draft, id)) lockstep(draft, {0, index_.first_step(id)});
    } else {
      std::int64_t first = base;
      for (const SubPlanRun& run : sp.children) {
        for (std::int64_t c = 0; c < run.count && run.subplan != kLeaf; ++c) {
          const std::int32_t child = place_of(run.subplan, first + c * index_.num_ranks(run.subplan));
          if (std::find(placed.children.begin(), placed.children.end(), child) == placed.children.end()) {
            placed.children.push_back(child);
          }
        }
        first += run.count * index_.num_ranks(run.subplan);
      }
    }
    std::int64_t step = index_.first_step(id);
    std::int64_t share = index_.num_active_before(id);  // active ranks that hold equal shares of one vector
    for (const SubPlanRun& run : sp.children) share = std::min(share, index_.num_active_after(run.subplan));
    for (const Stage& st : sp.stages) {
      const std::int64_t steps = steps_of(st);
      if (is_digit(st) && has_equal_shares(sp)) {
        if (st.kind != StageKind::kExchange) share *= st.radix;
        digit_stage(draft, id, st, 1.0 / static_cast<double>(share), stage_label(sp, st));
      } else {
        const std::size_t before = placed.scatter.size();
        const std::size_t gather_before = placed.gather.size();
        if (!place_on_switch(draft, id)) lockstep(draft, {step, step + steps});
        for (std::size_t i = before; i < placed.scatter.size(); ++i) placed.scatter[i].label = stage_label(sp, st);
        const std::size_t added = placed.gather.size() - gather_before;  // the mirror image comes first
        for (std::size_t i = 0; i < added; ++i) placed.gather[i].label = stage_label(sp, st);
      }
      step += steps;
    }
    out_.placed_.push_back(std::move(placed));
    if (options_.overlap) {
      draft.busy.trim();
      busy_.push_back({std::move(draft.busy), draft.offset(), shares_links});
    }
    return known_[key] = static_cast<std::int32_t>(out_.placed_.size()) - 1;
  }

  // Siblings that share links, where everything below is the same digits for all ranks: each of these is one digit
  // stage of all siblings. False where it is not so.
  bool digits_in_lockstep(Draft& draft, SubPlanId id) {
    std::vector<SubPlanId> way;  // downwards
    for (SubPlanId at = id;;) {
      const std::vector<SubPlanRun>& children = plan_.subplans[static_cast<std::size_t>(at)].children;
      const SubPlanId child = children.front().subplan;
      if (std::any_of(children.begin(), children.end(), [&](const SubPlanRun& r) { return r.subplan != child; })) {
        return false;
      }
      if (child == kLeaf) break;
      const std::vector<Stage>& stages = plan_.subplans[static_cast<std::size_t>(child)].stages;
      if (!std::all_of(stages.begin(), stages.end(), is_digit)) return false;
      way.push_back(child);
      at = child;
    }
    std::int64_t share = 1;
    for (auto it = way.rbegin(); it != way.rend(); ++it) {
      const SubPlan& below = plan_.subplans[static_cast<std::size_t>(*it)];
      for (const Stage& st : below.stages) {
        share *= st.radix;
        digit_stage(draft, id, st, 1.0 / static_cast<double>(share), stage_label(below, st));
      }
    }
    return true;
  }

  // Places that look the same: below a switch with equal children it does not matter with which child a range begins.
  using Key = std::tuple<SubPlanId, std::int32_t, std::int64_t>;
  Key key_of(SubPlanId id, const NodeSpan& span, std::int64_t base) const {
    const Node& node = topology_.node(span.node);
    const std::int64_t offset = base - span.first_rank;
    const bool alike = node.children.size() == 1;
    return {id, topology_.shape(span.node), alike ? offset % topology_.num_servers(node.children[0].node) : offset};
  }

  // Adds what a sub-plan in one place, and everything below it, keeps busy.
  void add_busy(SubPlanId id, std::int64_t base, const PricingTree& whole, Busy& all) {
    const NodeSpan span = enclosing_span(topology_, base, base + index_.num_ranks(id));
    const PlacedBusy& known = busy_[static_cast<std::size_t>(known_.at(key_of(id, span, base)))];
    std::int32_t instance = whole.tree.leaf[static_cast<std::size_t>(span.first_rank)];
    while (whole.tree.depth[static_cast<std::size_t>(instance)] > span.depth) {
      instance = whole.tree.parent[static_cast<std::size_t>(instance)];
    }
    // It was priced where it was met first, perhaps some equal children further left.
    const std::int64_t ranks = base - span.first_rank - known.offset;
    const std::int64_t child_ranks = topology_.num_servers(topology_.node(span.node).children[0].node);
    const std::int64_t child_instances = tree_of(span).tree.end[1] - 1;
    const std::int64_t instances = ranks / child_ranks * child_instances;
    all.add(known.busy, static_cast<std::size_t>(instance + instances),
            static_cast<std::size_t>(span.first_rank + ranks));
    const bool shares_links = known.shares_links;
    if (shares_links) return;
    std::int64_t first = base;
    for (const SubPlanRun& run : plan_.subplans[static_cast<std::size_t>(id)].children) {
      const std::int64_t n = index_.num_ranks(run.subplan);
      for (std::int64_t c = 0; c < run.count && run.subplan != kLeaf; ++c)
        add_busy(run.subplan, first + c * n, whole, all);
      first += run.count * n;
    }
  }

  void find_first_sending() {
    double& most = out_.first_sending_;
    const auto offer = [&](const std::vector<StageCost>& stages) {
      if (!stages.empty()) most = std::max(most, stages.front().sending);
    };
    if (!out_.has_scatter_) offer(out_.placed_.back().gather);
    for (const PricedPlan::PlacedSubPlan& placed : out_.placed_) {
      if (out_.has_scatter_ && placed.is_first) offer(placed.scatter);
    }
  }

  void find_busiest(const Busy& all) {
    double most = 0;
    const PricingTree& pt = tree_of({topology_.root(), 0, 0});
    const auto name_of = [&](std::size_t where) {
      return topology_.instance_name(pt.tree.first_rank[where], pt.tree.depth[where]);
    };
    const auto offer = [&](const Terms& t, std::size_t where, int kind) {
      if (t.total() <= most) return;
      most = t.total();
      out_.busiest_.slope = t;
      const char* what[] = {"uplink of ", "downlink of ", "calculation of "};
      out_.busiest_.name = what[kind] + name_of(where);
    };
    for (const LinkCost& c : all.up) out_.busy_.up.push_back(c.beta + c.epsilon);
    for (const LinkCost& c : all.down) out_.busy_.down.push_back(c.beta + c.epsilon);
    for (const ServerParams& c : all.calculation) {
      out_.busy_.calculation.push_back(c.gamma + c.delta);
      out_.busy_.handling.push_back(c.mu);
    }
    for (std::size_t i = 1; i < all.up.size(); ++i) {
      offer({.beta = all.up[i].beta, .epsilon = all.up[i].epsilon}, i, 0);
      offer({.beta = all.down[i].beta, .epsilon = all.down[i].epsilon}, i, 1);
    }
    for (std::size_t r = 0; r < all.calculation.size(); ++r) {
      offer({.gamma = all.calculation[r].gamma, .delta = all.calculation[r].delta},
            static_cast<std::size_t>(pt.tree.leaf[r]), 2);
    }
    // Servers that no other one beats in messages and in calculation: the one with the most messages first.
    std::vector<std::size_t> order;
    for (std::size_t r = 0; r < all.calculation.size(); ++r) {
      if (all.calculation[r].mu > 0) order.push_back(r);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const ServerParams& x = all.calculation[a];
      const ServerParams& y = all.calculation[b];
      return x.mu != y.mu ? x.mu > y.mu : x.gamma + x.delta > y.gamma + y.delta;
    });
    double calculation = -1;
    for (const std::size_t r : order) {
      const ServerParams& c = all.calculation[r];
      if (c.gamma + c.delta <= calculation) continue;
      calculation = c.gamma + c.delta;
      out_.handlers_.push_back(
          {.name = "messages and calculation of " + name_of(static_cast<std::size_t>(pt.tree.leaf[r])),
           .slope = {.gamma = c.gamma, .delta = c.delta},
           .fixed = {.mu = c.mu}});
    }
  }

  // Do all active ranks of the children hold the same amount? Rounding by a unit does not count.
  bool has_equal_shares(const SubPlan& sp) {
    const SubPlanId child = sp.children.front().subplan;  // digit stages: all children hold the same
    if (child == kLeaf) return true;
    const auto [it, is_new] = equal_.try_emplace(child, true);
    if (!is_new) return it->second;
    const SubPlan& below = plan_.subplans[static_cast<std::size_t>(child)];
    const bool digits_only = std::all_of(below.stages.begin(), below.stages.end(), is_digit);
    if (digits_only) {
      const bool equal = has_equal_shares(below);
      return equal_[child] = equal;
    }
    std::map<std::int32_t, std::int64_t> held;
    for (const Piece& p : index_.placement_after(child)) held[p.owner] += p.end - p.begin;
    std::int64_t low = plan_.num_units;
    std::int64_t high = 0;
    for (const auto& [owner, units] : held) {
      low = std::min(low, units);
      high = std::max(high, units);
    }
    return equal_[child] = high - low <= 1;
  }

  // A link is shared when the servers below it begin inside one child's range and end inside another's.
  bool children_share_links(SubPlanId id, const NodeSpan& span, std::int64_t base) {
    const SubPlan& sp = plan_.subplans[static_cast<std::size_t>(id)];
    if (std::all_of(sp.children.begin(), sp.children.end(), [](const SubPlanRun& r) { return r.subplan == kLeaf; })) {
      return false;
    }
    std::vector<std::int64_t> starts;
    std::int64_t first = base - span.first_rank;
    for (const SubPlanRun& run : sp.children) {
      for (std::int64_t c = 0; c < run.count; ++c) {
        starts.push_back(first);
        first += index_.num_ranks(run.subplan);
      }
    }
    const std::int64_t begin = starts.front();
    const std::int64_t end = first;
    starts.push_back(end);
    const PricingTree& pt = tree_of(span);
    bool shared = false;
    for_links(pt, begin, end - begin, [&](std::int32_t i, std::int64_t, std::int64_t) {
      const std::int64_t lo = pt.tree.first_rank[static_cast<std::size_t>(i)];
      const std::int64_t hi = pt.tree.last_rank[static_cast<std::size_t>(i)];
      if (shared || hi - lo < 2) return;
      const auto child_of = [&](std::int64_t r) { return std::upper_bound(starts.begin(), starts.end(), r) - 1; };
      const auto left = child_of(std::max(lo, begin));
      const auto right = child_of(std::min(hi, end) - 1);
      shared = left != right && *left < lo && hi < *(right + 1);
    });
    return shared;
  }

  void name_link(const NodeSpan& span, const PricingTree& pt, const Bottleneck& b, StageCost& cost) const {
    if (b.instance < 0) return;
    const auto i = static_cast<std::size_t>(b.instance);
    cost.link =
        fmt::format("{} of {}", b.is_down ? "downlink" : "uplink",
                    topology_.instance_name(span.first_rank + pt.tree.first_rank[i], span.depth + pt.tree.depth[i]));
    cost.link_level = topology_.height(pt.tree.node[i]);
    cost.senders = b.senders;
    cost.volume = b.volume;
    cost.incast_threshold = topology_.node(pt.tree.node[i]).uplink.incast_threshold;
  }

  void add_calculation(const ServerParams& server, double adds, double accesses, Terms& slowest) const {
    const Terms t{.gamma = adds * server.gamma,
                  .delta = has_incast_and_memory(options_.kind) ? accesses * server.delta : 0};
    if (t.total() > slowest.total()) slowest = t;
  }

  // Active ranks among the first r ones, for every r; empty when all are active.
  const std::vector<std::int32_t>& active_below(SubPlanId id) {
    const auto [it, is_new] = active_below_.try_emplace(id);
    const std::int64_t n = index_.num_ranks(id);
    if (is_new && index_.num_active_before(id) != n) {
      it->second.assign(static_cast<std::size_t>(n) + 1, 0);
      for (std::int64_t k = 0; k < index_.num_active_before(id); ++k) {
        ++it->second[static_cast<std::size_t>(index_.rank_of_active(id, k)) + 1];
      }
      for (std::size_t r = 1; r < it->second.size(); ++r) it->second[r] += it->second[r - 1];
    }
    return it->second;
  }

  void add_busy_server(const ServerParams& server, double adds, double accesses, ServerParams& busy) const {
    busy.gamma += adds * server.gamma;
    if (has_incast_and_memory(options_.kind)) busy.delta += accesses * server.delta;
  }

  [[nodiscard]] double mu_of(const ServerParams& server) const { return has_handling(options_.kind) ? server.mu : 0; }

  // Prices a digit stage in which every message carries `piece` of the vector.
  void digit_stage(Draft& draft, SubPlanId id, const Stage& st, double piece, std::string label) {
    if (st.radix == 1) return;
    options_.work->spend(static_cast<double>(draft.num_ranks));
    const PricingTree& pt = tree_of(draft.span);
    const std::int64_t offset = draft.offset();
    Busy& busy = draft.busy;
    const bool is_ring = st.kind == StageKind::kRing;
    StageCost cost;
    cost.label = std::move(label);
    cost.num_steps = steps_of(st);
    cost.fan_in = is_ring ? 2 : st.radix;
    cost.is_exchange = st.kind == StageKind::kExchange;
    const auto steps = static_cast<double>(cost.num_steps);
    const bool has_mirror = out_.has_gather_ && !cost.is_exchange;
    const double halves = (out_.has_scatter_ ? 1 : 0) + (has_mirror ? 1 : 0);

    const std::vector<std::int32_t>& active = active_below(id);
    Bottleneck worst;
    for_links(pt, offset, draft.num_ranks, [&](std::int32_t i, std::int64_t lo, std::int64_t hi) {
      const std::int64_t a = active.empty() ? lo : active[static_cast<std::size_t>(lo)];
      const std::int64_t b = active.empty() ? hi : active[static_cast<std::size_t>(hi)];
      const Crossing c = crossing(st, a, b);
      if (c.pieces == 0) return;
      const LinkParams& link = topology_.node(pt.tree.node[static_cast<std::size_t>(i)]).uplink;
      worst.offer(link, i, false, static_cast<double>(c.pieces) * piece, c.senders_out, options_);
      worst.offer(link, i, true, static_cast<double>(c.pieces) * piece, c.senders_in, options_);
      if (busy.is_wanted()) {
        const double load = steps * halves * static_cast<double>(c.pieces) * piece;
        const LinkCost up = cost_of_load(link, load, c.senders_out, options_);
        const LinkCost down = cost_of_load(link, load, c.senders_in, options_);
        const auto k = static_cast<std::size_t>(i);
        busy.up[k] = {busy.up[k].beta + up.beta, busy.up[k].epsilon + up.epsilon};
        busy.down[k] = {busy.down[k].beta + down.beta, busy.down[k].epsilon + down.epsilon};
      }
    });
    name_link(draft.span, pt, worst, cost);
    out_.max_excess_ = std::max(out_.max_excess_, worst.max_excess);
    cost.fixed.alpha = steps * longest_path(pt, id, offset, st);
    cost.slope.beta = steps * worst.beta;
    cost.slope.epsilon = steps * worst.epsilon;
    const MessageCount messages = messages_of(st);
    Handling handling;
    if (pt.has_equal_servers) {
      handling.offer(messages, mu_of(server_at(pt, 0)));
    } else {
      for (std::int64_t k = 0; k < index_.num_active_before(id); ++k) {
        handling.offer(messages, mu_of(server_at(pt, offset + index_.rank_of_active(id, k))));
      }
    }
    cost.fixed.mu = steps * handling.seconds();
    cost.sending = handling.sending;
    StageCost gather = cost;  // the mirror image of a digit stage loads every link and server in the same way
    gather.is_gather = true;
    gather.fan_in = 1;

    const double adds = steps * static_cast<double>(cost.fan_in - 1) * piece;
    const double accesses = steps * static_cast<double>(cost.fan_in + 1) * piece;
    Terms slowest;
    if (pt.has_equal_servers) {
      add_calculation(server_at(pt, 0), adds, accesses, slowest);
    } else {
      for (std::int64_t k = 0; k < index_.num_active_before(id); ++k) {
        add_calculation(server_at(pt, offset + index_.rank_of_active(id, k)), adds, accesses, slowest);
      }
    }
    cost.slope += slowest;
    if (busy.is_wanted()) {
      const double handled = steps * halves * static_cast<double>(messages.sent + messages.received);
      for (std::int64_t k = 0; k < index_.num_active_before(id); ++k) {
        const std::int64_t r = offset + index_.rank_of_active(id, k);
        ServerParams& at_rank = busy.calculation[static_cast<std::size_t>(r)];
        if (out_.has_scatter_) add_busy_server(server_at(pt, r), adds, accesses, at_rank);
        at_rank.mu += handled * mu_of(server_at(pt, r));
      }
    }
    draft.placed.scatter.push_back(std::move(cost));
    if (st.kind != StageKind::kExchange) draft.placed.gather.insert(draft.placed.gather.begin(), std::move(gather));
  }

  const ServerParams& server_at(const PricingTree& pt, std::int64_t rank) const {
    return topology_.node(pt.tree.node[static_cast<std::size_t>(pt.tree.leaf[static_cast<std::size_t>(rank)])]).server;
  }

  // Calls f(instance, lo, hi) for every link below the range's span with a part of the range below it, in ranks
  // counted from the range's first; links with all of it below carry nothing.
  template <class F>
  static void for_links(const PricingTree& pt, std::int64_t offset, std::int64_t n, F f) {
    const ExpandedTree& t = pt.tree;
    const auto visit = [&](std::int32_t i) {
      const std::int64_t lo = std::max<std::int64_t>(t.first_rank[static_cast<std::size_t>(i)] - offset, 0);
      const std::int64_t hi = std::min<std::int64_t>(t.last_rank[static_cast<std::size_t>(i)] - offset, n);
      if (hi - lo < n) f(i, lo, hi);
    };
    const std::int32_t first = t.leaf[static_cast<std::size_t>(offset)];
    for (std::int32_t i = t.parent[static_cast<std::size_t>(first)]; i > 0; i = t.parent[static_cast<std::size_t>(i)])
      visit(i);
    for (auto i = static_cast<std::size_t>(first); i < t.size() && t.first_rank[i] < offset + n; ++i) {
      visit(static_cast<std::int32_t>(i));
    }
  }

  double longest_path(const PricingTree& pt, SubPlanId id, std::int64_t offset, const Stage& st) {
    const std::int64_t active = index_.num_active_before(id);
    const std::int64_t block = st.stride * st.radix;
    const auto rank = [&](std::int64_t a) { return static_cast<std::int32_t>(offset + index_.rank_of_active(id, a)); };
    double longest = 0;
    for (std::int64_t b = 0; b < active; b += block) {
      for (std::int64_t o = b; o < b + st.stride; ++o) {
        if (pt.is_uniform) {  // the first and the last member of a group meet highest
          longest = std::max(longest, path_latency(pt, topology_, rank(o), rank(o + block - st.stride)));
        } else if (st.kind == StageKind::kRing) {
          for (std::int64_t d = 0; d < st.radix; ++d) {
            const std::int64_t next = o + (d + 1) % st.radix * st.stride;
            longest = std::max(longest, path_latency(pt, topology_, rank(o + d * st.stride), rank(next)));
          }
        } else {
          longest =
              std::max(longest, paths_.longest(
                                    pt, topology_, [&](std::int64_t d) { return rank(o + d * st.stride); }, st.radix));
        }
      }
    }
    return longest;
  }

  /// What ranks do in a step. Its mirror image has the same messages: the sender of one receives it there.
  struct StepWork {
    Terms slowest;
    Handling handling;
    std::int64_t fan_in = 0;
  };
  [[nodiscard]] double num_halves(std::int64_t step) const {
    const bool has_mirror = out_.has_gather_ && step < index_.num_mirrored_steps();
    return (out_.has_scatter_ ? 1 : 0) + (has_mirror ? 1 : 0);
  }
  void add_work(const ServerParams& server, const Calculation& c, const MessageCount& messages, StepWork& work) const {
    work.fan_in = std::max(work.fan_in, c.fan_in);
    add_calculation(server, c.adds, c.accesses, work.slowest);
    work.handling.offer(messages, mu_of(server));
  }
  void add_busy_work(const ServerParams& server, const Calculation& c, const MessageCount& messages, double halves,
                     ServerParams& busy) const {
    if (out_.has_scatter_) add_busy_server(server, c.adds, c.accesses, busy);
    busy.mu += halves * static_cast<double>(messages.sent + messages.received) * mu_of(server);
  }
  StageCost cost_of_step(const NodeSpan& span, const Bottleneck& worst, double latency, const StepWork& work,
                         bool is_gather);

  // Prices the steps [steps.begin, steps.end) of the draft's ranks, message by message and step by step.
  void lockstep(Draft& draft, Interval steps);

  // Prices the only stage of a sub-plan if that gives pieces to owners, and if all of its ranks are servers of one
  // switch. False where it is not so.
  bool place_on_switch(Draft& draft, SubPlanId id);

  const Plan& plan_;
  const std::vector<bool>& is_inner_;  // by sub-plan
  PlanIndex index_;
  const Topology& topology_;
  ModelOptions options_;
  PricedPlan& out_;
  std::map<std::int32_t, PricingTree> trees_;
  std::map<Key, std::int32_t> known_;
  std::map<SubPlanId, bool> equal_;
  std::map<SubPlanId, std::vector<std::int32_t>> active_below_;
  GroupPaths paths_;
  struct PlacedBusy {
    Busy busy;
    std::int64_t offset = 0;    // of its first rank from its span's
    bool shares_links = false;  // the children's loads are in it, too
  };
  std::vector<PlacedBusy> busy_;  // per placed sub-plan
};

namespace {

/// Swaps senders and receivers and sorts by sender again, stably.
void turn_round(std::vector<Transfer>& transfers, std::size_t num_ranks, std::vector<Transfer>& scratch) {
  std::vector<std::size_t> place(num_ranks + 1, 0);
  for (const Transfer& t : transfers) ++place[static_cast<std::size_t>(t.to) + 1];
  for (std::size_t r = 0; r < num_ranks; ++r) place[r + 1] += place[r];
  scratch.resize(transfers.size());
  for (const Transfer& t : transfers) scratch[place[static_cast<std::size_t>(t.to)]++] = {t.to, t.from, t.volume};
  transfers.swap(scratch);
}

}  // namespace

StageCost Pricer::cost_of_step(const NodeSpan& span, const Bottleneck& worst, double latency, const StepWork& work,
                               bool is_gather) {
  out_.max_excess_ = std::max(out_.max_excess_, worst.max_excess);
  StageCost cost;
  cost.label = "step by step";
  cost.is_gather = is_gather;
  name_link(span, tree_of(span), worst, cost);
  cost.fixed.alpha = latency;
  cost.fixed.mu = work.handling.seconds();
  cost.sending = is_gather ? work.handling.receiving : work.handling.sending;
  cost.slope.beta = worst.beta;
  cost.slope.epsilon = worst.epsilon;
  if (!is_gather) cost.slope += work.slowest;
  cost.fan_in = is_gather ? 1 : work.fan_in;
  return cost;
}

void Pricer::lockstep(Draft& draft, Interval steps) {
  const NodeSpan& span = draft.span;
  const PricingTree& pt = tree_of(span);
  PricedPlan::PlacedSubPlan& placed = draft.placed;
  Busy& busy = draft.busy;
  struct StepData {
    std::vector<Transfer> transfers;  // sorted by sender
    StepWork work;
  };
  std::map<std::int64_t, StepData> by_step;
  RankProgram program;
  for (std::int64_t r = draft.base; r < draft.base + draft.num_ranks; ++r) {
    index_.scatter_program(r, steps, program);
    const std::int64_t local = r - span.first_rank;
    for (const Step& step : program.steps) {
      options_.work->spend(kMessageWeight * static_cast<double>(step.sends.size() + step.recvs.size()));
      if (step.number < steps.begin || step.number >= steps.end) continue;
      StepData& data = by_step[step.number];
      for (const Message& m : step.sends) {
        const double volume = static_cast<double>(m.end - m.begin) / static_cast<double>(plan_.num_units);
        data.transfers.push_back(
            {static_cast<std::int32_t>(local), static_cast<std::int32_t>(m.peer - span.first_rank), volume});
      }
      const Calculation c = calculation_of(step.recvs, plan_.num_units);
      const MessageCount messages = messages_of(step);
      add_work(server_at(pt, local), c, messages, data.work);
      if (!busy.is_wanted()) continue;
      add_busy_work(server_at(pt, local), c, messages, num_halves(step.number),
                    busy.calculation[static_cast<std::size_t>(local)]);
    }
  }
  LoadCounter counter(topology_, pt);
  const auto price = [&](const StepData& data, bool is_gather) {
    Busy none;
    const bool counts = is_gather ? out_.has_gather_ : out_.has_scatter_;
    double latency = 0;
    const Bottleneck worst = counter.count(data.transfers, options_, latency, counts ? busy : none);
    return cost_of_step(span, worst, latency, data.work, is_gather);
  };
  std::vector<StageCost> gather;
  std::vector<Transfer> turned;
  for (auto& [number, data] : by_step) {
    placed.scatter.push_back(price(data, false));
    if (!out_.has_gather_) continue;
    placed.scatter.back().is_exchange = number >= index_.num_mirrored_steps();
    if (placed.scatter.back().is_exchange) continue;
    turn_round(data.transfers, pt.tree.leaf.size(), turned);
    gather.push_back(price(data, true));
  }
  placed.gather.insert(placed.gather.begin(), std::make_move_iterator(gather.rbegin()),
                       std::make_move_iterator(gather.rend()));
}

// On one switch a rank's link carries what the rank sends and receives itself, so its sums say all.
bool Pricer::place_on_switch(Draft& draft, SubPlanId id) {
  const PricingTree& pt = tree_of(draft.span);
  const SubPlan& subplan = plan_.subplans[static_cast<std::size_t>(id)];
  const bool is_one_switch = pt.is_uniform && pt.tree.size() == pt.tree.leaf.size() + 1;
  // Where blocks are put into the order of ranks, messages are cut further.
  const bool has_order = plan_.collective != Collective::kAllReduce;
  if (!is_one_switch || has_order || subplan.stages.size() != 1 || is_digit(subplan.stages[0])) return false;
  PlaceSteps steps(plan_, index_, id);
  const double halves = num_halves(index_.first_step(id));
  Busy& busy = draft.busy;
  StepWork work;
  Bottleneck scatter;
  Bottleneck gather;
  for (std::int64_t r = 0; r < draft.num_ranks; ++r) {
    const RankStep step = steps.of(r);
    if (step.num_parts == 0) continue;
    options_.work->spend(kMessageWeight * static_cast<double>(step.num_parts));
    const auto local = static_cast<std::size_t>(draft.offset() + r);
    const std::int32_t instance = pt.tree.leaf[local];
    const Node& server = topology_.node(pt.tree.node[static_cast<std::size_t>(instance)]);
    const LinkParams& link = server.uplink;
    const auto [sent, received] = step.messages;
    add_work(server.server, step.calculation, step.messages, work);
    // All that leaves has one sender; on the way back whoever has got something sends it.
    const std::int64_t sends = sent > 0 ? 1 : 0;
    const std::int64_t returns = received > 0 ? 1 : 0;
    scatter.offer(link, instance, false, step.sent, sends, options_);
    scatter.offer(link, instance, true, step.received, received, options_);
    gather.offer(link, instance, false, step.received, returns, options_);
    gather.offer(link, instance, true, step.sent, sent, options_);
    if (!busy.is_wanted()) continue;
    add_busy_work(server.server, step.calculation, step.messages, halves, busy.calculation[local]);
    const auto add = [&](double load, std::int64_t senders, LinkCost& at) {
      const LinkCost cost = cost_of_load(link, load, senders, options_);
      at = {at.beta + cost.beta, at.epsilon + cost.epsilon};
    };
    LinkCost& up = busy.up[static_cast<std::size_t>(instance)];
    LinkCost& down = busy.down[static_cast<std::size_t>(instance)];
    if (out_.has_scatter_) add(step.sent, sends, up);
    if (out_.has_scatter_) add(step.received, received, down);
    if (out_.has_gather_) add(step.received, returns, up);
    if (out_.has_gather_) add(step.sent, sent, down);
  }
  if (scatter.instance < 0) return true;  // nothing moves
  const auto instance = static_cast<std::size_t>(scatter.instance);
  const double way = pt.latency[instance];
  const double latency = std::max(0.0, way + way - 2 * pt.latency[0] + topology_.node(pt.tree.node[0]).alpha);
  draft.placed.scatter.push_back(cost_of_step(draft.span, scatter, latency, work, false));
  if (out_.has_gather_) {
    draft.placed.gather.insert(draft.placed.gather.begin(), cost_of_step(draft.span, gather, latency, work, true));
  }
  return true;
}

ModelOptions metered(ModelOptions options, const Topology& topology) {
  if (!options.work) {
    check_work(kNodeLimit, static_cast<double>(topology.num_servers() + topology.num_switches()),
               fmt::format("the network '{}'", topology.name()));
    options.work = std::make_shared<WorkMeter>(kPricingLimit, fmt::format("the network '{}'", topology.name()));
  }
  return options;
}

/// What it costs to take a plan apart.
double weight_of(const Plan& plan) {
  double pieces = 0;
  for (const SubPlan& subplan : plan.subplans) {
    for (const Stage& stage : subplan.stages) pieces += static_cast<double>(stage.target.size());
  }
  return 8 * kMessageWeight * pieces;
}

PricedPlan::PricedPlan(const Plan& plan, const Topology& topology, const ModelOptions& options) {
  ModelOptions o = metered(options, topology);
  o.work->spend(weight_of(plan));
  o.overlap = o.overlap || plan.num_chunks > 1;
  num_chunks_ = plan.num_chunks;
  const Nested same = nested(plan);
  Pricer(same, topology, o, *this).run();
}

}  // namespace gar
