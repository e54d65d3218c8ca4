// What PlanIndex keeps per sub-plan; shared by plan_index.cpp (derivation) and programs.cpp (per-rank programs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gar/plan.hpp"

namespace gar {

/// a * b / c without overflow of the product.
inline std::int64_t mul_div(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product / c;
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>(static_cast<Wide>(a) * b / c);
}

inline bool is_exchange(const Stage& stage) { return stage.kind == StageKind::kExchange; }

/// [begin, end) of part `part` when [0, length) is cut into `radix` equal parts.
inline Interval part_of(std::int64_t length, std::int64_t part, std::int64_t radix) {
  return {mul_div(length, part, radix), mul_div(length, part + 1, radix)};
}

/// A piece of a kPlace target, cut so that its owner holds either all of it before the stage or nothing of it.
struct TargetPiece {
  Piece piece;
  bool accumulate = false;
};

/// One kPlace stage, ready for look-ups.
struct PlaceIndex {
  std::vector<TargetPiece> pieces;      // sorted by begin
  std::vector<std::int32_t> by_owner;   // indices into pieces, sorted by (owner, begin)
  std::vector<std::int32_t> owners;     // in ascending order
  std::vector<std::int32_t> first_of;   // where each owner starts in by_owner, and one more entry for the end
  std::vector<Interval> raw;            // target pieces as given, in by-owner order
  std::vector<std::int32_t> raw_first;  // like first_of, for raw
};

struct SubPlanIndex {
  std::int64_t num_ranks = 0;
  std::int64_t num_children = 0;
  std::int64_t active_before = 0;
  std::int64_t active_after = 0;
  std::int64_t first_step = 0;
  std::int64_t end_step = 0;
  int depth = 0;
  std::size_t num_digit_stages = 0;
  std::vector<std::int64_t> run_rank;    // first rank of each run of children, and the end
  std::vector<std::int64_t> run_active;  // first active index of each run, and the end
  std::vector<PlaceIndex> places;        // one per kPlace stage
  std::vector<Piece> digit_placement;    // what the digit stages leave, when a kPlace stage follows them
  std::vector<Piece> placement;          // lazily: what each rank holds at the end
  bool has_placement = false;
  [[nodiscard]] bool has_place() const { return !places.empty(); }
};

struct PlanIndex::Impl {
  const Plan* plan = nullptr;
  std::vector<SubPlanIndex> index;
  std::int64_t num_steps = 0;
  std::int64_t num_mirrored_steps = 0;
  bool reorders = false;                 // ReduceScatter/AllGather whose blocks do not lie in rank order
  std::vector<std::int64_t> user_begin;  // per piece of the root's placement: where it lies in rank order

  [[nodiscard]] const SubPlanIndex& at(SubPlanId id) const { return index[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const SubPlan& subplan(SubPlanId id) const { return plan->subplans[static_cast<std::size_t>(id)]; }

  void derive(SubPlanId id);
  void derive_children(SubPlanId id);
  void derive_digits(SubPlanId id);
  void derive_place(SubPlanId id, std::size_t stage);
  void check_exchanges(SubPlanId id) const;
  void check_target(SubPlanId id, std::size_t stage) const;
  void derive_order();

  // The child that a local rank lies in.
  struct Child {
    SubPlanId id = kLeaf;
    std::int64_t first_rank = 0;
    std::int64_t first_active = 0;
  };
  [[nodiscard]] Child child_of_rank(SubPlanId id, std::int64_t rank) const;
  [[nodiscard]] std::int64_t active_after_of(SubPlanId id) const { return id == kLeaf ? 1 : at(id).active_after; }
  [[nodiscard]] std::int64_t ranks_of(SubPlanId id) const { return id == kLeaf ? 1 : at(id).num_ranks; }
  // Active ranks after the sub-plan among the first `rank` ones, and its inverse.
  [[nodiscard]] std::int64_t count_after(SubPlanId id, std::int64_t rank) const;
  [[nodiscard]] std::int64_t rank_after(SubPlanId id, std::int64_t k) const;
  [[nodiscard]] std::int64_t count_before(SubPlanId id, std::int64_t rank) const;
  [[nodiscard]] std::int64_t rank_before(SubPlanId id, std::int64_t k) const;

  class Holdings;
  // What a rank holds: after the sub-plan, and before its stage `stage`.
  [[nodiscard]] std::vector<Interval> held_after(SubPlanId id, std::int64_t rank) const;
  [[nodiscard]] std::vector<Interval> held_before(SubPlanId id, std::size_t stage, std::int64_t rank) const;
  [[nodiscard]] const std::vector<Piece>& placement_after(SubPlanId id);
  [[nodiscard]] std::vector<Piece> compute_placement(SubPlanId id, std::size_t stage) const;

  // programs.cpp
  // With `repeats`, equal steps of a ring once.
  void add_digit_steps(SubPlanId id, std::int64_t base, std::int64_t rank, RankProgram& out,
                       std::vector<std::int64_t>* repeats) const;
  // Calls f(rank, part) for the ranks of the sub-plan that hold parts of `range` before its kPlace stage `stage`.
  template <class F>
  void for_holders(SubPlanId id, std::size_t stage, Interval range, F f) const;
  void add_place_step(SubPlanId id, std::size_t stage, std::int64_t base, std::int64_t rank, RankProgram& out) const;
  void to_rank_order(RankProgram& program) const;
  void scatter_program(std::int64_t rank, Interval steps, RankProgram& out,
                       std::vector<std::int64_t>* repeats = nullptr) const;
};

/// The part [range.begin, range.end) of the concatenation of `held`.
void append_slice(const std::vector<Interval>& held, Interval range, std::vector<Interval>& out);
std::int64_t total_size(const std::vector<Interval>& held);

}  // namespace gar
