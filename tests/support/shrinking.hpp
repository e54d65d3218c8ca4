// What tests of on_failure = shrink share: ranks that run operations until they are told to stop, seen from the test
// that does things to them.
#pragma once

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "gar/communicator.hpp"
#include "support/rank_groups.hpp"
#include "support/shared_array.hpp"
#include "support/surviving.hpp"

namespace gar::test {

inline CommunicatorOptions shrinking(double timeout_s = kLongestWait) {
  CommunicatorOptions out;
  out.on_failure = OnFailure::kShrink;
  out.timeout_s = timeout_s;
  return out;
}

/// Ranks that run random operations, and how far each of them has come.
class WatchedRanks {
 public:
  explicit WatchedRanks(int size) : size_(size), words_(1 + 2 * static_cast<std::size_t>(size)) {}

  /// On a rank: operations until the test says stop. Throws Failure when another number of ranks is left then.
  void run(Member& member, const CommunicatorOptions& options, std::uint64_t seed) {
    struct End {
      std::atomic<std::uint64_t>& word;
      ~End() { word = 1; }
    };
    const End end{ended(member.rank)};
    Communicator communicator = member.communicator(options);
    SurvivorRun operations(communicator, member.rank, seed, 50'000,
                           [&](std::uint64_t, const Members&) { ++made(member.rank); });
    while (operations.step(words_[0] != 0)) {
    }
    check(communicator.size() == static_cast<int>(words_[0]),
          "another number of ranks is left: " + std::to_string(communicator.size()));
  }

  // --- the test ---

  /// Waits until the rank has made this many operations more. False: it has ended before.
  bool await(int rank, std::uint64_t more) {
    const std::uint64_t wanted = made(rank) + more;
    const auto start = Clock::now();
    while (made(rank) < wanted && ended(rank) == 0) {
      check(seconds_since(start) < kLongestWait, "rank " + std::to_string(rank) + " makes no operations");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return made(rank) >= wanted;
  }
  void stop(int num_left) { words_[0] = static_cast<std::uint64_t>(num_left); }

 private:
  std::atomic<std::uint64_t>& made(int rank) { return words_[1 + static_cast<std::size_t>(rank)]; }
  std::atomic<std::uint64_t>& ended(int rank) { return words_[1 + static_cast<std::size_t>(size_ + rank)]; }

  int size_;
  SharedArray words_;
};

inline std::vector<std::string> texts_of(const std::vector<Processes::Outcome>& outcomes) {
  std::vector<std::string> out;
  for (const Processes::Outcome& outcome : outcomes) out.push_back(outcome.text);
  return out;
}

/// Stops a rank for longer than the time limit of the others, and returns what the ranks threw. On a machine that is
/// starved of processors others may look silent, too: then it happens again, with a longer limit.
/// `start(processes, body)` starts the ranks.
template <class Start>
std::vector<std::string> outcomes_with_one_stopped(int size, int stopped, std::uint64_t seed, const Start& start) {
  constexpr double kLongestLimit = 100;
  const int other = stopped == 0 ? 1 : 0;
  for (double limit_s = 5;; limit_s *= 5) {
    WatchedRanks watched(size);
    Processes processes;
    const Body body = [&](Member& member) { watched.run(member, shrinking(limit_s), seed); };
    start(processes, body);
    const bool has_begun = watched.await(other, 5);
    processes.signal(stopped, SIGSTOP);
    if (has_begun) watched.await(other, 10);
    processes.signal(stopped, SIGCONT);
    watched.stop(size - 1);
    const std::vector<std::string> texts = texts_of(processes.collect());
    const auto looks_starved = [&](const std::string& text) {
      return text.empty() || text.starts_with("TransportError: ") || text.starts_with("another number of ranks");
    };
    const auto others = std::count(texts.begin(), texts.end(), "");
    if (others == size - 1 || limit_s > kLongestLimit || !std::all_of(texts.begin(), texts.end(), looks_starved)) {
      return texts;
    }
  }
}

}  // namespace gar::test
