// The regression behind gar::fit: observations as rows, and what is asked of them.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "fit/features.hpp"

namespace gar {

using Mask = Eigen::Array<bool, Eigen::Dynamic, 1>;

struct Solution {
  Parameters parameters;
  Eigen::VectorXd weights;  ///< of the robust loss, 0 to 1
  double loss = 0;          ///< Huber, in units of the squared noise
};

/// Observations with their medians and noise.
class Problem {
 public:
  /// `corrections` (may be empty): times are divided by these.
  Problem(const std::vector<const Observation*>& observations, const Place& place,
          const std::vector<double>& corrections = {});

  [[nodiscard]] Eigen::Index size() const { return y_.size(); }
  [[nodiscard]] const ParamIndex& index() const { return index_; }
  [[nodiscard]] const Eigen::VectorXd& y() const { return y_; }
  /// From now on mu is among the parameters. At first it is not.
  void ask_for_mu() { index_ = ParamIndex(index_.num_levels(), true); }
  [[nodiscard]] const Features& features(Eigen::Index i) const { return features_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] Eigen::VectorXd predict(const Parameters& parameters) const;
  /// All parameters may be above 0.
  [[nodiscard]] Mask all_free() const { return Mask::Constant(index_.size(), true); }
  /// Most senders on a link of a level in any observation.
  [[nodiscard]] double most_senders(int level) const;

  /// The best parameters for these thresholds.
  [[nodiscard]] Solution solve(const std::vector<double>& thresholds, const Mask& is_free) const;
  /// The best parameters and thresholds; thresholds of levels with `scans` false stay as they are.
  [[nodiscard]] Solution solve_thresholds(std::vector<double> thresholds, const std::vector<bool>& scans,
                                          const Mask& is_free) const;
  /// Adds to the assumed noise what the residuals of a solution show beyond it.
  void add_noise(const Solution& solution);

  /// Solutions for times that were disturbed as the residuals of `solution` show (wild bootstrap), in which the binding
  /// links stay as they are there.
  [[nodiscard]] std::vector<Parameters> bootstrap(const Solution& solution, const std::vector<bool>& scans,
                                                  const Mask& is_free, int count, std::uint64_t seed) const;
  /// Rows with these parameters: predict() = rows * values.
  [[nodiscard]] Eigen::MatrixXd rows(const Parameters& parameters) const;
  [[nodiscard]] const Eigen::VectorXd& noise() const { return noise_; }

 private:
  void add_noise(const std::vector<Eigen::Index>& group, const Eigen::VectorXd& errors);
  [[nodiscard]] Solution solve_from(Parameters now, const Mask& is_free) const;
  void bound_idle_levels(Parameters& parameters) const;
  [[nodiscard]] Eigen::VectorXd deviations(const Eigen::VectorXd& y, const Eigen::VectorXd& fitted) const;
  [[nodiscard]] Eigen::VectorXd residuals(const Eigen::VectorXd& y, const Eigen::VectorXd& fitted) const;
  struct Linear {
    Eigen::VectorXd x;
    Eigen::VectorXd weights;
    double loss = 0;
  };
  [[nodiscard]] Linear solve_rows(const Eigen::MatrixXd& rows, const Eigen::VectorXd& y, const Mask& is_free) const;
  [[nodiscard]] Eigen::VectorXd leverage(const Eigen::MatrixXd& rows, const Solution& solution,
                                         const Mask& is_free) const;

  ParamIndex index_;
  std::vector<Features> features_;
  Eigen::VectorXd y_;      ///< medians
  Eigen::VectorXd noise_;  ///< standard deviation of y
};

}  // namespace gar
