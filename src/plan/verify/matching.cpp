// Compares sends and receives one by one: the exact form of part 2 of the idea at the top of verify.cpp.
//
// Messages are collected for a range of receivers at a time, so that both sides fit into kMostLetters, and sorted.
#include <algorithm>
#include <compare>

#include "plan/verify/internal.hpp"

namespace gar::verify_detail {
namespace {

constexpr std::int64_t kMostLetters = std::int64_t{1} << 22;

/// A message, and the step that it belongs to.
struct Letter {
  std::int64_t step;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t from;
  std::int64_t to;
  auto operator<=>(const Letter&) const = default;
};

}  // namespace

bool all_matched(Programs& programs, std::int64_t num_messages) {
  const std::int64_t ranks = programs.num_ranks();
  const std::int64_t num_ranges = std::clamp<std::int64_t>(num_messages / kMostLetters + 1, 1, ranks);
  std::vector<Letter> sent;
  std::vector<Letter> received;
  for (std::int64_t range = 0; range < num_ranges; ++range) {
    const std::int64_t first = ranks / num_ranges * range + std::min(range, ranks % num_ranges);
    const std::int64_t last = first + ranks / num_ranges + (range < ranks % num_ranges ? 1 : 0);
    sent.clear();
    received.clear();
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      for (const Step& step : programs.stored(rank).steps) {
        for (const Message& m : step.sends)
          if (m.peer >= first && m.peer < last) sent.push_back({step.number, m.begin, m.end, rank, m.peer});
        if (rank < first || rank >= last) continue;
        for (const Message& m : step.recvs) received.push_back({step.number, m.begin, m.end, m.peer, rank});
      }
    }
    if (sent.size() != received.size()) return false;
    std::sort(sent.begin(), sent.end());
    std::sort(received.begin(), received.end());
    if (sent != received) return false;
  }
  return true;
}

}  // namespace gar::verify_detail
