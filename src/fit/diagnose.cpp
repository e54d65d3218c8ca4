// Are measured times normal for a network? If not, which parameter alone explains them best?
//
// For every parameter the factor is found with which it, and nothing else, brings the predictions closest to the
// measurements (Huber loss of relative errors, golden section on the logarithm of the factor). A parameter is to blame
// when it explains most of the deviation, and clearly more than the others that could.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fit/features.hpp"
#include "fit/regression.hpp"
#include "gar/errors.hpp"
#include "gar/fit.hpp"
#include "gar/fit_report.hpp"

namespace gar {

namespace {

constexpr double kLeastTolerance = 0.1;
constexpr double kMostTolerance = 0.3;  // above it a slow network cannot be told from a healthy one
constexpr double kLeastExplainedByCause = 0.5;
constexpr double kSameLoss = 0.01;  // of the loss to be explained
constexpr double kNoise = 0.03;     // relative; the unit of the loss

struct Row {
  Features features;
  double measured = 0;
  double correction = 1;
};

/// Relative deviation that is normal, and what showed it.
struct Tolerance {
  double value = kLeastTolerance;
  const char* source = "";
};

/// What validation showed, or the fit itself. Reductions by themselves do not count: caches make them several times
/// faster or slower than inside of an AllReduce, and no AllReduce of a network notices.
Tolerance tolerance_of(const Profile& profile) {
  for (const ValidationScore& score : profile.validation) {
    if (score.name == "GenModel" && score.p95_error > 0)
      return {std::max(kLeastTolerance, score.p95_error), "the AllReduces that were held out"};
  }
  const std::vector<Residual> network = parts_of(profile.residuals).network;
  return {std::max(kLeastTolerance, summarise(network).p95_error), "the collectives that it was fitted to"};
}

double loss_of(const std::vector<Row>& rows, const Parameters& parameters) {
  Eigen::VectorXd residuals(static_cast<Eigen::Index>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double expected = rows[i].correction * seconds_of(rows[i].features, parameters);
    residuals(static_cast<Eigen::Index>(i)) = std::log(rows[i].measured / std::max(expected, 1e-300)) / kNoise;
  }
  return huber_loss(residuals);
}

struct Suspect {
  std::string name;
  std::size_t index = 0;
  double unit = 0;  ///< what a factor of 1 means; above 0 also where the profile has 0
  double factor = 1;
  double loss = 0;
};

/// The factor, 1/50 to 50, with the least loss.
void best_factor(const std::vector<Row>& rows, Parameters parameters, Suspect& suspect) {
  const auto loss_at = [&](double log_factor) {
    parameters.values[suspect.index] = suspect.unit * std::exp(log_factor);
    return loss_of(rows, parameters);
  };
  // A coarse grid first: the loss may have several valleys where another link becomes the bottleneck.
  const double limit = std::log(50.0);
  double best = -limit;
  double least = loss_at(best);
  for (int i = 1; i <= 60; ++i) {
    const double at = -limit + 2 * limit * i / 60;
    const double loss = loss_at(at);
    if (loss < least) {
      least = loss;
      best = at;
    }
  }
  constexpr double kGolden = 0.618034;
  double low = best - 2 * limit / 60;
  double high = best + 2 * limit / 60;
  while (high - low > 1e-4) {
    const double a = high - kGolden * (high - low);
    const double b = low + kGolden * (high - low);
    if (loss_at(a) < loss_at(b)) {
      high = b;
    } else {
      low = a;
    }
  }
  suspect.factor = std::exp((low + high) / 2);
  suspect.loss = loss_at((low + high) / 2);
}

std::vector<Suspect> suspects_of(const Profile& profile, const Parameters& parameters) {
  const ParamIndex index(static_cast<int>(profile.levels.size()));
  std::vector<Suspect> out;
  const auto add = [&](const std::string& name, int p, double unit_if_zero) {
    const double value = parameters.values[static_cast<std::size_t>(p)];
    out.push_back({name, static_cast<std::size_t>(p), value > 0 ? value : unit_if_zero});
  };
  for (int p = 0; p < index.size(); ++p) {
    const int level = index.level(p);
    if (level < 0) {
      add(index.name(p), p, 0);
      continue;
    }
    const LevelProfile& one = profile.levels[static_cast<std::size_t>(level)];
    const std::string where = index.num_levels() == 1 ? "" : fmt::format(" of level {} ({})", level, one.name);
    add(index.name(p) + where, p, p == ParamIndex::epsilon(level) ? 0.05 * one.beta.value : 0);
  }
  std::erase_if(out, [](const Suspect& s) { return s.unit <= 0; });
  return out;
}

std::string words_of(const Suspect& suspect) {
  const std::string change = suspect.factor > 1 ? fmt::format("{:.2g} times what it was", suspect.factor)
                                                : fmt::format("{:.0f}% of what it was", 100 * suspect.factor);
  std::string what = fmt::format("{} is {} when the profile was made", suspect.name, change);
  if (suspect.factor < 1) return what;
  if (suspect.name.starts_with("alpha")) what += ": latency (busy processors, a longer way, an interrupt setting)";
  if (suspect.name.starts_with("beta"))
    what += fmt::format(": bandwidth is down to {:.0f}% (a link at a lower speed, other traffic, a missing cable)",
                        100 / suspect.factor);
  if (suspect.name.starts_with("epsilon"))
    what += ": senders that meet lose more (buffers, flow control, congestion control)";
  if (suspect.name == "gamma" || suspect.name == "delta")
    what += ": calculation (processor or memory speed, other programs)";
  if (suspect.name == "mu")
    what += ": handling messages (busy processors, interrupts, a slower way through the kernel)";
  return what;
}

std::vector<std::string> words_of_rough(const Tolerance& tolerance, double middle) {
  return {
      fmt::format("the median is {:.2f} times what is expected, but the profile is too rough to judge that: its 95th "
                  "percentile of errors on {} is {:.0f}%, and above {:.0f}% a slow network cannot be told from a "
                  "healthy one",
                  middle, tolerance.source, 100 * tolerance.value, 100 * kMostTolerance),
      "gar profile show says what is furthest off; measure the network again for longer, while nothing else runs "
      "on it (gar fit --budget 5min -o FILE), and judge by that profile"};
}

}  // namespace

Diagnosis diagnose(const Profile& profile, const std::vector<Observation>& observations) {
  const Parameters parameters = parameters_of(profile);
  const Place place = place_of(profile);
  std::vector<Row> rows;
  Diagnosis out;
  std::vector<double> ratios;
  for (const Observation& one : observations) {
    if (one.seconds.empty()) continue;
    Row row{features_of(one, place), median_seconds(one), corrected(profile, 1, 4 * one.size_floats)};
    const double expected = row.correction * seconds_of(row.features, parameters);
    if (!(expected > 0)) {
      throw InvalidArgument(fmt::format(
          "{}: by the profile it takes no time at all, so that nothing can be compared with it", describe(one)));
    }
    out.rows.push_back({describe(one), row.measured, expected, 1});
    ratios.push_back(row.measured / expected);
    rows.push_back(std::move(row));
  }
  if (rows.empty()) throw InvalidArgument("there are no results to judge");
  const Tolerance allowed = tolerance_of(profile);
  const double tolerance = allowed.value;
  out.tolerance = tolerance;
  std::sort(ratios.begin(), ratios.end());
  const double middle = ratios[ratios.size() / 2];
  if (tolerance > kMostTolerance) {
    out.is_judged = false;
    out.is_normal = false;
    out.words = words_of_rough(allowed, middle);
    return out;
  }
  const auto off = std::count_if(ratios.begin(), ratios.end(), [&](double r) { return r > 1 + tolerance; });
  const auto below = std::count_if(ratios.begin(), ratios.end(), [&](double r) { return r < 1 / (1 + tolerance); });
  out.is_normal =
      10 * off <= static_cast<std::ptrdiff_t>(ratios.size()) && 2 * below <= static_cast<std::ptrdiff_t>(ratios.size());
  out.words.push_back(
      fmt::format("{} of {} results are more than {:.0f}% slower than expected, {} are that much faster; "
                  "the median is {:.2f} times what is expected",
                  off, ratios.size(), 100 * tolerance, below, middle));
  if (out.is_normal) {
    out.words.emplace_back("this is normal for this network");
    return out;
  }
  const double before = loss_of(rows, parameters);
  std::vector<Suspect> suspects = suspects_of(profile, parameters);
  if (suspects.empty())
    throw InvalidArgument("the profile has no parameter above 0, so that nothing can be expected of it");
  for (Suspect& suspect : suspects) best_factor(rows, parameters, suspect);
  std::sort(suspects.begin(), suspects.end(), [](const Suspect& a, const Suspect& b) { return a.loss < b.loss; });
  // Of those that explain the same, the one that had to change least.
  const auto equal = std::find_if(suspects.begin(), suspects.end(), [&](const Suspect& s) {
    return s.loss > suspects.front().loss + kSameLoss * before;
  });
  std::sort(suspects.begin(), equal, [](const Suspect& a, const Suspect& b) {
    return std::abs(std::log(a.factor)) < std::abs(std::log(b.factor));
  });
  const Suspect& first = suspects.front();
  out.explained = 1 - first.loss / before;
  if (out.explained < kLeastExplainedByCause) {
    out.words.emplace_back(
        "no single parameter explains it; measure the network again (gar fit) and compare (gar profile diff)");
    return out;
  }
  out.culprit = first.name;
  out.factor = first.factor;
  out.words.push_back(fmt::format("{}; that explains {:.0f}% of the deviation", words_of(first), 100 * out.explained));
  for (std::size_t i = 1; i < suspects.size(); ++i) {
    const double also = 1 - suspects[i].loss / before;
    if (also > 0.9 * out.explained)
      out.words.push_back(
          fmt::format("these results cannot tell that from: {} ({:.0f}%)", words_of(suspects[i]), 100 * also));
  }
  return out;
}

}  // namespace gar
