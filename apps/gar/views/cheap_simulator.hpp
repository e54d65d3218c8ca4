// What the simulator says of predictions, as long as asking it takes milliseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gar/model.hpp"
#include "gar/simulate.hpp"

namespace gar::cli {

/// Simulates plans on one network at one size. The bounds are numbers of servers, messages and moments, not seconds:
/// the answer is the same on every machine.
class CheapSimulator {
 public:
  CheapSimulator(const Topology& topology, double size_floats, const ModelOptions& model);
  CheapSimulator(const CheapSimulator&) = delete;
  CheapSimulator& operator=(const CheapSimulator&) = delete;
  ~CheapSimulator() = default;

  /// Nothing where that takes too long.
  std::optional<double> seconds_of(const Plan& plan);
  /// "638.1 ms, 42.4% more than predicted" where it is more than 20% away from that; else empty.
  std::string doubt_words(const Plan& plan, double predicted_seconds);

 private:
  const Topology& topology_;
  double size_;
  SimulationOptions options_;
  std::int64_t moments_ = 0;
};

}  // namespace gar::cli
