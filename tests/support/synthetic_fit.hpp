// Measurements of networks whose parameters are known, with the noise of real ones.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "gar/fit.hpp"
#include "gar/topology.hpp"

namespace gar::test {

struct Truth {
  double alpha = 1e-4;  ///< of a path
  double beta = 1e-8;
  double gamma = 1e-9;
  double delta = 5e-10;
  double epsilon = 0;
  double incast_threshold = 1;
  double mu = 0;
};

/// What disturbs a repetition.
struct Noise {
  double relative = 0.05;
  double outlier_share = 0.05;  ///< of the repetitions take 1.5 to 4 times as long
  double drift_per_sender = 0;  ///< of beta, per sender beyond the first: what loss-free networks show
};

inline std::vector<std::int64_t> first_servers(std::int64_t n) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) out[static_cast<std::size_t>(i)] = i;
  return out;
}

inline Observation collective_observation(Collective collective, const std::string& algorithm, std::int64_t n,
                                          double size_floats) {
  Observation out;
  out.collective = collective;
  out.algorithm = parse_algorithm(algorithm);
  out.servers = first_servers(n);
  out.size_floats = size_floats;
  return out;
}

inline Observation reduction_observation(std::int64_t fan_in, std::int64_t n, double size_floats) {
  Observation out;
  out.kind = ObservationKind::kReduction;
  out.fan_in = fan_in;
  out.servers = first_servers(n);
  out.size_floats = size_floats;
  return out;
}

/// What `gar fit` measures on one switch: reductions, meshes and shifts, CPS for all numbers of ranks.
inline std::vector<Observation> usual_observations(std::int64_t num_ranks, double small, double large) {
  std::vector<Observation> out;
  for (const std::int64_t fan_in : {2, 3, 4, 6, 8, 12, 16}) {
    for (const double size : {large / 4, large}) out.push_back(reduction_observation(fan_in, num_ranks, size));
  }
  for (const double size : {1.0, 16.0, 256.0})
    out.push_back(collective_observation(Collective::kAllGather, "cps", 2, size));
  for (std::int64_t n = 2; n <= num_ranks; ++n) {
    for (const double size : {small, large}) {
      out.push_back(collective_observation(Collective::kAllGather, "cps", n, size));
      out.push_back(collective_observation(Collective::kAllGather, "ring", n, size));
    }
    for (const double size : {small, std::sqrt(small * large), large})
      out.push_back(collective_observation(Collective::kAllReduce, "cps", n, size));
  }
  return out;
}

/// What `gar fit` measures for mu: meshes, shifts and x-to-1 with two floats of every rank.
inline std::vector<Observation> short_observations(std::int64_t num_ranks) {
  std::vector<Observation> out;
  for (std::int64_t n = 3; n <= num_ranks; ++n) {
    const double floats = 2 * static_cast<double>(n);
    out.push_back(collective_observation(Collective::kAllGather, "cps", n, floats));
    out.push_back(collective_observation(Collective::kAllGather, "ring", n, floats));
    Observation gather;
    gather.kind = ObservationKind::kGather;
    gather.servers = first_servers(n);
    gather.size_floats = 2;
    out.push_back(gather);
  }
  return out;
}

inline Profile profile_of(const Truth& truth, const Topology& topology) {
  Profile out{topology, {}, {}, {}, {}, 0, {}, {}, {}, {}, {}, {}, false};
  LevelProfile level;
  level.alpha.value = truth.alpha;
  level.beta.value = truth.beta;
  level.epsilon.value = truth.epsilon;
  level.incast_threshold.value = truth.incast_threshold;
  out.levels.push_back(level);
  out.gamma.value = truth.gamma;
  out.delta.value = truth.delta;
  out.mu.value = truth.mu;
  return out;
}

/// Gives the observations times.
template <class Random>
void simulate_times(std::vector<Observation>& observations, const Truth& truth, const Topology& topology,
                    const Noise& noise, int repetitions, Random& random) {
  const Profile profile = profile_of(truth, topology);
  Truth drifting = truth;
  drifting.epsilon = noise.drift_per_sender * truth.beta;
  drifting.incast_threshold = 1;
  const Profile drift = profile_of(drifting, topology);
  std::normal_distribution<double> normal(0, noise.relative);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (Observation& one : observations) {
    double seconds = predict_seconds(one, profile);
    if (noise.drift_per_sender > 0) {
      Truth flat = truth;
      flat.epsilon = 0;
      seconds += predict_seconds(one, drift) - predict_seconds(one, profile_of(flat, topology));
    }
    one.seconds.clear();
    for (int i = 0; i < repetitions; ++i) {
      double factor = std::max(0.5, 1 + normal(random));
      if (uniform(random) < noise.outlier_share) factor *= 1.5 + 2.5 * uniform(random);
      one.seconds.push_back(seconds * factor);
    }
  }
}

}  // namespace gar::test
