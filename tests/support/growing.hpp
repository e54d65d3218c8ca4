// Jobs over TCP that take newcomers in: processes of this host, and a store in a process of its own, which outlives all
// ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gar/store.hpp"
#include "gar/tcp.hpp"
#include "runtime/transports/tcp/launchers.hpp"
#include "support/rank_groups.hpp"
#include "support/shared_array.hpp"

namespace gar::test {

/// What is the same for all processes of such a job. Every number of a process, of the first members and of newcomers,
/// is below kMostNumbers.
class GrowingJob {
 public:
  static constexpr std::size_t kMostNumbers = 64;

  explicit GrowingJob(TcpPath path, double timeout_s = kLongestWait) : seen_(3 + kMostNumbers) {
    tcp_.path = path;
    options_.on_failure = OnFailure::kShrinkAndGrow;
    options_.timeout_s = timeout_s;
  }

  void start_store(Processes& processes) {
    processes.start([this] {
      const StoreServer server(listener_.take(), secret_);
      seen_.await(kEnd, 1);
    });
  }
  int start_member(Processes& processes, int rank, int size) {
    return processes.start([this, rank, size] {
      const std::unique_ptr<Store> store = client();
      Communicator communicator = tcp_communicator(*store, "job", rank, size, options_, tcp_);
      work(communicator, false);
    });
  }
  /// `token`: see await_token; 0: none.
  int start_newcomer(Processes& processes, std::uint64_t token = 0) {
    return processes.start([this, token] {
      const std::unique_ptr<Store> store = client();
      Communicator communicator = join_tcp(*store, "job", kLongestWait, options_);
      if (token != 0) seen_[kToken] = token;
      work(communicator, true);
    });
  }

  /// Every rank's loop: grows, and runs operations that it checks, until it is told to stop.
  void work(Communicator& communicator, bool is_new) {
    const Members first = communicator.members();
    const int self = first.ranks.at(static_cast<std::size_t>(communicator.rank()));
    std::uint64_t generation = first.generation;
    for (bool goes_on = true; goes_on; is_new = false) {
      if (!is_new) {
        const Growth growth = communicator.grow();
        const Members now = communicator.members();
        check(growth.num_new == 0 || now.generation > generation, "newcomers, but the generation is the same");
      }
      run_operations(communicator, self);
      const Members members = communicator.members();
      check(members.generation >= generation, "an earlier generation comes back");
      generation = members.generation;
      std::vector<int> ends{seen_[kEnd] != 0 ? 1 : 0};
      communicator.all_reduce(ends, ReduceOp::kMax);
      goes_on = ends.front() == 0;
      ++seen_[kSteps + static_cast<std::size_t>(self)];
      // The lowest rank says how many there are.
      if (communicator.rank() == 0) seen_[kSize] = static_cast<std::uint64_t>(communicator.size());
    }
  }

  /// Sums and blocks of several lengths, each checked against the members that the operation names.
  static void run_operations(Communicator& communicator, int self) {
    for (const std::int64_t count : {1, 700, 90'000}) {
      std::vector<std::int64_t> values(static_cast<std::size_t>(count), self + 1);
      communicator.all_reduce(values);
      const Members members = communicator.members();
      std::int64_t sum = 0;
      for (const int rank : members.ranks) sum += rank + 1;
      check(values.front() == sum && values.back() == sum,
            "a sum is " + std::to_string(values.front()) + ", expected " + std::to_string(sum));
      check(members.ranks.at(static_cast<std::size_t>(communicator.rank())) == self, "the rank is another one");
    }
    const Members layout = communicator.members();
    const std::vector<int> own(300, self);
    std::vector<int> all(300 * layout.ranks.size(), -1);
    communicator.all_gather(own, all);
    const Members members = communicator.members();
    for (std::size_t i = 0; i < layout.ranks.size(); ++i) {
      const bool is_there =
          std::find(members.ranks.begin(), members.ranks.end(), layout.ranks[i]) != members.ranks.end();
      check(all[300 * i + 299] == (is_there ? layout.ranks[i] : 0), "a block is another one's");
    }
  }

  /// For the test itself: waits until the lowest rank has said that there are so many.
  void await_size(std::size_t size) {
    const auto begin = Clock::now();
    while (seen_[kSize] != size) {
      check(seconds_since(begin) < kLongestWait, "there are " + std::to_string(seen_[kSize]) + " ranks");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  /// Until this one has done so many more steps.
  void await_steps(int number, std::uint64_t steps) {
    const std::size_t at = kSteps + static_cast<std::size_t>(number);
    seen_.await(at, seen_[at] + steps);
  }
  [[nodiscard]] int free_seat() const {
    const std::unique_ptr<Store> store = client();
    int seat = 0;
    while (store->look("gar/job/seat/" + std::to_string(seat))) ++seat;
    return seat;
  }
  /// Until a newcomer sits on this seat.
  void await_seat(int seat) { client()->get("gar/job/seat/" + std::to_string(seat), kLongestWait); }
  /// Until the newcomer with this token is a member.
  void await_token(std::uint64_t token) { seen_.await(kToken, token); }
  void end() { seen_[kEnd] = 1; }

  [[nodiscard]] std::unique_ptr<Store> client() const { return tcp_store(listener_.address(), secret_, kLongestWait); }
  [[nodiscard]] const std::string& address() const { return listener_.address(); }
  [[nodiscard]] const CommunicatorOptions& options() const { return options_; }
  [[nodiscard]] const TcpOptions& tcp() const { return tcp_; }

 private:
  static constexpr std::size_t kEnd = 0;
  static constexpr std::size_t kSize = 1;
  static constexpr std::size_t kToken = 2;
  static constexpr std::size_t kSteps = 3;

  std::string secret_ = make_secret();
  LoopbackListener listener_;
  CommunicatorOptions options_;
  TcpOptions tcp_;
  SharedArray seen_;
};

}  // namespace gar::test
