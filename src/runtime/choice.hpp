// Which plan an operation runs, and why.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gar/communicator.hpp"
#include "gar/model.hpp"
#include "gar/planner.hpp"
#include "runtime/schedule.hpp"

namespace gar {

/// A plan for a size class.
struct ChosenPlan {
  std::shared_ptr<const IndexedPlan> plan;
  std::shared_ptr<const PricedPlan> priced;  ///< `plan` on the network; null for explicit plans
  std::string name;  ///< what a gentree+ plan is, in the words of the command line where it has one
  std::string reason;
  std::optional<QuickGather> quick = {};  ///< the transport runs it, a gather, by itself
  std::vector<std::string> others = {};   ///< names of whole plans that it was compared with, best first
  /// Predicted for a vector of `floats` (of all blocks together, for ReduceScatter and AllGather); -1: unknown.
  [[nodiscard]] double seconds(Collective collective, double floats) const;
};

/// What is special about short vectors.
struct ShortVectors {
  QuickGather quick{};                ///< how the transport gathers them
  std::optional<Topology> network{};  ///< in place of the default topology, for those that it can gather
};

/// Chooses plans for one communicator. All ranks come to the same choices.
class Chooser {
 public:
  /// The options are complete: see with_environment. Throws InvalidArgument and PlanError.
  Chooser(const CommunicatorOptions& options, const Topology& default_topology, int num_ranks,
          std::int64_t least_chunk_bytes, const ShortVectors& short_vectors = {});

  /// Do the options say that the transport shall gather what has this many bytes on a rank?
  [[nodiscard]] bool is_told_to_gather(std::int64_t bytes) const;
  /// That gather, whatever the model says of it.
  [[nodiscard]] ChosenPlan gathered() const;
  /// The plan for vectors of `bytes` (of all blocks together, for ReduceScatter and AllGather); the same for all sizes
  /// between two powers of two.
  const ChosenPlan& choose(Collective collective, std::int64_t bytes);
  /// Other plans for an AllReduce of `bytes` that are worth measuring: those that end in exchanges, then the next best
  /// ones by the model; `most` at most, each different, also in its name, from choose() and from each other, and none
  /// that is predicted to take many times as long. `wanted`, an algorithm by name, comes first, however long it is
  /// predicted to take; it may be empty.
  std::vector<ChosenPlan> others(std::int64_t bytes, int most, const std::string& wanted);
  /// How many of these come because of what the model cannot know: the transport's gather, and rings where links suffer
  /// from incast.
  [[nodiscard]] int num_special(std::int64_t bytes) const;
  [[nodiscard]] const Topology& topology() const { return topology_; }
  /// The same for what the transport can gather.
  [[nodiscard]] const Topology& near_topology() const { return near_; }

 private:
  ChosenPlan make(double size_floats, const std::string& algorithm) const;
  ChosenPlan planned(double size_floats, const std::string& algorithm, Collective collective) const;
  ChosenPlan half(double size_floats, Collective collective) const;
  /// Is the transport's gather predicted to take no longer than `half`?
  [[nodiscard]] bool gathers(const ChosenPlan& half, Collective collective, double floats) const;

  std::string algorithm_;
  std::optional<Plan> plan_;
  std::int64_t latency_bytes_;
  QuickGather quick_;  ///< where the model has the choice
  double most_quick_;  ///< bytes that the transport can gather
  double overlap_;
  Topology topology_;
  Topology near_;  ///< the same for what the transport can gather
  std::int64_t least_chunk_bytes_;
  std::map<std::pair<Collective, int>, ChosenPlan> plans_;
};

/// Options with what the environment adds, checked as far as that is possible without a network. Throws InvalidArgument
/// that names the variable. `has_hosts`: GAR_TOPOLOGY may have other servers than ranks; the caller places the ranks.
CommunicatorOptions with_environment(CommunicatorOptions options, int num_ranks, bool has_hosts = false);

/// Options for a group with other ranks than they were made for: without what names a network or a plan of others, and
/// without an algorithm that is nothing for this number of ranks ("hcps:4x2" for 7).
CommunicatorOptions options_between(CommunicatorOptions options, int num_ranks);

}  // namespace gar
