// Measurements to a profile.
#include "gar/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "fit/estimate.hpp"
#include "fit/overlap.hpp"
#include "fit/regression.hpp"
#include "fit/selection.hpp"
#include "gar/errors.hpp"
#include "gar/stats.hpp"

namespace gar {

namespace {

constexpr double kLeastExplained = 0.7;  // of the spread of log times
constexpr double kMostScatter = 0.6;     // relative, of the measurements around the model
constexpr double kLeastCorrection = 0.02;
constexpr int kCorrectionRounds = 4;
constexpr double kClearlyBetter = 0.8;

/// What the nodes of each level are called, without the number of the single one: "host", "rack".
std::vector<std::string> level_names(const Topology& topology) {
  std::vector<std::string> out;
  for (int level = 0; level < topology.height(topology.root()); ++level) {
    std::string name;
    for (NodeId id = 0; id < topology.num_nodes() && name.empty(); ++id) {
      if (topology.height(id) == level) name = topology.node(id).name;
    }
    const std::size_t end = name.find_last_not_of("0123456789-_.");
    if (end != std::string::npos) name.resize(end + 1);
    out.push_back(name);
  }
  return out;
}

void check_enough(const std::vector<const Observation*>& used, const Topology& topology) {
  const int num_params = ParamIndex(topology.height(topology.root())).num_asked();
  const bool has_links = std::any_of(used.begin(), used.end(),
                                     [](const Observation* o) { return o->kind != ObservationKind::kReduction; });
  const int needed = has_links ? num_params + 2 : 4;
  if (static_cast<int>(used.size()) < needed) {
    throw InvalidArgument(
        fmt::format("{} different measurements are too few for {} parameters; expected {} or more "
                    "(more sizes, more numbers of ranks)",
                    used.size(), has_links ? num_params : 2, needed));
  }
}

/// Logarithms of measured over fitted times, of transfers or of reductions.
Eigen::VectorXd errors_of(const Problem& problem, const Fitted& fitted, bool is_reduction) {
  const Eigen::VectorXd predicted = problem.predict(fitted.solution.parameters);
  std::vector<double> out;
  for (Eigen::Index i = 0; i < problem.size(); ++i) {
    if (problem.features(i).stages.empty() == is_reduction)
      out.push_back(std::log(problem.y()(i) / std::max(predicted(i), 1e-300)));
  }
  return Eigen::Map<const Eigen::VectorXd>(out.data(), static_cast<Eigen::Index>(out.size()));
}

/// Never a confident answer from data that do not follow the model.
void check_consistency(const Problem& problem, const Fitted& fitted) {
  const Eigen::VectorXd logs = problem.y().array().log().matrix();
  if (logs.maxCoeff() - logs.minCoeff() < 0.05) {
    throw InvalidArgument(
        "all times are the same, whatever the size and the number of ranks: these are no measurements of a network");
  }
  Eigen::VectorXd errors = errors_of(problem, fitted, false);
  if (errors.size() == 0) errors = errors_of(problem, fitted, true);
  const double spread = robust_deviation(logs);
  const double scatter = 1.4826 * median_of(errors.cwiseAbs());
  const bool explains_little = spread > 0 && 1 - std::pow(scatter / spread, 2) < kLeastExplained && scatter > 0.1;
  if (scatter <= kMostScatter && !explains_little) return;
  throw InvalidArgument(fmt::format(
      "the measurements contradict the model: half of them are more than {:.0f}% away from the best fit. "
      "Measure again, for longer, while nothing else runs on these hosts (measurements that you have written "
      "yourself: are times, sizes and ranks in the right order?)",
      100 * std::exp(median_of(errors.cwiseAbs())) - 100));
}

/// Caches make reductions of some sizes several times faster than others.
void note_reductions(const Problem& problem, const Fitted& fitted, std::vector<std::string>& notes) {
  const Eigen::VectorXd errors = errors_of(problem, fitted, true);
  if (errors.size() == 0 || errors_of(problem, fitted, false).size() == 0) return;
  const double middle = median_of(errors.cwiseAbs());
  if (middle < 0.2) return;
  notes.push_back(
      fmt::format("no gamma and delta describe reductions of all sizes (half of them are more than {:.0f}% off): "
                  "caches make some faster; see the residuals",
                  100 * std::exp(middle) - 100));
}

Estimate parameter(const Fitted& fitted, int p) {
  Estimate out = interval_of(fitted, [p](const Parameters& x) { return x.values[static_cast<std::size_t>(p)]; });
  out.is_identified = fitted.is_identified(p);
  return out;
}

Estimate threshold(const Fitted& fitted, std::size_t level) {
  Estimate out = interval_of(fitted, [level](const Parameters& x) { return x.thresholds[level]; });
  out.is_identified = fitted.has_threshold[level];
  return out;
}

void add_levels(const Fitted& fitted, const Fitted& unadmitted, const Measurements& measurements, Profile& profile,
                std::int64_t max_senders) {
  const std::vector<std::string> names = level_names(measurements.topology);
  for (std::size_t level = 0; level < names.size(); ++level) {
    const int l = static_cast<int>(level);
    LevelProfile one;
    one.name = names[level];
    one.alpha = parameter(fitted, ParamIndex::alpha(l));
    one.beta = parameter(fitted, ParamIndex::beta(l));
    one.epsilon = parameter(fitted, ParamIndex::epsilon(l));
    one.incast = fitted.incast[level];
    if (l > 0 && !one.beta.is_identified) one.beta.low = 0;
    // Not in the model means measured to be 0, or not measured at all.
    one.epsilon.is_identified = one.incast != Incast::kUnknown;
    one.incast_threshold = threshold(fitted, level);
    one.most_senders = static_cast<std::int64_t>(fitted.most_senders[level]);
    one.max_senders = max_senders;
    one.free_epsilon = parameter(unadmitted, ParamIndex::epsilon(l));
    one.free_epsilon.is_identified = unadmitted.incast[level] != Incast::kUnknown;
    one.free_incast_threshold = threshold(unadmitted, level);
    one.free_incast = unadmitted.incast[level];
    profile.levels.push_back(one);
  }
}

void add_incast_notes(const Profile& profile, std::vector<std::string>& notes) {
  for (const LevelProfile& level : profile.levels) {
    const std::string where = profile.levels.size() == 1 ? "" : fmt::format("links of {}: ", level.name);
    if (level.most_senders == 0) {
      notes.push_back(fmt::format("{}links were not measured; alpha, beta and epsilon are unknown", where));
      continue;
    }
    if (&level != &profile.levels.front() && !level.beta.is_identified) {
      notes.push_back(
          fmt::format("{}never the bottleneck; beta is at most {:.3g} s per float", where, level.beta.value));
    }
    if (level.free_incast == Incast::kUnknown) {
      notes.push_back(
          level.most_senders < 3
              ? fmt::format("{}incast was not measured: at most {} senders met at a link", where, level.most_senders)
              : fmt::format("{}these measurements cannot tell whether there is incast: only one number of senders was "
                            "measured, or these links never were the bottleneck",
                            where));
    } else if (level.free_incast == Incast::kNone) {
      notes.push_back(fmt::format("{}no incast with up to {} senders; a threshold above that cannot be seen from here",
                                  where, level.most_senders));
    } else if (level.free_incast == Incast::kDrift) {
      notes.push_back(fmt::format(
          "{}no incast, but a straight rise of {:.1f}% of beta per sender, such as networks without loss show, too",
          where, 100 * level.free_epsilon.value / std::max(level.beta.value, 1e-300)));
    }
  }
}

constexpr double kClassBase = 4;  // sizes up to 4 times apart share a correction

int size_class(const Observation& observation) {
  return static_cast<int>(std::floor(std::log(4 * observation.size_floats) / std::log(kClassBase)));
}

bool is_collective(const Observation& observation, Collective collective) {
  return observation.kind == ObservationKind::kCollective && observation.collective == collective;
}

/// A median of logarithms and the error of it.
struct Deviation {
  double middle = 0;
  double error = 0;
  std::size_t count = 0;
};
Deviation deviation_of(const std::vector<double>& logs) {
  if (logs.empty()) return {};
  const Eigen::VectorXd all = Eigen::Map<const Eigen::VectorXd>(logs.data(), static_cast<Eigen::Index>(logs.size()));
  return {median_of(all), 1.96 * 1.2533 * robust_deviation(all) / std::sqrt(static_cast<double>(logs.size())),
          logs.size()};
}

/// Factors per size class where the data insist: AllReduces of the class are off altogether, and so are shifts, in
/// which no second sender is met. (What is off with many senders alone is incast, and no matter of size.)
std::vector<SizeCorrection> corrections_of(const std::vector<const Observation*>& used, const Eigen::VectorXd& measured,
                                           const Eigen::VectorXd& fitted, bool is_memory) {
  std::map<int, std::pair<std::vector<double>, std::vector<double>>> classes;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const Observation& one = *used[i];
    const auto k = static_cast<Eigen::Index>(i);
    const double off = std::log(measured(k) / fitted(k));
    if (one.kind != ObservationKind::kCollective) continue;
    if (is_memory || is_collective(one, Collective::kAllReduce)) classes[size_class(one)].first.push_back(off);
    if (is_collective(one, Collective::kAllGather) && one.algorithm.name == "ring")
      classes[size_class(one)].second.push_back(off);
  }
  std::vector<SizeCorrection> out;
  for (const auto& [number, logs] : classes) {
    // In memory all of them tell; on a network the shifts do, if AllReduces do not contradict.
    const Deviation all = deviation_of(logs.first);
    const Deviation control = is_memory ? all : deviation_of(logs.second);
    if (control.count < 3 || std::abs(control.middle) < std::max(kLeastCorrection, control.error)) continue;
    if (all.count < 3 || control.middle * all.middle <= 0) continue;
    out.push_back({std::pow(kClassBase, number),
                   std::pow(kClassBase, number + 1),
                   {std::exp(control.middle), std::exp(control.middle - control.error),
                    std::exp(control.middle + control.error)}});
  }
  return out;
}

std::vector<double> factors_of(const std::vector<const Observation*>& used,
                               const std::vector<SizeCorrection>& corrections) {
  std::vector<double> out;
  for (const Observation* one : used) {
    const SizeCorrection* found =
        one->kind == ObservationKind::kCollective ? correction_of(corrections, 4 * one->size_floats) : nullptr;
    out.push_back(found == nullptr ? 1.0 : found->factor.value);
  }
  return out;
}

/// A fit with its corrections.
struct Regression {
  std::vector<const Observation*> used;
  Problem problem;
  Fitted fitted;
  std::vector<SizeCorrection> corrections;
  std::string note;
};

Regression regress_all(const std::vector<const Observation*>& used, const Measurements& measurements,
                       const EstimateOptions& how, bool has_corrections) {
  Problem problem(used, place_of(measurements));
  const Eigen::VectorXd measured = problem.y();
  Fitted fitted = estimate(problem, how);
  Regression out{used, std::move(problem), std::move(fitted), {}, {}};
  for (int round = 0; has_corrections && round < kCorrectionRounds; ++round) {
    const Eigen::VectorXd predicted = out.problem.predict(out.fitted.solution.parameters);
    out.corrections = corrections_of(used, measured, predicted, measurements.is_memory);
    if (out.corrections.empty() && round == 0) break;
    out.problem = Problem(used, place_of(measurements), factors_of(used, out.corrections));
    out.fitted = estimate(out.problem, how);
  }
  return out;
}

/// Median relative error of the AllReduces.
double error_of(const Regression& regression) {
  const Eigen::VectorXd predicted = regression.problem.predict(regression.fitted.solution.parameters);
  std::vector<double> errors;
  for (std::size_t i = 0; i < regression.used.size(); ++i) {
    const auto k = static_cast<Eigen::Index>(i);
    if (is_collective(*regression.used[i], Collective::kAllReduce))
      errors.push_back(std::abs(std::log(regression.problem.y()(k) / std::max(predicted(k), 1e-300))));
  }
  return median(std::move(errors));
}

/// In memory, operands of an AllReduce come out of other ranks' caches, and its copies cost like reductions: where
/// reductions by themselves do not describe it, they are left out.
Regression regress(const Selection& selection, const Measurements& measurements, const EstimateOptions& how,
                   const FitOptions& options) {
  EstimateOptions quick = how;
  quick.num_bootstrap = 0;
  std::vector<const Observation*> without = selection.admitted;
  std::erase_if(without, [](const Observation* one) { return one->kind == ObservationKind::kReduction; });
  // A GPU runs the same kernels at the same speed in both.
  const bool may_leave_out = measurements.is_memory && measurements.access == OperandAccess::kCopied &&
                             without.size() < selection.admitted.size() &&
                             static_cast<int>(without.size()) >
                                 ParamIndex(measurements.topology.height(measurements.topology.root())).num_asked() + 2;
  if (may_leave_out) {
    const double with_error = error_of(regress_all(selection.admitted, measurements, quick, options.fit_corrections));
    const double without_error = error_of(regress_all(without, measurements, quick, options.fit_corrections));
    if (without_error < kClearlyBetter * with_error) {
      Regression out = regress_all(without, measurements, how, options.fit_corrections);
      out.note = fmt::format(
          "reductions by themselves do not describe those inside an AllReduce of this host (AllReduces are {:.0f}% off "
          "with "
          "them, {:.0f}% without); gamma and delta come from AllReduces alone",
          100 * with_error, 100 * without_error);
      return out;
    }
  }
  return regress_all(selection.admitted, measurements, how, options.fit_corrections);
}

/// Do senders of the largest mesh lose packets, or are they paused? Nothing: nobody counted.
std::optional<bool> has_congestion(const std::vector<Observation>& observations) {
  constexpr double kFloatsPerSegment = 362;  // 1,448 bytes
  constexpr double kMuch = 0.05;             // of the segments, or as many pauses
  const Observation* largest = nullptr;
  for (const Observation& one : observations) {
    const bool is_mesh = one.kind == ObservationKind::kCollective && one.collective == Collective::kAllGather &&
                         one.algorithm.name == "cps" && one.max_senders == 0 && one.is_fitted;
    if (!is_mesh || std::max(one.retransmits, one.pause_frames) < 0) continue;
    const bool is_larger = largest == nullptr || one.servers.size() > largest->servers.size() ||
                           (one.servers.size() == largest->servers.size() && one.size_floats > largest->size_floats);
    if (is_larger) largest = &one;
  }
  if (largest == nullptr) return std::nullopt;
  const double segments = static_cast<double>(largest->servers.size() - 1) * largest->size_floats / kFloatsPerSegment;
  return std::max(largest->retransmits, largest->pause_frames) > kMuch * segments;
}

/// The same thing measured twice is one observation with more repetitions.
std::vector<Observation> merged(const std::vector<Observation>& observations) {
  std::vector<Observation> out;
  for (const Observation& one : observations) {
    const auto known = std::find_if(out.begin(), out.end(), [&](const Observation& o) { return is_same_cell(o, one); });
    if (known == out.end()) {
      out.push_back(one);
    } else {
      known->seconds.insert(known->seconds.end(), one.seconds.begin(), one.seconds.end());
    }
  }
  return out;
}

/// A link that is clearly slower than its level's gets its own parameters in the topology.
Topology with_single_links(const Topology& topology, const Profile& profile) {
  constexpr double kClearly = 1.1;
  std::map<std::string, double> slow;
  for (const LinkProfile& link : profile.links) {
    const auto level = static_cast<std::size_t>(link.level);
    if (level < profile.levels.size() && profile.levels[level].beta.is_identified &&
        profile.levels[level].beta.value > 0 && link.beta.low > kClearly * profile.levels[level].beta.high)
      slow[link.name] = link.beta.value / profile.levels[level].beta.value;
  }
  if (slow.empty()) return topology;
  const ExpandedTree tree = expand(topology, topology.root());
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    Node node = topology.node(tree.node[i]);
    node.children.clear();
    const auto known = slow.find(topology.instance_name(tree.first_rank[i], tree.depth[i]));
    if (known != slow.end()) node.uplink.beta *= known->second;
    nodes.push_back(std::move(node));
    if (i > 0) nodes[static_cast<std::size_t>(tree.parent[i])].children.push_back({static_cast<NodeId>(i), 1});
  }
  return {topology.name(), std::move(nodes), 0};
}

}  // namespace

std::string describe(const Observation& observation) {
  const std::string size = fmt::format("{:g} floats", observation.size_floats);
  const std::string ranks =
      fmt::format("{} rank{}", observation.servers.size(), observation.servers.size() == 1 ? "" : "s");
  if (observation.kind == ObservationKind::kReduction)
    return fmt::format("reduction of {} vectors, {}, {}", observation.fan_in, ranks, size);
  if (observation.kind == ObservationKind::kGather) return fmt::format("all to one, {}, {}", ranks, size);
  const std::string how = observation.is_native ? "the library's own"
                          : observation.plan    ? observation.plan->algorithm
                                                : to_string(observation.algorithm);
  const std::string admitted =
      observation.max_senders > 0 ? fmt::format(", {} senders at once", observation.max_senders) : "";
  return fmt::format("{} {}, {}, {}{}", how, to_string(observation.collective), ranks, size, admitted);
}

bool is_same_cell(const Observation& a, const Observation& b) {
  return a.kind == b.kind && a.collective == b.collective && to_string(a.algorithm) == to_string(b.algorithm) &&
         a.plan == b.plan && a.servers == b.servers && a.size_floats == b.size_floats && a.fan_in == b.fan_in &&
         a.max_senders == b.max_senders && a.is_fitted == b.is_fitted && a.is_native == b.is_native;
}

double median_seconds(const Observation& observation) { return median(observation.seconds); }

Profile fit(const Measurements& measurements, const FitOptions& options) {
  const std::vector<Observation> observations = merged(measurements.observations);
  const Selection selection = select(observations, place_of(measurements));
  check_enough(selection.admitted, measurements.topology);
  EstimateOptions how;
  how.num_bootstrap = options.num_bootstrap;
  how.seed = options.seed;
  how.level_names = level_names(measurements.topology);
  if (!options.fit_mu) how.kind = ModelKind::kPaper;
  const std::optional<bool> congestion = has_congestion(observations);
  if (selection.max_senders == 0) how.has_congestion = congestion;
  Profile profile{measurements.topology,
                  {},
                  {},
                  {},
                  {},
                  measurements.cores,
                  measurements.links,
                  {},
                  {},
                  {},
                  {},
                  {},
                  measurements.is_memory,
                  measurements.access};
  const Regression found = regress(selection, measurements, how, options);
  const Problem& problem = found.problem;
  const Fitted& fitted = found.fitted;
  profile.corrections = found.corrections;
  check_consistency(problem, fitted);
  Fitted unadmitted = fitted;
  if (selection.max_senders > 0) {
    Problem free(selection.unadmitted, place_of(measurements));
    how.has_congestion = congestion;
    unadmitted = estimate(free, how);
  }

  profile.provenance = measurements.provenance;
  profile.provenance.num_measurements = static_cast<std::int64_t>(found.used.size());
  add_levels(fitted, unadmitted, measurements, profile, selection.max_senders);
  const ParamIndex& index = problem.index();
  profile.gamma = parameter(fitted, index.gamma());
  profile.delta = parameter(fitted, index.delta());
  if (index.has_mu()) profile.mu = parameter(fitted, index.mu());
  profile.two_beta_plus_gamma = interval_of(fitted, [&](const Parameters& x) {
    return 2 * x.values[static_cast<std::size_t>(ParamIndex::beta(0))] +
           x.values[static_cast<std::size_t>(index.gamma())];
  });
  profile.two_beta_plus_gamma.is_identified = fitted.is_sum_identified;
  profile.notes = fitted.notes;
  if (!found.note.empty()) profile.notes.push_back(found.note);
  note_reductions(problem, fitted, profile.notes);
  if (!index.has_mu() && options.fit_mu && fitted.most_senders.front() > 1) {
    profile.notes.emplace_back(
        "what handling a message costs (mu) cannot be told from alpha: no short vectors were measured between three or "
        "more ranks");
  }
  add_incast_notes(profile, profile.notes);
  const Eigen::VectorXd predicted = problem.predict(fitted.solution.parameters);
  const std::vector<double> factors = factors_of(found.used, profile.corrections);
  for (Eigen::Index i = 0; i < problem.size(); ++i) {
    const double factor = factors[static_cast<std::size_t>(i)];
    profile.residuals.push_back({describe(*found.used[static_cast<std::size_t>(i)]), factor * problem.y()(i),
                                 factor * predicted(i), fitted.solution.weights(i)});
  }
  profile.topology = with_single_links(lay_over(profile, measurements.topology), profile);
  profile.overlap = measured_overlap(profile, measurements.observations);
  return profile;
}

double predict_seconds(const Observation& observation, const Profile& profile, ModelKind kind) {
  const Parameters parameters = parameters_of(profile);
  return seconds_of(features_of(observation, place_of(profile)), known_to(kind, parameters));
}

}  // namespace gar
