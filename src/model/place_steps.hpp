// What every rank does in a stage that gives pieces to owners, in sums instead of messages.
#pragma once

#include <cstdint>
#include <vector>

#include "gar/plan.hpp"
#include "model/link_loads.hpp"

namespace gar {

/// One rank's part in a stage, the ReduceScatter's way. Volumes are fractions of the vector.
struct RankStep {
  double sent = 0;
  double received = 0;
  MessageCount messages;       ///< to and from distinct ranks
  std::int64_t num_parts = 0;  ///< intervals that it sends or receives
  Calculation calculation;
};

/// Of a plan for an AllReduce: a sub-plan whose first stage is one of kPlace. Ranks in the same place of equal children
/// hold the same, and a piece is held in the same parts below equal children, so both are looked up once.
class PlaceSteps {
 public:
  /// Neither the plan nor its index may go away. O(pieces * log(pieces)).
  PlaceSteps(const Plan& plan, const PlanIndex& index, SubPlanId id);
  /// Of a rank of the sub-plan; the same numbers as the sums over its program, in that order, to the last bit.
  /// O(messages), a few operations for each.
  [[nodiscard]] RankStep of(std::int64_t rank);

 private:
  /// A part of a piece, which one rank sends to another one.
  struct Part {
    std::int32_t peer = 0;  // its owner, or its holder counted from the child's first rank
    bool accumulate = false;
    std::int64_t begin = 0;
    double volume = 0;
  };
  /// Children that are the same sub-plan.
  struct Kind {
    SubPlanId id = kLeaf;
    std::int64_t num_ranks = 1;
    std::int64_t count = 0;
    std::vector<Piece> partition;             // who holds what, sorted by begin
    std::vector<std::vector<Interval>> held;  // by rank
    std::vector<std::vector<Part>> sends;     // by rank, when it is met first; what the owner itself holds included
    std::vector<bool> is_known;
    std::vector<Part> receives;  // of the rank that is looked at, from one of these children
  };
  struct Run {
    std::size_t kind = 0;
    std::int64_t count = 0;
    std::int64_t first_rank = 0;
  };
  /// A piece that its owner holds all or nothing of.
  struct Owned {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int32_t owner = 0;
    bool accumulate = false;
  };
  /// Where a rank is.
  struct Place {
    std::size_t run = 0;
    std::int64_t child = 0;  // of the run
    std::int64_t rank = 0;   // of the child
  };
  std::size_t kind_of(const PlanIndex& index, SubPlanId id);
  [[nodiscard]] Place place_of(std::int64_t rank) const;
  [[nodiscard]] double fraction(std::int64_t units) const;
  void cut(const std::vector<Piece>& target);
  void sort_by_owner();
  const std::vector<Part>& sends_of(Kind& kind, std::int64_t rank) const;
  void look_up_holders(std::int64_t rank);
  void receive(const Kind& kind, bool is_own, RankStep& out) const;
  void calculate(std::int64_t rank, const Kind& own, Calculation& out);

  std::int64_t num_units_;
  std::int64_t num_ranks_;
  std::int64_t num_children_ = 0;
  std::vector<Kind> kinds_;
  std::vector<Run> runs_;
  std::vector<Owned> pieces_;           // sorted by begin
  std::vector<std::int32_t> by_owner_;  // indices into these, sorted by owner, then by begin
  std::vector<std::size_t> first_of_;   // by rank: where its pieces begin in by_owner_, and the end
  std::vector<std::int64_t> borders_;   // scratch
};

}  // namespace gar
