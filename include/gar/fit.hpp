// Measurements to parameters: alpha, beta, epsilon and w_t of every level of a network, gamma, delta and mu of its
// servers, with intervals, and with a note on what the measurements cannot tell.
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

/// What kind of experiment was measured.
enum class ObservationKind {
  kCollective,  ///< a collective with a given algorithm between `servers`
  kGather,      ///< all `servers` but the first send `size_floats` each to the first (x-to-1)
  kReduction,   ///< every one of `servers` reduces `fan_in` vectors of `size_floats` at the same time
};

/// One experiment and the times of its repetitions.
struct Observation {
  ObservationKind kind = ObservationKind::kCollective;  ///< which of the fields below count
  Collective collective = Collective::kAllReduce;       ///< kAllGather with cps is an x-to-x mesh, with ring a shift
  AlgorithmSpec algorithm;                              ///< one that build_plan knows (no tree planner)
  std::shared_ptr<const Plan> plan;                     ///< instead of `algorithm`
  std::vector<std::int64_t> servers;                    ///< of the topology, ascending
  double size_floats = 0;        ///< of the whole vector (also for kAllGather: all blocks together)
  std::int64_t fan_in = 0;       ///< kReduction: operands of one reduction
  std::int64_t max_senders = 0;  ///< that a receiver admits at once; 0: every rank sends as soon as it can
  std::vector<double> seconds;   ///< one per repetition, of the slowest rank
  double retransmits = -1;       ///< TCP segments sent again per repetition, all ranks together; -1: unknown
  double pause_frames = -1;      ///< PFC pause frames per repetition
  bool is_fitted = true;         ///< false: held out, for validation
  bool is_native = false;        ///< the MPI library's own AllReduce; never fitted
};
/// "cps allreduce, 12 ranks, 1e5 floats".
std::string describe(const Observation& observation);
/// Median of the repetitions. Precondition: there is one.
double median_seconds(const Observation& observation);

/// Is it the same experiment, whatever times were measured?
bool is_same_cell(const Observation& a, const Observation& b);

/// The measurements of one network, and where they come from.
struct Measurements {
  Topology topology;  ///< shape and names count, parameters do not
  double cores = 0;   ///< as in Profile
  /// Everything that was measured, fitted and held out.
  std::vector<Observation> observations;
  std::vector<LinkProfile> links;                 ///< single links, measured one by one
  Provenance provenance;                          ///< when, where and with what it was measured
  bool is_memory = false;                         ///< as in Profile
  OperandAccess access = OperandAccess::kCopied;  ///< how reductions got at their operands
};

/// How `fit` works.
struct FitOptions {
  std::uint64_t seed = 1;       ///< of the bootstrap that gives the intervals
  int num_bootstrap = 200;      ///< samples of the bootstrap
  bool fit_corrections = true;  ///< find a factor per size class as well (Profile::corrections)
  bool fit_mu = true;           ///< find what handling a message costs, where that was measured
};

/// Fits everything that the measurements identify. Throws InvalidArgument when they are too few or contradict the model
/// (a message says which and why).
Profile fit(const Measurements& measurements, const FitOptions& options = {});

/// What the model says about an observation, with a profile's parameters (without size corrections). `kind` as in
/// gar/model.hpp.
double predict_seconds(const Observation& observation, const Profile& profile, ModelKind kind = ModelKind::kGenModel);

/// An AllReduce that was not fitted, and what the models predicted for it.
struct ValidationCell {
  const Observation* observation = nullptr;  ///< the observation that this is about
  double measured_s = 0;                     ///< median of its repetitions
  double genmodel_s = -1;                    ///< with size corrections; -1: native
  double abc_s = -1;    ///< (alpha,beta,gamma) with parameters of its own, fitted to the same measurements
  double paper_s = -1;  ///< GenModel without mu, likewise, with size corrections of its own; -1: the profile has no mu
};
/// The held-out AllReduces among the observations, in their order. The cells point to the observations, which must
/// outlive them.
std::vector<ValidationCell> validation_cells(const Profile& profile, const std::vector<Observation>& observations);

/// Errors and regret on the observations that were not fitted (AllReduce only): GenModel, where it has a
/// mu also GenModel without it, (alpha,beta,gamma) and, where native ones are among them, the library's default. The
/// best is the fastest that was measured, native or not.
std::vector<ValidationScore> validate(const Profile& profile, const std::vector<Observation>& observations);
/// The same for each size class that was measured: vectors of 8 to below 64 bytes, to below 512, and so on by factors
/// of 8.
std::vector<ValidationScore> validate_by_size(const Profile& profile, const std::vector<Observation>& observations);

/// Whether measured AllReduces are normal for a network, and if not, which parameter explains it.
struct Diagnosis {
  bool is_normal =
      true;  ///< at most a tenth of the observations is slower than the tolerance allows, at most half are faster
  /// False: the profile is too rough, nothing is called normal, slow or fast, and there is no culprit.
  bool is_judged = true;
  double tolerance = 0;  ///< relative deviation that is normal; the largest of the rows that are judged
  std::string culprit;   ///< "beta of level 1 (rack)", "lost packets"; empty: normal, or nothing explains it alone
  double factor = 1;     ///< that parameter times this explains the measurements best
  double explained = 0;  ///< share of the deviation that goes away with it
  std::vector<Residual> rows;  ///< each observation next to what the profile predicts
  /// The same for each row: what the profile's own errors are at such times. A row is judged up to 30%.
  std::vector<double> tolerances;
  std::vector<std::string> words;  ///< the verdict, one sentence each
};
/// Judges measured AllReduces by a profile. Throws InvalidArgument when there are no observations.
Diagnosis diagnose(const Profile& profile, const std::vector<Observation>& observations);

/// One measured AllReduce out of a benchmark's output.
struct ResultRow {
  std::int64_t line = 0;       ///< where it stands; 0 in a document
  double bytes = 0;            ///< of the vector
  double seconds = 0;          ///< of one operation
  std::string algorithm = {};  ///< as on the command line; empty: unknown, or the library's own choice
  std::string label = {};      ///< what the benchmark says about it: "auto: cps, 4 chunks", "in place"
  double resent = -1;          ///< share of its segments that TCP sent again; -1: the benchmark does not say
};
/// What lost packets have to do with slow results, "packets are lost: ..."; empty: hardly any were, or nobody counted.
std::string words_of_loss(const std::vector<ResultRow>& rows);
/// Where results are not normal, says what they say about lost packets, which are to blame if no parameter is.
void add_loss(const std::vector<ResultRow>& rows, Diagnosis& diagnosis);
/// These as observations between the first `num_ranks` servers. Rows that do not say what ran are taken for what the
/// model finds best at their size.
std::vector<Observation> observations_of(const std::vector<ResultRow>& rows, const Topology& topology,
                                         std::int64_t num_ranks);

/// Adds measurements of another run on the same network. Throws InvalidArgument when it is another network, or another
/// number of cores.
void join(Measurements& all, Measurements more);

}  // namespace gar
