// What a fit has found, made ready for tables and documents.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "gar/fit_design.hpp"
#include "gar/fit_report.hpp"
#include "gar/format.hpp"

namespace gar {
namespace {

constexpr std::size_t kMaxWorst = 5;

double relative_error(const Residual& residual) { return std::abs(residual.fitted_s / residual.measured_s - 1); }

}  // namespace

std::vector<IncastPoint> incast_curve(const Measurements& measurements) {
  std::vector<IncastPoint> out;
  for (const ServerSet& set : server_sets(measurements.topology)) {
    IncastPoint point{set.level, static_cast<std::int64_t>(set.servers.size()), set.num_children, set.per_child};
    for (const Observation& o : measurements.observations) {
      const bool is_candidate = o.kind == ObservationKind::kCollective && o.collective == Collective::kAllGather &&
                                o.is_fitted && o.servers == set.servers && o.algorithm.name == "cps" &&
                                o.max_senders == 0;
      if (!is_candidate || o.size_floats <= point.size_floats) continue;
      point.size_floats = o.size_floats;
      point.mesh_s = median_seconds(o);
      point.mesh_retransmits = o.retransmits;
      point.mesh_pauses = o.pause_frames;
    }
    for (const Observation& o : measurements.observations) {
      if (o.collective != Collective::kAllGather || o.servers != set.servers || o.size_floats != point.size_floats)
        continue;
      if (o.algorithm.name == "ring") {
        point.shift_s = median_seconds(o);
        point.shift_retransmits = o.retransmits;
        point.shift_pauses = o.pause_frames;
      } else if (o.max_senders > 0) {
        point.admitted_s = median_seconds(o);
      }
    }
    if (point.size_floats > 0) out.push_back(point);
  }
  return out;
}

std::vector<ValidationCell> validation_cells(const FitReport& report) {
  if (!report.is_validated) return {};
  std::vector<ValidationCell> out = validation_cells(report.profile, report.measurements.observations);
  std::stable_sort(out.begin(), out.end(), [](const ValidationCell& a, const ValidationCell& b) {
    return std::pair(a.observation->servers.size(), a.observation->size_floats) <
           std::pair(b.observation->servers.size(), b.observation->size_floats);
  });
  return out;
}

std::string algorithm_name(const Observation& observation) {
  return observation.is_native ? "native" : to_string(observation.algorithm);
}

std::string size_class_words(const ValidationScore& score) {
  if (score.to_bytes <= 0) return "";
  const auto words = [](double bytes) { return format_binary_bytes(std::llround(bytes)); };
  return fmt::format("{} to {}: ", words(score.from_bytes), words(score.to_bytes));
}

ResidualSummary summarise(const std::vector<Residual>& residuals) {
  ResidualSummary out;
  if (residuals.empty()) return out;
  std::vector<Residual> sorted = residuals;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Residual& a, const Residual& b) { return relative_error(a) < relative_error(b); });
  const auto at = [&](double share) {
    const auto index = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return relative_error(sorted[std::max<std::size_t>(index, 1) - 1]);
  };
  out.median_error = at(0.5);
  out.p95_error = at(0.95);
  std::reverse(sorted.begin(), sorted.end());
  sorted.resize(std::min(sorted.size(), kMaxWorst));
  out.worst = std::move(sorted);
  return out;
}

ResidualParts parts_of(const std::vector<Residual>& residuals) {
  ResidualParts out;
  for (const Residual& residual : residuals) {
    // As describe() begins; files of profiles say no more about it than that.
    (residual.what.starts_with("reduction of ") ? out.reductions : out.network).push_back(residual);
  }
  return out;
}

std::string rough_words(const Profile& profile) {
  constexpr std::size_t kFew = 5;
  std::vector<Residual> network = parts_of(profile.residuals).network;
  const double all = summarise(network).p95_error;
  if (all <= kMostTolerance) return "";
  std::sort(network.begin(), network.end(),
            [](const Residual& a, const Residual& b) { return a.fitted_s < b.fitted_s; });
  // Usually it is short vectors, which are as noisy as the hosts.
  for (std::size_t first = 1; first + kFew <= network.size(); ++first) {
    const auto middle = network.begin() + static_cast<std::ptrdiff_t>(first);
    if (summarise({middle, network.end()}).p95_error > kMostTolerance) continue;
    return fmt::format("is rough for what takes less than {}: what it was fitted to is up to {} off there",
                       format_seconds(middle->fitted_s, 2),
                       format_percent(relative_error(summarise({network.begin(), middle}).worst.front())));
  }
  return fmt::format("is rough: of what it was fitted to, one in twenty is more than {} off", format_percent(all));
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kUnknown:
      return "unknown";
    case Verdict::kSlow:
      return "slow";
    case Verdict::kFast:
      return "fast";
    case Verdict::kNormal:
      break;
  }
  return "normal";
}

Verdict verdict_of(const Residual& residual, double tolerance) {
  const double ratio = residual.measured_s / residual.fitted_s;
  if (ratio > 1 + tolerance) return Verdict::kSlow;
  return ratio < 1 / (1 + tolerance) ? Verdict::kFast : Verdict::kNormal;
}

Verdict verdict_of(const Diagnosis& diagnosis, std::size_t row) {
  const double tolerance = diagnosis.tolerances[row];
  return tolerance > kMostTolerance ? Verdict::kUnknown : verdict_of(diagnosis.rows[row], tolerance);
}

}  // namespace gar
