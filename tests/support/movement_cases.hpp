// One movement with its inputs, as every rank runs and checks it, and cases that are dealt like those of collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gar/communicator.hpp"
#include "support/collective_cases.hpp"
#include "support/collective_oracle.hpp"
#include "support/rank_groups.hpp"

namespace gar::test {

struct MoveCase {
  Movement movement = Movement::kBroadcast;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::int64_t count = 0;  ///< of a block, for scatter, gather and all_to_all
  int root = 0;
  bool is_in_place = false;  ///< where that is allowed
  bool is_uneven = false;    ///< all_to_all: up to `count` elements in a block
  bool is_started = false;   ///< non-blocking
};

inline std::string to_string(const MoveCase& c) {
  return std::string(gar::to_string(c.movement)) + " of " + std::to_string(c.count) + " " +
         std::string(gar::to_string(c.type)) + " " + std::string(gar::to_string(c.op)) + ", root " +
         std::to_string(c.root) + (c.is_in_place ? ", in place" : "") + (c.is_uneven ? ", uneven" : "") +
         (c.is_started ? ", non-blocking" : "");
}

class MoveRun {
 public:
  MoveRun(const MoveCase& c, int rank, int size, std::uint64_t salt)
      : case_(c), rank_(rank), size_(size), salt_(salt), oracle_(c.type, c.op, size, salt) {
    make_call();
    const std::int64_t in_bytes = num_in_ * oracle_.size();
    const std::int64_t out_bytes = num_out_ * oracle_.size();
    in_buffer_.reset(in_bytes, oracle_.size(), salt);
    out_buffer_.reset(out_bytes, oracle_.size(), salt + 1);
    std::byte* in = in_buffer_.data();
    std::byte* out = out_buffer_.data();
    if (is_in_place()) {
      if (c.movement == Movement::kScatter) {
        out = in + rank * c.count * oracle_.size();
      } else if (c.movement == Movement::kGather) {
        in = out + rank * c.count * oracle_.size();
      } else {
        in = out;
      }
    }
    oracle_.fill(rank, 0, num_in_, in);
    in_ = in;
    out_ = out;
    call_.in = num_in_ > 0 ? in : nullptr;
    call_.out = num_out_ > 0 ? out : nullptr;
    // A receiver's memory is where the root's vector goes.
    if (c.movement == Movement::kBroadcast) call_.in = call_.out;
  }

  void run(Communicator& communicator) {
    if (case_.is_started) {
      Request request = communicator.start_move(call_);
      request.wait();
    } else {
      communicator.move(call_);
    }
  }

  void verify() {
    const std::int64_t bad = wrong_element();
    check(bad < 0, to_string(case_) + ": element " + std::to_string(bad) + " of the result is wrong" + where());
    if (!is_in_place() && case_.movement != Movement::kBroadcast) {
      const std::int64_t changed = oracle_.find_other_than_input(rank_, 0, num_in_, in_);
      check(changed < 0,
            to_string(case_) + ": element " + std::to_string(changed) + " of the input has changed" + where());
    }
    check(in_buffer_.is_intact(), to_string(case_) + ": memory around the input has changed" + where());
    check(out_buffer_.is_intact(), to_string(case_) + ": memory around the output has changed" + where());
  }

 private:
  [[nodiscard]] bool is_root() const { return rank_ == case_.root; }
  [[nodiscard]] bool is_in_place() const {
    switch (case_.movement) {
      case Movement::kBroadcast:
        return true;
      case Movement::kReduce:
      case Movement::kScatter:
      case Movement::kGather:
        return case_.is_in_place && is_root();
      case Movement::kAllToAll:
      case Movement::kTransfer:
        break;
    }
    return false;
  }
  /// Elements that `from` has for `to`.
  [[nodiscard]] std::int64_t block(int from, int to) const {
    if (!case_.is_uneven) return case_.count;
    const auto which = static_cast<std::uint64_t>(from) * 64 + static_cast<std::uint64_t>(to);
    const std::uint64_t drawn = mix(salt_ * 4096 + which);
    return drawn % 4 == 0 ? 0 : static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(case_.count + 1));
  }
  /// Where that begins in the vector of `from`.
  [[nodiscard]] std::int64_t first(int from, int to) const {
    std::int64_t out = 0;
    for (int other = 0; other < to; ++other) out += block(from, other);
    return out;
  }

  void make_call() {
    call_.movement = case_.movement;
    call_.type = case_.type;
    call_.op = case_.op;
    call_.root = case_.root;
    call_.count = case_.is_uneven ? 0 : case_.count;
    const std::int64_t whole = case_.count * size_;
    switch (case_.movement) {
      case Movement::kBroadcast:
        num_in_ = is_root() ? case_.count : 0;
        num_out_ = case_.count;
        break;
      case Movement::kReduce:
        num_in_ = case_.count;
        num_out_ = is_root() ? case_.count : 0;
        break;
      case Movement::kScatter:
        num_in_ = is_root() ? whole : 0;
        num_out_ = case_.count;
        break;
      case Movement::kGather:
        num_in_ = case_.count;
        num_out_ = is_root() ? whole : 0;
        break;
      case Movement::kTransfer:
        num_in_ = is_root() ? case_.count : 0;
        num_out_ = is_root() ? 0 : case_.count;
        break;
      case Movement::kAllToAll:
        for (int other = 0; other < size_; ++other) {
          num_in_ += block(rank_, other);
          num_out_ += block(other, rank_);
          if (!case_.is_uneven) continue;
          call_.in_counts.push_back(block(rank_, other));
          call_.out_counts.push_back(block(other, rank_));
        }
        break;
    }
  }

  std::int64_t wrong_element() {
    const std::int64_t n = case_.count;
    switch (case_.movement) {
      case Movement::kBroadcast:
        return oracle_.find_other_than_input(case_.root, 0, n, out_);
      case Movement::kTransfer:
        return is_root() ? -1 : oracle_.find_other_than_input(case_.root, 0, n, out_);
      case Movement::kReduce:
        return is_root() ? oracle_.find_other_than_result(0, n, out_) : -1;
      case Movement::kScatter:
        return oracle_.find_other_than_input(case_.root, rank_ * n, n, out_);
      case Movement::kGather:
      case Movement::kAllToAll:
        break;
    }
    if (case_.movement == Movement::kGather && !is_root()) return -1;
    std::int64_t at = 0;
    for (int other = 0; other < size_; ++other) {
      const bool gathers = case_.movement == Movement::kGather;
      const std::int64_t length = gathers ? n : block(other, rank_);
      const std::int64_t bad =
          oracle_.find_other_than_input(other, gathers ? 0 : first(other, rank_), length, out_ + at * oracle_.size());
      if (bad >= 0) return at + bad;
      at += length;
    }
    return -1;
  }

  [[nodiscard]] std::string where() const {
    return " (rank " + std::to_string(rank_) + " of " + std::to_string(size_) + ", salt " + std::to_string(salt_) + ")";
  }

  MoveCase case_;
  int rank_;
  int size_;
  std::uint64_t salt_;
  Oracle oracle_;
  MovementCall call_;
  std::int64_t num_in_ = 0;
  std::int64_t num_out_ = 0;
  GuardedBuffer in_buffer_;
  GuardedBuffer out_buffer_;
  std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
};

inline void run_move(Communicator& communicator, const MoveCase& c, std::uint64_t salt) {
  MoveRun run(c, communicator.rank(), communicator.size(), salt);
  try {
    run.run(communicator);
  } catch (const std::exception& error) {
    throw Failure(to_string(c) + ": " + text_of(error));
  }
  run.verify();
}

/// Every movement with counts from 0 to some that need several chunks; types, operators, roots and ways of calling take
/// turns.
inline std::vector<MoveCase> move_cases(int num_ranks, std::uint64_t seed) {
  const std::vector<std::int64_t> counts{0, 1, 3, 97, 1024, 4099, 65'537, 600'011};
  Deck<TypedOp> ops(typed_ops(), seed);
  std::vector<MoveCase> out;
  for (int m = 0; m < kNumMovements; ++m) {
    const auto movement = static_cast<Movement>(m);
    if (movement == Movement::kTransfer && num_ranks != 2) continue;
    for (const std::int64_t count : counts) {
      const TypedOp typed = ops.draw();
      const std::uint64_t drawn = mix(seed + out.size());
      MoveCase c{movement, typed.type, typed.op, count,
                 static_cast<int>(drawn % static_cast<std::uint64_t>(num_ranks))};
      if (count > 100'000 && movement == Movement::kAllToAll) c.count = 100'003;
      c.is_in_place = (drawn >> 8) % 2 == 0;
      c.is_started = (drawn >> 9) % 3 == 0;
      out.push_back(c);
      if (movement != Movement::kAllToAll) continue;
      c.is_uneven = true;
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace gar::test
