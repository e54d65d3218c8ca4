// Messages from this rank to one other.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>

#include "channels.hpp"

namespace gar::python {

/// Has a thread that sends them in their order.
class Outbox : public std::enable_shared_from_this<Outbox> {
 public:
  Outbox(GroupPlace place, int destination) : place_(std::move(place)), destination_(destination) {}
  void start();
  void put(Parcel parcel);
  void close();
  void abandon();

 private:
  void work();
  void send(const Parcel& parcel);
  void leave_if_idle();

  const GroupPlace place_;
  const int destination_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Parcel> parcels_;
  bool is_closing_ = false;
  bool is_busy_ = false;
  std::exception_ptr failure_;      // of the first message that failed, and so of all after it
  std::optional<Channel> channel_;  // the thread's while it is busy
};

}  // namespace gar::python
