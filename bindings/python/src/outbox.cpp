#include "outbox.hpp"

#include <array>
#include <thread>
#include <utility>

namespace gar::python {

void Outbox::start() {
  std::thread([self = shared_from_this()] { self->work(); }).detach();
}

void Outbox::put(Parcel parcel) {
  const std::lock_guard lock(mutex_);
  parcels_.push_back(std::move(parcel));
  changed_.notify_one();
}

void Outbox::close() {
  const std::lock_guard lock(mutex_);
  is_closing_ = true;
  leave_if_idle();
  changed_.notify_one();
}

void Outbox::abandon() {
  const std::lock_guard lock(mutex_);
  leave_if_idle();
}

/// At once, since the process may end now, and the other end would see that this one has died. While locked.
void Outbox::leave_if_idle() {
  if (!is_busy_ && parcels_.empty()) channel_.reset();
}

void Outbox::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_closing_ || !parcels_.empty(); });
    if (parcels_.empty()) break;
    Parcel parcel = std::move(parcels_.front());
    parcels_.pop_front();
    is_busy_ = true;
    lock.unlock();
    if (!failure_) {
      try {
        send(parcel);
      } catch (...) {
        failure_ = std::current_exception();
      }
    }
    lock.lock();
    is_busy_ = false;
    lock.unlock();
    parcel.done(failure_, destination_);
    lock.lock();
  }
  channel_.reset();
}

void Outbox::send(const Parcel& parcel) {
  if (!channel_) {
    place_.store->announce(place_.box(destination_), place_.rank);
    channel_.emplace(place_, place_.rank, destination_, place_.timeout_s);
  }
  std::array<std::int64_t, 2> head{parcel.tag, parcel.bytes};
  channel_->transfer(head.data(), 2, DataType::kInt64);
  channel_->transfer(parcel.memory, parcel.bytes, DataType::kUint8);
}

}  // namespace gar::python
