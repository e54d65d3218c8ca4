// Measurements to parameters: alpha, beta, epsilon and w_t of every level of a network, gamma and delta of its servers,
// with intervals and a word on what cannot be told.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/plan.hpp"
#include "gar/profile.hpp"
#include "gar/topology.hpp"

namespace gar {

enum class ObservationKind {
  kCollective,  ///< a collective with a given algorithm between `servers`
  kGather,      ///< all `servers` but the first send `size_floats` each to the first (x-to-1)
  kReduction,   ///< every one of `servers` reduces `fan_in` vectors of `size_floats` at the same time
};

/// Something that was measured, several times.
struct Observation {
  ObservationKind kind = ObservationKind::kCollective;
  Collective collective = Collective::kAllReduce;  ///< kAllGather with cps is an x-to-x mesh, with ring a shift
  AlgorithmSpec algorithm;                         ///< one that build_plan knows (no tree planner)
  std::shared_ptr<const Plan> plan;                ///< instead of `algorithm`
  std::vector<std::int64_t> servers;               ///< of the topology, ascending
  double size_floats = 0;                          ///< of the whole vector (also for kAllGather: all blocks together)
  std::int64_t fan_in = 0;
  std::int64_t max_senders = 0;  ///< that a receiver admits at once; 0: all ranks send at once
  std::vector<double> seconds;   ///< one per repetition, of the slowest rank
  double retransmits = -1;       ///< TCP segments sent again per repetition, all ranks together; -1: unknown
  double pause_frames = -1;      ///< PFC pause frames per repetition
  bool is_fitted = true;         ///< false: held out, for validation
  bool is_native = false;        ///< the MPI library's own AllReduce; never fitted
};
/// "cps all_reduce, 12 ranks, 1e5 floats".
std::string describe(const Observation& observation);
/// Median of the repetitions. Precondition: there is one.
double median_seconds(const Observation& observation);

/// Is it the same experiment, whatever times were measured?
bool is_same_cell(const Observation& a, const Observation& b);

/// A number of measurements, and where they come from.
struct Measurements {
  Topology topology;  ///< shape and names count, parameters do not
  double cores = 0;   ///< as in Profile
  std::vector<Observation> observations;
  std::vector<LinkProfile> links;  ///< single links, measured one by one
  Provenance provenance;
  bool is_memory = false;  ///< as in Profile
  OperandAccess access = OperandAccess::kCopied;
};

struct FitOptions {
  std::uint64_t seed = 1;
  int num_bootstrap = 200;
  bool fit_corrections = true;
};

/// Fits everything that the measurements identify. Throws InvalidArgument when they are too few or contradict the model
/// (a message says which and why).
Profile fit(const Measurements& measurements, const FitOptions& options = {});

/// What the model says about an observation, with a profile's parameters (without size corrections). `kind` as in
/// gar/model.hpp.
double predict_seconds(const Observation& observation, const Profile& profile, ModelKind kind = ModelKind::kGenModel);

/// An AllReduce that was not fitted, and what was said about it.
struct ValidationCell {
  const Observation* observation = nullptr;
  double measured_s = 0;
  double genmodel_s = -1;  ///< with size corrections; -1: native
  double abc_s = -1;       ///< (alpha,beta,gamma) with parameters of its own, fitted to the same measurements
};
/// In the order of the observations, which must outlive them.
std::vector<ValidationCell> validation_cells(const Profile& profile, const std::vector<Observation>& observations);

/// Errors and regret on the observations that were not fitted (AllReduce only): GenModel, (alpha,beta,gamma) and, where
/// native ones are among them, the library's default. The best is the fastest that was measured, native or not.
std::vector<ValidationScore> validate(const Profile& profile, const std::vector<Observation>& observations);

/// Whether measured AllReduces are normal for a network, and if not, which parameter explains it.
struct Diagnosis {
  bool is_normal = true;
  double tolerance = 0;  ///< relative deviation that is normal
  std::string culprit;   ///< "beta of level 1 (rack)"; empty: normal, or nothing explains it alone
  double factor = 1;     ///< that parameter times this explains the measurements best
  double explained = 0;  ///< share of the deviation that goes away with it
  std::vector<Residual> rows;
  std::vector<std::string> words;
};
Diagnosis diagnose(const Profile& profile, const std::vector<Observation>& observations);

}  // namespace gar
