// A plan: what every rank sends, receives and reduces, as data.
//
// A plan is a tree of sub-plans. A sub-plan says how its children's ranks combine what the children have reduced; a
// leaf is one rank that holds its own contribution to the whole vector. Identical sub-plans are shared (children are
// runs, as in Topology), so the memory follows the distinct sub-plans and not the ranks.
//
// The vector is measured in units, [0, num_units); `element_of_unit` maps units to elements of a real vector.
// Ranks of a sub-plan are numbered locally from 0, children one after the other. The ranks that hold something after
// the children have finished are *active*; they are numbered in rank order too, and every child leaves its active
// ranks with a partition of the whole vector.
//
// Stages of a sub-plan, in order:
//  - kDirect {stride, radix}: the active ranks whose index differs only in the digit (index / stride) % radix form a
//    group and hold the same interval; the member with digit d gets piece d of radix equal pieces from all others and
//    reduces them at once. CPS is one such stage, HCPS several, RHD radix-2 ones.
//  - kRing {stride, radix}: the same groups and the same result through radix - 1 steps along a chain.
//  - kExchange {stride, radix}: the same groups, but the interval is not cut: every member gets it whole from all
//    others and reduces, so that all of them hold the sum. Radix 2 is recursive doubling.
//  - kPlace {target}: every piece of the vector moves straight to its owner in `target`, which reduces the partial sums
//    of all children (Asymmetric CPS, Reduce), or, when the sub-plan already holds one partition, only receives them
//    (data rearrangement).
// Stages are either digit stages whose radices multiply to the number of children, or a kPlace first; kPlace stages
// may follow both. Digit stages need children with equal placements.
//
// The stages make a ReduceScatter; the AllGather is its mirror image and is not stored. See docs/formats-plan.md.
//
// Exchanges are the last stages of the root of an AllReduce. They have no mirror image, because no rank lacks what they
// leave; the stages before them have one as always. Such a plan has no halves.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gar/language.hpp"

namespace gar {

/// What a plan computes.
enum class Collective { kAllReduce, kReduceScatter, kAllGather };
/// All collectives.
inline constexpr std::array kCollectives{Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather};
/// "allreduce", "reduce-scatter" or "allgather": the spelling in all files and on the command line.
std::string_view to_string(Collective collective);
/// Reads that spelling, and the ones with other hyphens and underscores that older files have ("all_reduce",
/// "all-gather"). Nothing when the text names no collective.
std::optional<Collective> parse_collective(std::string_view text);

/// [begin, end) in units.
struct Interval {
  std::int64_t begin = 0;  ///< first unit
  std::int64_t end = 0;    ///< one past the last unit
  /// Number of units.
  [[nodiscard]] std::int64_t size() const { return end - begin; }
  bool operator==(const Interval&) const = default;
};

/// An interval and the local rank that owns it.
struct Piece {
  std::int64_t begin = 0;  ///< first unit
  std::int64_t end = 0;    ///< one past the last unit
  std::int32_t owner = 0;  ///< the rank, numbered within the sub-plan
  bool operator==(const Piece&) const = default;
};

/// What a stage does; see the top of this file.
enum class StageKind { kDirect, kRing, kPlace, kExchange };

/// One stage of a sub-plan; see the top of this file.
struct Stage {
  StageKind kind = StageKind::kDirect;  ///< which of the fields below count
  std::int64_t stride = 1;              ///< digit stages: in active indices of the sub-plan
  std::int64_t radix = 1;               ///< digit stages
  std::vector<Piece> target;            ///< kPlace: sorted, disjoint, covers [0, num_units)
  bool operator==(const Stage&) const = default;
};

/// Steps of a stage: a ring has radix - 1, every other stage has one.
inline std::int64_t steps_of(const Stage& stage) { return stage.kind == StageKind::kRing ? stage.radix - 1 : 1; }
/// A stage in which ranks that differ in one digit of their index form groups: every kind but kPlace.
inline bool is_digit(const Stage& stage) { return stage.kind != StageKind::kPlace; }
/// Messages that every active rank sends in each step of a digit stage; it receives as many, and as many in the mirror
/// image. 0 for kPlace, where they depend on the rank.
inline std::int64_t messages_per_step(const Stage& stage) {
  if (!is_digit(stage) || stage.radix < 2) return 0;
  return stage.kind == StageKind::kRing ? 1 : stage.radix - 1;
}

/// Index of a sub-plan in `Plan::subplans`, or kLeaf for a single rank.
using SubPlanId = std::int32_t;
/// The sub-plan of a single rank, which has nothing to do.
inline constexpr SubPlanId kLeaf = -1;

/// `count` consecutive children that are the same sub-plan.
struct SubPlanRun {
  SubPlanId subplan = kLeaf;  ///< the child
  std::int64_t count = 1;     ///< how often it comes in a row
  bool operator==(const SubPlanRun&) const = default;
};

/// How the ranks of some children combine what the children have reduced.
struct SubPlan {
  std::vector<SubPlanRun> children;  ///< in the order of ranks; never empty
  std::vector<Stage> stages;         ///< in the order in which they run
  std::string label;                 ///< for people: "rack level, cps"
  bool operator==(const SubPlan&) const = default;
};

/// A message as one rank sees it. `accumulate` matters to the receiver: its own value of the interval takes part in
/// the reduction (true) or is replaced (false). Receives of one step that cover the same element agree on it.
struct Message {
  std::int32_t peer = 0;    ///< the other rank
  bool accumulate = false;  ///< for receives, as above
  std::int64_t begin = 0;   ///< first unit
  std::int64_t end = 0;     ///< one past the last unit
  bool operator==(const Message&) const = default;
};

/// One step of one rank: send (out of the state before the step), receive, then reduce everything received at once.
/// Sends are matched with receives of the same step number.
struct Step {
  std::int64_t number = 0;     ///< the plan's number of the step
  std::vector<Message> sends;  ///< sorted by (peer, begin)
  std::vector<Message> recvs;  ///< sorted by (peer, begin)
  bool operator==(const Step&) const = default;
};

/// Everything one rank does; step numbers ascend.
struct RankProgram {
  std::vector<Step> steps;  ///< the steps in which the rank sends or receives
  bool operator==(const RankProgram&) const = default;
};

/// A plan. Exactly one of `subplans` (with `root`) and `programs` is filled; with one rank both may be empty.
struct Plan {
  std::string algorithm;                           ///< "hcps:8x3", as on the command line
  Collective collective = Collective::kAllReduce;  ///< what it computes
  std::int64_t num_ranks = 1;                      ///< ranks of the whole plan
  std::int64_t num_units = 1;                      ///< resolution of the intervals
  std::int64_t num_chunks = 1;                     ///< parts of the vector that follow each other through the stages
  std::int64_t count = 0;                          ///< elements that it was made for; 0 when not said
  std::vector<SubPlan> subplans;                   ///< children before parents
  SubPlanId root = kLeaf;                          ///< index of the top sub-plan
  std::vector<RankProgram> programs;               ///< explicit plan: one program per rank, AllGather steps included
  bool operator==(const Plan&) const = default;
  /// True when the plan is given by per-rank programs instead of sub-plans.
  [[nodiscard]] bool is_explicit() const { return !programs.empty(); }
};

/// Is the plan a ReduceScatter and its mirror image? Not if it is explicit, or if it ends in exchanges.
bool has_halves(const Plan& plan);
/// The ReduceScatter (or AllGather) of an AllReduce plan as a plan of its own: rank r ends (or starts) with block r of
/// num_ranks equal blocks. Where the AllReduce leaves its results elsewhere, one more stage brings them home. Throws
/// InvalidArgument when the plan has no halves.
Plan as_reduce_scatter(const Plan& allreduce);
Plan as_all_gather(const Plan& allreduce);  ///< the AllGather of an AllReduce plan, as above
/// One of these two, or the plan itself when the collective is an AllReduce.
Plan as_collective(const Plan& allreduce, Collective collective);

/// A stage in words: "rack level, 8-way exchange".
std::string stage_label(const SubPlan& subplan, const Stage& stage);

/// First element at or after a unit boundary when `num_units` units stand for `count` elements (rounded to nearest, so
/// that boundaries are the same for every rank and the whole vector is covered).
std::int64_t element_of_unit(std::int64_t unit, std::int64_t num_units, std::int64_t count);

/// Derived facts about a plan (validates it; throws PlanError), and its per-rank programs. Holds a reference to the
/// plan.
class PlanIndex {
 public:
  /// Throws PlanError when the plan is malformed. The plan must outlive the index.
  explicit PlanIndex(const Plan& plan);
  ~PlanIndex();
  PlanIndex(PlanIndex&&) noexcept;
  PlanIndex(const PlanIndex&) = delete;
  PlanIndex& operator=(const PlanIndex&) = delete;
  PlanIndex& operator=(PlanIndex&&) = delete;

  /// The plan itself.
  [[nodiscard]] const Plan& plan() const;
  /// Steps of the whole plan: every step number is below this. For AllReduce twice those of the ReduceScatter,
  /// exchanges once.
  [[nodiscard]] std::int64_t num_steps() const;
  /// The steps of scatter_program() with a lower number have a mirror image: all but exchanges. Explicit plans: 0.
  [[nodiscard]] std::int64_t num_mirrored_steps() const;
  /// Ranks below a sub-plan; 1 for kLeaf.
  [[nodiscard]] std::int64_t num_ranks(SubPlanId id) const;
  /// Ranks that hold something when the sub-plan's children have finished, before its own stages.
  [[nodiscard]] std::int64_t num_active_before(SubPlanId id) const;
  /// The same after the sub-plan's stages.
  [[nodiscard]] std::int64_t num_active_after(SubPlanId id) const;
  /// Number of active ranks (before the stages) among the first `local_rank` ranks.
  [[nodiscard]] std::int64_t active_before_rank(SubPlanId id, std::int64_t local_rank) const;
  /// Local rank of the k-th active rank before the stages.
  [[nodiscard]] std::int64_t rank_of_active(SubPlanId id, std::int64_t k) const;
  /// The first step of the sub-plan's ReduceScatter.
  [[nodiscard]] std::int64_t first_step(SubPlanId id) const;
  /// One past the last of them.
  [[nodiscard]] std::int64_t end_step(SubPlanId id) const;
  /// What each rank holds after the sub-plan, sorted by begin; after exchanges several ranks hold the same. Computed on
  /// first use. Not thread-safe.
  [[nodiscard]] const std::vector<Piece>& placement_after(SubPlanId id) const;
  /// What one local rank holds after the sub-plan, in the order in which digit stages cut it. O(depth).
  [[nodiscard]] std::vector<Interval> held_after(SubPlanId id, std::int64_t local_rank) const;

  /// The ReduceScatter part of one rank's program, exchanges included (the whole program when the plan is explicit),
  /// without expanding the others: O(depth * radices) time and memory.
  void scatter_program(std::int64_t rank, RankProgram& out) const;
  /// The same without the sub-plans that have no step in `steps`; other steps may be among the result.
  void scatter_program(std::int64_t rank, Interval steps, RankProgram& out) const;
  /// The same with equal steps that follow each other (of a ring) once: `repeats` says how many each one stands for.
  void scatter_outline(std::int64_t rank, RankProgram& out, std::vector<std::int64_t>& repeats) const;
  /// The whole program of a rank: for an AllReduce the ReduceScatter and its mirror image.
  [[nodiscard]] RankProgram program(std::int64_t rank) const;

 private:
  struct Impl;
  Impl* impl_;
};

/// The mirror image of a ReduceScatter program: step n becomes step num_steps - 1 - n, what was received is sent back.
RankProgram mirrored(const RankProgram& scatter, std::int64_t num_steps);

/// Messages that all ranks send in the digit stages that are stored, or a few more: what a short plan can stand
/// for. O(sub-plans); nothing is derived.
double digit_messages(const Plan& plan);
/// The same plan as explicit per-rank programs. Throws InvalidArgument beyond kExplicitLimit.
Plan make_explicit(const Plan& plan);

}  // namespace gar
