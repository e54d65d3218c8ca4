#include "runtime/transports/tcp/tcp_exchange.hpp"

#include <algorithm>
#include <cstring>

namespace gar {

namespace {

constexpr std::int64_t kBlockAlignment = 16;

}  // namespace

void TcpExchange::start(std::uint64_t sequence, const void* in, std::int64_t bytes) {
  sequence_ = sequence;
  stride_ = std::max(kBlockAlignment, (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment);
  round_ = 0;
  has_arrived_ = 0;
  areas_[sequence_ % 2].reserve(stride_ * size_);
  if (bytes > 0) std::memcpy(memory(), in, static_cast<std::size_t>(bytes));
  // What follows is sent, too.
  std::memset(memory() + bytes, 0, static_cast<std::size_t>(stride_ - bytes));
}

std::int64_t TcpExchange::blocks_of(int round) const { return std::min(1 << round, size_ - (1 << round)); }

std::span<const std::byte> TcpExchange::outgoing() const {
  return {memory(), static_cast<std::size_t>(blocks_of(round_) * stride_)};
}

std::byte* TcpExchange::place(int peer, std::uint32_t round, std::uint64_t length) {
  constexpr std::uint32_t kMostRounds = 30;
  if (round >= kMostRounds || (1 << round) >= size_) return nullptr;
  const auto number = static_cast<int>(round);
  const bool is_new = (has_arrived_ >> round & 1U) == 0;
  if (!is_new || peer != (rank_ + (1 << number)) % size_) return nullptr;
  if (length != static_cast<std::uint64_t>(blocks_of(number) * stride_)) return nullptr;
  return memory() + (std::int64_t{1} << number) * stride_;
}

bool TcpExchange::advance() {
  if ((has_arrived_ >> round_ & 1U) == 0) return false;
  ++round_;
  return true;
}

void TcpExchange::operands(std::span<const std::byte*> out) const {
  for (int i = 0; i < size_; ++i) out[static_cast<std::size_t>((rank_ + i) % size_)] = memory() + i * stride_;
}

}  // namespace gar
