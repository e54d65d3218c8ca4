// Is there incast, from how many senders on, and what are the parameters?
//
// Three models per level: senders cost nothing, every further sender costs the same (a straight line, w_t = 1), or only
// those beyond a threshold (a hinge). A hinge can always bend to noise, so each step from the simpler to the richer
// model must lower the loss by more than chance would (F statistics; the limits are higher than the usual tables, for
// the threshold was searched for, and are checked by simulation in tests/property). Loss-free networks show a small
// straight rise, too (measured on the virtual cluster, docs/validation.md). So a straight line is incast only if
// counters show that packets were lost or senders paused; without counters, if it is steep.
//
// What handling a message costs (mu) shows where a rank handles many messages at once and bytes do not hide it: in
// meshes and x-to-1 of short vectors. Where no such were measured, mu is not asked for and is a part of alpha. Where
// they were, it must lower the loss by more than chance would, too.
#include "fit/estimate.hpp"

#include <fmt/format.h>

#include <Eigen/SVD>
#include <algorithm>
#include <cmath>

namespace gar {

namespace {

constexpr double kIncastF = 16;       // some rise against none
constexpr double kHingeF = 8;         // a hinge against a straight line
constexpr double kHandlingF = 16;     // messages that cost something against messages that do not
constexpr double kShortShare = 0.3;   // of a time that does not depend on the length: a short vector
constexpr double kDriftSlope = 0.03;  // of beta, per sender: what a straight line may rise without being incast
constexpr double kNullSpace = 1e-6;   // singular values below it, relative to the largest
constexpr double kPartOfDirection = 0.05;
constexpr double kClearlyNegative = 2;  // standard errors

std::string param_name(const ParamIndex& index, int p, const std::vector<std::string>& levels) {
  if (index.level(p) < 0 || index.num_levels() == 1) return index.name(p);
  const auto level = static_cast<std::size_t>(index.level(p));
  return fmt::format("{} of level {} ({})", index.name(p), level, level < levels.size() ? levels[level] : "");
}

/// Loss per degree of freedom turns a difference of losses into an F statistic.
double f_statistic(double simple, const Solution& rich, const Problem& problem) {
  const double freedom = std::max(1.0, static_cast<double>(problem.size() - problem.index().num_asked()));
  return (simple - rich.loss) / std::max(rich.loss / freedom, 1e-12);
}

/// Directions in which the parameters can change without changing any time.
struct NullSpace {
  Mask is_used;                             ///< free, and some time depends on it
  std::vector<Eigen::VectorXd> directions;  ///< over all parameters, in their units
};

NullSpace null_space(const Problem& problem, const Parameters& parameters, const Mask& is_free) {
  Eigen::MatrixXd rows = problem.rows(parameters);
  for (Eigen::Index i = 0; i < rows.rows(); ++i) rows.row(i) /= problem.noise()(i);
  const Eigen::VectorXd norms = rows.colwise().norm().transpose();
  NullSpace out;
  out.is_used = is_free && norms.array() > 0;
  std::vector<Eigen::Index> used;
  for (Eigen::Index p = 0; p < rows.cols(); ++p) {
    if (out.is_used(p)) used.push_back(p);
  }
  if (used.empty()) return out;
  const Eigen::MatrixXd design = rows(Eigen::all, used) * norms(used).cwiseInverse().asDiagonal();
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(design, Eigen::ComputeFullV);
  for (Eigen::Index k = 0; k < svd.matrixV().cols(); ++k) {
    const bool is_null =
        k >= svd.singularValues().size() || svd.singularValues()(k) <= kNullSpace * svd.singularValues()(0);
    if (!is_null) continue;
    Eigen::VectorXd direction = Eigen::VectorXd::Zero(rows.cols());
    for (std::size_t j = 0; j < used.size(); ++j) {
      const double part = svd.matrixV()(static_cast<Eigen::Index>(j), k);
      if (std::abs(part) >= kPartOfDirection) direction(used[j]) = part / norms(used[j]);
    }
    out.directions.push_back(direction);
  }
  return out;
}

bool is_told(const NullSpace& space, int p) {
  return space.is_used(p) && std::all_of(space.directions.begin(), space.directions.end(),
                                         [&](const Eigen::VectorXd& d) { return d(p) == 0; });
}

void find_unidentified(const Problem& problem, const EstimateOptions& options, const Mask& is_free, Fitted& out) {
  const ParamIndex& index = problem.index();
  const NullSpace space = null_space(problem, out.solution.parameters, is_free);
  out.is_identified = is_free;
  for (int p = 0; p < index.size(); ++p) out.is_identified(p) = is_free(p) && is_told(space, p);
  const int beta = ParamIndex::beta(0);
  const int gamma = index.gamma();
  out.is_sum_identified = space.is_used(beta);
  for (const Eigen::VectorXd& direction : space.directions) {
    const double change = 2 * direction(beta) + direction(gamma);
    const double size = 2 * std::abs(direction(beta)) + std::abs(direction(gamma));
    if (std::abs(change) > 1e-3 * size) out.is_sum_identified = false;
    std::string names;
    for (int p = 0; p < index.size(); ++p) {
      if (direction(p) != 0) names += (names.empty() ? "" : " and ") + param_name(index, p, options.level_names);
    }
    out.notes.push_back(fmt::format("{} cannot be told apart by these measurements", names));
  }
}

/// A parameter that would be negative if it were allowed to be, by more than chance, says that the model misses
/// something.
void note_negative(const Problem& problem, const EstimateOptions& options, const Mask& is_free, Fitted& out) {
  const ParamIndex& index = problem.index();
  for (const int p : {index.gamma(), index.delta()}) {
    if (!is_free(p) || !out.is_identified(p) || out.solution.parameters.values[static_cast<std::size_t>(p)] > 0)
      continue;
    std::vector<Eigen::Index> used;
    for (Eigen::Index q = 0; q < index.size(); ++q) {
      if (is_free(q) && (q == p || out.solution.parameters.values[static_cast<std::size_t>(q)] > 0)) used.push_back(q);
    }
    Eigen::MatrixXd rows = problem.rows(out.solution.parameters)(Eigen::all, used);
    Eigen::VectorXd y = problem.y();
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      const double w = std::sqrt(out.solution.weights(i)) / problem.noise()(i);
      rows.row(i) *= w;
      y(i) *= w;
    }
    const Eigen::VectorXd scale = rows.colwise().norm().transpose().cwiseMax(1e-300);
    const Eigen::MatrixXd scaled = rows * scale.cwiseInverse().asDiagonal();
    const Eigen::JacobiSVD<Eigen::MatrixXd> svd(scaled, Eigen::ComputeThinU | Eigen::ComputeThinV);
    const Eigen::VectorXd solved = svd.solve(y);
    const auto at = static_cast<Eigen::Index>(std::find(used.begin(), used.end(), p) - used.begin());
    const double freedom = std::max<double>(1, static_cast<double>(rows.rows() - rows.cols()));
    const double variance = std::max((scaled * solved - y).squaredNorm() / freedom, 1e-300);
    const Eigen::VectorXd inverse = svd.singularValues().cwiseMax(1e-12).cwiseInverse();
    const double error = std::sqrt(variance) * svd.matrixV().row(at).transpose().cwiseProduct(inverse).norm();
    if (solved(at) > -kClearlyNegative * error) continue;
    out.notes.push_back(
        fmt::format("{} would be {:.3g} s per float, which is impossible, and is held at 0; the model "
                    "misses something that these measurements show",
                    param_name(index, p, options.level_names), solved(at) / scale(at)));
  }
}

/// Are there short vectors with different numbers of messages for a latency, so that mu and alpha are not the same?
bool has_short_meshes(const Problem& problem, const Parameters& parameters) {
  constexpr std::size_t kEnough = 3;
  std::vector<double> per_latency;
  for (Eigen::Index i = 0; i < problem.size(); ++i) {
    const Features& one = problem.features(i);
    double fixed = 0;
    double latencies = 0;
    for (std::size_t level = 0; level < one.alphas.size(); ++level) {
      fixed +=
          one.alphas[level] * parameters.values[static_cast<std::size_t>(ParamIndex::alpha(static_cast<int>(level)))];
      latencies = std::max(latencies, one.alphas[level]);
    }
    // What was measured beyond the bytes counts as well: without mu the model may know no latency like it.
    const double bytes = seconds_of(one, parameters) - fixed;
    if (latencies <= 0 || problem.y()(i) - bytes < kShortShare * problem.y()(i)) continue;
    per_latency.push_back(one.handled / latencies);
  }
  if (per_latency.empty()) return false;
  const double least = *std::min_element(per_latency.begin(), per_latency.end());
  const auto many = std::count_if(per_latency.begin(), per_latency.end(), [&](double n) { return n > 1.5 * least; });
  return per_latency.size() > kEnough && static_cast<std::size_t>(many) >= kEnough;
}

class LevelDecision {
 public:
  LevelDecision(Problem& problem, const EstimateOptions& options) : problem_(problem), options_(options) {}

  Fitted run() {
    const ParamIndex& index = problem_.index();
    const auto num_levels = static_cast<std::size_t>(index.num_levels());
    Mask is_free = problem_.all_free();
    std::vector<bool> scans(num_levels, true);
    std::vector<double> thresholds(num_levels, 1);
    Fitted out;
    for (int level = 0; level < index.num_levels(); ++level) out.most_senders.push_back(problem_.most_senders(level));
    if (!has_incast_and_memory(options_.kind)) {
      is_free(index.delta()) = false;
      std::fill(scans.begin(), scans.end(), false);
      for (int level = 0; level < index.num_levels(); ++level) is_free(ParamIndex::epsilon(level)) = false;
      out.incast.assign(num_levels, Incast::kUnknown);
      problem_.add_noise(problem_.solve(thresholds, is_free));
    } else {
      out.incast.assign(num_levels, Incast::kPresent);
      Solution first = problem_.solve_thresholds(thresholds, scans, is_free);
      if (has_handling(options_.kind) && has_short_meshes(problem_, first.parameters)) {
        problem_.ask_for_mu();
        is_free = problem_.all_free();
        first = problem_.solve_thresholds(thresholds, scans, is_free);
      }
      problem_.add_noise(first);
      if (index.has_mu()) decide_handling(scans, thresholds, is_free, out);
      for (std::size_t level = 0; level < num_levels; ++level) decide(level, is_free, scans, thresholds, out);
    }
    out.solution = problem_.solve_thresholds(thresholds, scans, is_free);
    find_unidentified(problem_, options_, is_free, out);
    separate_beta_and_gamma(scans, thresholds, is_free, out);
    note_negative(problem_, options_, is_free, out);
    out.has_threshold = scans;
    out.resampled = problem_.bootstrap(out.solution, scans, is_free, options_.num_bootstrap, options_.seed);
    bound_absent_epsilon(scans, is_free, out);
    bound_absent_mu(scans, is_free, out);
    spread_thresholds(scans, is_free, out);
    return out;
  }

 private:
  void decide(std::size_t level, Mask& is_free, std::vector<bool>& scans, std::vector<double>& thresholds,
              Fitted& out) {
    const int epsilon = ParamIndex::epsilon(static_cast<int>(level));
    if (out.most_senders[level] < 3) {  // two points make no hinge
      out.incast[level] = Incast::kUnknown;
      is_free(epsilon) = false;
      scans[level] = false;
      return;
    }
    const Solution hinge = problem_.solve_thresholds(thresholds, scans, is_free);
    std::vector<double> straight = hinge.parameters.thresholds;
    straight[level] = 1;
    const Solution line = problem_.solve(straight, is_free);
    if (!is_told(null_space(problem_, line.parameters, is_free), epsilon)) {
      out.incast[level] = Incast::kUnknown;
      is_free(epsilon) = false;
      scans[level] = false;
      return;
    }
    Mask without = is_free;
    without(epsilon) = false;
    const Solution none = problem_.solve(hinge.parameters.thresholds, without);
    if (f_statistic(none.loss, hinge, problem_) < kIncastF) {
      out.incast[level] = Incast::kNone;
      is_free(epsilon) = false;
      scans[level] = false;
      return;
    }
    if (f_statistic(line.loss, hinge, problem_) >= kHingeF) {
      thresholds = hinge.parameters.thresholds;
      return;
    }
    scans[level] = false;
    thresholds[level] = 1;
    const double beta = line.parameters.values[static_cast<std::size_t>(ParamIndex::beta(static_cast<int>(level)))];
    const bool is_small = line.parameters.values[static_cast<std::size_t>(epsilon)] < kDriftSlope * beta;
    if (options_.has_congestion ? !*options_.has_congestion : is_small) out.incast[level] = Incast::kDrift;
  }

  void decide_handling(const std::vector<bool>& scans, const std::vector<double>& thresholds, Mask& is_free,
                       Fitted& out) {
    const int mu = problem_.index().mu();
    const Solution with = problem_.solve_thresholds(thresholds, scans, is_free);
    out.is_mu_measured = is_told(null_space(problem_, with.parameters, is_free), mu);
    Mask without = is_free;
    without(mu) = false;
    const Solution none = problem_.solve_thresholds(thresholds, scans, without);
    if (!out.is_mu_measured) {
      out.notes.emplace_back(
          "alpha and mu cannot be told apart by these measurements; mu is held at 0 and is part of alpha");
    }
    if (!out.is_mu_measured || f_statistic(none.loss, with, problem_) < kHandlingF) is_free = without;
  }

  // Both are paid by all that an AllReduce moves; without reductions or AllGathers gamma is left out.
  void separate_beta_and_gamma(const std::vector<bool>& scans, const std::vector<double>& thresholds, Mask& is_free,
                               Fitted& out) {
    const int gamma = problem_.index().gamma();
    const int delta = problem_.index().delta();
    bool changed = false;
    for (const int p : {gamma, delta}) {
      if (!is_free(p) || out.is_identified(p)) continue;
      is_free(p) = false;
      changed = true;
    }
    if (changed) out.solution = problem_.solve_thresholds(thresholds, scans, is_free);
  }

  // Where epsilon is not in the model, how large could it be?
  void bound_absent_epsilon(const std::vector<bool>& scans, Mask is_free, Fitted& out) {
    for (std::size_t level = 0; level < out.incast.size(); ++level) {
      if (out.incast[level] != Incast::kNone) continue;
      const auto epsilon = static_cast<std::size_t>(ParamIndex::epsilon(static_cast<int>(level)));
      is_free(static_cast<Eigen::Index>(epsilon)) = true;
      Parameters straight = out.solution.parameters;
      straight.thresholds[level] = 1;
      const Solution line = problem_.solve(straight.thresholds, is_free);
      const std::vector<Parameters> resampled =
          problem_.bootstrap(line, scans, is_free, options_.num_bootstrap, options_.seed + 1);
      for (std::size_t b = 0; b < resampled.size(); ++b)
        out.resampled[b].values[epsilon] = resampled[b].values[epsilon];
      is_free(static_cast<Eigen::Index>(epsilon)) = false;
    }
  }

  // Where messages were measured and seem to cost nothing, how much could they cost?
  void bound_absent_mu(const std::vector<bool>& scans, Mask is_free, Fitted& out) {
    const int mu = problem_.index().mu();
    if (!out.is_mu_measured || is_free(mu)) return;
    out.is_identified(mu) = true;
    is_free(mu) = true;
    const Solution with = problem_.solve(out.solution.parameters.thresholds, is_free);
    const std::vector<Parameters> resampled =
        problem_.bootstrap(with, scans, is_free, options_.num_bootstrap, options_.seed + 3);
    const auto p = static_cast<std::size_t>(mu);
    for (std::size_t b = 0; b < resampled.size(); ++b) out.resampled[b].values[p] = resampled[b].values[p];
  }

  // A straight line was taken because it is simpler; thresholds that would do as well are in the interval.
  void spread_thresholds(std::vector<bool> scans, const Mask& is_free, Fitted& out) {
    for (std::size_t level = 0; level < out.incast.size(); ++level) {
      const bool is_line = out.incast[level] == Incast::kPresent && !scans[level];
      if (!is_line) continue;
      scans[level] = true;
      const std::vector<Parameters> resampled =
          problem_.bootstrap(out.solution, scans, is_free, options_.num_bootstrap, options_.seed + 2);
      for (std::size_t b = 0; b < resampled.size(); ++b)
        out.resampled[b].thresholds[level] = resampled[b].thresholds[level];
      scans[level] = false;
    }
  }

  Problem& problem_;
  const EstimateOptions& options_;
};

}  // namespace

Fitted estimate(Problem& problem, const EstimateOptions& options) { return LevelDecision(problem, options).run(); }

}  // namespace gar
