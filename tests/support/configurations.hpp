// Ways to set a communicator up: every algorithm that fits a number of ranks, plans, the automatic choice.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/communicator.hpp"
#include "gar/planner.hpp"
#include "support/explicit_plan.hpp"
#include "support/plans.hpp"
#include "support/random_topology.hpp"

namespace gar::test {

struct Configuration {
  std::string name;
  CommunicatorOptions options;
};

inline Topology topology_with(std::mt19937_64& random, int num_ranks) {
  RandomTopologyOptions options;
  options.min_servers = options.max_servers = num_ranks;
  options.max_levels = 3;
  options.decades = 1;
  return random_topology(random, options);
}

/// Rank 0 gets everything bit by bit, and the others get it from their neighbours: many small messages of odd sizes,
/// several from one peer in a step, parts of the vector that travel different ways.
inline Plan odd_explicit_plan(std::mt19937_64& random, int num_ranks) {
  constexpr std::int64_t kUnits = 29;
  std::vector<test::Transfer> transfers;
  std::int64_t step = 0;
  const std::int64_t cut = uniform(random, 1, kUnits - 1);
  const auto n = static_cast<std::int32_t>(num_ranks);
  // The lower part is reduced by rank 0 and the upper part by the last rank, each at once.
  for (std::int32_t r = 0; r < n; ++r) {
    if (r != 0) transfers.push_back({step, r, 0, 0, cut, true});
    if (r != n - 1) transfers.push_back({step, r, n - 1, cut, kUnits, true});
  }
  // Upwards along a chain for the lower part, downwards for the upper part.
  for (std::int32_t hop = 0; hop + 1 < n; ++hop) {
    ++step;
    transfers.push_back({step, hop, hop + 1, 0, cut, false});
    transfers.push_back({step, n - 1 - hop, n - 2 - hop, cut, kUnits, false});
  }
  return test::plan_of(num_ranks, kUnits, transfers);
}

/// Every algorithm of the registry, with at most `most` parameters of each kind.
inline std::vector<std::string> algorithm_names(std::mt19937_64& random, int num_ranks, std::size_t most) {
  std::vector<std::string> out;
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.needs_network()) continue;
    for (const AlgorithmSpec& spec : specs_of(info, random, num_ranks, most)) out.push_back(to_string(spec));
  }
  return out;
}

inline std::vector<std::pair<std::string, Plan>> plans_to_run(std::mt19937_64& random, int num_ranks) {
  std::vector<std::pair<std::string, Plan>> out;
  out.emplace_back("gentree's plan, explicit", make_explicit(gentree(topology_with(random, num_ranks), 1e5).plan));
  out.emplace_back("gentree+'s plan", gentree_plus(topology_with(random, num_ranks), 1e7).plan);
  Plan chunked = rhd(num_ranks);
  chunked.num_chunks = uniform(random, 2, 7);
  out.emplace_back("rhd in " + std::to_string(chunked.num_chunks) + " chunks", chunked);
  if (num_ranks >= 4) {
    Plan mixed = with_exchanges(rhd(num_ranks), 1);
    mixed.num_chunks = uniform(random, 1, 3);
    out.emplace_back("rhd that ends in an exchange", std::move(mixed));
  }
  if (num_ranks > 1) out.emplace_back("unequal shares", unequal_shares_plan(random, num_ranks));
  if (num_ranks > 3) out.emplace_back("unequal shares of groups", unequal_groups_plan(random, num_ranks));
  if (num_ranks > 1) out.emplace_back("an odd explicit plan", odd_explicit_plan(random, num_ranks));
  return out;
}

/// Everything. `seed` chooses factors, topologies and groups.
inline std::vector<Configuration> configurations(int num_ranks, std::uint64_t seed, std::size_t most_per_kind) {
  std::mt19937_64 random(seed);
  std::vector<Configuration> out;
  const auto add = [&](const std::string& name, auto change) {
    Configuration made{name, {}};
    made.options.topology = make_tree({num_ranks});
    change(made.options);
    out.push_back(std::move(made));
  };
  for (const std::string& name : algorithm_names(random, num_ranks, most_per_kind)) {
    add(name, [&](CommunicatorOptions& o) {
      o.algorithm = name;
      o.staging_bytes = uniform(random, 0, 1) == 0 ? 0 : 64 << 10;
    });
  }
  for (const char* name : {"gentree", "gentree+"}) {
    add(std::string(name) + " on a random tree", [&](CommunicatorOptions& o) {
      o.algorithm = name;
      o.topology = topology_with(random, num_ranks);
    });
  }
  for (auto& [name, plan] : plans_to_run(random, num_ranks)) {
    add(name, [&](CommunicatorOptions& o) { o.plan = std::move(plan); });
  }
  add("automatic", [](CommunicatorOptions& o) { o.topology.reset(); });
  add("automatic without a quick gather", [](CommunicatorOptions& o) { o.latency_bytes = 0; });
  add("quick gather", [](CommunicatorOptions& o) { o.latency_bytes = std::int64_t{1} << 30; });
  add("reproducible", [](CommunicatorOptions& o) { o.reproducible = true; });
  add("reproducible ring", [](CommunicatorOptions& o) {
    o.reproducible = true;
    o.algorithm = "ring";
  });
  return out;
}

}  // namespace gar::test
