// Movements as programs of one rank (gar/movement.hpp): what Execution runs and the transports carry, as for plans.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gar/movement.hpp"
#include "runtime/schedule.hpp"
#include "runtime/transport.hpp"

namespace gar {

/// Where a movement runs.
struct MovementPlace {
  int rank = 0;
  int size = 1;
  TransportLimits limits;
  /// What a rank sends lies in memory that all others read: the root of a broadcast serves all of them, and that of a
  /// reduction reads from all of them. Otherwise both go over binomial trees.
  bool is_flat = false;
};

/// Elements that each rank has for each of the others.
class BlockCounts {
 public:
  /// The same for all.
  explicit BlockCounts(std::int64_t count) : count_(count) {}
  /// `counts` by sender, then by receiver.
  BlockCounts(int size, std::vector<std::int64_t> counts) : size_(size), counts_(std::move(counts)) {}

  [[nodiscard]] std::int64_t operator()(int from, int to) const {
    return counts_.empty() ? count_
                           : counts_[static_cast<std::size_t>(from) * static_cast<std::size_t>(size_) +
                                     static_cast<std::size_t>(to)];
  }
  [[nodiscard]] std::int64_t largest() const;

 private:
  int size_ = 0;
  std::int64_t count_ = 0;
  std::vector<std::int64_t> counts_;
};

/// Throws PlanError when there is too little staging space.
Schedule schedule_movement(const MovementCall& call, const MovementPlace& place, const BlockCounts& counts);

/// The part of a movement that stays with the rank: its own block. `first_in`, `first_out`: where that begins, in
/// elements.
struct OwnBlock {
  std::int64_t first_in = 0;
  std::int64_t first_out = 0;
  std::int64_t count = 0;  ///< 0: there is none
};
OwnBlock own_block(const MovementCall& call, const MovementPlace& place);

}  // namespace gar
