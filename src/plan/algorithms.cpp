// The classic AllReduce algorithms as plans (the paper's Section 2.1 and Table `tab:genmodel_on_exist`).
//
//   algorithm          sub-plans                                       steps (ReduceScatter)     fan-in
//   Reduce-Broadcast   one place: rank 0 owns everything               1                         N
//   Ring               one ring digit of radix N                       N - 1                     2
//   RHD                radix-2 digits, nearest partner first           log2 N                    2
//   Co-located PS      one direct digit of radix N                     1                         N
//   HCPS f0 x f1 ...   one direct digit per factor, neighbours first   m                         f_i
//   hierarchical ring  one ring digit per factor                       sum of (f_i - 1)          2
//   Asymmetric CPS     CPS inside groups, then a place between them    2                         group size, groups
//
// N ranks that are no product of the factors form groups as even as possible (uneven_hcps): levels whose groups are
// equal use digits, levels whose groups differ by one rank use Asymmetric CPS.
#include "gar/algorithms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <queue>
#include <utility>

#include "gar/errors.hpp"
#include "gar/topology.hpp"

namespace gar {

namespace {

// Fine enough that rounding never matters, small enough for exact doubles and readable files.
constexpr std::int64_t kManyUnits = std::int64_t{1} << 50;

void check_ranks(std::int64_t n) {
  if (n < 1 || n > kMaxServers) {
    throw InvalidArgument(fmt::format("{} ranks; accepted are 1 to {}", n, kMaxServers));
  }
}

Plan empty_plan(std::string algorithm, std::int64_t n, std::int64_t units) {
  check_ranks(n);
  Plan plan;
  plan.algorithm = std::move(algorithm);
  plan.num_ranks = n;
  plan.num_units = units;
  return plan;
}

SubPlanId add(Plan& plan, SubPlan subplan) {
  plan.subplans.push_back(std::move(subplan));
  return static_cast<SubPlanId>(plan.subplans.size()) - 1;
}

Plan digits_plan(std::string algorithm, std::int64_t n, const std::vector<std::int64_t>& factors, StageKind kind) {
  std::int64_t product = 1;
  for (const std::int64_t f : factors) {
    if (f < 2 || f > n || product > n / f) {
      product = -1;
      break;
    }
    product *= f;
  }
  if (product != n) {
    throw InvalidArgument(
        fmt::format("factors {} do not multiply to {} servers; accepted are factors of at least 2 with product {}, or "
                    "uneven groups as in hcps:~{}",
                    fmt::join(factors, "x"), n, n, fmt::join(factors, "x")));
  }
  Plan plan = empty_plan(std::move(algorithm), n, n);
  if (n == 1) return plan;
  SubPlan sp;
  sp.children = {{kLeaf, n}};
  std::int64_t stride = 1;
  for (const std::int64_t f : factors) {
    sp.stages.push_back({kind, stride, f, {}});
    stride *= f;
  }
  plan.root = add(plan, std::move(sp));
  return plan;
}

// Least common multiple, or 0 when it is beyond kManyUnits.
std::int64_t bounded_lcm(std::int64_t a, std::int64_t b) {
  if (a == 0) return 0;
  const std::int64_t q = b / std::gcd(a, b);
  return q > kManyUnits / a ? 0 : a * q;
}

std::int64_t units_for(std::int64_t n, const std::vector<std::int64_t>& divisors) {
  std::int64_t units = n;
  for (const std::int64_t d : divisors) units = bounded_lcm(units, d);
  return units != 0 ? units : kManyUnits / n * n;
}

// Placement that a sub-plan of n ranks leaves, while the plan is still under construction.
std::vector<Piece> placement_of(const Plan& plan, SubPlanId id, std::int64_t n) {
  if (id == kLeaf) return {{0, plan.num_units, 0}};
  Plan part = plan;
  part.root = id;
  part.num_ranks = n;
  return PlanIndex(part).placement_after(id);
}

// Groups of ranks as even as possible, the larger ones first.
std::vector<std::pair<std::int64_t, std::int64_t>> even_groups(std::int64_t n, std::int64_t groups) {
  const std::int64_t small = n / groups;
  const std::int64_t num_large = n % groups;
  std::vector<std::pair<std::int64_t, std::int64_t>> out;  // {size, how many}
  if (num_large > 0) out.emplace_back(small + 1, num_large);
  out.emplace_back(small, groups - num_large);
  return out;
}

// Builds the levels of uneven_hcps; sub-plans of the same size and level are shared.
class UnevenBuilder {
 public:
  UnevenBuilder(Plan& plan, const std::vector<std::int64_t>& factors) : plan_(plan), factors_(factors) {}

  SubPlanId build(std::int64_t n, std::size_t level) {
    if (n == 1) return kLeaf;
    const auto key = std::make_pair(n, level);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
    SubPlan sp;
    if (level == 0) {
      sp.children = {{kLeaf, n}};
      sp.stages = {{StageKind::kDirect, 1, n, {}}};
      sp.label = fmt::format("groups of {}", n);
    } else {
      const std::int64_t groups = std::min(factors_[level], n);
      const auto sizes = even_groups(n, groups);
      for (const auto& [size, count] : sizes) sp.children.push_back({build(size, level - 1), count});
      if (sizes.size() == 1) {
        sp.stages = {{StageKind::kDirect, sizes[0].first, groups, {}}};
      } else {
        sp.stages = {{StageKind::kPlace, 1, 1, acps_target(placements(sp, sizes), n, plan_.num_units)}};
      }
      sp.label = fmt::format("between {} groups", groups);
    }
    return known_[key] = add(plan_, std::move(sp));
  }

 private:
  std::vector<std::vector<Piece>> placements(const SubPlan& sp,
                                             const std::vector<std::pair<std::int64_t, std::int64_t>>& sizes) const {
    std::vector<std::vector<Piece>> held;
    std::int64_t first = 0;
    for (std::size_t run = 0; run < sizes.size(); ++run) {
      const std::vector<Piece> one = placement_of(plan_, sp.children[run].subplan, sizes[run].first);
      for (std::int64_t c = 0; c < sizes[run].second; ++c) {
        held.push_back(one);
        for (Piece& p : held.back()) p.owner += static_cast<std::int32_t>(first);
        first += sizes[run].first;
      }
    }
    return held;
  }

  Plan& plan_;
  const std::vector<std::int64_t>& factors_;
  std::map<std::pair<std::int64_t, std::size_t>, SubPlanId> known_;
};

}  // namespace

Plan reduce_broadcast(std::int64_t num_ranks) {
  Plan plan = empty_plan("reduce-broadcast", num_ranks, 1);
  if (num_ranks == 1) return plan;
  SubPlan sp;
  sp.children = {{kLeaf, num_ranks}};
  sp.stages = {{StageKind::kPlace, 1, 1, {{0, 1, 0}}}};
  plan.root = add(plan, std::move(sp));
  return plan;
}

Plan ring(std::int64_t num_ranks) {
  check_ranks(num_ranks);
  return digits_plan("ring", num_ranks, num_ranks == 1 ? std::vector<std::int64_t>{} : std::vector{num_ranks},
                     StageKind::kRing);
}

Plan cps(std::int64_t num_ranks) {
  check_ranks(num_ranks);
  return digits_plan("cps", num_ranks, num_ranks == 1 ? std::vector<std::int64_t>{} : std::vector{num_ranks},
                     StageKind::kDirect);
}

Plan hcps(std::int64_t num_ranks, const std::vector<std::int64_t>& factors) {
  check_ranks(num_ranks);
  return digits_plan(fmt::format("hcps:{}", fmt::join(factors, "x")), num_ranks, factors, StageKind::kDirect);
}

Plan hierarchical_ring(std::int64_t num_ranks, const std::vector<std::int64_t>& factors) {
  check_ranks(num_ranks);
  return digits_plan(fmt::format("hring:{}", fmt::join(factors, "x")), num_ranks, factors, StageKind::kRing);
}

Plan rhd(std::int64_t num_ranks) {
  check_ranks(num_ranks);
  const auto p = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(num_ranks)));
  Plan plan = empty_plan("rhd", num_ranks, p);
  if (num_ranks == 1) return plan;
  SubPlan top;
  const std::int64_t folded = num_ranks - p;
  if (folded > 0) {
    SubPlan pair;
    pair.children = {{kLeaf, 2}};
    pair.stages = {{StageKind::kPlace, 1, 1, {{0, p, 0}}}};
    pair.label = "fold into a partner";
    top.children.push_back({add(plan, std::move(pair)), folded});
  }
  if (p > folded) top.children.push_back({kLeaf, p - folded});
  for (std::int64_t stride = 1; stride < p; stride *= 2) top.stages.push_back({StageKind::kDirect, stride, 2, {}});
  plan.root = add(plan, std::move(top));
  return plan;
}

Plan uneven_hcps(std::int64_t num_ranks, const std::vector<std::int64_t>& factors) {
  check_ranks(num_ranks);
  if (factors.empty()) throw InvalidArgument("uneven hcps needs at least one factor, as in hcps:~9x11");
  std::vector<std::int64_t> divisors;
  std::int64_t largest = num_ranks;
  for (std::size_t level = factors.size(); level-- > 0;) {
    if (factors[level] < 2 || (level > 0 && factors[level] > largest)) {
      throw InvalidArgument(fmt::format("hcps:~{}: factor {} does not fit {} servers; accepted are 2 to {}",
                                        fmt::join(factors, "x"), factors[level], largest, largest));
    }
    divisors.push_back(largest);
    divisors.push_back(std::max<std::int64_t>(largest - 1, 1));
    divisors.push_back(factors[level]);
    if (level > 0) largest = (largest + factors[level] - 1) / factors[level];
  }
  if (factors[0] != largest) {
    throw InvalidArgument(
        fmt::format("hcps:~{}: the innermost groups of {} servers have up to {}, so the first factor must be {}",
                    fmt::join(factors, "x"), num_ranks, largest, largest));
  }
  Plan plan = empty_plan(fmt::format("hcps:~{}", fmt::join(factors, "x")), num_ranks, units_for(num_ranks, divisors));
  plan.root = UnevenBuilder(plan, factors).build(num_ranks, factors.size() - 1);
  return plan;
}

Plan acps(const std::vector<std::int64_t>& group_sizes) {
  std::int64_t n = 0;
  for (const std::int64_t g : group_sizes) {
    if (g < 1 || g > kMaxServers || n > kMaxServers) {
      throw InvalidArgument(fmt::format("acps:{}: accepted are group sizes from 1 to {} in all",
                                        fmt::join(group_sizes, "+"), kMaxServers));
    }
    n += g;
  }
  if (group_sizes.empty()) throw InvalidArgument("acps needs group sizes, as in acps:4+3");
  Plan plan = empty_plan(fmt::format("acps:{}", fmt::join(group_sizes, "+")), n, units_for(n, group_sizes));
  std::map<std::int64_t, SubPlanId> known;
  SubPlan top;
  std::vector<std::vector<Piece>> held;
  std::int64_t first = 0;
  for (const std::int64_t g : group_sizes) {
    if (g > 1 && !known.contains(g)) {
      known[g] = add(plan, {{{kLeaf, g}}, {{StageKind::kDirect, 1, g, {}}}, fmt::format("group of {}", g)});
    }
    const SubPlanId child = g == 1 ? kLeaf : known[g];
    if (!top.children.empty() && top.children.back().subplan == child) {
      ++top.children.back().count;
    } else {
      top.children.push_back({child, 1});
    }
    held.push_back(placement_of(plan, child, g));
    for (Piece& p : held.back()) p.owner += static_cast<std::int32_t>(first);
    first += g;
  }
  if (group_sizes.size() > 1) {
    top.stages = {{StageKind::kPlace, 1, 1, acps_target(held, n, plan.num_units)}};
    top.label = fmt::format("between {} groups", group_sizes.size());
  }
  plan.root = n == 1 ? kLeaf : add(plan, std::move(top));
  return plan;
}

// Every position of the vector is held by one rank of each child. A rank may take a position while its own holding
// covers it, and must have taken its share before its holding ends: unit-machine scheduling with release times and
// deadlines. Serving the earliest deadline first finds a schedule whenever there is one, and with equal shares and
// whole holdings there always is: inside any window, a child with n_c ranks has at most window * n_c / U whole
// holdings, which need at most window / U * (sum of n_c) * U / n = window units. Where holdings consist of several
// pieces (deadline: the end of the last one) a remainder may be left; it goes to whoever holds the position.
std::vector<Piece> acps_target(const std::vector<std::vector<Piece>>& held, std::int64_t num_ranks,
                               std::int64_t num_units) {
  struct Arrival {
    std::int64_t begin, end;
    std::int32_t owner;
  };
  std::vector<Arrival> arrivals;
  std::vector<std::int64_t> deadline(static_cast<std::size_t>(num_ranks), 0);
  std::vector<std::int64_t> need(static_cast<std::size_t>(num_ranks), 0);
  for (const auto& child : held) {
    for (const Piece& p : child) {
      arrivals.push_back({p.begin, p.end, p.owner});
      auto& d = deadline[static_cast<std::size_t>(p.owner)];
      d = std::max(d, p.end);
    }
  }
  std::int64_t num_holders = 0;
  for (std::int64_t r = 0; r < num_ranks; ++r) num_holders += deadline[static_cast<std::size_t>(r)] > 0 ? 1 : 0;
  std::int64_t seen = 0;
  const auto boundary = [&](std::int64_t k) {
    __extension__ using Wide = __int128;
    return static_cast<std::int64_t>(static_cast<Wide>(num_units) * k / num_holders);
  };
  for (std::size_t r = 0; r < need.size(); ++r) {
    if (deadline[r] == 0) continue;
    need[r] = boundary(seen + 1) - boundary(seen);
    ++seen;
  }
  std::sort(arrivals.begin(), arrivals.end(), [](const Arrival& a, const Arrival& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.owner < b.owner;
  });

  struct Candidate {
    std::int64_t deadline, end;
    std::int32_t owner;
    bool operator<(const Candidate& o) const {  // earliest deadline on top
      return deadline != o.deadline ? deadline > o.deadline : owner > o.owner;
    }
  };
  std::priority_queue<Candidate> ready;
  std::vector<Piece> target;
  std::size_t next = 0;
  std::int64_t x = 0;
  Candidate last{};
  while (x < num_units) {
    for (; next < arrivals.size() && arrivals[next].begin <= x; ++next) {
      const Arrival& a = arrivals[next];
      ready.push({deadline[static_cast<std::size_t>(a.owner)], a.end, a.owner});
      last = {0, a.end, a.owner};
    }
    while (!ready.empty() && (ready.top().end <= x || need[static_cast<std::size_t>(ready.top().owner)] == 0)) {
      if (ready.top().end > x) last = ready.top();
      ready.pop();
    }
    const std::int64_t until = next < arrivals.size() ? arrivals[next].begin : num_units;
    Candidate who = last;
    std::int64_t end = until;
    if (!ready.empty()) {
      who = ready.top();
      auto& n = need[static_cast<std::size_t>(who.owner)];
      end = std::min({until, who.end, x + n});
      n -= end - x;
    } else {
      if (last.end <= x) {  // nobody is waiting: any holder of x will do
        const auto it =
            std::find_if(arrivals.begin(), arrivals.end(), [&](const Arrival& a) { return a.begin <= x && x < a.end; });
        if (it == arrivals.end()) throw InvalidArgument(fmt::format("acps: nobody holds unit {}", x));
        who = last = {0, it->end, it->owner};
      }
      end = std::min(until, who.end);
    }
    if (!target.empty() && target.back().owner == who.owner) {
      target.back().end = end;
    } else {
      target.push_back({x, end, who.owner});
    }
    x = end;
  }
  return target;
}

}  // namespace gar
