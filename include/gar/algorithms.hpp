// The classic algorithms as plan builders. All of them take any number of ranks from 1 to kMaxServers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gar/plan.hpp"

namespace gar {

/// Every rank sends its whole vector to rank 0, which reduces them and sends the result back: two steps.
Plan reduce_broadcast(std::int64_t num_ranks);
/// The ring: num_ranks - 1 steps along a chain for the ReduceScatter, and as many for the AllGather.
Plan ring(std::int64_t num_ranks);
/// Recursive halving and doubling. The ranks beyond the largest power of two first send their vectors to a partner,
/// which works for both and returns the result at the end.
Plan rhd(std::int64_t num_ranks);
/// Co-located parameter server.
Plan cps(std::int64_t num_ranks);
/// Hierarchical CPS; factors[0] is the fan-in of the first step among neighbours. Their product must be num_ranks.
Plan hcps(std::int64_t num_ranks, const std::vector<std::int64_t>& factors);
/// Hierarchical CPS with groups as even as possible: factors.back() groups, each of them cut by the other factors in
/// the same way. Works for every num_ranks (primes too); the groups of a level differ by one rank at most.
Plan uneven_hcps(std::int64_t num_ranks, const std::vector<std::int64_t>& factors);
/// Multi-dimensional ring: HCPS with a ring instead of a direct exchange in every step.
Plan hierarchical_ring(std::int64_t num_ranks, const std::vector<std::int64_t>& factors);
/// Two levels: CPS inside groups of the given sizes, then Asymmetric CPS between them.
Plan acps(const std::vector<std::int64_t>& group_sizes);

/// The ReduceScatter of an AllReduce plan as a plan of its own: rank r ends with block r of num_ranks equal blocks.
/// Where the AllReduce leaves its results on other ranks, one more stage moves them.
Plan as_reduce_scatter(const Plan& allreduce);
/// The AllGather of an AllReduce plan, in the same sense: rank r starts with block r.
Plan as_all_gather(const Plan& allreduce);

/// The target of an Asymmetric CPS stage: every one of the num_ranks ranks gets an equal share, cut out of what it
/// already holds. `held[c]` is child c's placement (sorted pieces, owners numbered within the whole sub-plan).
std::vector<Piece> acps_target(const std::vector<std::vector<Piece>>& held, std::int64_t num_ranks,
                               std::int64_t num_units);

/// All ordered factorisations of n into factors >= 2 (n = 1: none), at most `limit` of them.
std::vector<std::vector<std::int64_t>> ordered_factorisations(std::int64_t n, std::size_t limit = 100'000);

/// An algorithm as written on the command line: "cps", "hcps:8x3", "hcps:~9x11" (uneven groups), "hring:4x6", ...
struct AlgorithmSpec {
  std::string name;                   ///< "hcps"
  std::vector<std::int64_t> factors;  ///< empty: none given
  bool uneven = false;                ///< hcps:~...
};

/// True for gentree, gentree-norearrange and gentree+, which need a network (gar/planner.hpp).
bool is_tree_planner(const AlgorithmSpec& spec);
/// Reads an algorithm as written on the command line. Throws InvalidArgument with the names that exist.
AlgorithmSpec parse_algorithm(std::string_view text);
/// The algorithm as parse_algorithm reads it: "hcps:8x3".
std::string to_string(const AlgorithmSpec& spec);
/// Builds a classic plan. Throws InvalidArgument when the factors do not fit, or when `hcps`/`hring` come without
/// factors.
Plan build_plan(const AlgorithmSpec& spec, std::int64_t num_ranks);

}  // namespace gar
