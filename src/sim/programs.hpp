// Rank programs in the form that the simulator runs: messages of one step to one peer are one flow, peers that follow
// each other at equal distances are one run, equal steps that follow each other are one step with a repetition. The
// program of a rank in CPS takes two runs, that of a ring one step, whatever the number of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "gar/limits.hpp"
#include "gar/plan.hpp"

namespace gar::sim {

/// `count` peers: first, first + stride, ...; each of the flows carries `part` of the vector.
struct PeerRun {
  std::int32_t first = 0;
  std::int32_t stride = 1;
  std::int32_t count = 0;
  double part = 0;
  bool operator==(const PeerRun&) const = default;
};

/// `repeat` equal steps, numbered from `number` upwards.
struct SimStep {
  std::int64_t number = 0;
  std::int64_t repeat = 1;
  std::uint32_t sends = 0;  ///< first of its send runs; the receive runs follow them
  std::uint32_t num_send_runs = 0;
  std::uint32_t num_recv_runs = 0;
  std::uint32_t num_sends = 0;
  std::uint32_t num_recvs = 0;
  std::uint32_t sent = 0;  ///< messages that the rank itself handles, whatever num_sends and num_recvs count in a world
  std::uint32_t received = 0;
  double adds = 0;      ///< sum of (f - 1) s over the reductions, as a fraction of the vector
  double accesses = 0;  ///< sum of (f + 1) s
};

/// Programs of many ranks, one after the other. With `is_mirrored()` the stored steps are those of the ReduceScatter
/// and are followed by their mirror image; plans with exchanges, which have none, are stored whole.
class Programs {
 public:
  explicit Programs(const Plan& plan);
  /// Appends the program of the next rank; `work` counts the messages that are looked at.
  void add(const PlanIndex& index, std::int64_t rank, WorkMeter& work);

  [[nodiscard]] bool is_mirrored() const { return is_mirrored_; }
  [[nodiscard]] std::uint64_t first(std::uint32_t nth) const { return first_[nth]; }
  [[nodiscard]] std::uint64_t end(std::uint32_t nth) const { return first_[nth + 1]; }
  [[nodiscard]] const SimStep& step(std::uint64_t k) const { return steps_[k]; }
  [[nodiscard]] const PeerRun& run(std::uint32_t k) const { return runs_[k]; }
  /// Steps of the nth program, mirror image and repetitions included.
  [[nodiscard]] std::int64_t length(std::uint32_t nth) const { return length_[nth] * (is_mirrored_ ? 2 : 1); }
  /// Flows of all programs together, repetitions included.
  [[nodiscard]] double num_flows() const { return flows_; }
  /// The same, where a step with repetitions counts once.
  [[nodiscard]] double num_distinct_flows() const { return distinct_flows_; }

 private:
  void append(const Step& step, std::int64_t repeat);
  void merge(const std::vector<Message>& messages, std::uint32_t& num_runs, std::uint32_t& num_flows);

  double unit_;
  std::int64_t num_units_;
  bool is_mirrored_ = false;
  std::vector<SimStep> steps_;
  std::vector<PeerRun> runs_;
  std::vector<std::uint64_t> first_{0};
  std::vector<std::int64_t> length_;
  double flows_ = 0;
  double distinct_flows_ = 0;
  RankProgram scratch_;
  std::vector<std::int64_t> repeats_;
};

}  // namespace gar::sim
