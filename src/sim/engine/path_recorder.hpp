// The critical path: for every step that a rank has finished, which step it had to wait for, and what the time since
// the start was spent on along these steps.
#pragma once

#include <cstdint>
#include <vector>

#include "gar/model.hpp"
#include "sim/worlds/world.hpp"

namespace gar::sim {

/// The critical path up to some moment: its terms, which add up to that moment, and its last hop.
struct PathEnd {
  Terms terms;
  std::uint32_t hop = kNone;  ///< kNone: nothing has been finished yet, or hops are not recorded
};

/// A hop in the numbers of a world. A step that waited for no message has no link, and `from` is `rank`.
struct Hop {
  std::uint32_t previous = kNone;
  std::uint32_t from = 0;
  std::uint32_t rank = 0;
  std::uint32_t chunk = 0;
  std::int64_t number = 0;
  double begin = 0;
  double received = 0;
  double end = 0;
  double sending = 0;  ///< handling the messages of the step before they left
  double latency = 0;
  double incast = 0;
  std::uint32_t link = kNone;
  double handling_share = 0;  ///< of end - received
  double gamma_share = 0;     ///< of the rest of it, the calculation

  [[nodiscard]] Terms terms() const;
};

class PathRecorder {
 public:
  explicit PathRecorder(bool keeps_hops) : keeps_hops_(keeps_hops) {}

  [[nodiscard]] bool keeps_hops() const { return keeps_hops_; }
  /// The path that ends with this hop.
  PathEnd add(const Terms& terms, const Hop& hop) {
    if (!keeps_hops_) return {.terms = terms, .hop = kNone};
    hops_.push_back(hop);
    return {.terms = terms, .hop = static_cast<std::uint32_t>(hops_.size() - 1)};
  }
  /// A path has ended at this moment; the latest one is the critical path of the run.
  void note_end(const PathEnd& path, double now) {
    if (now < last_time_) return;
    last_time_ = now;
    last_ = path;
  }

  [[nodiscard]] const PathEnd& last() const { return last_; }
  [[nodiscard]] double last_time() const { return last_time_; }
  /// The hops of the critical path, first one first.
  [[nodiscard]] std::vector<Hop> hops() const;

 private:
  bool keeps_hops_;
  std::vector<Hop> hops_;
  PathEnd last_;
  double last_time_ = 0;
};

}  // namespace gar::sim
