// Robust least squares without negative parameters.
#pragma once

#include <Eigen/Core>

namespace gar {

/// Minimises |weight^(1/2) (rows x - y)| over x >= 0; entries of x with `is_free` false stay 0. Columns may have any
/// scale. Lawson and Hanson, "Solving Least Squares Problems" (1974), chapter 23, on the normal equations. O(n p^2 +
/// p^4).
Eigen::VectorXd non_negative_least_squares(const Eigen::MatrixXd& rows, const Eigen::VectorXd& y,
                                           const Eigen::VectorXd& weight,
                                           const Eigen::Array<bool, Eigen::Dynamic, 1>& is_free);

/// Half a parabola around 0 that goes on as a straight line from `kHuber` on (Huber 1964): sum over all residuals.
inline constexpr double kHuber = 1.5;
double huber_loss(const Eigen::VectorXd& residuals);
/// The weights with which least squares gives the least Huber loss.
Eigen::VectorXd huber_weights(const Eigen::VectorXd& residuals);

/// Median of |values - median| times 1.4826: the standard deviation of normal values. 0 for fewer than two.
double robust_deviation(Eigen::VectorXd values);
double median_of(const Eigen::VectorXd& values);

}  // namespace gar
