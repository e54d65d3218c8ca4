// Choosing among the classic algorithms.
//
// `hcps` stands for every ordered factorisation of N and, because N may be prime or awkward, for two- and three-level
// groupings as even as possible. Most of them need not be priced: every server takes part in every exchange, so the
// closed form on one switch with the best parameters of any server is a lower bound for what a factorisation costs on
// the whole tree. Candidates are taken in the order of their bounds until the next bound is not below the best price.
// For a ReduceScatter or an AllGather plans and bounds are the halves of those.
//
// That bound gives the order, and so the choice among equals. A closer one, which follows uneven groups, knows how far
// apart ranks of a group are, and on a tree which groups are cut by the border of a switch, settles beforehand what the
// best price is, and passes over what cannot reach it. Prices are kept, since they are linear in the size between
// changes of the critical path.
//
// For networks so large that pricing is slow and bounds are weak, the work is limited (kMaxPricedInstances); the
// prediction then says that the search was not complete.
#include "gar/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "gar/limits.hpp"
#include "gar/planner.hpp"
#include "model/groups_bound.hpp"
#include "planner/changes.hpp"
#include "planner/flat_prices.hpp"

namespace gar {

namespace {

constexpr std::int64_t kMaxPricedInstances = 10'000'000;  // stages * servers that may be priced for one `hcps`
constexpr std::int64_t kMaxUnevenServers = 4096;
constexpr std::int64_t kMaxEveryGrouping = 64;  // servers up to which every number of groups is tried
constexpr std::size_t kMaxFactorisations = 100'000;
constexpr std::int64_t kMaxUnevenThreeLevels = 256;
constexpr std::int64_t kMaxUnevenThreeLevelsOnOneSwitch = 1024;  // where the bounds are tight
constexpr double kLargestSize = 1e15;

struct Candidate {
  AlgorithmSpec spec;
  std::shared_ptr<const PricedPlan> priced;  // null until it is needed
  std::optional<bool> has_equal_shares{};    // of uneven groups; empty: nobody has looked
  std::shared_ptr<const Plan> plan{};        // from then until it is priced or passed over
};

/// Does every stage between uneven groups leave each of its ranks an equal share?
bool shares_equally(const Plan& plan) {
  constexpr double kSame = 1 + 1e-9;
  std::vector<std::int64_t> num_ranks;
  for (const SubPlan& sp : plan.subplans) {
    std::int64_t n = 0;
    for (const SubPlanRun& run : sp.children) {
      n += run.count * (run.subplan == kLeaf ? 1 : num_ranks[static_cast<std::size_t>(run.subplan)]);
    }
    num_ranks.push_back(n);
    for (const Stage& stage : sp.stages) {
      if (is_digit(stage)) continue;
      std::vector<std::int64_t> owned(static_cast<std::size_t>(n), 0);
      for (const Piece& p : stage.target) owned[static_cast<std::size_t>(p.owner)] += p.end - p.begin;
      const auto [least, most] = std::minmax_element(owned.begin(), owned.end());
      if (static_cast<double>(*most) > kSame * static_cast<double>(*least)) return false;
    }
  }
  return true;
}

/// The most favourable parameters that occur in a topology.
OneSwitch best_case(const Topology& topology, const ModelOptions& options) {
  const double inf = std::numeric_limits<double>::infinity();
  OneSwitch p{inf, inf, inf, inf, inf, 0, options.degree, inf};
  double server_alpha = inf;
  double switch_alpha = inf;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    const Node& n = topology.node(id);
    if (!n.is_server()) {
      switch_alpha = std::min(switch_alpha, n.alpha);
      continue;
    }
    server_alpha = std::min(server_alpha, n.alpha);
    p.beta = std::min(p.beta, n.uplink.beta);
    p.epsilon = std::min(p.epsilon, n.uplink.epsilon);
    p.incast_threshold = std::max(p.incast_threshold, n.uplink.incast_threshold);
    p.gamma = std::min(p.gamma, n.server.gamma);
    p.delta = std::min(p.delta, n.server.delta);
    p.mu = std::min(p.mu, n.server.mu);
  }
  p.alpha = 2 * server_alpha + switch_alpha;
  if (!has_incast_and_memory(options.kind)) p.epsilon = p.delta = 0;
  if (!has_handling(options.kind)) p.mu = 0;
  return p;
}

/// Factors of n in descending order, each product once.
void unordered_factorisations(std::int64_t n, std::int64_t largest, std::vector<std::int64_t>& prefix,
                              std::set<std::vector<std::int64_t>>& out) {
  if (n == 1) {
    out.insert(prefix);
    return;
  }
  const auto descend = [&](std::int64_t factor) {
    if (factor > largest || out.size() >= kMaxFactorisations / 4) return;
    prefix.push_back(factor);
    unordered_factorisations(n / factor, factor, prefix, out);
    prefix.pop_back();
  };
  for (std::int64_t d = 2; d * d <= n; ++d) {  // small factors first: these are what many servers need
    if (n % d == 0) descend(d);
  }
  for (std::int64_t d = n; d > 1; --d) {
    if (d * d < n) break;
    if (d * d == n || n % d != 0) continue;
    descend(d);
  }
}

/// All ordered factorisations, or where there are too many: every set of factors in descending and in ascending order.
std::vector<std::vector<std::int64_t>> factorisations(std::int64_t n) {
  std::vector<std::vector<std::int64_t>> all = ordered_factorisations(n, kMaxFactorisations);
  if (all.size() < kMaxFactorisations) return all;
  std::set<std::vector<std::int64_t>> found;
  std::vector<std::int64_t> prefix;
  unordered_factorisations(n, n, prefix, found);
  all.clear();
  for (const std::vector<std::int64_t>& descending : found) {
    all.push_back(descending);
    all.emplace_back(descending.rbegin(), descending.rend());
    if (all.back() == descending) all.pop_back();
  }
  return all;
}

/// Two levels: for every innermost size the fewest groups that have it, or every number of groups where servers are
/// few; three levels: the same, nested.
std::vector<AlgorithmSpec> uneven_candidates(std::int64_t n, bool with_three_levels) {
  std::set<std::vector<std::int64_t>> found;
  const auto add_two = [&](std::int64_t m, std::vector<std::int64_t> outer) {
    std::int64_t previous = 0;
    for (std::int64_t groups = 2; groups <= m / 2; ++groups) {
      const std::int64_t size = (m + groups - 1) / groups;
      if (size == previous && (n > kMaxEveryGrouping || !outer.empty())) continue;
      previous = size;
      std::vector<std::int64_t> factors{size, groups};
      factors.insert(factors.end(), outer.begin(), outer.end());
      found.insert(factors);
    }
  };
  add_two(n, {});
  if (with_three_levels) {
    std::int64_t previous = 0;
    for (std::int64_t groups = 2; groups <= n / 4; ++groups) {
      const std::int64_t size = (n + groups - 1) / groups;
      if (size != previous) add_two(size, {groups});
      previous = size;
    }
  }
  std::vector<AlgorithmSpec> out;
  for (const auto& factors : found) {
    std::int64_t product = 1;
    for (const std::int64_t f : factors) product *= f;
    if (product != n) out.push_back({"hcps", factors, true});
  }
  return out;
}

/// Products of factors that are tried on n ranks: n, and where ranks may fold, the largest powers of small numbers and
/// the largest number up to n that has no prime factors but 2 and 3.
std::set<std::int64_t> products(const AlgorithmSpec& spec, std::int64_t n) {
  std::set<std::int64_t> out{n};
  const AlgorithmInfo* info = find_algorithm(spec.name);
  if (info == nullptr || !info->folds) return out;
  for (std::int64_t radix = 2; radix <= std::min<std::int64_t>(n, 8); ++radix) {
    std::int64_t power = radix;
    while (power <= n / radix) power *= radix;
    out.insert(power);
  }
  std::int64_t smooth = 2;
  for (std::int64_t threes = 1; threes <= n / 2; threes *= 3) {
    std::int64_t product = threes;
    while (product <= n / 2) product *= 2;
    smooth = std::max(smooth, product);
  }
  out.insert(smooth);
  return out;
}

/// The closed form without calculation. Stages of digits put the same on links in both halves; where a plan may do
/// otherwise, the two differ in their incast, which is left out.
OneSwitch moving_only(const AlgorithmSpec& spec, OneSwitch p) {
  p.gamma = p.delta = 0;
  if (spec.name != "hcps" && spec.name != "hring" && spec.name != "cps" && spec.name != "ring") p.epsilon = 0;
  return p;
}

// The closed form with the best parameters of any server; for a half, what moves counts once. Nor can a flat plan be
// faster than its stages' shortest paths and the strongest cut together, and the calculation that its ranks have in
// common (groups do not wait for each other, so the busiest link and the slowest server may be on different ways).
// Without a closed form nothing is known: 0.
double bound_of(const Candidate& c, std::int64_t n, double size_floats, const OneSwitch& p, const LowerBound& per_float,
                Collective collective) {
  const std::optional<ClosedBound> closed = closed_bound(c.spec, n, size_floats, p);
  if (!closed) return 0;
  double seconds = closed->seconds;
  double halves = 2;
  if (collective != Collective::kAllReduce) {
    halves = 1;
    const double moving = closed_bound(c.spec, n, size_floats, moving_only(c.spec, p))->seconds / 2;
    if (collective == Collective::kAllGather) {
      seconds = moving;
    } else {
      OneSwitch calculating = moving_only(c.spec, p);
      calculating.gamma = p.gamma;
      calculating.delta = p.delta;
      seconds = closed_bound(c.spec, n, size_floats, calculating)->seconds - moving;
    }
  }
  const double by_cut = halves * static_cast<double>(closed->num_steps) * p.alpha +
                        size_floats * (per_float.bandwidth + per_float.calculation);
  return std::max(by_cut, seconds);
}

/// The least latency between servers that are far apart: they meet at a switch with more servers than that below it.
class LeastPaths {
 public:
  explicit LeastPaths(const Topology& topology) {
    std::vector<double> way(static_cast<std::size_t>(topology.num_nodes()), 0);  // down to the nearest server
    for (NodeId id = 0; id < topology.num_nodes(); ++id) {
      const Node& node = topology.node(id);
      double below = std::numeric_limits<double>::infinity();
      for (const ChildRun& run : node.children) below = std::min(below, way[static_cast<std::size_t>(run.node)]);
      way[static_cast<std::size_t>(id)] = node.alpha + (node.is_server() ? 0 : below);
      if (!node.is_server()) meetings_.push_back({topology.num_servers(id), node.alpha + 2 * below});
    }
    std::sort(meetings_.begin(), meetings_.end(),
              [](const Meeting& a, const Meeting& b) { return a.num_servers < b.num_servers; });
    for (std::size_t i = meetings_.size(); i-- > 1;) {
      meetings_[i - 1].latency = std::min(meetings_[i - 1].latency, meetings_[i].latency);
    }
  }

  /// Between ranks whose numbers differ by `distance`; 0 where there are none.
  [[nodiscard]] double at(std::int64_t distance) const {
    const auto it = std::upper_bound(meetings_.begin(), meetings_.end(), distance,
                                     [](std::int64_t d, const Meeting& m) { return d < m.num_servers; });
    return it == meetings_.end() ? 0 : it->latency;
  }

 private:
  struct Meeting {
    std::int64_t num_servers = 0;  // below the switch
    double latency = 0;            // of a path over it, or over any switch with more
  };
  std::vector<Meeting> meetings_;
};

/// What the steps of one half take more than the shortest path each, because their groups reach farther.
double longer_paths(const AlgorithmSpec& spec, std::int64_t n, double shortest, const LeastPaths& paths) {
  const bool is_ring = spec.name == "ring" || spec.name == "hring";
  if (!is_ring && spec.name != "cps" && spec.name != "hcps") return 0;
  const bool is_one_group = spec.name == "cps" || spec.name == "ring";
  double more = 0;
  std::int64_t stride = 1;
  for (const std::int64_t radix : is_one_group ? std::vector<std::int64_t>{n} : spec.factors) {
    if (radix < 2) continue;
    more += static_cast<double>(is_ring ? radix - 1 : 1) * (paths.at(stride * (radix - 1)) - shortest);
    stride *= radix;
  }
  return more;
}

}  // namespace

struct Predictor::Impl {
  /// All candidates of one requested algorithm.
  struct Family {
    AlgorithmSpec asked;
    std::vector<Candidate> candidates;
    std::int64_t work = 0;  // spent on pricing them so far, in stages * servers
  };

  Topology topology;
  ModelOptions options;
  OneSwitch best;
  LowerBound per_float;
  LeastPaths paths;
  DigitsBound digits;
  std::optional<GroupsBound> groups;  // made when it is needed first
  std::vector<Family> families;
  std::shared_ptr<FlatPrices> prices;

  // Calculation on top of the strongest cut only where it is the same on all ways through the plan.
  static LowerBound common_bound(const Topology& t, const ModelOptions& o) {
    LowerBound out = lower_bound(t, 1, o.collective, o.kind);
    const Node* first = nullptr;
    for (NodeId id = 0; id < t.num_nodes(); ++id) {
      const Node& node = t.node(id);
      if (!node.is_server()) continue;
      if (first != nullptr && !(node.server == first->server)) out.calculation = 0;
      first = &node;
    }
    return out;
  }

  Impl(const Topology& t, const std::vector<AlgorithmSpec>& algorithms, const ModelOptions& o)
      : topology(t),
        options(metered(o, t)),
        best(best_case(t, o)),
        per_float(common_bound(t, o)),
        paths(t),
        digits(t, o) {
    const std::int64_t n = topology.num_servers();
    for (const AlgorithmSpec& spec : algorithms) {
      Family family{spec, {}, 0};
      if (spec.name == "hcps" && spec.factors.empty() && n > 1) {
        for (auto& factors : factorisations(n)) {
          if (factors.size() > 1 || n < 4) family.candidates.push_back({{"hcps", std::move(factors), false}, {}});
        }
        if (n <= kMaxUnevenServers) {
          const bool one_switch = topology.height(topology.root()) == 1;
          const bool three = n <= (one_switch ? kMaxUnevenThreeLevelsOnOneSwitch : kMaxUnevenThreeLevels);
          for (AlgorithmSpec& u : uneven_candidates(n, three)) family.candidates.push_back({std::move(u), {}});
        }
        if (family.candidates.empty()) family.candidates.push_back({{"hcps", {n}, false}, {}});
      } else if (needs_factors(spec) && n > 1) {
        for (const std::int64_t product : products(spec, n)) {
          for (auto& factors : ordered_factorisations(product, 1000)) {
            family.candidates.push_back({{spec.name, std::move(factors), false}, {}});
          }
        }
      } else {
        family.candidates.push_back({spec, {}});
      }
      families.push_back(std::move(family));
    }
  }

  double lower_bound_of(const Candidate& c, double size_floats) const {
    return bound_of(c, topology.num_servers(), size_floats, best, per_float, options.collective);
  }

  /// The same, closer; `bound` is the one above.
  double close_bound_of(const Candidate& c, double size_floats, double bound) {
    constexpr double kRounding = 1e-12;
    const std::int64_t n = topology.num_servers();
    if (n == 1 || needs_factors(c.spec)) return bound;
    const auto path = [&](std::int64_t distance) { return paths.at(distance); };
    if (c.spec.uneven) {
      const bool is_equal = c.has_equal_shares.value_or(false);
      bound =
          std::max(bound, uneven_hcps_bound(c.spec.factors, n, size_floats, best, options.collective, path, is_equal));
      if (topology.height(topology.root()) == 1 || n > kMaxUnevenServers) return bound;
      if (!groups) groups.emplace(topology, options);
      return std::max(bound, groups->seconds(c.spec.factors, size_floats, path, is_equal));
    }
    const double halves = options.collective == Collective::kAllReduce ? 2 : 1;
    bound = std::max(bound, (1 - kRounding) * (bound + halves * longer_paths(c.spec, n, best.alpha, paths)));
    if (c.spec.name != "hcps" || n > kMaxUnevenServers) return bound;
    return std::max(bound, digits.seconds(c.spec.factors, size_floats, path));
  }

  [[nodiscard]] std::shared_ptr<const Plan> built(const AlgorithmSpec& spec) const {
    return std::make_shared<const Plan>(build_plan(spec, topology.num_servers()));
  }

  const PricedPlan& price(Candidate& c) {
    if (!c.priced) {
      const bool trivial = topology.num_servers() == 1 && c.spec.factors.empty();
      if (prices) c.priced = prices->find(c.spec, options);
      if (c.priced) return *c.priced;
      if (!c.plan) c.plan = built(trivial ? AlgorithmSpec{"cps", {}, false} : c.spec);
      const Plan whole = as_collective(*std::exchange(c.plan, nullptr), options.collective);
      c.priced = prices ? prices->of(c.spec, whole, topology, options)
                        : std::make_shared<const PricedPlan>(whole, topology, options);
    }
    return *c.priced;
  }

  /// Candidates in the order of some bound of each.
  using Order = std::vector<std::pair<double, std::size_t>>;

  // On regular trees GenTree's factors, level by level, are a factorisation of N, too. Where there are too many to
  // settle them all, that one comes first.
  void put_tree_first(const Family& family, double size_floats, Order& order) const {
    std::vector<std::int64_t> factors;
    for (const SwitchChoice& s : gentree(topology, size_floats, {false, options}).switches) {
      if (s.algorithm == "ring" || s.algorithm == "acps") return;
      factors.insert(factors.end(), s.factors.begin(), s.factors.end());
    }
    const auto it = std::find_if(order.begin(), order.end(),
                                 [&](const auto& o) { return family.candidates[o.second].spec.factors == factors; });
    if (it != order.end()) {
      const auto first = *it;
      order.erase(it);
      order.insert(order.begin(), first);
    }
  }

  /// Which candidates of a family matter: any one below `enough` will do, and none from `limit` on.
  struct Goal {
    double enough = -1;
    double limit = std::numeric_limits<double>::infinity();
  };

  /// Is there work left for this candidate? Counts it.
  bool may_price(Family& family, const Candidate& c) const {
    if (c.priced) return true;
    if (family.work > kMaxPricedInstances) return false;
    family.work += static_cast<std::int64_t>(c.spec.factors.size()) * topology.num_servers();
    return true;
  }

  /// What candidates cost at least, and up to where that leaves them a chance to be the best.
  struct Chances {
    std::vector<double> bounds;
    double most = std::numeric_limits<double>::infinity();
    std::vector<bool> is_priced;
  };

  // The least price is that of one whose bound is among the least, so it is soon found.
  Chances chances_of(Family& family, double size_floats, const Goal& goal, const Order& order) {
    constexpr double kSame = 1 + 1e-9;  // of prices that differ by rounding the first in the given order is taken
    Chances out;
    out.bounds.resize(order.size());
    out.is_priced.resize(order.size());
    if (topology.num_servers() > kMaxUnevenServers) return out;
    Order closest;
    closest.reserve(order.size());
    for (const auto& [bound, i] : order) {
      out.bounds[i] = close_bound_of(family.candidates[i], size_floats, bound);
      closest.emplace_back(out.bounds[i], i);
    }
    out.most = goal.limit;
    if (goal.enough > 0) return out;
    std::sort(closest.begin(), closest.end());
    for (const auto& [bound, i] : closest) {
      Candidate& c = family.candidates[i];
      if (bound >= out.most) break;
      // Building a plan takes less than pricing it, and tells more.
      if (c.spec.uneven && c.spec.factors.size() > 2 && !c.has_equal_shares) {
        c.plan = built(c.spec);
        c.has_equal_shares = shares_equally(*c.plan);
        out.bounds[i] = close_bound_of(c, size_floats, bound);
        if (out.bounds[i] >= out.most) {
          c.plan.reset();
          continue;
        }
      }
      if (!may_price(family, c)) continue;
      out.most = std::min(out.most, price(c).cost(size_floats).total());
      out.is_priced[i] = true;
    }
    out.most *= kSame;
    return out;
  }

  Prediction predict(Family& family, double size_floats, const Goal& goal) {
    Prediction out;
    if (family.candidates.size() == 1) {
      Candidate& c = family.candidates.front();
      out.spec = c.spec;
      const bool hopeless =
          std::isfinite(goal.limit) && close_bound_of(c, size_floats, lower_bound_of(c, size_floats)) >= goal.limit;
      out.num_priced = hopeless ? 0 : 1;
      if (!hopeless) {
        out.terms = price(c).cost(size_floats);
        out.priced = c.priced;
      }
      return out;
    }
    Order order;
    order.reserve(family.candidates.size());
    for (std::size_t i = 0; i < family.candidates.size(); ++i) {
      order.emplace_back(lower_bound_of(family.candidates[i], size_floats), i);
    }
    std::sort(order.begin(), order.end());
    if (topology.num_servers() > kMaxUnevenServers) put_tree_first(family, size_floats, order);
    out.num_considered = static_cast<std::int64_t>(order.size());
    Chances chances = chances_of(family, size_floats, goal, order);
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [bound, i] : order) {
      if (bound >= least || least < goal.enough || bound >= goal.limit) break;
      if (chances.bounds[i] > chances.most) continue;
      Candidate& c = family.candidates[i];
      if (!may_price(family, c)) {
        out.is_complete = false;
        continue;
      }
      const Terms terms = price(c).cost(size_floats);
      chances.is_priced[i] = true;
      if (terms.total() < least) {
        least = terms.total();
        out.terms = terms;
        out.spec = c.spec;
        out.priced = c.priced;
      }
    }
    out.num_priced = std::count(chances.is_priced.begin(), chances.is_priced.end(), true);
    return out;
  }

  std::vector<Prediction> at(double size_floats) {
    std::vector<Prediction> out;
    out.reserve(families.size());
    for (Family& f : families) {
      out.push_back(predict(f, size_floats, {}));
      require_finite(out.back().seconds(), fmt::format("the cost of {}", out.back().algorithm()));
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const Prediction& a, const Prediction& b) { return a.seconds() < b.seconds(); });
    return out;
  }

  std::vector<Prediction> below(double size_floats, double seconds) {
    std::vector<Prediction> out;
    for (Family& f : families) {
      Prediction p = predict(f, size_floats, {-1, seconds});
      if (p.num_priced > 0 && p.seconds() < seconds) out.push_back(std::move(p));
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const Prediction& a, const Prediction& b) { return a.seconds() < b.seconds(); });
    return out;
  }

  // The name of the best algorithm without its factors: a family of many candidates need not be settled once one of
  // them beats all the others.
  std::string best_kind(double size_floats) {
    std::string kind;
    double least = std::numeric_limits<double>::infinity();
    for (Family& f : families) {
      if (f.candidates.size() > 1) continue;
      const double seconds = predict(f, size_floats, {}).seconds();
      if (seconds < least) {
        least = seconds;
        kind = f.asked.name;
      }
    }
    for (Family& f : families) {
      if (f.candidates.size() <= 1) continue;
      const Prediction p = predict(f, size_floats, {least, least});
      if (p.num_priced == 0 || p.seconds() >= least) continue;
      least = p.seconds();
      kind = f.asked.name;
    }
    return kind;
  }

  std::string best_at(double size_floats) { return at(size_floats).front().algorithm(); }

  // Every plan's cost is (almost) linear in the size, so a plan is best on one interval of sizes: doubling finds an end
  // of it, bisection the place.
  std::optional<Flip> flip(double size_floats, bool upwards) {
    ChangeSearch<double> search;
    search.best = [this](double size) { return best_at(size); };
    search.middle = [](double near, double far) -> std::optional<double> {
      if (std::abs(far - near) <= std::max(0.5, 1e-6 * near)) return std::nullopt;
      return std::sqrt(near * far);
    };
    KnownBest<double> near{size_floats, best_at(size_floats)};
    for (;;) {
      const double next = upwards ? near.place * 2 : near.place / 2;
      if (next < 1 || next > kLargestSize) return std::nullopt;
      const KnownBest<double> far{next, best_at(next)};
      if (const auto change = first_change(search, near, far)) return Flip{change->place, change->best};
      near = far;
    }
  }
};

Predictor::Predictor(const Topology& topology, const std::vector<AlgorithmSpec>& algorithms,
                     const ModelOptions& options)
    : impl_(std::make_unique<Impl>(topology, algorithms, options)) {}
Predictor::Predictor(const Topology& topology, const std::vector<AlgorithmSpec>& algorithms,
                     const ModelOptions& options, std::shared_ptr<FlatPrices> prices)
    : Predictor(topology, algorithms, options) {
  impl_->prices = std::move(prices);
}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;

std::vector<Prediction> Predictor::at(double size_floats) { return impl_->at(size_floats); }

std::vector<Prediction> Predictor::below(double size_floats, double seconds) {
  return impl_->below(size_floats, seconds);
}

std::string Predictor::best_kind(double size_floats) { return impl_->best_kind(size_floats); }

Flips Predictor::size_flips(double size_floats) {
  Flips out;
  out.searched_from = 1;
  out.searched_to = kLargestSize;
  if (impl_->families.empty() || size_floats < 1) return out;
  out.below = impl_->flip(size_floats, false);
  out.above = impl_->flip(size_floats, true);
  return out;
}

std::vector<AlgorithmSpec> classic_algorithms() {
  std::vector<const AlgorithmInfo*> compared;
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.comparison_order > 0) compared.push_back(&info);
  }
  std::sort(compared.begin(), compared.end(),
            [](const auto* a, const auto* b) { return a->comparison_order < b->comparison_order; });
  std::vector<AlgorithmSpec> out;
  for (const AlgorithmInfo* info : compared) out.push_back({std::string(info->name), {}, false});
  return out;
}

}  // namespace gar
