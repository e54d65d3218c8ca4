// The algorithms by name, and the classic ones as plan builders, which take any number of ranks from 1 to kMaxServers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gar/plan.hpp"

namespace gar {

/// Rank 0 reduces everything and sends the result back.
Plan reduce_broadcast(std::int64_t num_ranks);
/// A chain through all ranks.
Plan ring(std::int64_t num_ranks);
/// Recursive halving and doubling. Ranks beyond the largest power of two fold into a partner first.
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

/// Every rank sends its whole vector to all others, and each of them reduces everything, in one step.
Plan gather(std::int64_t num_ranks);
/// Partners exchange all they have, the nearest first. Ranks beyond the largest power of two fold into a partner first.
Plan recursive_doubling(std::int64_t num_ranks);
/// The same in groups of factors[0] neighbours, then factors[1] of these groups, and so on. Ranks beyond the product of
/// the factors, which must be num_ranks at most, fold into a partner first.
Plan recursive_multiplying(std::int64_t num_ranks, const std::vector<std::int64_t>& factors);
/// A binomial tree reduces everything to rank 0, and the same tree brings the result back.
Plan binomial(std::int64_t num_ranks);

/// The target of an Asymmetric CPS stage: every one of the num_ranks ranks gets a share, cut out of what it already
/// holds. `held[c]` is child c's placement (sorted pieces, owners numbered within the whole sub-plan), `shares` has the
/// units of every rank; none: equal shares for all that hold anything.
std::vector<Piece> acps_target(const std::vector<std::vector<Piece>>& held, std::int64_t num_ranks,
                               std::int64_t num_units, const std::vector<std::int64_t>& shares = {});

/// All ordered factorisations of n into factors >= 2 (n = 1: none), at most `limit` of them.
std::vector<std::vector<std::int64_t>> ordered_factorisations(std::int64_t n, std::size_t limit = 100'000);

/// "8x3", "16".
std::string factor_words(const std::vector<std::int64_t>& factors);

/// An algorithm as written on the command line: "cps", "hcps:8x3", "hcps:~9x11" (uneven groups), "hring:4x6", ...
struct AlgorithmSpec {
  std::string name;                   ///< "hcps"
  std::vector<std::int64_t> factors;  ///< or group sizes; empty: none given
  bool uneven = false;                ///< hcps:~...
};

/// What an algorithm takes after its name and a colon.
enum class AlgorithmParameters {
  kNone,
  kFactors,     ///< "8x3": the ranks are counted with digits of these radices
  kGroupSizes,  ///< "4+3": the groups have this many ranks
};

/// What the library knows about an algorithm: a row of the table in src/plan/algorithms/registry.cpp.
struct AlgorithmInfo {
  std::string_view name;   ///< as on the command line, without parameters: "hcps"
  std::string_view words;  ///< for people: "hierarchical co-located parameter server"
  std::string_view forms;  ///< how it is written, for messages: "hcps, hcps:8x3 (factors), ..."
  AlgorithmParameters parameters = AlgorithmParameters::kNone;  ///< what follows the name and a colon
  bool finds_factors = false;  ///< without factors it stands for the best of all factorisations (Predictor)
  bool takes_uneven = false;   ///< takes factors of uneven groups, too: "~9x11"
  bool folds = false;          ///< takes factors whose product is less than the number of ranks, too: the others fold
  /// The place among the algorithms that are compared unless others are asked for, from 1; 0: it is not among them.
  int comparison_order = 0;
  /// Builds the plan; the parameters have been given where the algorithm takes any. Null: see needs_network.
  Plan (*build)(const AlgorithmSpec& spec, std::int64_t num_ranks) = nullptr;
  /// It plans for a network (gar/planner.hpp) and not for a number of ranks.
  [[nodiscard]] bool needs_network() const { return build == nullptr; }
};

/// All algorithms, in the order in which people see them.
std::span<const AlgorithmInfo> algorithms();
/// The algorithm of this name; null when there is none.
const AlgorithmInfo* find_algorithm(std::string_view name);

/// gentree, gentree-norearrange and gentree+, which need a network (gar/planner.hpp).
bool is_tree_planner(const AlgorithmSpec& spec);
/// True when factors have to be found before the plan can be built: "hcps", "hring" and "recursive-multiplying" by
/// themselves.
bool needs_factors(const AlgorithmSpec& spec);
/// Throws InvalidArgument with the accepted names.
AlgorithmSpec parse_algorithm(std::string_view text);
/// The algorithm as parse_algorithm reads it: "hcps:8x3".
std::string to_string(const AlgorithmSpec& spec);
/// Builds a classic plan. Throws InvalidArgument when the factors do not fit, or when an algorithm that takes some
/// comes without them.
Plan build_plan(const AlgorithmSpec& spec, std::int64_t num_ranks);

}  // namespace gar
