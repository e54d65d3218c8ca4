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
constexpr double kLeastExplainedByCause = 0.5;
constexpr double kSameLoss = 0.01;  // of the loss to be explained
constexpr double kNoise = 0.03;     // relative; the unit of the loss

struct Row {
  Features features;
  double measured = 0;
  double correction = 1;
};

/// What relative deviation is normal at a time.
class Tolerance {
 public:
  explicit Tolerance(const Profile& profile) : network_(parts_of(profile.residuals).network) {
    for (const ValidationScore& score : profile.validation) {
      if (score.name == "GenModel" && score.p95_error > 0) held_out_ = score.p95_error;
    }
  }

  /// What validation showed, or the fit itself with what takes about as long: short vectors are as noisy as the hosts,
  /// and long ones know nothing of that. Reductions by themselves do not count: caches make them several times faster
  /// or slower than inside of an AllReduce, and no AllReduce of a network notices.
  [[nodiscard]] double at(double seconds) const {
    if (held_out_ > 0) return std::max(kLeastTolerance, held_out_);
    std::vector<std::pair<double, double>> near;  // distance and error
    for (const Residual& one : network_) {
      near.emplace_back(std::abs(std::log(one.fitted_s / seconds)), std::abs(one.fitted_s / one.measured_s - 1));
    }
    std::sort(near.begin(), near.end());
    const auto far = std::find_if(near.begin(), near.end(), [](const auto& n) { return n.first > std::log(kNear); });
    near.resize(std::min(near.size(), std::max<std::size_t>(kLeastNear, static_cast<std::size_t>(far - near.begin()))));
    if (near.empty()) return kLeastTolerance;
    std::vector<double> errors;
    for (const auto& [distance, error] : near) errors.push_back(error);
    std::sort(errors.begin(), errors.end());
    const auto index = static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(errors.size())));
    return std::max(kLeastTolerance, errors[index - 1]);
  }

  [[nodiscard]] const char* source() const {
    return held_out_ > 0 ? "the AllReduces that were held out" : "the collectives that it was fitted to";
  }

 private:
  static constexpr double kNear = 30;           // times as long, or as short
  static constexpr std::size_t kLeastNear = 5;  // however far
  std::vector<Residual> network_;
  double held_out_ = 0;
};

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
    what += fmt::format(
        ": bandwidth is down to {:.0f}% (a link at a lower speed, other traffic, a missing cable); run gar fit "
        "again, then gar profile diff, to see whether it is one link or all",
        100 / suspect.factor);
  if (suspect.name.starts_with("epsilon"))
    what += ": several senders at one port cost more than before (buffers, flow control, congestion control)";
  if (suspect.name == "gamma" || suspect.name == "delta")
    what += ": calculation (processor or memory speed, other programs)";
  if (suspect.name == "mu")
    what += ": handling messages (busy processors, interrupts, a slower way through the kernel)";
  return what;
}

std::vector<std::string> words_of_rough(const Tolerance& tolerance, double value, double middle) {
  return {
      fmt::format("the median is {:.2f} times what is expected, but the profile is too rough to judge that: its 95th "
                  "percentile of errors on {} is {:.0f}%, and above {:.0f}% a slow network cannot be told from a "
                  "healthy one",
                  middle, tolerance.source(), 100 * value, 100 * kMostTolerance),
      "gar profile show says what is furthest off; measure the network again for longer, while nothing else runs "
      "on it (gar fit --budget 5min -o FILE), and judge by that profile"};
}

/// "10%", "10% to 22%"
std::string percent_words(const std::vector<double>& tolerances) {
  const auto [least, most] = std::minmax_element(tolerances.begin(), tolerances.end());
  const std::string first = fmt::format("{:.0f}%", 100 * *least);
  const std::string last = fmt::format("{:.0f}%", 100 * *most);
  return first == last ? first : fmt::format("{} to {}", first, last);
}

/// The parameter that explains the deviation of these rows, if one does.
void find_culprit(const Profile& profile, const std::vector<Row>& rows, Diagnosis& out) {
  const Parameters parameters = parameters_of(profile);
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
    return;
  }
  out.culprit = first.name;
  out.factor = first.factor;
  out.words.push_back(fmt::format("{}; that explains {:.0f}% of the deviation", words_of(first), 100 * out.explained));
  for (std::size_t i = 1; i < suspects.size(); ++i) {
    const double also = 1 - suspects[i].loss / before;
    if (also > 0.9 * out.explained)
      out.words.push_back(
          fmt::format("this fits these results as well: {} ({:.0f}%)", words_of(suspects[i]), 100 * also));
  }
}

}  // namespace

std::string words_of_loss(const std::vector<ResultRow>& rows) {
  constexpr double kFew = 1e-3;
  double bytes = 0;
  double again = 0;
  for (const ResultRow& row : rows) {
    if (row.resent < 0) continue;
    bytes += row.bytes;
    again += row.bytes * row.resent;
  }
  if (again <= kFew * bytes) return "";
  return fmt::format(
      "packets are lost: TCP sent {:.2g}% of its segments again in these results (a bad cable, a switch with too "
      "little "
      "memory, flow control that is off)",
      100 * again / bytes);
}

void add_loss(const std::vector<ResultRow>& rows, Diagnosis& diagnosis) {
  const std::string words = words_of_loss(rows);
  if (diagnosis.is_normal || words.empty()) return;
  diagnosis.words.push_back(words);
  if (diagnosis.is_judged && diagnosis.culprit.empty()) diagnosis.culprit = "lost packets";
}

Diagnosis diagnose(const Profile& profile, const std::vector<Observation>& observations) {
  const Parameters parameters = parameters_of(profile);
  const Place place = place_of(profile);
  const Tolerance tolerance(profile);
  std::vector<Row> judged;
  std::vector<double> ratios;      // of all rows
  std::vector<double> tolerances;  // of those that are judged
  Diagnosis out;
  std::int64_t off = 0;
  std::int64_t below = 0;
  for (const Observation& one : observations) {
    if (one.seconds.empty()) continue;
    Row row{features_of(one, place), median_seconds(one), corrected(profile, 1, 4 * one.size_floats)};
    const double expected = row.correction * seconds_of(row.features, parameters);
    if (!(expected > 0)) {
      throw InvalidArgument(fmt::format(
          "{}: by the profile it takes no time at all, so that nothing can be compared with it", describe(one)));
    }
    out.rows.push_back({describe(one), row.measured, expected, 1});
    out.tolerances.push_back(tolerance.at(expected));
    ratios.push_back(row.measured / expected);
    const Verdict verdict = verdict_of(out, out.rows.size() - 1);
    if (verdict == Verdict::kUnknown) continue;
    off += verdict == Verdict::kSlow ? 1 : 0;
    below += verdict == Verdict::kFast ? 1 : 0;
    tolerances.push_back(out.tolerances.back());
    judged.push_back(std::move(row));
  }
  if (out.rows.empty()) throw InvalidArgument("there are no results to judge");
  std::sort(ratios.begin(), ratios.end());
  const double middle = ratios[ratios.size() / 2];
  if (judged.empty()) {
    out.tolerance = *std::min_element(out.tolerances.begin(), out.tolerances.end());
    out.is_judged = false;
    out.is_normal = false;
    out.words = words_of_rough(tolerance, out.tolerance, middle);
    return out;
  }
  out.tolerance = *std::max_element(tolerances.begin(), tolerances.end());
  const auto num_judged = static_cast<std::int64_t>(judged.size());
  out.is_normal = 10 * off <= num_judged && 2 * below <= num_judged;
  out.words.push_back(
      fmt::format("{} of {} results are more than {} slower than expected, {} are that much faster; "
                  "the median is {:.2f} times what is expected",
                  off, num_judged, percent_words(tolerances), below, middle));
  if (judged.size() < out.rows.size()) {
    out.words.push_back(fmt::format("{} more are not judged: at such times the profile is more than {:.0f}% off itself",
                                    out.rows.size() - judged.size(), 100 * kMostTolerance));
  }
  if (out.is_normal) {
    out.words.emplace_back("this is normal for this network");
  } else {
    find_culprit(profile, judged, out);
  }
  return out;
}

}  // namespace gar
