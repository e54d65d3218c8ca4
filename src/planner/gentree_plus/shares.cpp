// Unequal shares: water-filling, level by level.
//
// Problem. The ranks of a tree reduce and own parts of the vector. Children of a switch exchange directly: each gets
// what it is to own from the k - 1 others. How much should every child own, so that the busiest link direction or
// server is as little busy as possible? Equal shares are best where children are alike. A slow child should own less,
// down to nothing: then it only hands in its vector and gets the result.
//
// Notation. A child d of a switch v with k children owns X_d of what v's subtree owns (a part of the vector), the X_d
// add up to 1. M_v is the load, in vectors, that crosses the link above v, each way, if AllReduce: 0 at the root.
//
//   d sends away 1 - X_d and is sent X_d by each of the k - 1 others; the AllGather does the same the other way round;
//   what d owns of v's part takes part above v, too:             M_d = 1 + X_d W_v,   W_v = k - 2 + M_v.
//   A server that owns X_d adds and reads X_d (k - 1 + ...) and X_d (k + 1 + ...) likewise.
//
// Idea. How much may d carry, if everything at and below it is to take T at most?
//
//   cap_d(T) = T / b_d for the link above d (b_d seconds per vector), for a server also 1 + T rho (calculation), and
//   for a switch what its children can carry: all shares below it add up to 1, so M_d <= sum of (cap_e - 1) - (k_d -
//   2), over children e with cap_e > 1. Who cannot even hand in its vector in time T gets no share: nothing helps it.
//
// From the root down, the least T for which the shares (cap_d(T) - 1) / W_v reach 1 is found by bisection at each
// switch: these are the shares, and M_d is known for the next level. Calculation depends on the way to the root through
// X itself, so this is repeated a few times. A server's link counts incast with the senders that its stage has.
//
// Groups. A switch with many children may exchange in groups first: a group is a switch without a link of its own.
//
// The stages. Children hold different cuts of the vector (where all shares are equal, digits are used). Every position
// is held by one rank of each child; which rank owns it is found as for Asymmetric CPS, with shares of X_d times what a
// rank holds. If that leaves a remainder, every stretch that is held by the same ranks is cut in the proportion of the
// X_d instead.
//
// Halves. A ReduceScatter ends with equal blocks: what was owned otherwise moves to its place, in one stage more. Up
// and down differ now. Down, X_d comes from each of the others, and more above: D_d = X_d (k - 1 + D_v); that is the
// load of before without its 1, as if nothing had to be handed in. Up, 1 - X_d leaves, and what is owned may
// leave further up: U_d = 1 - X_d (1 - U_v), which falls with X_d, so a slow link asks for a least share. The least T
// for which the least shares and the most that can be carried leave room for 1 is found by bisection, and within that
// room every child owns as much as its blocks, as far as possible. An AllGather is the same the other way round, and
// has no calculation. Shares that fit an AllReduce are tried for its halves as well.
//
// That is what chunks that follow each other cost. Where the model finds a vector too short for many of them, each
// stage counts by itself, so mixtures with equal shares are priced, too; and on small trees shares move from child to
// child as long as the exact price falls.
//
// Complexity: O(servers * height * iterations) for shares, O(pieces * log(pieces)) for owners. Only for trees of up to
// kMaxShared servers in which the children of some switch differ.
#include "planner/gentree_plus/shares.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "gar/algorithms.hpp"
#include "planner/subtree.hpp"
#include "planner/switch_names.hpp"

namespace gar::plus {

namespace {

constexpr double kEqual = 1e-9;      // shares that differ by less are equal
constexpr double kNothing = 2e-3;    // of an equal share: not worth the messages
constexpr double kLeastLoad = 1e-6;  // W of two children below the root, whose links do not care who owns what
constexpr std::size_t kMaxPieces = 20'000;

/// A server, a switch or a group of children.
struct Part {
  std::vector<std::size_t> children;  // indices of parts
  NodeId node = 0;
  bool is_group = false;  // a group has no link
  LinkParams link;
  ServerParams server;
  std::int64_t num_ranks = 1;
  std::int64_t first_rank = 0;
  int depth = 0;
  double link_seconds = 0;  // b: per vector
  double share = 1;         // X: of what the parent owns
  double load = 0;          // M; of a half, D
  double leaving = 0;       // of a half, U
  double adds = 0;          // of the vector, above this part and per part of the vector that it owns
  double accesses = 0;      // likewise
  double rho = 0;           // servers: vectors that may be carried per second of calculation
  [[nodiscard]] bool is_leaf() const { return children.empty(); }
};

class ShareTree {
 public:
  ShareTree(const Topology& topology, const ModelOptions& options, const ShareOptions& variant)
      : topology_(topology),
        names_(topology),
        options_(options),
        most_(std::max<std::int64_t>(variant.most_members, 2)),
        hands_in_(variant.is_whole ? 1 : 0) {
    root_ = variant.is_flat ? add_flat() : add(topology.root(), 0, 0);
    parts_[root_].link = {};
    find_link_seconds();
  }

  /// Finds the shares; false when they are equal everywhere.
  bool find_shares(double strength) {
    for (Part& p : parts_) p.share = 1;
    for (const Part& p : parts_) {
      for (const std::size_t c : p.children) parts_[c].share = usual_share(p, parts_[c]);
    }
    for (int pass = 0; pass < 4; ++pass) {
      find_work();
      parts_[root_].load = 0;
      divide(root_);
    }
    bool differ = false;
    for (const Part& p : parts_) {
      double least = 1;
      double most = 0;
      double sum = 0;
      for (const std::size_t c : p.children) {
        const double usual = usual_share(p, parts_[c]);
        double& x = parts_[c].share;
        x = strength * x + (1 - strength) * usual;
        if (x < kNothing * usual) x = 0;
        sum += x;
        least = std::min(least, x);
        most = std::max(most, x);
      }
      for (const std::size_t c : p.children) parts_[c].share /= sum;
      if (!p.children.empty() && most - least > kEqual) differ = true;
    }
    return differ;
  }

  /// The plan for these shares; null when it would have too many pieces.
  FragmentPtr plan(std::int64_t num_units) {
    units_ = num_units;
    num_pieces_ = 0;
    fragments_.clear();
    FragmentPtr out = build(root_);
    return num_pieces_ > kMaxPieces ? nullptr : out;
  }

  /// Moves a little from one child to another as long as that is cheaper. Returns the price.
  double refine(std::int64_t num_units, const PriceOf& price, double least, int budget) {
    for (const double amount : {0.1, 0.03, 0.01, 0.003}) {
      for (bool is_better = true; is_better;) {
        is_better = false;
        for (const Part& p : parts_) {
          for (const std::size_t from : p.children) {
            for (const std::size_t to : p.children) {
              if (from == to || parts_[from].share <= 0) continue;
              if (budget-- <= 0) return least;
              const double moved = std::min(amount, parts_[from].share);
              const double before = parts_[from].share;
              parts_[from].share = moved < before ? before - moved : 0;
              parts_[to].share += moved;
              const FragmentPtr tried = plan(num_units);
              const double seconds = tried ? price(tried) : least;
              if (seconds < least * (1 - 1e-6)) {
                least = seconds;
                is_better = true;
              } else {
                parts_[to].share -= moved;
                parts_[from].share = before;
              }
            }
          }
        }
      }
    }
    return least;
  }

  /// Switches that look and decide the same are one.
  [[nodiscard]] std::vector<SwitchChoice> switches() const {
    std::vector<SwitchChoice> out;
    for_switches([&](const Part& p, std::int64_t count, bool is_alone) {
      SwitchChoice c;
      c.node = p.node;
      c.name = is_alone ? names_.of(p.node) : topology_.instance_name(p.first_rank, p.depth);
      c.count = count;
      c.factors = fan_ins(p);
      if (is_unequal(p)) list(p, 1, name_above(p), c.shares);
      c.algorithm = !c.shares.empty() ? "shares" : c.factors.size() == 1 ? "cps" : "hcps";
      out.push_back(std::move(c));
    });
    return out;
  }

  [[nodiscard]] std::vector<std::pair<FragmentPtr, NodeId>> fragments() const {
    std::vector<std::pair<FragmentPtr, NodeId>> out;
    std::map<const Part*, FragmentPtr> of;
    for (const auto& [index, fragment] : fragments_) of[&parts_[index]] = fragment;
    for_switches([&](const Part& p, std::int64_t, bool) { out.emplace_back(of.at(&p), p.node); });
    return out;
  }

 private:
  // --- the tree ------------------------------------------------------------------------------------------------------

  std::size_t store(Part part) {
    parts_.push_back(std::move(part));
    return parts_.size() - 1;
  }

  std::size_t add(NodeId id, std::int64_t first_rank, int depth) {
    const Node& node = topology_.node(id);
    Part part;
    part.node = id;
    part.first_rank = first_rank;
    part.depth = depth;
    part.link = node.uplink;
    part.server = known_to(options_.kind, node.server);
    std::vector<std::size_t> children;
    for (const ChildRun& run : node.children) {
      for (std::int64_t c = 0; c < run.count; ++c) {
        children.push_back(add(run.node, first_rank, depth + 1));
        first_rank += topology_.num_servers(run.node);
      }
    }
    part.num_ranks = topology_.num_servers(id);
    if (children.size() == 1) {  // a switch that only passes on: of two links the slower one counts
      Part& below = parts_[children.front()];
      if (part.link.beta > below.link.beta) below.link = part.link;
      if (depth > 0) below.depth = depth;
      return children.front();
    }
    part.children = grouped(std::move(children), id);
    return store(std::move(part));
  }

  // All servers below the root, whatever is between: the links of switches are left to the exact price.
  std::size_t add_flat() {
    const ExpandedTree tree = expand(topology_, topology_.root());
    std::vector<std::size_t> servers;
    for (const std::int32_t leaf : tree.leaf) {
      const auto at = static_cast<std::size_t>(leaf);
      servers.push_back(add(tree.node[at], static_cast<std::int64_t>(servers.size()), tree.depth[at]));
    }
    Part part;
    part.node = topology_.root();
    part.num_ranks = topology_.num_servers();
    part.children = grouped(std::move(servers), topology_.root());
    return store(std::move(part));
  }

  // Neighbours in groups of up to most_, as even as possible, until few enough are left.
  std::vector<std::size_t> grouped(std::vector<std::size_t> children, NodeId id) {
    const auto most = static_cast<std::size_t>(most_);
    while (children.size() > most) {
      const std::size_t num_groups = std::max<std::size_t>((children.size() + most - 1) / most, 2);
      std::vector<std::size_t> groups;
      for (std::size_t g = 0; g < num_groups; ++g) {
        const std::size_t begin = children.size() * g / num_groups;
        const std::size_t end = children.size() * (g + 1) / num_groups;
        if (end - begin == 1) {
          groups.push_back(children[begin]);
          continue;
        }
        Part group;
        group.node = id;
        group.is_group = true;
        group.num_ranks = 0;
        group.children.assign(children.begin() + static_cast<std::ptrdiff_t>(begin),
                              children.begin() + static_cast<std::ptrdiff_t>(end));
        for (const std::size_t c : group.children) group.num_ranks += parts_[c].num_ranks;
        groups.push_back(store(std::move(group)));
      }
      children = std::move(groups);
    }
    return children;
  }

  // Links with the incast of the stage that has most senders.
  void find_link_seconds() {
    std::vector<std::size_t> parent(parts_.size(), parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      for (const std::size_t c : parts_[i].children) parent[c] = i;
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Part& p = parts_[i];
      std::int64_t senders = 1;
      for (std::size_t v = parent[i]; v < parts_.size(); v = parts_[v].is_group ? parent[v] : parts_.size()) {
        const auto others = static_cast<std::int64_t>(parts_[v].children.size()) - 1;
        senders = std::max(senders, p.is_leaf() ? others : std::max(p.num_ranks, others * p.num_ranks));
      }
      const double w = static_cast<double>(senders) + (options_.degree == IncastDegree::kParticipants ? 1 : 0);
      p.link_seconds = p.is_group || i == root_ ? 0 : p.link.beta;
      if (p.link_seconds > 0 && has_incast_and_memory(options_.kind)) {
        p.link_seconds += std::max(w - p.link.incast_threshold, 0.0) * p.link.epsilon;
      }
    }
  }

  // --- the shares ----------------------------------------------------------------------------------------------------

  // Where nothing speaks against it: equal shares, or those of the blocks that a half begins or ends with.
  [[nodiscard]] double usual_share(const Part& parent, const Part& child) const {
    return hands_in_ > 0 ? 1 / static_cast<double>(parent.children.size())
                         : static_cast<double>(child.num_ranks) / static_cast<double>(parent.num_ranks);
  }

  // What a child that owns all of it carries beyond what it hands in: W.
  [[nodiscard]] double spread_of(const Part& p) const {
    return static_cast<double>(p.children.size()) - 1 - hands_in_ + p.load + kLeastLoad;
  }

  // What calculation every server has for what it carries, with the shares at hand: parents before children.
  void find_work() {
    parts_[root_].adds = 0;
    parts_[root_].accesses = 0;
    parts_[root_].load = 0;
    parts_[root_].leaving = 0;
    const bool adds = options_.collective != Collective::kAllGather;
    for (std::size_t i = parts_.size(); i-- > 0;) {
      const Part& v = parts_[i];
      const auto k = static_cast<double>(v.children.size());
      const double spread = spread_of(v);
      for (const std::size_t c : v.children) {
        Part& d = parts_[c];
        d.load = hands_in_ + d.share * spread;
        d.leaving = 1 - d.share * (1 - v.leaving);
        d.adds = d.share * (k - 1 + v.adds);
        d.accesses = d.share * (k + 1 + v.accesses);
        const double seconds = adds ? d.server.gamma * (k - 1 + v.adds) + d.server.delta * (k + 1 + v.accesses) : 0;
        d.rho = seconds > 0 ? spread / seconds : std::numeric_limits<double>::infinity();
      }
    }
  }

  // The most that part i may carry, in vectors, when everything at and below it takes `seconds` per vector.
  double cap(std::size_t i, double seconds) const {
    const Part& p = parts_[i];
    double most = p.link_seconds > 0 ? seconds / p.link_seconds : std::numeric_limits<double>::infinity();
    if (p.is_leaf()) return std::min(most, hands_in_ + seconds * p.rho);
    double below = 1 + hands_in_ - static_cast<double>(p.children.size()) - kLeastLoad;
    for (const std::size_t c : p.children) below += std::max(cap(c, seconds) - hands_in_, 0.0);
    return std::min(most, below);
  }

  // Of a half: the least share with which the link above part i gets rid of the rest in time.
  [[nodiscard]] double least_share(const Part& parent, const Part& p, double seconds) const {
    const double rest = p.link_seconds > 0 && hands_in_ == 0 ? 1 - seconds / p.link_seconds : 0;
    if (rest <= 0) return 0;
    const double counts = 1 - parent.leaving;
    return counts > kEqual ? rest / counts : 2;
  }

  // Shares of the children of part i, which carries `load`.
  void divide(std::size_t i) {
    const Part& p = parts_[i];
    const std::vector<std::size_t>& children = p.children;
    if (children.empty()) return;
    const double spread = spread_of(p);
    std::vector<double> most(children.size());
    std::vector<double> least(children.size());
    const auto is_enough = [&](double seconds) {
      double sum = 0;
      double sum_least = 0;
      bool has_room = true;
      for (std::size_t c = 0; c < children.size(); ++c) {
        most[c] = std::clamp((cap(children[c], seconds) - hands_in_) / spread, 0.0, 1.0);
        least[c] = least_share(p, parts_[children[c]], seconds);
        has_room = has_room && least[c] <= most[c];
        sum += most[c];
        sum_least += least[c];
      }
      return has_room && sum >= 1 && sum_least <= 1;
    };
    double low = 0;
    double high = 1e-12;
    while (!is_enough(high) && high < 1e12) high *= 2;
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      (is_enough(middle) ? high : low) = middle;
    }
    is_enough(high);
    const std::vector<double> share = hands_in_ > 0 ? most : usual_within(p, least, most);
    double sum = 0;
    for (const double x : share) sum += x;
    for (std::size_t c = 0; c < children.size(); ++c) {
      Part& d = parts_[children[c]];
      d.share = sum > 0 ? share[c] / sum : usual_share(p, d);
      d.load = hands_in_ + d.share * spread;
      d.leaving = 1 - d.share * (1 - p.leaving);
    }
    for (const std::size_t c : children) divide(c);
  }

  // Shares between these bounds that are as usual as far as possible: the usual ones times a number, within the bounds.
  [[nodiscard]] std::vector<double> usual_within(const Part& p, const std::vector<double>& least,
                                                 const std::vector<double>& most) const {
    std::vector<double> out(most.size());
    const auto fill = [&](double factor) {
      double sum = 0;
      for (std::size_t c = 0; c < out.size(); ++c) {
        out[c] = std::clamp(factor * usual_share(p, parts_[p.children[c]]), std::min(least[c], most[c]), most[c]);
        sum += out[c];
      }
      return sum;
    };
    double low = 0;
    double high = 1;
    while (fill(high) < 1 && high < 1e9) high *= 2;
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      (fill(middle) < 1 ? low : high) = middle;
    }
    fill(high);
    return out;
  }

  // --- the plan ------------------------------------------------------------------------------------------------------

  FragmentPtr build(std::size_t i) {
    const Part& p = parts_[i];
    if (p.is_leaf()) return nullptr;
    FragmentRuns runs;
    for (const std::size_t c : p.children) {
      FragmentPtr child = build(c);
      if (num_pieces_ > kMaxPieces) return nullptr;
      if (!runs.empty() && is_same(runs.back().first, child)) {
        ++runs.back().second;
      } else {
        runs.emplace_back(std::move(child), 1);
      }
    }
    const std::string label = fmt::format("{} level", names_.of(p.node));
    bool is_even = true;
    for (const std::size_t c : p.children) {
      is_even = is_even && std::abs(parts_[c].share * static_cast<double>(p.children.size()) - 1) <= kEqual;
    }
    is_even = is_even && std::all_of(runs.begin() + 1, runs.end(),
                                     [&](const auto& run) { return holds_same(run.first, runs[0].first, units_); });
    FragmentPtr out = is_even
                          ? digits_fragment(std::move(runs), {{static_cast<std::int64_t>(p.children.size())}}, label)
                          : placed(p, std::move(runs), label + ", unequal shares");
    fragments_.emplace_back(i, out);
    return out;
  }

  // Children that hold different cuts, or are to own unequal shares.
  FragmentPtr placed(const Part& p, FragmentRuns runs, std::string label) {
    std::vector<std::vector<Piece>> held;
    auto f = std::make_shared<Fragment>();
    for (const auto& [child, count] : runs) {
      for (std::int64_t c = 0; c < count; ++c) {
        std::vector<Piece> one = child ? placement_of(child, units_) : std::vector<Piece>{{0, units_, 0}};
        for (Piece& piece : one) piece.owner += static_cast<std::int32_t>(f->num_ranks);
        held.push_back(std::move(one));
        f->num_ranks += ranks_of(child);
      }
    }
    std::vector<Piece> target = scheduled(p, held, f->num_ranks);
    if (target.empty()) target = proportional(p, held);
    num_pieces_ += target.size();
    std::set<std::int32_t> owners;
    for (const Piece& piece : target) owners.insert(piece.owner);
    f->num_active = static_cast<std::int64_t>(owners.size());
    f->children = std::move(runs);
    f->label = std::move(label);
    f->stages = {{StageKind::kPlace, 1, 1, std::move(target)}};
    return f;
  }

  // As in Asymmetric CPS, with few pieces; nothing when some rank gets another share than it should.
  std::vector<Piece> scheduled(const Part& p, const std::vector<std::vector<Piece>>& held,
                               std::int64_t num_ranks) const {
    std::vector<double> wanted(static_cast<std::size_t>(num_ranks), 0);
    for (std::size_t c = 0; c < held.size(); ++c) {
      for (const Piece& piece : held[c]) {
        wanted[static_cast<std::size_t>(piece.owner)] +=
            static_cast<double>(piece.end - piece.begin) * parts_[p.children[c]].share;
      }
    }
    std::vector<std::int64_t> shares;
    double sum = 0;
    std::int64_t given = 0;
    for (const double w : wanted) {
      sum += w;
      const auto reached = std::min(static_cast<std::int64_t>(std::llround(sum)), units_);
      shares.push_back(w > 0 ? reached - given : 0);
      given += shares.back();
    }
    std::vector<Piece> target = acps_target(held, num_ranks, units_, shares);
    for (const Piece& piece : target) shares[static_cast<std::size_t>(piece.owner)] -= piece.end - piece.begin;
    const double slack = 1e-6 * static_cast<double>(units_);
    for (std::size_t r = 0; r < shares.size(); ++r) {
      if (std::abs(static_cast<double>(shares[r])) > (wanted[r] > 0 ? slack : 0)) return {};
    }
    return target;
  }

  // Every stretch that is held by the same ranks, in the proportion of the children's shares.
  std::vector<Piece> proportional(const Part& p, const std::vector<std::vector<Piece>>& held) const {
    std::set<std::int64_t> cuts;
    for (const auto& child : held) {
      for (const Piece& piece : child) cuts.insert(piece.begin);
    }
    cuts.insert(units_);
    std::vector<std::size_t> at(held.size(), 0);
    std::vector<Piece> target;
    std::vector<std::size_t> order(held.size());
    for (std::size_t c = 0; c < order.size(); ++c) order[c] = c;
    for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
      const std::int64_t begin = *cut;
      const std::int64_t end = *std::next(cut);
      std::int64_t reached = begin;
      double sum = 0;
      for (const std::size_t c : order) {
        while (held[c][at[c]].end <= begin) ++at[c];
        const double share = parts_[p.children[c]].share;
        if (share <= 0) continue;
        sum += share;
        const std::int64_t next = sum > 1 - kEqual ? end : begin + std::llround(sum * static_cast<double>(end - begin));
        if (next <= reached) continue;
        const std::int32_t owner = held[c][at[c]].owner;
        if (!target.empty() && target.back().owner == owner) {
          target.back().end = next;
        } else {
          target.push_back({reached, next, owner});
        }
        reached = next;
      }
      std::reverse(order.begin(), order.end());  // whoever came last comes first: often the same owner goes on
    }
    return target;
  }

  // --- words ---------------------------------------------------------------------------------------------------------

  [[nodiscard]] bool is_unequal(const Part& p) const {
    return std::any_of(p.children.begin(), p.children.end(), [&](std::size_t c) {
      const Part& d = parts_[c];
      return std::abs(d.share * static_cast<double>(p.children.size()) - 1) > kEqual || (d.is_group && is_unequal(d));
    });
  }

  // Members of the groups at a switch, the innermost ones first.
  [[nodiscard]] std::vector<std::int64_t> fan_ins(const Part& p) const {
    std::vector<std::int64_t> out;
    for (const Part* at = &p;;) {
      out.insert(out.begin(), static_cast<std::int64_t>(at->children.size()));
      const auto group =
          std::find_if(at->children.begin(), at->children.end(), [&](std::size_t c) { return parts_[c].is_group; });
      if (group == at->children.end()) return out;
      at = &parts_[*group];
    }
  }

  /// What names of children of a switch begin with: "rack3/".
  [[nodiscard]] std::string name_above(const Part& p) const {
    return p.depth > 0 ? topology_.instance_name(p.first_rank, p.depth) + "/" : "";
  }

  void list(const Part& p, double share, const std::string& above, std::vector<ChildShare>& out) const {
    for (const std::size_t c : p.children) {
      const Part& d = parts_[c];
      if (d.is_group) {
        list(d, share * d.share, above, out);
      } else {
        out.push_back({topology_.instance_name(d.first_rank, d.depth).substr(above.size()), share * d.share});
      }
    }
  }

  /// Calls f(switch, instances that decide the same, do all of its kind decide the same?), lowest first, once for those
  /// that do.
  template <class F>
  void for_switches(F f) const {
    const auto shares_of = [&](const Part& p) {
      std::vector<ChildShare> children;
      list(p, 1, name_above(p), children);
      std::vector<std::int64_t> out;
      for (const ChildShare& child : children) out.push_back(std::llround(child.share / kEqual));
      return out;
    };
    std::map<std::int32_t, std::map<std::vector<std::int64_t>, std::int64_t>> counts;  // by shape and shares
    for (const auto& [index, fragment] : fragments_) {
      const Part& p = parts_[index];
      if (!p.is_group) ++counts[topology_.shape(p.node)][shares_of(p)];
    }
    std::set<std::pair<std::int32_t, std::vector<std::int64_t>>> seen;
    for (const auto& [index, fragment] : fragments_) {
      const Part& p = parts_[index];
      const std::int32_t shape = topology_.shape(p.node);
      std::vector<std::int64_t> shares = p.is_group ? std::vector<std::int64_t>{} : shares_of(p);
      if (p.is_group || seen.contains({shape, shares})) continue;
      f(p, counts[shape][shares], counts[shape].size() == 1);
      seen.emplace(shape, std::move(shares));
    }
  }

  const Topology& topology_;
  SwitchNames names_;
  ModelOptions options_;
  std::int64_t most_;
  double hands_in_;          // vectors that a child hands in, whatever it owns: 1, in a half 0
  std::vector<Part> parts_;  // children before parents
  std::size_t root_ = 0;
  std::int64_t units_ = 1;
  std::size_t num_pieces_ = 0;
  std::vector<std::pair<std::size_t, FragmentPtr>> fragments_;  // of parts, children first
};

}  // namespace

bool may_share_unequally(const Topology& topology) {
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    const std::vector<ChildRun>& children = topology.node(id).children;
    for (const ChildRun& run : children) {
      if (topology.shape(run.node) != topology.shape(children.front().node)) return true;
    }
  }
  return false;
}

std::optional<SharedPlan> plan_with_shares(const Topology& topology, const ModelOptions& options,
                                           const std::vector<ShareOptions>& variants, std::int64_t num_units,
                                           const PriceOf& price, int num_refined) {
  struct Best {
    double strength = 0;
    double seconds = std::numeric_limits<double>::infinity();
  };
  std::map<std::tuple<bool, bool, std::int64_t>, std::pair<ShareTree, Best>> trees;
  for (const ShareOptions& variant : variants) {
    const auto key = std::make_tuple(variant.is_whole, variant.is_flat, variant.most_members);
    auto at = trees.find(key);
    if (at == trees.end()) at = trees.try_emplace(key, ShareTree(topology, options, variant), Best{}).first;
    auto& [tree, best] = at->second;
    if (!tree.find_shares(variant.strength)) continue;
    const FragmentPtr fragment = tree.plan(num_units);
    if (!fragment) continue;
    const double seconds = price(fragment);
    if (seconds < best.seconds) best = {variant.strength, seconds};
  }
  ShareTree* cheapest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (auto& [key, one] : trees) {
    auto& [tree, best] = one;
    if (best.strength == 0) continue;
    tree.find_shares(best.strength);
    if (num_refined > 0) best.seconds = tree.refine(num_units, price, best.seconds, num_refined);
    if (best.seconds >= least) continue;
    least = best.seconds;
    cheapest = &tree;
  }
  if (cheapest == nullptr) return std::nullopt;
  FragmentPtr fragment = cheapest->plan(num_units);
  return SharedPlan{std::move(fragment), cheapest->switches(), cheapest->fragments()};
}

// A switch costs what everything below it costs, less its slowest child.
void price_switches(SharedPlan& plan, const Topology& topology, double size_floats, const ModelOptions& options,
                    std::int64_t num_units) {
  std::map<std::int32_t, Terms> whole;
  for (std::size_t i = 0; i < plan.switches.size(); ++i) {
    SwitchChoice& choice = plan.switches[i];
    const auto& [fragment, node] = plan.fragments[i];
    const Terms total =
        PricedPlan(to_plan(fragment, "", num_units), subtree(topology, node), options).cost(size_floats);
    Terms slowest;
    for (const ChildRun& run : topology.node(node).children) {
      NodeId child = run.node;
      while (topology.num_children(child) == 1) child = topology.node(child).children.front().node;
      const auto it = whole.find(topology.shape(child));
      if (it != whole.end() && it->second.total() > slowest.total()) slowest = it->second;
    }
    whole[topology.shape(node)] = total;
    choice.terms = total - slowest;
  }
}

}  // namespace gar::plus
