// Messages to this rank: which of those that come is whose.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "channels.hpp"

namespace gar::python {

/// A thread for each rank that sends takes its messages, as long as somebody waits for one that may be among them. What
/// has another tag is kept. One more thread looks who wants to send, and for how long has been waited.
class Inbox : public std::enable_shared_from_this<Inbox> {
 public:
  explicit Inbox(GroupPlace place);
  void start();
  /// `parcel.peer` may be kAnySource. May call its `done` at once.
  void want(Parcel parcel);
  void close();
  void abandon();

 private:
  using Clock = std::chrono::steady_clock;
  struct Wanted {
    Parcel parcel;
    Clock::time_point deadline;
  };
  struct Kept {
    int source = 0;
    int tag = 0;
    std::vector<std::byte> bytes;
  };
  /// Another rank.
  struct Source {
    bool is_announced = false;
    bool is_busy = false;  ///< its thread uses the channel
    bool has_left = false;
    std::exception_ptr failure;
    std::optional<Channel> channel;
  };
  using Lock = std::unique_lock<std::mutex>;

  // The thread of a rank that sends.
  void take_from(int rank);
  void take_one(int rank);
  void fill(const Parcel& parcel, Channel& channel, int rank, std::int64_t bytes);
  void keep(Channel& channel, int rank, int tag, std::int64_t bytes);
  void hand_over(const Parcel& parcel, const Kept& kept) const;
  void fail(Lock& lock, int rank, const std::exception_ptr& failure);

  // The thread that looks after the others.
  void oversee();
  void look_for_senders(Lock& lock);
  [[nodiscard]] bool needs_senders() const;

  /// Ends the calls for which failure_of(wanted) is an exception. Unlocks for a while.
  template <class Judge>
  void end_calls(Lock& lock, const Judge& failure_of);
  [[nodiscard]] bool wants_from(int rank) const;
  /// The first that waits for such a message.
  std::optional<Parcel> claim(int rank, int tag);
  std::optional<Kept> claim_kept(const Parcel& parcel);
  [[nodiscard]] std::exception_ptr why_in_vain(const Parcel& parcel) const;
  Source& source(int rank) { return sources_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Source& source(int rank) const { return sources_[static_cast<std::size_t>(rank)]; }

  const GroupPlace place_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Source> sources_;
  std::list<Wanted> wanted_;  // in the order of the calls
  std::list<Kept> kept_;      // in the order in which they came
  int num_announced_ = 0;
  std::chrono::microseconds pause_{};  // before the next look for senders
  bool is_closing_ = false;
};

}  // namespace gar::python
