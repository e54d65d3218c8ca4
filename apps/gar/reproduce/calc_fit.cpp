// delta and gamma of Figure `fig:calc`.
#include <fmt/format.h>

#include "apps/gar/cli/output.hpp"
#include "apps/gar/reproduce/calc.hpp"

namespace gar::cli {

CalcSeries series_of(const Measurements& reductions) {
  CalcSeries out;
  for (const Observation& one : reductions.observations) {
    out.seconds.at(static_cast<std::size_t>(one.fan_in)) = one.seconds.front();
  }
  return out;
}

CalcFit fit_calc(const CalcSeries& series, double count) {
  constexpr double kNum = kMaxCalcFanIn - 1;
  double mean_u = 0;
  double mean_t = 0;
  for (int x = 2; x <= kMaxCalcFanIn; ++x) {
    mean_u += 1.0 / (x - 1) / kNum;
    mean_t += series.per_add(x) / kNum;
  }
  double uu = 0;
  double ut = 0;
  double tt = 0;
  for (int x = 2; x <= kMaxCalcFanIn; ++x) {
    const double u = 1.0 / (x - 1) - mean_u;
    const double t = series.per_add(x) - mean_t;
    uu += u * u;
    ut += u * t;
    tt += t * t;
  }
  const double slope = ut / uu;
  const double offset = mean_t - slope * mean_u;
  const double delta = slope / 2 / count;
  return {delta, offset / count - delta, ut * ut / (uu * tt)};
}

Json CalcFit::json() const { return {{"delta_s_per_float", delta}, {"gamma_s_per_float", gamma}, {"r2", r2}}; }

std::string CalcFit::text() const {
  return fmt::format("delta {:.3g}, gamma {:.3g} s per float, R2 {:.4f}", delta, gamma, r2);
}

Json CalcProfile::json() const {
  const auto estimate = [](const Estimate& e) { return Json{{"value", e.value}, {"low", e.low}, {"high", e.high}}; };
  return {{"delta", estimate(profile.delta)}, {"gamma", estimate(profile.gamma)}, {"notes", profile.notes}};
}

std::string CalcProfile::text(const char* which) const {
  const auto words = [](const char* name, const Estimate& e) {
    return fmt::format("{} {:.3g} ({:.3g} to {:.3g})", name, e.value, e.low, e.high);
  };
  std::string out = list_item(
      fmt::format("{}: {}, {} s per float", which, words("delta", profile.delta), words("gamma", profile.gamma)));
  for (const std::string& note : profile.notes) {
    if (note.find("gamma") != std::string::npos) out += list_item(fmt::format("{}: {}", which, note));
  }
  return out;
}

Measurements calc_measurements(const CalcSeries& series, double count) {
  Measurements out = paper_measurements("calc-gpu");
  out.provenance = {};
  for (Observation& one : out.observations) {
    one.size_floats = count;
    one.seconds = {series.seconds[static_cast<std::size_t>(one.fan_in)]};
  }
  return out;
}

}  // namespace gar::cli
