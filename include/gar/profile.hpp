// A profile: what `gar fit` found out about a network, how sure it is of that, and where it comes from.
//
// Units as in gar/topology.hpp: alpha in seconds; mu in seconds per message; beta, epsilon, gamma, delta in seconds per
// float of 4 bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gar/topology.hpp"

namespace gar {

/// A number, and the interval in which it lies with a probability of 95%.
struct Estimate {
  double value = 0;           ///< the estimate itself
  double low = 0;             ///< lower end of the interval
  double high = 0;            ///< upper end of the interval
  bool is_identified = true;  ///< false: the measurements say nothing about it; the value is a guess or an assumption
  bool operator==(const Estimate&) const = default;
};

/// What the measurements say about senders that meet at a link.
enum class Incast {
  kUnknown,  ///< too few senders were measured
  kNone,     ///< many senders cost no more than one
  kDrift,    ///< a straight rise, which loss-free networks show as well; epsilon describes it, with a threshold of 1
  kPresent,  ///< more senders than the threshold cost more
};
/// "unknown", "none", "drift", "present".
std::string_view to_string(Incast incast);

/// The links of one level of the tree: level 0 are the servers' own links, level 1 those of the switches above, ...
struct LevelProfile {
  std::string name;  ///< base name of the nodes below these links: "host", "rack"
  Estimate alpha;    ///< level 0: of a path across a lowest switch; above: of the switch that these links end at
  Estimate beta;     ///< seconds per float
  Estimate epsilon;  ///< seconds per float, of each sender beyond the threshold
  Estimate incast_threshold;         ///< w_t, in senders
  Incast incast = Incast::kUnknown;  ///< what was seen when receivers admit `max_senders`
  std::int64_t most_senders = 0;     ///< that were measured at such a link
  /// Receivers admit at most this many senders at once, and epsilon and incast_threshold are what is left then; 0: all
  /// ranks send at once.
  std::int64_t max_senders = 0;
  /// The same where all ranks send at once; as above when max_senders is 0.
  Estimate free_epsilon;
  Estimate free_incast_threshold;         ///< w_t where every rank sends as soon as it can
  Incast free_incast = Incast::kUnknown;  ///< what was seen where every rank sends as soon as it can
  bool operator==(const LevelProfile&) const = default;
};

/// One link by itself, as an instance of the topology: "rack2", "rack0/host3".
struct LinkProfile {
  std::string name;  ///< as Topology::instance_name gives it
  int level = 0;     ///< level of the link, as in LevelProfile
  Estimate beta;     ///< seconds per float
  bool operator==(const LinkProfile&) const = default;
};

/// What measured AllReduces of a size class took, relative to the model: a factor for all algorithms alike.
struct SizeCorrection {
  double from_bytes = 0;  ///< size class, in bytes of the vector
  double to_bytes = 0;    ///< excluded
  Estimate factor;        ///< measured time / modelled time
  bool operator==(const SizeCorrection&) const = default;
};

/// A measurement next to what the fitted model says.
struct Residual {
  std::string what;       ///< "cps allreduce, 12 ranks, 1e5 floats"
  double measured_s = 0;  ///< measured seconds, the median of the repetitions
  double fitted_s = 0;    ///< seconds by the fitted model
  double weight = 1;      ///< 0 to 1: how much the robust fit believed it
  bool operator==(const Residual&) const = default;
};

/// How good one way of predicting or choosing was on measurements that were not fitted.
struct ValidationScore {
  std::string name;            ///< "GenModel", "(alpha,beta,gamma)", "Open MPI's default"
  std::int64_t num_cells = 0;  ///< measurements
  std::int64_t num_cases = 0;  ///< choices: a number of ranks and a size
  double median_error = -1;    ///< of |predicted / measured - 1|; -1: it predicts nothing
  double p95_error = -1;       ///< of the same, 95% are below
  double max_error = -1;       ///< of the same, the largest
  double median_regret = -1;   ///< time of its choice / time of the best, - 1
  double p95_regret = -1;      ///< of the same, 95% are below
  double max_regret = -1;      ///< of the same, the largest
  double from_bytes = 0;       ///< vectors from this length on
  double to_bytes = 0;         ///< and below this one; 0: of every length
  bool operator==(const ValidationScore&) const = default;
};

/// Where a profile comes from.
struct Provenance {
  std::string date;                   ///< "2026-11-15T17:00:00Z"
  std::string command;                ///< as typed
  std::string gar_version;            ///< version of the program that fitted it
  std::vector<std::string> hosts;     ///< names of the hosts
  std::string kernel;                 ///< "Linux 6.1.0"
  std::string cpu;                    ///< "Intel Xeon ..., 2 cores"
  std::string mpi;                    ///< "Open MPI 4.1.4"; empty: none
  std::string transport;              ///< "shm", "mpi", "cuda-ipc", ...
  std::int64_t num_ranks = 0;         ///< that took part
  std::int64_t num_measurements = 0;  ///< measurements that the profile rests on
  double seconds = 0;                 ///< that measuring took
  std::string device = {};  ///< "NVIDIA H200, 132 multiprocessors, 140 GiB": whose memory it was; empty: the CPU's
  bool operator==(const Provenance&) const = default;
};

/// How a reduction gets at the operands of other ranks.
enum class OperandAccess {
  kCopied,  ///< they are sent to the rank that reduces them
  kDirect,  ///< it reads them in the memory of the others, as on GPUs that map each other's memory
};
/// "copied", "direct".
std::string_view to_string(OperandAccess access);

/// The fitted parameters of a network, with their intervals and what they rest on.
struct Profile {
  /// The measured network, one server per rank, with the fitted parameters (those of `levels`, `links` that differ, and
  /// what ranks that share a core have to share).
  Topology topology;
  std::vector<LevelProfile> levels;  ///< from the servers upwards; as many as the topology's height
  Estimate gamma;                    ///< of a rank with a core of its own
  Estimate delta;                    ///< of a rank with a core of its own
  Estimate two_beta_plus_gamma;  ///< of level 0: what an AllReduce on one switch tells even where beta and gamma cannot
                                 ///< be separated
  double cores = 0;              ///< that the ranks below a lowest switch share; 0: each has its own
  std::vector<LinkProfile> links;           ///< single links, where these were measured one by one
  std::vector<SizeCorrection> corrections;  ///< ascending by size; empty: none were fitted
  std::vector<Residual> residuals;          ///< one for each fitted measurement
  std::vector<ValidationScore> validation;  ///< one for each way of predicting or choosing; empty: not validated
  std::vector<std::string> notes;           ///< what could not be identified, and why; one sentence each
  Provenance provenance;                    ///< when, where and with what it was measured
  /// A lowest switch is the memory of a host: alpha and the links of level 0 share its cores as well.
  bool is_memory = false;
  OperandAccess access = OperandAccess::kCopied;  ///< how reductions get at their operands
  /// Seconds per message, of a rank with a core of its own; not identified where no short vectors were measured between
  /// three ranks or more, and 0 then: what a message costs is part of alpha.
  Estimate mu{.value = 0, .low = 0, .high = 0, .is_identified = false};
  /// Where senders meet with loss: how many times as long as predicted AllReduces take in which ranks hear from others
  /// in one stage than in the next, over the same of rings. A correction for what single stages cannot know; measured
  /// with what was held out, and not identified without that.
  Estimate overlap{.value = 1, .low = 1, .high = 1, .is_identified = false};
  std::vector<ValidationScore> validation_by_size{};  ///< as `validation`, for every size class, shortest vectors first
};

/// The profile's parameters on another tree, level by level; ranks share the profile's cores below each lowest switch.
/// Levels that the profile does not know keep the tree's own parameters; `unknown_levels` (may be null) gets them.
Topology lay_over(const Profile& profile, const Topology& topology, std::vector<int>* unknown_levels = nullptr);

/// What PlanRequest and CommunicatorOptions take for it: 1 where the interval has it.
double overlap_of(const Profile& profile);

/// The profile's correction for AllReduces of that size; null when it has none.
const SizeCorrection* correction_of(const Profile& profile, double bytes);
/// The same of corrections that are no part of a profile yet.
const SizeCorrection* correction_of(std::span<const SizeCorrection> corrections, double bytes);
/// `seconds` with the correction of that size, if there is one.
double corrected(const Profile& profile, double seconds, double bytes);

/// One thing in which two profiles of the same network differ.
struct ProfileChange {
  std::string what;             ///< "beta of the links of level 1 (rack)", "beta of the link of rack2"
  Estimate before;              ///< in the first profile
  Estimate after;               ///< in the second profile
  bool is_significant = false;  ///< the intervals do not overlap
  std::string words;            ///< "uplink of rack2: 30% less bandwidth"
};
/// The differences, significant ones first, then by size.
std::vector<ProfileChange> compare_profiles(const Profile& before, const Profile& after);

}  // namespace gar
