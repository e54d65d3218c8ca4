// What `gar fit` measures, in the order of importance: a budget that ends early has paid for what matters most.
//
// Everything comes in groups that are measured in turns, so that what disturbs the machine meets all of a group alike:
// a mesh and its control, the fan-ins of a reduction, the algorithms of a held-out case.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gar/fit.hpp"
#include "gar/topology.hpp"

namespace gar {

/// Lengths in floats, ascending.
struct FitSizes {
  std::vector<double> collective;  ///< of CPS; meshes take the two largest
  std::vector<double> reduction;   ///< of one operand
};

/// What can be measured here, and what is asked for.
struct FitScope {
  bool has_messages = false;  ///< ranks send messages, so that x-to-1 can be measured
  bool has_native = false;    ///< the MPI library's own AllReduce can be held against ours
  bool is_validated = false;  ///< also measure held-out cases
  /// There is incast: receivers that admit this many senders at once are also measured, and held-out cases are about
  /// these; 0: every rank sends as soon as it can.
  std::int64_t max_senders = 0;
  /// Ranks share a GPU: one of them reduces alone, since the others would only take turns with it.
  bool has_lone_reductions = false;
  /// Ranks meet before several of them send to one: the times of short messages would be those of the meeting.
  bool meets_before_gathers = false;
};

/// Observations that are measured in turns. `seconds` are empty in a plan, and fill up as they are measured.
struct FitGroup {
  std::vector<Observation> cells;     ///< measured in turns
  bool is_essential = false;          ///< without it there is nothing to fit
  std::vector<std::int64_t> batches;  ///< of every cell: operations in one repetition; found out in the first visit
};
/// True when the group is for validation: its cells are not fitted.
[[nodiscard]] bool is_held_out(const FitGroup& group);

/// Some servers whose exchange loads the links of a level.
struct ServerSet {
  std::vector<std::int64_t> servers;  ///< ascending
  int level = 0;                      ///< of the links that the set is about: 0 those of the servers
  std::int64_t num_children = 0;      ///< of the switch above, that take part
  std::int64_t per_child = 1;         ///< servers of each of them
  bool operator==(const ServerSet&) const = default;
};
/// For every level, the switch with the most children: 1, 2 and all servers of 2 and more of its children. Sets of one
/// kind (level and servers per child) follow each other, smallest first; equal sets come once.
std::vector<ServerSet> server_sets(const Topology& topology);

/// Numbers of participants to measure: 2, 3, ..., 16, then growing by a fifth each; `most` is the last one.
std::vector<std::int64_t> participant_counts(std::int64_t most);
/// How early each of `count` points in a row is needed when a few must do: 0 for both ends, 1 for the middle, 2 for the
/// quarters, ...
std::vector<int> refinement_levels(std::size_t count);

/// Lengths for validation: between the fitted ones, and beyond the largest.
std::vector<double> held_out_sizes(const std::vector<double>& fitted);
/// Shorter ones for validation, from 8 bytes on by factors of 8: all that lie clearly below the fitted ones.
std::vector<double> held_out_short_sizes(const std::vector<double>& fitted);
/// Numbers of ranks for validation.
std::vector<std::int64_t> held_out_counts(std::int64_t num_ranks);
/// Algorithms for validation on n ranks: Ring, RHD, CPS, HCPS of two factors, and one of three.
std::vector<AlgorithmSpec> held_out_algorithms(std::int64_t num_ranks);
/// The same for short vectors: also Recursive Doubling and Gather.
std::vector<AlgorithmSpec> held_out_short_algorithms(std::int64_t num_ranks);

/// What to measure, essential groups first. The topology has one server per rank, at least two.
std::vector<FitGroup> plan_fit(const Topology& topology, const FitSizes& sizes, const FitScope& scope);

/// True when the mesh of some set of servers takes clearly longer than its shift, or loses many more packets. Time
/// counts only where both send as much over every link: not with several servers of each child, whose mesh sends more
/// to the other children.
bool has_incast(const Topology& topology, const std::vector<FitGroup>& groups);
/// Copies what was measured in the groups of `measured` into the groups of `plan` that have the same cells.
void take_over(std::vector<FitGroup>& plan, const std::vector<FitGroup>& measured);

/// A first estimate of how time grows with length.
struct Probe {
  double latency_s = 0;          ///< the part of the time that does not depend on the length
  double seconds_per_float = 0;  ///< the part that grows with the length
};
/// Lengths to measure, in floats and rounded to two digits: the largest takes about 1/100 of the budget and is at most
/// `most_floats` (what fits into memory); latency still matters in the smallest.
std::vector<double> choose_sizes(const Probe& probe, double budget_s, double most_floats);
/// The value rounded to two significant digits, at least 1.
double two_digits(double value);

/// What to measure next.
struct FitVisit {
  std::size_t group = 0;  ///< index of the group
  int repetitions = 2;    ///< how often to measure each of its cells
};
/// What to measure next, `elapsed_s` after the beginning: every group once, in order (held-out ones when half of the
/// budget are spent at the latest), then those whose medians are the least certain. Empty when
/// everything is certain enough, or the time is over.
std::optional<FitVisit> next_visit(const std::vector<FitGroup>& groups, double budget_s, double elapsed_s);
/// Relative uncertainty of the median of an observation's repetitions; large below three.
double uncertainty(const Observation& observation);
/// True when all essential groups are measured.
bool has_essentials(const std::vector<FitGroup>& groups);

}  // namespace gar
