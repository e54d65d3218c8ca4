// Measures groups of observations, on all ranks in lockstep.
//
// Before a repetition all ranks meet, agree on a moment a little later, by clocks that were compared at the beginning,
// and sleep until then; so none of them starts earlier because a barrier let it go first. A repetition takes as long as
// its slowest rank. Ranks that take no part sleep meanwhile, since their waiting would cost those that do a core.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gar/fit_design.hpp"
#include "gar/measure/world.hpp"
#include "measure/fit/counters.hpp"

namespace gar::measure {

/// A clock that all ranks share, compared message by message: what a rank says about its time when it sends is in the
/// past for whoever receives it. Bounds from many messages in both directions leave little room.
class CommonClock {
 public:
  CommonClock(Control& control, int rank, int size);
  /// Seconds on rank 0's clock.
  [[nodiscard]] double now() const;
  /// Returns at that moment, or at once when it is over.
  void sleep_until(double moment) const;
  /// What the ranks need to agree on a moment.
  [[nodiscard]] double meeting_s() const { return meeting_s_; }

 private:
  double offset_s_ = 0;
  double meeting_s_ = 0;
};

struct FitEngineOptions {
  double timeout_s = 30;
  bool has_messages = false;  ///< a network is measured: count its congestion, and take more time for short operations
  double most_floats = 0;     ///< the longest vector
  std::size_t max_runners = 150;  ///< communicators that are kept
};

class FitEngine {
 public:
  FitEngine(World& world, Control& control, const FitEngineOptions& options);

  /// Adds repetitions to all cells of a group; false: a rank was asked to stop, and the last ones are missing.
  bool visit(FitGroup& group, int repetitions);
  /// All ranks at once, each on its own or with a partner: the seconds of every rank, or nothing when a rank was asked
  /// to stop. `body` may be empty: this rank takes no part.
  std::optional<std::vector<double>> time_ranks(const std::function<void()>& body);
  /// Memory for `most_floats` floats each.
  [[nodiscard]] float* input() { return input_.data(); }
  [[nodiscard]] float* output() { return output_.data(); }

 private:
  /// What a cell runs on; the same entries on all ranks, also on those that have no part in them.
  struct Runner {
    std::vector<std::int64_t> servers;
    std::string algorithm;  ///< empty: the MPI library's own, or x-to-1
    std::int64_t max_senders = 0;
    std::shared_ptr<Group> group;
    std::optional<Communicator> communicator;
  };
  /// What one repetition of a cell runs; without either: nothing, on this rank.
  struct Body {
    std::function<void()> run;
    std::function<double(std::int64_t)> time;  ///< runs it that often and says what one took, by the GPU's clock
    explicit operator bool() const { return run || time; }
  };
  /// Floats on the host, or on a GPU.
  class Floats {
   public:
    void assign(std::size_t count, float value, CudaSession* cuda);
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool is_on_device() const { return static_cast<bool>(device_); }
    [[nodiscard]] float* data() { return device_ ? reinterpret_cast<float*>(device_.get()) : host_.data(); }

   private:
    std::size_t size_ = 0;
    std::vector<float> host_;
    DeviceMemory device_;
  };
  struct Meeting {
    std::vector<double> seconds;  ///< of every rank; -1: no part
    double slowest = 0;
    double retransmits = -1;
    double pause_frames = -1;
    bool is_stopping = false;
  };

  Runner* runner(const Observation& cell);
  [[nodiscard]] bool takes_part(const Observation& cell) const;
  Body body_of(const Observation& cell);
  Body reduction_of(const Observation& cell);
  /// Of one repetition.
  [[nodiscard]] double least_seconds(const Observation& cell) const;
  /// Runs every cell without counting it, and finds out the batches. False as above.
  bool warm_up(FitGroup& group);
  /// Runs it `batch` times from the agreed moment on; seconds of one, or -1. `is_alone`: no rank waits for another, so
  /// a rank that has to wait for a core has done so since that moment.
  double time(const Body& body, std::int64_t batch, double expected_s, bool is_alone = false);
  Meeting meet(double seconds);

  World& world_;
  Control& control_;
  FitEngineOptions options_;
  CommonClock clock_;
  bool is_counting_ = false;  ///< this rank is the one of its network that reads the counters
  CongestionCount last_count_;
  double start_ = 0;  ///< the agreed moment
  Floats input_;
  Floats output_;
  Floats operands_;
  std::list<Runner> runners_;
};

}  // namespace gar::measure
