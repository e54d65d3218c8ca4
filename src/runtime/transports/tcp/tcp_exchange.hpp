// The latency path: every rank's bytes to every rank in ceil(log2 N) rounds (Bruck's AllGather).
//
// After k rounds a rank holds the blocks of the 2^k ranks that start with itself, in that order; in a round it sends
// what it holds to the rank 2^k before it and receives as much from the rank 2^k after it. Two areas take turns, so
// that the pointers handed out stay valid, and what is still leaving stays where it is, while the next one begins.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/arena.hpp"

namespace gar {

class TcpExchange {
 public:
  TcpExchange(int rank, int size) : rank_(rank), size_(size) {}

  /// Begins the exchange of this operation with this rank's bytes.
  void start(std::uint64_t sequence, const void* in, std::int64_t bytes);
  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
  [[nodiscard]] bool is_complete() const { return (1 << round_) >= size_; }
  [[nodiscard]] int round() const { return round_; }
  /// Of the round: to whom, and what.
  [[nodiscard]] int receiver() const { return (rank_ - (1 << round_) + size_) % size_; }
  [[nodiscard]] int sender() const { return (rank_ + (1 << round_)) % size_; }
  [[nodiscard]] std::span<const std::byte> outgoing() const;
  /// Where what a rank sends in a round belongs; null when it is not what is expected.
  [[nodiscard]] std::byte* place(int peer, std::uint32_t round, std::uint64_t length);
  void arrived(std::uint32_t round) { has_arrived_ |= std::uint64_t{1} << round; }
  /// Goes to the next round if this one's blocks are there.
  bool advance();
  /// In the order of ranks.
  void operands(std::span<const std::byte*> out) const;

 private:
  [[nodiscard]] std::int64_t blocks_of(int round) const;
  [[nodiscard]] std::byte* memory() const { return areas_[sequence_ % 2].data(); }

  int rank_;
  int size_;
  std::uint64_t sequence_ = 0;
  std::int64_t stride_ = 0;
  int round_ = 0;
  std::uint64_t has_arrived_ = 0;  ///< bit k: round k
  std::array<Arena, 2> areas_;
};

}  // namespace gar
