// Events by time. Events at the same moment share a bucket, so that a step that a thousand ranks finish together costs
// one heap operation.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/time.hpp"

namespace gar::sim {

enum class EventKind : std::uint32_t {
  kLatencyOver,  ///< the flows of a step that have this latency begin
  kWorkEnd,      ///< the first of the things that a server is at work on ends
  kArrival,      ///< the first of the flows that a link limits arrives
};

struct Event {
  EventKind kind = EventKind::kArrival;
  std::uint32_t index = 0;    ///< of the step, rank or link
  std::uint32_t version = 0;  ///< an event is void when its rank or link has a newer one; steps have no versions
  double latency = 0;         ///< kLatencyOver: which of the step's flows
};

/// A heap of buckets. A table of recent times, hashed, finds the bucket of a time that was pushed before; when it has
/// been overwritten there, a moment has two buckets, which does no harm.
class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  /// The time of the earliest event. Requires that there is one.
  [[nodiscard]] double next() const { return heap_.front().time; }

  void push(double time, const Event& event) {
    if (time == last_.time) {
      buckets_[last_.bucket].push_back(event);
      return;
    }
    Recent& recent = recent_[slot_of(time)];
    if (recent.time != time) {
      std::uint32_t bucket = 0;
      if (free_.empty()) {
        bucket = static_cast<std::uint32_t>(buckets_.size());
        buckets_.emplace_back();
      } else {
        bucket = free_.back();
        free_.pop_back();
      }
      heap_.push_back({time, bucket});
      std::push_heap(heap_.begin(), heap_.end(), Later{});
      recent = {time, bucket};
    }
    last_ = recent;
    buckets_[recent.bucket].push_back(event);
  }

  /// Moves all events up to `time` to `out`.
  void pop_until(double time, std::vector<Event>& out) {
    while (!heap_.empty() && heap_.front().time <= time) {
      const Entry entry = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end(), Later{});
      heap_.pop_back();
      std::vector<Event>& bucket = buckets_[entry.bucket];
      if (out.empty() && bucket.size() > 64) {
        out.swap(bucket);
      } else {
        out.insert(out.end(), bucket.begin(), bucket.end());
      }
      bucket.clear();
      free_.push_back(entry.bucket);
      Recent& recent = recent_[slot_of(entry.time)];
      if (recent.bucket == entry.bucket) recent.time = kNever;
      if (last_.bucket == entry.bucket) last_.time = kNever;
    }
  }

 private:
  static std::size_t slot_of(double time) { return std::bit_cast<std::uint64_t>(time) * 0x9E3779B97F4A7C15U >> 58U; }
  struct Entry {
    double time;
    std::uint32_t bucket;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.time != b.time ? a.time > b.time : a.bucket > b.bucket;
    }
  };
  struct Recent {
    double time = kNever;
    std::uint32_t bucket = 0;
  };
  std::vector<Entry> heap_;
  std::vector<std::vector<Event>> buckets_;
  std::vector<std::uint32_t> free_;
  std::array<Recent, 64> recent_;
  Recent last_;
};

}  // namespace gar::sim
