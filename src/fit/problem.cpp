// Robust, non-negative regression of measured times on the model's parameters.
//
// Problem: T_i = row_i(x, w) x, where x holds alpha, beta, epsilon per level, gamma, delta and mu, w the thresholds.
// Noise is relative, so errors are divided by the noise of each median. The loss is Huber's, minimised by reweighting;
// within a reweighting the rows are fixed and non-negative least squares gives x. Rows change with x only where another
// level becomes the bottleneck of a stage; a few rounds settle that. Thresholds are scanned over whole numbers, level
// by level.
//
// Intervals come from a wild bootstrap (Wu 1986; Liu 1988): every fitted time is disturbed by its own residual with a
// random sign, residuals being divided by 1 - leverage, since a fit bends towards its data. It needs no assumption that
// all observations are equally noisy, and what the model cannot explain counts as noise.
#include "fit/problem.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "fit/regression.hpp"

namespace gar {

namespace {

constexpr int kMaxRounds = 20;
constexpr double kLeastNoise = 0.01;    // relative, of any median: clocks, schedulers
constexpr double kAssumedNoise = 0.03;  // relative, of a median of fewer than four repetitions
// Percentiles of a bootstrap are somewhat too narrow for few observations; with this, nine of ten intervals or more
// hold the truth in simulations (tests/property/fit_property_test.cpp).
constexpr double kStretch = 1.2;
constexpr double kIdleF = 4;  // F statistic of a higher level that is a bottleneck, against one that never is

double noise_of(const Observation& observation) {
  const auto n = static_cast<Eigen::Index>(observation.seconds.size());
  const double middle = median_seconds(observation);
  if (n < 4) return std::hypot(kLeastNoise, kAssumedNoise) * middle;
  const Eigen::VectorXd all = Eigen::Map<const Eigen::VectorXd>(observation.seconds.data(), n);
  // The median of n normal values scatters sqrt(pi / 2) times as much as their mean.
  const double error = 1.2533 * robust_deviation(all) / std::sqrt(static_cast<double>(n));
  return std::hypot(kLeastNoise * middle, error);
}

}  // namespace

Problem::Problem(const std::vector<const Observation*>& observations, const Place& place,
                 const std::vector<double>& corrections)
    : index_(place.topology.height(place.topology.root()), /*has_mu=*/false) {
  const auto n = static_cast<Eigen::Index>(observations.size());
  y_.resize(n);
  noise_.resize(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const Observation& one = *observations[static_cast<std::size_t>(i)];
    features_.push_back(features_of(one, place));
    const double factor = corrections.empty() ? 1 : corrections[static_cast<std::size_t>(i)];
    y_(i) = median_seconds(one) / factor;
    noise_(i) = noise_of(one) / factor;
  }
}

Eigen::MatrixXd Problem::rows(const Parameters& parameters) const {
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> out(size(), index_.size());
  for (Eigen::Index i = 0; i < size(); ++i) row_of(features(i), parameters, out.row(i).data());
  return out;
}

Eigen::VectorXd Problem::predict(const Parameters& parameters) const {
  Eigen::VectorXd out(size());
  for (Eigen::Index i = 0; i < size(); ++i) out(i) = seconds_of(features(i), parameters);
  return out;
}

double Problem::most_senders(int level) const {
  double most = 0;
  for (const Features& one : features_) {
    for (const auto& stage : one.stages) {
      for (const LinkLoad& load : stage) {
        if (load.level == level) most = std::max(most, load.senders);
      }
    }
  }
  return most;
}

// Relative to the larger of the two: a time that is far too small must not seem to be known exactly.
Eigen::VectorXd Problem::deviations(const Eigen::VectorXd& y, const Eigen::VectorXd& fitted) const {
  return (noise_.array() * y.array().max(fitted.array()) / y_.array()).matrix();
}

Eigen::VectorXd Problem::residuals(const Eigen::VectorXd& y, const Eigen::VectorXd& fitted) const {
  return ((y - fitted).array() / deviations(y, fitted).array()).matrix();
}

Problem::Linear Problem::solve_rows(const Eigen::MatrixXd& rows, const Eigen::VectorXd& y, const Mask& is_free) const {
  constexpr int kReweightings = 12;
  Linear out;
  out.weights = Eigen::VectorXd::Ones(size());
  out.loss = std::numeric_limits<double>::infinity();
  Eigen::VectorXd weights = out.weights;
  Eigen::VectorXd fitted = y;
  for (int i = 0; i < kReweightings; ++i) {
    const Eigen::VectorXd precision = deviations(y, fitted).array().square().inverse().matrix();
    const Eigen::VectorXd x = non_negative_least_squares(rows, y, precision.cwiseProduct(weights), is_free);
    fitted = rows * x;
    const Eigen::VectorXd r = residuals(y, fitted);
    const double loss = huber_loss(r);
    weights = huber_weights(r);
    const bool is_settled = std::abs(loss - out.loss) <= 1e-4 * loss;
    if (loss < out.loss) out = {x, weights, loss};
    if (is_settled) break;
  }
  return out;
}

Solution Problem::solve(const std::vector<double>& thresholds, const Mask& is_free) const {
  Parameters start;
  start.thresholds = thresholds;
  start.values.assign(static_cast<std::size_t>(index_.size()), 0);
  // To begin with, all links are equally fast.
  for (int level = 0; level < index_.num_levels(); ++level)
    start.values[static_cast<std::size_t>(ParamIndex::beta(level))] = 1;
  Solution best = solve_from(start, is_free);
  // If the times can be explained without a level of higher links ever being the bottleneck, it gets no cost.
  for (int level = 1; level < index_.num_levels(); ++level) {
    Mask without = is_free;
    without(ParamIndex::beta(level)) = without(ParamIndex::epsilon(level)) = false;
    Parameters idle = start;
    idle.values[static_cast<std::size_t>(ParamIndex::beta(level))] = 0;
    const Solution trial = solve_from(idle, without);
    const double freedom = std::max(1.0, static_cast<double>(size() - index_.num_asked()));
    if (trial.loss > best.loss + kIdleF * std::max(best.loss / freedom, 1e-9)) continue;
    best = trial;
    start = idle;
  }
  bound_idle_levels(best.parameters);
  return best;
}

Solution Problem::solve_from(Parameters now, const Mask& is_free) const {
  Solution best{now, Eigen::VectorXd::Ones(size()), std::numeric_limits<double>::infinity()};
  const int rounds = index_.num_levels() == 1 ? 1 : kMaxRounds;
  for (int round = 0; round < rounds; ++round) {
    const Linear linear = solve_rows(rows(now), y_, is_free);
    Parameters next = now;
    for (Eigen::Index i = 0; i < linear.x.size(); ++i) {
      // Half a step: which link binds may otherwise jump to and fro.
      double& value = next.values[static_cast<std::size_t>(i)];
      value = round == 0 ? linear.x(i) : (value + linear.x(i)) / 2;
    }
    const Eigen::VectorXd r = residuals(y_, predict(next));
    const double loss = huber_loss(r);
    if (loss < best.loss * (1 - 1e-6)) {
      best = {next, huber_weights(r), loss};
    } else if (round > 3) {
      break;
    }
    now = std::move(next);
  }
  return best;
}

// A level that is never the bottleneck is as slow as it can be without becoming one; more is not known.
void Problem::bound_idle_levels(Parameters& parameters) const {
  const Eigen::MatrixXd used = rows(parameters);
  for (int level = 1; level < index_.num_levels(); ++level) {
    if (used.col(ParamIndex::beta(level)).maxCoeff() > 0) continue;
    double least = std::numeric_limits<double>::infinity();
    for (const Features& one : features_) {
      for (const auto& stage : one.stages) {
        double binding = 0;
        double floats = 0;
        for (const LinkLoad& load : stage) {
          const auto l = static_cast<std::size_t>(load.level);
          if (load.level == level) floats = std::max(floats, load.floats);
          const double excess = std::max(load.senders - parameters.thresholds[l], 0.0);
          binding = std::max(
              binding, load.floats * (load.level == 0 ? one.link_share : 1) *
                           (parameters.values[static_cast<std::size_t>(ParamIndex::beta(load.level))] +
                            excess * parameters.values[static_cast<std::size_t>(ParamIndex::epsilon(load.level))]));
        }
        if (floats > 0) least = std::min(least, binding / floats);
      }
    }
    if (std::isfinite(least)) parameters.values[static_cast<std::size_t>(ParamIndex::beta(level))] = (1 - 1e-9) * least;
    parameters.values[static_cast<std::size_t>(ParamIndex::epsilon(level))] = 0;
  }
}

Solution Problem::solve_thresholds(std::vector<double> thresholds, const std::vector<bool>& scans,
                                   const Mask& is_free) const {
  Solution best = solve(thresholds, is_free);
  for (int sweep = 0; sweep < (index_.num_levels() == 1 ? 1 : 2); ++sweep) {
    for (int level = 0; level < index_.num_levels(); ++level) {
      const auto l = static_cast<std::size_t>(level);
      if (!scans[l]) continue;
      thresholds = best.parameters.thresholds;
      for (double w = 1; w < most_senders(level); ++w) {
        thresholds[l] = w;
        const Solution trial = solve(thresholds, is_free);
        if (trial.loss < best.loss * (1 - 1e-9)) best = trial;
      }
    }
  }
  return best;
}

// Repetitions show how well a median is known, not how well the model describes it; the same relative error is added to
// all of a group until its median residual is what it should be. So nothing rules because it repeats itself well, and
// reductions, which caches make faster or slower, do not blur what transfers say.
void Problem::add_noise(const Solution& solution) {
  // In units of the measured times, whichever of both is larger.
  const Eigen::VectorXd fitted = predict(solution.parameters);
  const Eigen::VectorXd errors = ((y_ - fitted).array().abs() * y_.array() / y_.array().max(fitted.array())).matrix();
  for (const bool is_reduction : {false, true}) {
    std::vector<Eigen::Index> group;
    for (Eigen::Index i = 0; i < size(); ++i) {
      if (features(i).stages.empty() == is_reduction) group.push_back(i);
    }
    if (!group.empty()) add_noise(group, errors);
  }
}

void Problem::add_noise(const std::vector<Eigen::Index>& group, const Eigen::VectorXd& errors) {
  constexpr double kMedianOfNormal = 0.6745;
  const Eigen::ArrayXd own = noise_(group).array().square();
  const Eigen::ArrayXd y = y_(group).array();
  const Eigen::ArrayXd off = errors(group).array();
  const auto median_at = [&](double extra) { return median_of((off / (own + (extra * y).square()).sqrt()).matrix()); };
  if (median_at(0) <= kMedianOfNormal) return;
  double low = 0;
  double high = 2;
  while (high - low > 1e-4) {
    const double middle = (low + high) / 2;
    (median_at(middle) > kMedianOfNormal ? low : high) = middle;
  }
  noise_(group) = (own + (high * y).square()).sqrt().matrix();
}

Eigen::VectorXd Problem::leverage(const Eigen::MatrixXd& rows, const Solution& solution, const Mask& is_free) const {
  Eigen::MatrixXd used(size(), 0);
  for (Eigen::Index p = 0; p < rows.cols(); ++p) {
    if (!is_free(p) || solution.parameters.values[static_cast<std::size_t>(p)] <= 0) continue;
    const Eigen::VectorXd column = (rows.col(p).array() * solution.weights.array().sqrt() / noise_.array()).matrix();
    used.conservativeResize(Eigen::NoChange, used.cols() + 1);
    used.col(used.cols() - 1) = column / std::max(column.norm(), 1e-300);
  }
  Eigen::MatrixXd gram = used.transpose() * used;
  gram.diagonal().array() += 1e-10;
  const Eigen::MatrixXd inverse = gram.ldlt().solve(used.transpose());
  return (used.array() * inverse.transpose().array()).rowwise().sum().cwiseMin(0.9).matrix();
}

std::vector<Parameters> Problem::bootstrap(const Solution& solution, const std::vector<bool>& scans,
                                           const Mask& is_free, int count, std::uint64_t seed) const {
  // Rows for the thresholds as found, and with each other candidate of one level at a time.
  std::vector<std::vector<double>> thresholds{solution.parameters.thresholds};
  for (int level = 0; level < index_.num_levels(); ++level) {
    if (!scans[static_cast<std::size_t>(level)]) continue;
    for (double w = 1; w < most_senders(level); ++w) {
      thresholds.push_back(solution.parameters.thresholds);
      thresholds.back()[static_cast<std::size_t>(level)] = w;
    }
  }
  std::vector<Eigen::MatrixXd> all_rows;
  for (const std::vector<double>& t : thresholds) all_rows.push_back(rows({solution.parameters.values, t}));

  const Eigen::VectorXd fitted = predict(solution.parameters);
  const Eigen::VectorXd stretched =
      (kStretch * (y_ - fitted).array() / (1 - leverage(all_rows.front(), solution, is_free).array())).matrix();
  std::mt19937_64 random(seed);
  std::vector<Parameters> out;
  for (int b = 0; b < count; ++b) {
    Eigen::VectorXd y(size());
    for (Eigen::Index i = 0; i < size(); ++i) {
      const double sign = (random() >> 63U) != 0U ? 1 : -1;
      y(i) = std::max(fitted(i) + sign * stretched(i), 0.05 * fitted(i));
    }
    double least = std::numeric_limits<double>::infinity();
    Parameters best = solution.parameters;  // where no sample can be solved: a cost of 0 has no relative error
    for (std::size_t c = 0; c < thresholds.size(); ++c) {
      const Linear linear = solve_rows(all_rows[c], y, is_free);
      if (!(linear.loss < least)) continue;
      least = linear.loss;
      best.values.assign(linear.x.data(), linear.x.data() + linear.x.size());
      best.thresholds = thresholds[c];
    }
    out.push_back(std::move(best));
  }
  return out;
}

}  // namespace gar
