// A simulation as a trace for ui.perfetto.dev and chrome://tracing (trace event format), written while it runs.
//
// Process "ranks" has a track for every rank (or class of ranks): a slice for every step, with "receive" and "reduce"
// in it. Steps of several chunks can overlap; those that do get further tracks of the same rank. Process "links" has a
// track for every link direction, with a slice for every time span in which the same flows share it.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "gar/simulate.hpp"

namespace gar {

/// Says for every rank which stage a step belongs to.
class StageLabels {
 public:
  /// Keeps a reference to the plan, which must outlive it.
  explicit StageLabels(const Plan& plan);
  /// A label for every step of the rank, as {first step, label}, ascending.
  struct Span {
    std::int64_t first = 0;  ///< first step that the label is for
    std::string label;       ///< as StageUse::label
  };
  /// The labels of a rank's steps, ascending by first step.
  [[nodiscard]] std::vector<Span> of_rank(std::int64_t rank) const;

 private:
  const Plan& plan_;
  PlanIndex index_;
};

/// Writes the trace event by event, as the simulation calls it.
class TraceWriter final : public SimulationObserver {
 public:
  /// Begins the document. All three arguments must outlive the writer.
  TraceWriter(std::ostream& out, const Plan& plan, const Topology& topology);

  void on_rank(std::int64_t rank, std::int64_t alike) override;
  /// A track for every link direction (or class of them).
  void on_link(const LinkId& link, std::int64_t alike) override;
  void on_step(const StepEvent& event) override;  ///< a slice for the step
  void on_flow(const FlowEvent& event) override;  ///< counts messages and floats for the step that receives them
  void on_load(const LoadEvent& event) override;  ///< a slice for the load that has ended

  /// Closes what is open at `seconds` and the document; `about`, a JSON value, goes to "otherData".
  void finish(double seconds, const std::string& about);
  /// Slices so far.
  [[nodiscard]] std::int64_t num_slices() const { return num_slices_; }
  /// errno of the first write that failed, 0 when none did.
  [[nodiscard]] int error() const { return error_; }

 private:
  using Ticks = std::int64_t;  // nanoseconds, so that what is nested stays nested when it is rounded
  struct Lane {
    std::int64_t tid = 0;
    Ticks end = 0;
  };
  struct Receipt {  // what has arrived of a step
    std::int64_t chunk = 0;
    std::int64_t step = 0;
    double messages = 0;
    double floats = 0;
  };
  struct RankTrack {
    std::int64_t order = 0;
    std::int64_t alike = 1;
    std::string name;
    std::vector<StageLabels::Span> labels;
    std::vector<Lane> lanes;
    std::vector<Receipt> receipts;
  };
  struct LinkTrack {
    std::int64_t tid = 0;
    Ticks since = 0;
    std::int64_t flows = 0;
    std::int64_t senders = 0;
  };

  static Ticks ticks(double seconds);
  void write(const std::string& event);
  void write_slice(std::int64_t pid, std::int64_t tid, Ticks begin, Ticks end, const std::string& rest);
  void name_process(std::int64_t pid, const char* name);
  std::int64_t open_track(std::int64_t pid, const std::string& name, std::int64_t order);
  Lane& lane_for(RankTrack& track, Ticks begin);
  void close_load(LinkTrack& track, Ticks now);

  std::ostream& out_;
  const Topology& topology_;
  StageLabels labels_;
  std::unordered_map<std::int64_t, RankTrack> ranks_;
  std::unordered_map<std::int64_t, LinkTrack> links_;
  std::int64_t next_tid_ = 100;
  std::int64_t num_slices_ = 0;
  int error_ = 0;
  bool is_first_ = true;
};

}  // namespace gar
