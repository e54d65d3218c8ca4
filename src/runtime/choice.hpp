// Which plan an operation runs, and why.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gar/communicator.hpp"
#include "gar/model.hpp"
#include "runtime/schedule.hpp"

namespace gar {

/// A plan for a size class.
struct ChosenPlan {
  std::shared_ptr<const IndexedPlan> plan;
  std::shared_ptr<const PricedPlan> priced;  ///< `plan` on the network; null for explicit plans
  std::string name;  ///< what a gentree+ plan is, in the words of the command line where it has one
  std::string reason;
  std::vector<std::string> others = {};  ///< names of whole plans that it was compared with, best first
};

/// Chooses plans for one communicator. All ranks come to the same choices.
class Chooser {
 public:
  /// The options are complete: see with_environment. Throws InvalidArgument and PlanError.
  Chooser(const CommunicatorOptions& options, const Topology& default_topology, int num_ranks,
          std::int64_t least_chunk_bytes);

  /// Do vectors of this many bytes take the latency path of a transport that can exchange `max_bytes`?
  [[nodiscard]] bool takes_latency_path(std::int64_t bytes, std::int64_t max_bytes) const;
  /// The plan for vectors of `bytes` (of all blocks together, for ReduceScatter and AllGather); the same for all sizes
  /// between two powers of two.
  const ChosenPlan& choose(Collective collective, std::int64_t bytes);
  /// Other plans for an AllReduce of `bytes` that are worth measuring: those that end in exchanges, then the next best
  /// ones by the model; `most` at most, each different, also in its name, from choose() and from each other, and none
  /// that is predicted to take many times as long. `wanted`, an algorithm by name, comes first, however long it is
  /// predicted to take; it may be empty.
  std::vector<ChosenPlan> others(std::int64_t bytes, int most, const std::string& wanted);
  [[nodiscard]] const Topology& topology() const { return topology_; }

 private:
  ChosenPlan make(double size_floats, const std::string& algorithm) const;
  ChosenPlan planned(double size_floats, const std::string& algorithm, Collective collective) const;
  ChosenPlan half(double size_floats, Collective collective) const;

  std::string algorithm_;
  std::optional<Plan> plan_;
  std::int64_t latency_bytes_;
  Topology topology_;
  std::int64_t least_chunk_bytes_;
  std::map<std::pair<Collective, int>, ChosenPlan> plans_;
};

/// Options with what the environment adds, checked as far as that is possible without a network. Throws InvalidArgument
/// that names the variable. `has_hosts`: GAR_TOPOLOGY may have other servers than ranks; the caller places the ranks.
CommunicatorOptions with_environment(CommunicatorOptions options, int num_ranks, bool has_hosts = false);

}  // namespace gar
