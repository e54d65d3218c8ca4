// What `gar fit` measures.
//
// An x-to-x mesh (AllGather by CPS) has x - 1 senders at every port, a shift (AllGather by Ring) of the same length
// one: the time that the mesh takes longer is the cost of several senders. Both with a few bytes say what handling a
// message costs, for both handle equally many, but the mesh pays one latency for them. CPS AllReduces add the
// reductions. A budget that is short pays for the beginning of the plan alone, so points of a curve come in the order
// ends, middle, quarters, ...
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "gar/fit_design.hpp"

namespace gar {
namespace {

constexpr std::int64_t kAllCounts = 16;
constexpr double kCountStep = 1.2;
/// Lengths of the ping-pong in addition to those of the collectives: two floats are what two ranks can gather.
constexpr std::int64_t kShortFloats[] = {2, 64, 1024, 16384};
/// Of every rank in the shortest meshes, shifts and x-to-1, in which only messages cost time.
constexpr double kShortBlock = 2;
constexpr std::int64_t kFanIns[] = {2, 3, 4, 6, 8, 12, 16};

/// When the turn of a group comes: the refinement level of its point (refinement_levels), plus one of these. What comes
/// first within a level tells most about it.
namespace turn {
constexpr double kLongMesh = 0;
constexpr double kAdmittedMesh = 0.05;
constexpr double kEndOfCurve = 0.1;  ///< AllReduces with the shortest and the longest vectors
constexpr double kShortPair = 0.2;
constexpr double kShortMesh = 0.25;
constexpr double kInsideCurve = 0.3;  ///< AllReduces with vectors between these
constexpr double kXToOne = 0.4;
constexpr double kShorterMesh = 0.5;
/// In addition, for AllReduces in which ranks send as they like although the runtime will admit senders: the others are
/// nearer to what runs.
constexpr double kUnlikeRuntime = 0.5;
constexpr double kNextReductionLength = 0.7;  ///< for every further length
constexpr double kNextHeldOutLength = 0.1;    ///< for every further length
}  // namespace turn

AlgorithmSpec named(const char* name) { return {name, {}, false}; }

std::int64_t num_ranks_of(const std::vector<std::int64_t>& servers) {
  return static_cast<std::int64_t>(servers.size());
}

Observation gathering(const std::vector<std::int64_t>& servers, const char* algorithm, double floats) {
  Observation out;
  out.collective = Collective::kAllGather;
  out.algorithm = named(algorithm);
  out.servers = servers;
  const auto n = static_cast<double>(num_ranks_of(servers));
  out.size_floats = n * std::max(std::floor(floats / n), 1.0);
  return out;
}

Observation reducing(const std::vector<std::int64_t>& servers, AlgorithmSpec algorithm, double floats) {
  Observation out;
  out.algorithm = std::move(algorithm);
  out.servers = servers;
  out.size_floats = floats;
  return out;
}

Observation x_to_one(const std::vector<std::int64_t>& servers, double floats) {
  Observation out;
  out.kind = ObservationKind::kGather;
  out.servers = servers;
  // As much arrives at the first as in the mesh.
  out.size_floats = std::max(std::floor(floats / static_cast<double>(num_ranks_of(servers))), 1.0);
  return out;
}

/// A group and when its turn comes.
struct Ordered {
  FitGroup group;
  double order = 0;
};

class Planner {
 public:
  Planner(const Topology& topology, const FitSizes& sizes, const FitScope& scope)
      : topology_(topology), sizes_(sizes), scope_(scope) {}

  std::vector<FitGroup> run() {
    const bool has_network = topology_.num_servers() > 1;
    if (has_network) add_ping_pong();
    add_reductions();
    if (has_network) add_sets();
    if (has_network && scope_.is_validated) add_held_out();
    std::stable_sort(groups_.begin(), groups_.end(), [](const Ordered& a, const Ordered& b) {
      if (a.group.is_essential != b.group.is_essential) return a.group.is_essential;
      return a.order < b.order;
    });
    std::vector<FitGroup> out;
    for (Ordered& ordered : groups_) out.push_back(std::move(ordered.group));
    return out;
  }

 private:
  [[nodiscard]] double largest() const { return sizes_.collective.back(); }
  [[nodiscard]] double second() const { return sizes_.collective[(sizes_.collective.size() - 1) / 2]; }

  void add(std::vector<Observation> cells, double order, bool is_essential) {
    groups_.push_back({{std::move(cells), is_essential, {}}, order});
  }

  void add_ping_pong() {
    std::set<double> floats(sizes_.collective.begin(), sizes_.collective.end());
    for (const std::int64_t f : kShortFloats) {
      if (static_cast<double>(f) < sizes_.collective.front()) floats.insert(static_cast<double>(f));
    }
    for (const double f : floats) add({gathering({0, 1}, "cps", f)}, 0, true);
  }

  void add_reductions() {
    std::vector<std::int64_t> all;
    for (std::int64_t s = 0; s < topology_.num_servers(); ++s) all.push_back(s);
    std::vector<std::vector<std::int64_t>> sets{{0}};
    if (!scope_.has_lone_reductions) sets.insert(sets.begin(), all);
    for (const std::vector<std::int64_t>& servers : sets) {
      for (std::size_t i = 0; i < sizes_.reduction.size(); ++i) {
        std::vector<Observation> cells;
        for (const std::int64_t fan_in : kFanIns) {
          Observation cell;
          cell.kind = ObservationKind::kReduction;
          cell.servers = servers;
          cell.size_floats = sizes_.reduction[i];
          cell.fan_in = fan_in;
          cells.push_back(std::move(cell));
        }
        add(std::move(cells), static_cast<double>(i) * turn::kNextReductionLength, i < 2 && servers == sets.front());
      }
    }
  }

  void add_sets() {
    std::vector<ServerSet> sets = server_sets(topology_);
    for (std::size_t begin = 0; begin < sets.size();) {
      std::size_t end = begin;
      while (end < sets.size() && sets[end].level == sets[begin].level &&
             sets[end].per_child == sets[begin].per_child) {
        ++end;
      }
      const std::vector<int> levels = refinement_levels(end - begin);
      for (std::size_t i = begin; i < end; ++i) {
        add_set(sets[i], levels[i - begin]);
        add_short(sets[i], levels[i - begin]);
        if (scope_.max_senders > 0) add_admitted(sets[i], levels[i - begin]);
      }
      begin = end;
    }
  }

  /// Receivers that admit senders: what is left of incast then. Shifts and pairs have one sender anyway.
  void add_admitted(const ServerSet& set, int level) {
    if (set.servers.size() < 3) return;
    const auto admitted = [&](Observation cell) {
      cell.max_senders = scope_.max_senders;
      return std::vector<Observation>{std::move(cell)};
    };
    add(admitted(gathering(set.servers, "cps", largest())), level + turn::kAdmittedMesh, level <= 1);
    add(admitted(gathering(set.servers, "cps", short_floats(set))), level + turn::kShortMesh, level <= 1);
    for (std::size_t i = 0; i < sizes_.collective.size(); ++i) {
      const bool is_end = i == 0 || i + 1 == sizes_.collective.size();
      add(admitted(reducing(set.servers, named("cps"), sizes_.collective[i])),
          level + (is_end ? turn::kEndOfCurve : turn::kInsideCurve), level <= 1 && is_end);
    }
  }

  [[nodiscard]] static double short_floats(const ServerSet& set) {
    return kShortBlock * static_cast<double>(num_ranks_of(set.servers));
  }

  /// What handling a message costs: a rank of the mesh handles many of them in one latency, one of the shift one.
  void add_short(const ServerSet& set, int level) {
    if (set.servers.size() < 3 || short_floats(set) >= sizes_.collective.front()) return;
    add({gathering(set.servers, "cps", short_floats(set)), gathering(set.servers, "ring", short_floats(set))},
        level + turn::kShortMesh, level <= 1);
    if (scope_.has_messages && !scope_.meets_before_gathers) {
      add({x_to_one(set.servers, short_floats(set))}, level + turn::kXToOne, false);
    }
  }

  void add_set(const ServerSet& set, int level) {
    const std::vector<std::int64_t>& servers = set.servers;
    const bool is_pair = servers.size() == 2;
    const bool is_ping_pong = servers == std::vector<std::int64_t>{0, 1};
    if (is_pair && !is_ping_pong) {
      for (const std::int64_t f : kShortFloats) {
        const auto floats = static_cast<double>(f);
        if (floats < sizes_.collective.front())
          add({gathering(servers, "cps", floats)}, level + turn::kShortPair, f == 2);
      }
    }
    // With two ranks mesh and shift are the same.
    if (!is_ping_pong) {
      std::vector<Observation> large{gathering(servers, "cps", largest())};
      std::vector<Observation> smaller{gathering(servers, "cps", second())};
      if (!is_pair) {
        large.push_back(gathering(servers, "ring", largest()));
        smaller.push_back(gathering(servers, "ring", second()));
      }
      add(std::move(large), level + turn::kLongMesh, level <= 1);
      // Short messages may meet a queue where long ones, which TCP has slowed down, do not.
      if (sizes_.collective.size() > 1) add(std::move(smaller), level + turn::kShorterMesh, level == 0);
    }
    for (std::size_t i = 0; i < sizes_.collective.size(); ++i) {
      const bool is_end = i == 0 || i + 1 == sizes_.collective.size();
      const double later = scope_.max_senders > 0 && !is_pair ? turn::kUnlikeRuntime : 0;
      add({reducing(servers, named("cps"), sizes_.collective[i])},
          level + later + (is_end ? turn::kEndOfCurve : turn::kInsideCurve), level <= 1 && is_end);
    }
    if (scope_.has_messages && servers.size() > 2) add({x_to_one(servers, largest())}, level + turn::kXToOne, false);
  }

  void add_held_out() {
    const std::vector<std::int64_t> counts = held_out_counts(topology_.num_servers());
    const std::vector<double> floats = held_out_sizes(sizes_.collective);
    const std::vector<double> short_floats = held_out_short_sizes(sizes_.collective);
    const std::vector<int> levels = refinement_levels(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      for (std::size_t k = 0; k < floats.size(); ++k) {
        add_held_out_case(counts[i], floats[k], held_out_algorithms(counts[i]),
                          levels[i] + turn::kNextHeldOutLength * static_cast<double>(k));
      }
      for (std::size_t k = 0; k < short_floats.size(); ++k) {
        add_held_out_case(counts[i], short_floats[k], held_out_short_algorithms(counts[i]),
                          levels[i] + turn::kNextHeldOutLength * static_cast<double>(k));
      }
    }
  }

  void add_held_out_case(std::int64_t num_ranks, double floats, const std::vector<AlgorithmSpec>& algorithms,
                         double order) {
    std::vector<std::int64_t> servers;
    for (std::int64_t s = 0; s < num_ranks; ++s) servers.push_back(s);
    std::vector<Observation> cells;
    for (const AlgorithmSpec& algorithm : algorithms) {
      cells.push_back(reducing(servers, algorithm, floats));
      cells.back().max_senders = scope_.max_senders;
    }
    if (scope_.has_native) {
      cells.push_back(reducing(servers, {}, floats));
      cells.back().is_native = true;
    }
    for (Observation& cell : cells) cell.is_fitted = false;
    add(std::move(cells), order, false);
  }

  const Topology& topology_;
  const FitSizes& sizes_;
  FitScope scope_;
  std::vector<Ordered> groups_;
};

/// The switch with the most children of those whose links below are of a level, and the first server below it.
struct WidestSwitch {
  NodeId node = -1;
  std::int64_t first_server = 0;
};

/// By level. A child belongs to the level of its own height; of switches whose children differ, the highest counts.
void find_widest(const Topology& topology, NodeId id, std::int64_t first, std::map<int, WidestSwitch>& out) {
  const Node& node = topology.node(id);
  if (node.is_server()) return;
  WidestSwitch& widest = out[topology.height(id) - 1];
  if (widest.node < 0 || topology.num_children(widest.node) < topology.num_children(id)) widest = {id, first};
  for (const ChildRun& run : node.children) {
    find_widest(topology, run.node, first, out);
    first += run.count * topology.num_servers(run.node);
  }
}

}  // namespace

bool is_held_out(const FitGroup& group) { return !group.cells.front().is_fitted; }

bool has_incast(const Topology& topology, const std::vector<FitGroup>& groups) {
  constexpr double kClearly = 1.2;
  constexpr double kManyLost = 20;  // segments
  constexpr double kManyMore = 5;
  const std::vector<ServerSet> sets = server_sets(topology);
  for (const FitGroup& group : groups) {
    if (group.cells.size() != 2 || group.cells[0].collective != Collective::kAllGather) continue;
    const Observation& mesh = group.cells[0];
    const Observation& shift = group.cells[1];
    if (mesh.seconds.empty() || shift.seconds.empty()) continue;
    const auto set =
        std::find_if(sets.begin(), sets.end(), [&](const ServerSet& known) { return known.servers == mesh.servers; });
    const bool is_flat = set != sets.end() && set->per_child == 1;
    if (is_flat && median_seconds(mesh) > kClearly * median_seconds(shift)) return true;
    if (mesh.retransmits > kManyLost + kManyMore * std::max(shift.retransmits, 0.0)) return true;
  }
  return false;
}

void take_over(std::vector<FitGroup>& plan, const std::vector<FitGroup>& measured) {
  for (const FitGroup& from : measured) {
    if (from.cells.front().seconds.empty()) continue;
    for (FitGroup& to : plan) {
      const bool is_same = to.cells.size() == from.cells.size() &&
                           std::equal(to.cells.begin(), to.cells.end(), from.cells.begin(), is_same_cell);
      if (!is_same) continue;
      const bool is_essential = to.is_essential;
      to = from;
      to.is_essential = is_essential;
    }
  }
}

std::vector<std::int64_t> participant_counts(std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t x = 2; x < most;) {
    out.push_back(x);
    x = x < kAllCounts ? x + 1 : static_cast<std::int64_t>(std::ceil(kCountStep * static_cast<double>(x)));
  }
  out.push_back(most);
  return out;
}

std::vector<int> refinement_levels(std::size_t count) {
  std::vector<int> out(count, -1);
  if (count == 0) return out;
  out.front() = out.back() = 0;
  for (int level = 1; std::find(out.begin(), out.end(), -1) != out.end(); ++level) {
    std::vector<int> next = out;
    for (std::size_t begin = 0; begin < count;) {
      std::size_t end = begin + 1;
      while (end < count && out[end] < 0) ++end;
      if (end - begin > 1) next[(begin + end) / 2] = level;
      begin = end;
    }
    out = std::move(next);
  }
  return out;
}

std::vector<ServerSet> server_sets(const Topology& topology) {
  std::map<int, WidestSwitch> switches;
  find_widest(topology, topology.root(), 0, switches);
  std::vector<ServerSet> out;
  const auto add = [&](const WidestSwitch& above, int level, std::int64_t num_children, std::int64_t per_child) {
    ServerSet set{{}, level, num_children, per_child};
    std::int64_t first = above.first_server;
    std::int64_t left = num_children;
    for (const ChildRun& run : topology.node(above.node).children) {
      const std::int64_t below = topology.num_servers(run.node);
      for (std::int64_t i = 0; i < run.count && left > 0; ++i, --left, first += below) {
        for (std::int64_t k = 0; k < std::min(per_child, below); ++k) set.servers.push_back(first + k);
      }
    }
    const bool is_known =
        std::any_of(out.begin(), out.end(), [&](const ServerSet& other) { return other.servers == set.servers; });
    if (set.servers.size() > 1 && !is_known) out.push_back(std::move(set));
  };
  for (const auto& [level, widest] : switches) {
    std::int64_t most_below = 1;
    for (const ChildRun& run : topology.node(widest.node).children) {
      most_below = std::max(most_below, topology.num_servers(run.node));
    }
    const std::set<std::int64_t> per_child{1, std::min<std::int64_t>(2, most_below), most_below};
    for (const std::int64_t k : per_child) {
      for (const std::int64_t c : participant_counts(topology.num_children(widest.node))) add(widest, level, c, k);
    }
  }
  return out;
}

std::vector<double> held_out_sizes(const std::vector<double>& fitted) {
  std::set<double> out;
  for (std::size_t i = 1; i < fitted.size(); ++i) out.insert(two_digits(std::sqrt(fitted[i - 1] * fitted[i])));
  for (const double factor : {1.4, 0.6, 0.35, 2.0}) {
    if (out.size() < 3) out.insert(two_digits(factor * fitted.back()));
  }
  for (const double f : fitted) out.erase(f);
  std::vector<double> all(out.begin(), out.end());
  while (all.size() > 3) all.erase(all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
  return all;
}

std::vector<double> held_out_short_sizes(const std::vector<double>& fitted) {
  constexpr double kShortest = 2;
  constexpr double kStep = 8;
  constexpr double kClearlyBelow = 0.5;
  std::vector<double> out;
  for (double floats = kShortest; floats < kClearlyBelow * fitted.front(); floats *= kStep) out.push_back(floats);
  return out;
}

std::vector<std::int64_t> held_out_counts(std::int64_t num_ranks) {
  std::set<std::int64_t> out;
  if (num_ranks < 6) {
    for (std::int64_t n = std::min<std::int64_t>(3, num_ranks); n <= num_ranks; ++n) out.insert(n);
    return {out.begin(), out.end()};
  }
  for (const std::int64_t n : {6, 8, 9, 12, 13, 15}) {
    if (n <= num_ranks) out.insert(n);
  }
  if (num_ranks != 14) out.insert(num_ranks);  // 13 and 15 stand for 14
  if (num_ranks > 16) out.insert({num_ranks - 1, num_ranks / 2});
  return {out.begin(), out.end()};
}

std::vector<AlgorithmSpec> held_out_algorithms(std::int64_t num_ranks) {
  std::vector<AlgorithmSpec> out{named("ring"), named("rhd"), named("cps")};
  bool has_three = false;
  for (const std::vector<std::int64_t>& factors : ordered_factorisations(num_ranks, 10'000)) {
    const bool is_three = factors.size() == 3 && !has_three;
    if (factors.size() != 2 && !is_three) continue;
    has_three = has_three || is_three;
    out.push_back({"hcps", factors, false});
  }
  return out;
}

std::vector<AlgorithmSpec> held_out_short_algorithms(std::int64_t num_ranks) {
  std::vector<AlgorithmSpec> out = held_out_algorithms(num_ranks);
  out.insert(out.end(), {named("recursive-doubling"), named("gather")});
  return out;
}

std::vector<FitGroup> plan_fit(const Topology& topology, const FitSizes& sizes, const FitScope& scope) {
  return Planner(topology, sizes, scope).run();
}

}  // namespace gar
