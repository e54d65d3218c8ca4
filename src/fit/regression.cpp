#include "fit/regression.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <vector>

#include "gar/stats.hpp"

namespace gar {

namespace {

/// Solves the normal equations for the entries of `active` alone; the others are 0.
Eigen::VectorXd solve_active(const Eigen::MatrixXd& gram, const Eigen::VectorXd& target,
                             const std::vector<int>& active) {
  const auto n = static_cast<Eigen::Index>(active.size());
  Eigen::MatrixXd part(n, n);
  Eigen::VectorXd right(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    right(i) = target(active[static_cast<std::size_t>(i)]);
    for (Eigen::Index j = 0; j < n; ++j)
      part(i, j) = gram(active[static_cast<std::size_t>(i)], active[static_cast<std::size_t>(j)]);
  }
  // Columns that depend on each other must not blow up; the scaled diagonal is 1.
  part.diagonal().array() += 1e-12;
  const Eigen::VectorXd solved = part.ldlt().solve(right);
  Eigen::VectorXd out = Eigen::VectorXd::Zero(target.size());
  for (Eigen::Index i = 0; i < n; ++i) out(active[static_cast<std::size_t>(i)]) = solved(i);
  return out;
}

}  // namespace

Eigen::VectorXd non_negative_least_squares(const Eigen::MatrixXd& rows, const Eigen::VectorXd& y,
                                           const Eigen::VectorXd& weight,
                                           const Eigen::Array<bool, Eigen::Dynamic, 1>& is_free) {
  const Eigen::Index p = rows.cols();
  Eigen::VectorXd scale =
      (rows.array().square().colwise() * weight.array()).colwise().sum().sqrt().transpose().matrix();
  for (Eigen::Index i = 0; i < p; ++i) scale(i) = scale(i) > 0 ? 1 / scale(i) : 0;
  const Eigen::MatrixXd scaled = rows * scale.asDiagonal();
  const Eigen::MatrixXd weighted = weight.asDiagonal() * scaled;
  const Eigen::MatrixXd gram = scaled.transpose() * weighted;
  const Eigen::VectorXd target = weighted.transpose() * y;

  std::vector<int> active;
  Eigen::VectorXd x = Eigen::VectorXd::Zero(p);
  const double tolerance = 1e-12 * target.cwiseAbs().maxCoeff();
  for (Eigen::Index round = 0; round < 3 * p; ++round) {
    const Eigen::VectorXd gradient = target - gram * x;
    int best = -1;
    for (int i = 0; i < static_cast<int>(p); ++i) {
      const bool is_active = std::find(active.begin(), active.end(), i) != active.end();
      if (is_active || !is_free(i) || scale(i) == 0 || gradient(i) <= tolerance) continue;
      if (best < 0 || gradient(i) > gradient(best)) best = i;
    }
    if (best < 0) break;
    active.push_back(best);
    for (;;) {
      const Eigen::VectorXd trial = solve_active(gram, target, active);
      double step = 1;
      for (const int i : active) {
        if (trial(i) < 0) step = std::min(step, x(i) / (x(i) - trial(i)));
      }
      x += step * (trial - x);
      if (step == 1) break;
      std::erase_if(active, [&](int i) {
        const bool leaves = trial(i) < 0 && x(i) <= 1e-12 * x.maxCoeff();
        if (leaves) x(i) = 0;
        return leaves;
      });
      if (active.empty()) break;
    }
  }
  return x.cwiseProduct(scale);
}

double huber_loss(const Eigen::VectorXd& residuals) {
  double loss = 0;
  for (const double r : residuals) {
    const double a = std::abs(r);
    loss += a <= kHuber ? a * a : 2 * kHuber * a - kHuber * kHuber;
  }
  return loss;
}

Eigen::VectorXd huber_weights(const Eigen::VectorXd& residuals) {
  return residuals.unaryExpr([](double r) { return std::abs(r) <= kHuber ? 1.0 : kHuber / std::abs(r); });
}

double median_of(const Eigen::VectorXd& values) {
  return median(std::vector<double>(values.data(), values.data() + values.size()));
}

double robust_deviation(Eigen::VectorXd values) {
  if (values.size() < 2) return 0;
  const double middle = median_of(values);
  values = (values.array() - middle).abs().matrix();
  return 1.4826 * median_of(values);
}

}  // namespace gar
