// What the model needs to know about an observation: how often it pays each parameter.
#pragma once

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "gar/fit.hpp"
#include "gar/limits.hpp"
#include "gar/profile.hpp"

namespace gar {

/// A parameter that every level of the network has.
struct LevelParam {
  const char* name;
  Estimate LevelProfile::*estimate;
};
inline constexpr std::array<LevelParam, 3> kLevelParams{
    {{"alpha", &LevelProfile::alpha}, {"beta", &LevelProfile::beta}, {"epsilon", &LevelProfile::epsilon}}};

/// A parameter of the servers, in the order of kServerParams.
struct ServerParam {
  const char* name;
  Estimate Profile::*estimate;
};
inline constexpr std::array<ServerParam, kServerParams.size()> kFittedServerParams{
    {{"gamma", &Profile::gamma}, {"delta", &Profile::delta}, {"mu", &Profile::mu}}};
static_assert(kFittedServerParams.back().name != nullptr, "every parameter of a server has a row");

/// Parameters of a network: those of kLevelParams for level 0, for level 1, ..., then those of the servers. The last
/// one, mu, is there where it is asked for.
class ParamIndex {
 public:
  explicit ParamIndex(int num_levels, bool has_mu = true) : num_levels_(num_levels), has_mu_(has_mu) {}
  /// That of some values.
  ParamIndex(int num_levels, const std::vector<double>& values)
      : ParamIndex(num_levels, std::cmp_greater(values.size(), ParamIndex(num_levels).num_asked())) {}
  [[nodiscard]] int num_levels() const { return num_levels_; }
  [[nodiscard]] int size() const { return num_asked() + (has_mu_ ? 1 : 0); }
  [[nodiscard]] static int alpha(int level) { return kPerLevel * level; }
  [[nodiscard]] static int beta(int level) { return kPerLevel * level + 1; }
  [[nodiscard]] static int epsilon(int level) { return kPerLevel * level + 2; }
  /// The k-th of kFittedServerParams.
  [[nodiscard]] int server(int k) const { return kPerLevel * num_levels_ + k; }
  [[nodiscard]] int gamma() const { return server(0); }
  [[nodiscard]] int delta() const { return server(1); }
  [[nodiscard]] int mu() const { return server(2); }
  [[nodiscard]] bool has_mu() const { return has_mu_; }
  /// How many are always asked for: all but mu, which only short vectors can tell.
  [[nodiscard]] int num_asked() const { return server(static_cast<int>(kFittedServerParams.size()) - 1); }
  /// "alpha", "gamma".
  [[nodiscard]] const char* name(int p) const {
    return p < server(0) ? kLevelParams[static_cast<std::size_t>(p % kPerLevel)].name
                         : kFittedServerParams[static_cast<std::size_t>(p - server(0))].name;
  }
  /// The level that a parameter belongs to; -1 for those of the servers.
  [[nodiscard]] int level(int p) const { return p < server(0) ? p / kPerLevel : -1; }

 private:
  static constexpr int kPerLevel = static_cast<int>(kLevelParams.size());
  int num_levels_;
  bool has_mu_;
};

/// What crosses the busiest link of a level in a stage.
struct LinkLoad {
  int level = 0;
  double floats = 0;
  double senders = 0;
};

/// An observation as the model sees it. Its time is sum alphas + sum over stages of the slowest load + calculation.
struct Features {
  std::vector<double> alphas;                 ///< per level: how often it is paid
  std::vector<std::vector<LinkLoad>> stages;  ///< the loads of a stage go on at the same time
  double adds = 0;                            ///< floats that gamma is paid for
  double accesses = 0;                        ///< floats that delta is paid for
  double handled = 0;                         ///< messages that mu is paid for
  double share = 1;                           ///< ranks per core: calculation and messages take this many times as long
  double link_share = 1;                      ///< and level 0, where it is memory
};

/// Where observations were made.
struct Place {
  const Topology& topology;
  double cores = 0;        ///< as in Profile
  bool is_memory = false;  ///< as in Profile
  bool has_links = false;  ///< links of the topology that are slower than others of their level count as such
  /// Reductions read their operands in the peers' memory: an AllReduce copies in its AllGather half only. The model
  /// charges beta for both halves, so beta is half of a copy here, and an AllGather by itself costs it twice.
  bool is_direct = false;
  /// What all observations of the place together count against.
  std::shared_ptr<WorkMeter> work = std::make_shared<WorkMeter>(kPricingLimit, "what was measured");
};
inline Place place_of(const Profile& profile) {
  return {profile.topology, profile.cores, profile.is_memory, true, profile.access == OperandAccess::kDirect};
}
inline Place place_of(const Measurements& measured) {
  return {measured.topology, measured.cores, measured.is_memory, false, measured.access == OperandAccess::kDirect};
}

/// Throws InvalidArgument when the servers are none of the topology's or the algorithm does not fit them, or when all
/// observations of the place together are too much work.
Features features_of(const Observation& observation, const Place& place);

/// Values of all parameters.
struct Parameters {
  std::vector<double> values;      ///< in the order of ParamIndex, with mu or without
  std::vector<double> thresholds;  ///< w_t per level
};

/// The coefficients of `parameters.values` in the time: T = row * values. The slowest load of a stage is the one with
/// these parameters.
void row_of(const Features& features, const Parameters& parameters, double* row);
double seconds_of(const Features& features, const Parameters& parameters);

/// The parameters that a profile has.
Parameters parameters_of(const Profile& profile);
/// What a model knows of them: without mu, and for (alpha, beta, gamma) without delta and epsilon as well.
Parameters known_to(ModelKind kind, Parameters parameters);

}  // namespace gar
