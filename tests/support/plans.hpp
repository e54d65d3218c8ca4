// The plans of every builder, for tests that hold for all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/plan.hpp"

namespace gar::test {

using Factors = std::vector<std::int64_t>;

inline std::int64_t uniform(std::mt19937_64& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}

/// Random group sizes that add up to n: at least two groups when n allows it.
inline Factors random_groups(std::mt19937_64& random, std::int64_t n) {
  Factors groups;
  for (std::int64_t left = n; left > 0;) {
    const std::int64_t most = groups.empty() && left > 1 ? left - 1 : left;
    groups.push_back(uniform(random, 1, most));
    left -= groups.back();
  }
  return groups;
}

/// Factors that uneven_hcps accepts for n ranks: inner groups of at least two ranks, two or three levels.
inline std::vector<Factors> uneven_factors(std::int64_t n) {
  const auto groups_of = [](std::int64_t ranks, std::int64_t groups) { return (ranks + groups - 1) / groups; };
  std::vector<Factors> out;
  for (std::int64_t outer = 2; outer <= n; ++outer) {
    const std::int64_t inside = groups_of(n, outer);
    if (inside < 2) break;
    out.push_back({inside, outer});
    for (std::int64_t middle = 2; middle <= inside; ++middle) {
      const std::int64_t innermost = groups_of(inside, middle);
      if (innermost < 2) break;
      out.push_back({innermost, middle, outer});
    }
  }
  return out;
}

/// At most `most` of the factors, drawn at random.
inline std::vector<Factors> some_of(std::mt19937_64& random, std::vector<Factors> all, std::size_t most) {
  if (all.size() <= most) return all;
  std::shuffle(all.begin(), all.end(), random);
  all.resize(most);
  return all;
}

/// The same plan with its last `num_exchanges` stages as exchanges. They must be digit stages.
inline Plan with_exchanges(Plan plan, std::size_t num_exchanges) {
  std::vector<Stage>& stages = plan.subplans[static_cast<std::size_t>(plan.root)].stages;
  for (std::size_t i = stages.size() - num_exchanges; i < stages.size(); ++i) stages[i].kind = StageKind::kExchange;
  plan.algorithm += ", the last " + std::to_string(num_exchanges) + " exchanged whole";
  return plan;
}

/// Digit stages that scatter, with exchanges above them, also behind a fold and above groups. For 4 ranks or more.
inline std::vector<Plan> mixed_exchange_plans(std::mt19937_64& random, std::int64_t n, std::size_t most_per_kind) {
  std::vector<Plan> plans{with_exchanges(rhd(n), 1)};
  if (n >= 8) plans.push_back(with_exchanges(rhd(n), 2));
  for (const Factors& f : some_of(random, ordered_factorisations(n), most_per_kind)) {
    if (f.size() < 2) continue;
    const auto exchanged = static_cast<std::size_t>(uniform(random, 1, static_cast<std::int64_t>(f.size()) - 1));
    plans.push_back(with_exchanges(hcps(n, f), exchanged));
    plans.push_back(with_exchanges(hierarchical_ring(n, f), exchanged));
  }
  for (std::int64_t groups = 2; groups <= n / 2; ++groups) {
    if (n % groups != 0) continue;
    Plan inner = n / groups % 2 == 0 ? rhd(n / groups) : reduce_broadcast(n / groups);
    const std::int64_t active = PlanIndex(inner).num_active_after(inner.root);
    inner.subplans.push_back({{{inner.root, groups}}, {{StageKind::kExchange, active, groups, {}}}, ""});
    inner.root = static_cast<SubPlanId>(inner.subplans.size()) - 1;
    inner.num_ranks = n;
    inner.algorithm += " in " + std::to_string(groups) + " groups that exchange";
    plans.push_back(std::move(inner));
    if (plans.size() > 4 * most_per_kind) break;
  }
  return plans;
}

/// All ranks send pieces of any length straight to their owners. Some own several pieces, which may touch or not, and
/// some nothing; units are so few and so odd that pieces of short vectors are empty.
inline Plan unequal_shares_plan(std::mt19937_64& random, std::int64_t n) {
  constexpr std::int64_t kUnits = 997;
  Plan plan;
  plan.algorithm = "unequal shares";
  plan.num_ranks = n;
  plan.num_units = kUnits;
  plan.num_chunks = uniform(random, 1, 5);
  Stage stage{StageKind::kPlace, 1, 1, {}};
  const std::int64_t num_pieces = uniform(random, 1, 2 * n);
  std::vector<std::int64_t> cuts{0, kUnits};
  for (std::int64_t i = 1; i < num_pieces; ++i) cuts.push_back(uniform(random, 1, kUnits - 1));
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    stage.target.push_back({cuts[i], cuts[i + 1], static_cast<std::int32_t>(uniform(random, 0, n - 1))});
  }
  plan.subplans = {{{{kLeaf, n}}, {std::move(stage)}, "shares"}};
  plan.root = 0;
  return plan;
}

/// The same in two levels: groups as even as possible with shares of their own, and others between the groups.
inline Plan unequal_groups_plan(std::mt19937_64& random, std::int64_t n) {
  Plan plan = unequal_shares_plan(random, n);
  Stage between = plan.subplans[0].stages[0];
  plan.subplans.clear();
  SubPlan top;
  for (std::int64_t first = 0; first < n;) {
    const std::int64_t size = std::min(n - first, uniform(random, 2, 3));
    if (size == 1) {
      top.children.push_back({kLeaf, 1});
    } else {
      plan.subplans.push_back(unequal_shares_plan(random, size).subplans[0]);
      top.children.push_back({static_cast<SubPlanId>(plan.subplans.size()) - 1, 1});
    }
    first += size;
  }
  top.stages = {std::move(between)};
  plan.subplans.push_back(std::move(top));
  plan.root = static_cast<SubPlanId>(plan.subplans.size()) - 1;
  plan.algorithm += " of groups";
  return plan;
}

/// Plans that consist of one sub-plan of digit stages: ring, cps, and some hcps and hierarchical rings, scattering or
/// with exchanges.
inline std::vector<Plan> flat_digit_plans(std::mt19937_64& random, std::int64_t n, std::size_t most_per_kind) {
  std::vector<Plan> plans{ring(n), cps(n), gather(n)};
  for (const Factors& f : some_of(random, ordered_factorisations(n), most_per_kind)) {
    plans.push_back(hcps(n, f));
    plans.push_back(hierarchical_ring(n, f));
    plans.push_back(with_exchanges(hcps(n, f), static_cast<std::size_t>(random() % f.size()) + 1));
    plans.push_back(with_exchanges(hierarchical_ring(n, f), static_cast<std::size_t>(random() % f.size()) + 1));
  }
  return plans;
}

/// An algorithm with the parameters with which it can be built for n ranks, at most `most` of each kind.
inline std::vector<AlgorithmSpec> specs_of(const AlgorithmInfo& info, std::mt19937_64& random, std::int64_t n,
                                           std::size_t most) {
  const std::string name(info.name);
  std::vector<AlgorithmSpec> out;
  switch (info.parameters) {
    case AlgorithmParameters::kNone:
      out.push_back({name, {}, false});
      break;
    case AlgorithmParameters::kFactors:
      for (const Factors& f : some_of(random, ordered_factorisations(n), most)) out.push_back({name, f, false});
      if (info.folds && n > 1) {
        for (const Factors& f : some_of(random, ordered_factorisations(uniform(random, 2, n)), most))
          out.push_back({name, f, false});
      }
      if (!info.takes_uneven) break;
      for (const Factors& f : some_of(random, uneven_factors(n), most)) out.push_back({name, f, true});
      break;
    case AlgorithmParameters::kGroupSizes:
      for (std::size_t i = 0; i < most; ++i) out.push_back({name, random_groups(random, n), false});
      break;
  }
  return out;
}

/// Plans of every algorithm of the registry, at most `most_per_kind` of each kind of parameters, and with exchanges
/// above stages that scatter.
inline std::vector<Plan> plans_of_all_builders(std::mt19937_64& random, std::int64_t n, std::size_t most_per_kind) {
  std::vector<Plan> plans;
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.needs_network()) continue;
    for (const AlgorithmSpec& spec : specs_of(info, random, n, most_per_kind)) plans.push_back(build_plan(spec, n));
  }
  if (n >= 4) {
    for (Plan& plan : mixed_exchange_plans(random, n, most_per_kind)) plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace gar::test
