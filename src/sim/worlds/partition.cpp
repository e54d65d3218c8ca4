// How classes are found.
//
// Digits. While a sub-plan has equal children and only digit stages, a rank below it is a number whose digits the
// stages permute: a direct exchange of radix r treats all r values of its digit alike, a ring treats them alike up to
// rotation. Where the network is regular too, and its levels fall between digits (or cut one of a direct exchange in
// two), any permutation of the values of a digit (rotation, for rings) maps plan and network onto themselves. So the
// classes are products: for every digit all values that no what-if singles out are one cell, the others are one each. A
// ring that crosses the border of a subtree is rotated by whole subtrees only.
//
// Colours. What lies below (a sub-plan with unequal children or explicit targets), or a plan without such digits, is
// refined: ranks start with the colour of their parameters and get new colours from the colours of everything that they
// send and receive, the links above them, and the way their flows meet those of other senders, until nothing splits any
// more. That costs some passes over all messages.
#include "sim/worlds/partition.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "gar/limits.hpp"
#include "sim/programs.hpp"
#include "sim/random.hpp"

namespace gar::sim {

namespace {

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
// Parts that differ by rounding only are the same.
std::uint64_t part_bits(double x) { return (bits(x) + 0x8000U) >> 16U; }

std::uint64_t colour_of(const LinkState& l) {
  std::uint64_t h = 1;
  for (const double x : {l.beta, l.epsilon, l.threshold, l.scale, l.extra_senders}) h = mix_in(h, bits(x));
  return h;
}

struct Digit {
  std::int64_t stride = 1;  // in ranks
  std::int64_t radix = 1;
  bool is_ring = false;
};

// Which value of a digit is in which cell.
struct Cells {
  std::int64_t stride = 1;
  std::int64_t radix = 1;
  std::int64_t num_cells = 1;
  std::vector<std::uint32_t> cell;  // per value
};

// ------------------------------------------------------------------------------------------------------ refinement

class Refinement {
 public:
  /// Of the ranks [0, num_ranks) with the first `num_steps` steps of their programs (and the mirror image of these).
  Refinement(const PlanIndex& index, const Network& network, std::int32_t num_ranks, std::int64_t num_steps)
      : network_(network), num_ranks_(num_ranks), num_steps_(num_steps), programs_(index.plan()) {
    WorkMeter messages(kFlowLimit, "the plan");
    for (std::int32_t r = 0; r < num_ranks; ++r) programs_.add(index, r, messages);
    root_ = network.leaf(0);
    while (network.span(root_).end_rank < num_ranks) root_ = network.span(root_).parent;
    end_ = root_ + 1;
    while (end_ < network.num_instances() && network.span(end_).first_rank < num_ranks &&
           network.depth(end_) > network.depth(root_)) {
      ++end_;
    }
  }

  /// Class of every rank; empty when there are more than `most`, or when it takes too long to find them.
  std::vector<std::uint32_t> run(std::vector<std::uint64_t> colour, std::size_t most) {
    for (std::int32_t r = 0; r < num_ranks_; ++r) {
      const ServerParams s = network_.server(r);
      auto& c = colour[static_cast<std::size_t>(r)];
      c = mix_in(mix_in(mix_in(c, bits(s.gamma)), bits(s.delta)), bits(s.mu));
    }
    const auto nodes = static_cast<std::size_t>(end_ - root_);
    node_colour_.resize(nodes);
    node_signature_.assign(nodes, 0);
    seen_.resize(nodes);
    std::size_t count = 0;
    double visits = 0;
    for (int unchanged = 0; unchanged < 2;) {  // what is sent over a link takes effect a round later
      visits += 2 * programs_.num_distinct_flows();
      if (visits > kMostVisits) return {};
      round(colour);
      const std::size_t now = std::unordered_set<std::uint64_t>(colour.begin(), colour.end()).size();
      if (now > most) return {};
      unchanged = now == count ? unchanged + 1 : 0;
      count = now;
    }
    std::unordered_map<std::uint64_t, std::uint32_t> ids;
    std::vector<std::uint32_t> out;
    out.reserve(colour.size());
    for (const std::uint64_t c : colour) {
      out.push_back(ids.try_emplace(c, static_cast<std::uint32_t>(ids.size())).first->second);
    }
    return out;
  }

 private:
  static constexpr double kMostVisits = 1e8;  // of messages; that takes seconds

  [[nodiscard]] std::size_t local(std::int32_t instance) const { return static_cast<std::size_t>(instance - root_); }

  void round(std::vector<std::uint64_t>& colour) {
    // Links from below: what is under them, what they are, and which ranks sent what over them in the last round.
    for (std::int32_t i = end_ - 1; i >= root_; --i) {
      std::uint64_t& c = node_colour_[local(i)];
      const NodeSpan& span = network_.span(i);
      if (network_.is_leaf(i)) c = colour[static_cast<std::size_t>(span.first_rank)];
      c = mix_in(c, node_signature_[local(i)]);
      c = mix_in(c, static_cast<std::uint64_t>(network_.depth(i)));
      c = mix_in(c, bits(network_.topology().node(network_.node(i)).alpha));
      if (i != root_) {
        c = mix_in(mix_in(c, colour_of(network_.link(i, false))), colour_of(network_.link(i, true)));
        node_colour_[local(span.parent)] += mix(c);
      }
    }
    // A rank is told apart by its own links, too.
    std::vector<std::uint64_t> whole(colour.size());
    for (std::int32_t r = 0; r < num_ranks_; ++r) {
      std::uint64_t h = colour[static_cast<std::size_t>(r)];
      for (std::int32_t i = network_.leaf(r); i != root_; i = network_.span(i).parent) {
        h = mix_in(h, node_colour_[local(i)]);
      }
      whole[static_cast<std::size_t>(r)] = h;
    }
    std::fill(node_signature_.begin(), node_signature_.end(), 0);
    std::fill(seen_.begin(), seen_.end(), std::pair<std::int32_t, std::uint64_t>{0, 0});
    for (std::int32_t r = 0; r < num_ranks_; ++r) colour[static_cast<std::size_t>(r)] = visit(r, whole);
    std::fill(node_colour_.begin(), node_colour_.end(), 0);
  }

  std::uint64_t visit(std::int32_t r, const std::vector<std::uint64_t>& whole) {
    std::uint64_t sum = 0;
    touched_.clear();
    const auto message = [&](std::uint64_t what, std::int32_t peer, bool is_send) {
      const std::int32_t top = network_.meeting(r, peer);
      sum += mix(
          mix_in(mix_in(what, whole[static_cast<std::size_t>(peer)]), static_cast<std::uint64_t>(network_.depth(top))));
      if (!is_send && !programs_.is_mirrored()) return;
      // Flows of one sender to below the same switch count once there.
      for (std::int32_t i = network_.leaf(peer); i != top; i = network_.span(i).parent) {
        auto& [owner, hash] = seen_[local(i)];
        if (owner != r + 1) {
          owner = r + 1;
          hash = 0;
          touched_.push_back(i);
        }
        hash += mix(mix_in(what, whole[static_cast<std::size_t>(peer)]));
      }
    };
    const auto nth = static_cast<std::uint32_t>(r);
    for (std::uint64_t k = programs_.first(nth); k < programs_.end(nth); ++k) {
      const SimStep& s = programs_.step(k);
      if (s.number >= num_steps_) break;
      const std::uint64_t step = mix_in(static_cast<std::uint64_t>(s.number) * 2, static_cast<std::uint64_t>(s.repeat));
      for (std::uint32_t i = 0; i < s.num_send_runs + s.num_recv_runs; ++i) {
        const PeerRun& run = programs_.run(s.sends + i);
        const bool is_send = i < s.num_send_runs;
        const std::uint64_t what = mix_in(step + (is_send ? 0 : 1), part_bits(run.part));
        for (std::int32_t j = 0; j < run.count; ++j) message(what, run.first + j * run.stride, is_send);
      }
      sum += mix(mix_in(mix_in(step, part_bits(s.adds)), part_bits(s.accesses)));
    }
    const std::uint64_t own = whole[static_cast<std::size_t>(r)];
    for (const std::int32_t i : touched_) {
      const std::uint64_t pattern = seen_[local(i)].second;
      sum += mix(mix_in(node_colour_[local(i)], pattern) + 1);
      node_signature_[local(i)] += mix(mix_in(own, pattern));
    }
    return mix_in(own, sum);
  }

  const Network& network_;
  std::int32_t num_ranks_;
  std::int64_t num_steps_;
  Programs programs_;
  std::int32_t root_ = 0, end_ = 0;
  std::vector<std::uint64_t> node_colour_, node_signature_;
  std::vector<std::pair<std::int32_t, std::uint64_t>> seen_;  // of the rank being visited: {rank + 1, hash}
  std::vector<std::int32_t> touched_;
};

// ---------------------------------------------------------------------------------------------------------- digits

class Finder {
 public:
  Finder(const PlanIndex& index, const Network& network) : index_(index), network_(network) {}

  std::optional<Partition> run(std::int64_t most) {
    const auto n = static_cast<std::int64_t>(network_.num_ranks());
    find_digits();
    // What lies below the digits is refined by itself only where the steps above are those of a ReduceScatter, or these
    // and their mirror image.
    const bool is_in_one = index_.plan().collective == Collective::kAllGather || !has_halves(index_.plan());
    if (!find_cells() || (is_in_one && base_ranks_ > 1)) {
      digits_.clear();
      cells_.clear();
      base_ = index_.plan().root;
      base_ranks_ = n;
    }
    std::int64_t cells = 1;
    for (const Cells& c : cells_) {
      if (cells > most / c.num_cells) return std::nullopt;
      cells *= c.num_cells;
    }
    std::vector<std::uint32_t> base(static_cast<std::size_t>(base_ranks_), 0);
    std::uint32_t base_classes = 1;
    if (base_ranks_ > 1) {
      base = refine(static_cast<std::size_t>(std::max<std::int64_t>(most / cells, 1)));
      if (base.empty()) return std::nullopt;
      base_classes = *std::max_element(base.begin(), base.end()) + 1;
    }
    return assemble(base, base_classes, static_cast<std::size_t>(cells));
  }

 private:
  void find_digits() {
    const Plan& plan = index_.plan();
    base_ = plan.root;
    base_ranks_ = plan.num_ranks;
    if (plan.is_explicit()) return;
    std::int64_t product = 1;
    while (base_ != kLeaf) {
      const SubPlan& sp = plan.subplans[static_cast<std::size_t>(base_)];
      const SubPlanId child = sp.children.front().subplan;
      for (const SubPlanRun& run : sp.children) {
        if (run.subplan != child) return;
      }
      for (const Stage& stage : sp.stages) {
        if (stage.kind == StageKind::kPlace) return;
      }
      const std::int64_t per_child = index_.num_active_after(child);
      const std::int64_t ranks = index_.num_ranks(child);
      for (const Stage& stage : sp.stages) {
        if (stage.radix == 1) continue;
        if (stage.kind != StageKind::kExchange) {
          if (product > plan.num_units / stage.radix || plan.num_units % (product * stage.radix) != 0) return;
          product *= stage.radix;
        }
        digits_.push_back({stage.stride / per_child * ranks, stage.radix, stage.kind == StageKind::kRing});
      }
      base_ = child;
      base_ranks_ = ranks;
    }
  }

  // The sizes of the subtrees, where the network is regular down to the size of the base.
  bool find_borders(std::vector<std::int64_t>& borders) const {
    const Topology& t = network_.topology();
    NodeId node = t.root();
    while (t.num_servers(node) > base_ranks_) {
      const Node& x = t.node(node);
      for (const ChildRun& run : x.children) {
        if (t.shape(run.node) != t.shape(x.children.front().node)) return false;
      }
      node = x.children.front().node;
      borders.push_back(t.num_servers(node));
    }
    return t.num_servers(node) == base_ranks_;
  }

  bool find_cells() {
    std::vector<std::int64_t> borders;
    if (digits_.empty() || !find_borders(borders)) return false;
    std::reverse(borders.begin(), borders.end());
    for (const Digit& d : digits_) {
      std::vector<std::int64_t> cuts{d.stride};
      for (const std::int64_t b : borders) {
        if (b <= d.stride || b >= d.stride * d.radix) continue;
        if (b % cuts.back() != 0 || (d.stride * d.radix) % b != 0) return false;
        cuts.push_back(b);
      }
      if (d.is_ring && cuts.size() > 2) cuts = {cuts.front(), cuts.back()};
      cuts.push_back(d.stride * d.radix);
      for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        const std::int64_t radix = cuts[i + 1] / cuts[i];
        const bool is_cut_ring = d.is_ring && cuts.size() > 2;
        cells_.push_back(make_cells({cuts[i], radix, d.is_ring}, is_cut_ring && i == 0));
      }
    }
    return true;
  }

  Cells make_cells(const Digit& d, bool all_differ) const {
    std::vector<char> is_single(static_cast<std::size_t>(d.radix), all_differ ? 1 : 0);
    const auto single_out = [&](std::int64_t rank) {
      if (d.is_ring) {
        std::fill(is_single.begin(), is_single.end(), 1);
      } else {
        is_single[static_cast<std::size_t>(rank / d.stride % d.radix)] = 1;
      }
    };
    for (const std::int32_t r : network_.marked_ranks()) single_out(r);
    for (const std::int32_t i : network_.marked_instances()) {
      const NodeSpan& span = network_.span(i);
      if (span.num_ranks() <= d.stride) single_out(span.first_rank);
    }
    Cells out{d.stride, d.radix, 0, std::vector<std::uint32_t>(static_cast<std::size_t>(d.radix))};
    std::uint32_t common = 0;
    bool has_common = false;
    for (std::size_t v = 0; v < is_single.size(); ++v) {
      if (is_single[v] == 0 && has_common) {
        out.cell[v] = common;
        continue;
      }
      out.cell[v] = static_cast<std::uint32_t>(out.num_cells++);
      if (is_single[v] == 0) {
        common = out.cell[v];
        has_common = true;
      }
    }
    return out;
  }

  std::vector<std::uint32_t> refine(std::size_t most) const {
    const bool is_whole = !has_halves(index_.plan());
    Refinement refinement(index_, network_, static_cast<std::int32_t>(base_ranks_),
                          is_whole ? index_.num_steps() : index_.end_step(base_));
    std::vector<std::uint64_t> colour(static_cast<std::size_t>(base_ranks_), 0);
    if (base_ranks_ < network_.num_ranks()) {  // what a what-if singles out in any of the copies differs in all of them
      for (const std::int32_t r : network_.marked_ranks()) {
        colour[static_cast<std::size_t>(r % base_ranks_)] += mix(static_cast<std::uint64_t>(r));
      }
      for (const std::int32_t i : network_.marked_instances()) {
        const NodeSpan& span = network_.span(i);
        if (span.num_ranks() >= base_ranks_) continue;
        for (std::int32_t r = span.first_rank; r < span.end_rank; ++r) {
          colour[static_cast<std::size_t>(r % base_ranks_)] += mix(mix_in(static_cast<std::uint64_t>(i), 7));
        }
      }
    }
    return refinement.run(std::move(colour), most);
  }

  Partition assemble(const std::vector<std::uint32_t>& base, std::uint32_t base_classes, std::size_t cells) const {
    const auto n = static_cast<std::size_t>(network_.num_ranks());
    Partition out;
    out.rank_class.resize(n);
    const std::size_t classes = cells * base_classes;
    out.first_rank.assign(classes, -1);
    out.rank_count.assign(classes, 0);
    for (std::size_t r = 0; r < n; ++r) {
      std::size_t c = 0;
      for (const Cells& d : cells_) {
        const auto value = static_cast<std::int64_t>(r) / d.stride % d.radix;
        c = c * static_cast<std::size_t>(d.num_cells) + d.cell[static_cast<std::size_t>(value)];
      }
      c = c * base_classes + base[r % static_cast<std::size_t>(base_ranks_)];
      out.rank_class[r] = static_cast<std::uint32_t>(c);
      if (out.rank_count[c]++ == 0) out.first_rank[c] = static_cast<std::int32_t>(r);
    }
    // Instances from below: a class for every multiset of children; the ranks know the rest.
    const auto nodes = static_cast<std::size_t>(network_.num_instances());
    out.node_class.resize(nodes);
    out.first_node.assign(classes, -1);
    out.node_count.assign(classes, 0);
    std::vector<std::uint64_t> hash(nodes, 0);
    std::unordered_map<std::uint64_t, std::uint32_t> ids;
    for (std::size_t k = nodes; k-- > 0;) {
      const auto i = static_cast<std::int32_t>(k);
      const NodeSpan& span = network_.span(i);
      std::uint32_t c = 0;
      if (network_.is_leaf(i)) {
        c = out.rank_class[static_cast<std::size_t>(span.first_rank)];
      } else {
        const std::uint64_t key = mix_in(hash[k], static_cast<std::uint64_t>(network_.depth(i)));
        c = ids.try_emplace(key, static_cast<std::uint32_t>(out.node_count.size())).first->second;
        if (c == out.node_count.size()) {
          out.node_count.push_back(0);
          out.first_node.push_back(-1);
        }
      }
      out.node_class[k] = c;
      ++out.node_count[c];
      out.first_node[c] = i;
      if (span.parent >= 0) hash[static_cast<std::size_t>(span.parent)] += mix(c);
    }
    return out;
  }

  const PlanIndex& index_;
  const Network& network_;
  std::vector<Digit> digits_;
  std::vector<Cells> cells_;
  SubPlanId base_ = kLeaf;  // the sub-plan below the digits
  std::int64_t base_ranks_ = 1;
};

}  // namespace

std::optional<Partition> find_partition(const PlanIndex& index, const Network& network, std::int64_t most) {
  return Finder(index, network).run(most);
}

}  // namespace gar::sim
