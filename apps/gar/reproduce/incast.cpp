// Figure `fig:incast`: what a mesh of x servers, in which everyone receives the same amount from all others, costs
// beyond one sender's time, and how many PFC pause frames go with it.
//
// The figure shows the extra overhead alone. Everything here is seen as the *rise*: seconds per received float,
// relative to the fastest mesh, minus 1; with the assumption of 10 Gbit/s for the paper's base that is the extra
// overhead in units of beta. Our fit gets the paper's points as AllGathers with cps, and counts senders, x - 1.
//
// With a file of measurements, the same is done with our meshes (AllGathers with cps); shifts (AllGathers with ring),
// in which everyone has one sender at a time, are the control.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "apps/gar/reproduce/paper.hpp"
#include "apps/gar/reproduce/reproduce.hpp"
#include "gar/errors.hpp"
#include "gar/fit.hpp"
#include "gar/limits.hpp"
#include "gar/profile_io.hpp"

namespace gar::cli {
namespace {

constexpr double kRiseThreshold = 0.05;    // less is noise
constexpr double kIncastTolerance = 0.10;  // of the fitted curve against the paper's points

struct MeshPoint {
  std::int64_t servers = 0;
  double received = 0;  ///< floats, by each server
  double seconds = 0;
  double counter = -1;  ///< pause frames or retransmits; -1: unknown
  double rise = 0;
  [[nodiscard]] double per_float() const { return seconds / received; }
};

/// Points by ascending number of servers.
struct MeshCurve {
  std::vector<MeshPoint> points;
  std::string counter;  ///< what is counted; empty: nothing
  double beta = 0;      ///< seconds per received float of the fastest
};

double received_by_each(const Observation& o) {
  const auto x = static_cast<double>(o.servers.size());
  return o.size_floats * (x - 1) / x;
}

/// The AllGathers of an algorithm; of several with as many servers, the one with the largest vectors.
MeshCurve curve_of(const Measurements& measurements, std::string_view algorithm) {
  std::map<std::int64_t, const Observation*> by_servers;
  for (const Observation& o : measurements.observations) {
    if (o.kind != ObservationKind::kCollective || o.collective != Collective::kAllGather || o.is_native) continue;
    if (o.max_senders != 0) continue;  // a receiver that admits senders one by one has no incast
    if (to_string(o.algorithm) != algorithm || o.seconds.empty() || o.servers.size() < 2) continue;
    const Observation*& kept = by_servers[static_cast<std::int64_t>(o.servers.size())];
    if (kept == nullptr || o.size_floats > kept->size_floats) kept = &o;
  }
  MeshCurve out;
  for (const auto& [servers, o] : by_servers) {
    MeshPoint point{servers, received_by_each(*o), median_seconds(*o), -1, 0};
    if (o->pause_frames >= 0) {
      point.counter = o->pause_frames;
      out.counter = "pause frames";
    } else if (o->retransmits >= 0) {
      point.counter = o->retransmits;
      if (out.counter.empty()) out.counter = "retransmits";
    }
    out.points.push_back(point);
  }
  if (out.points.empty()) return out;
  out.beta = std::min_element(out.points.begin(), out.points.end(), [](const auto& a, const auto& b) {
               return a.per_float() < b.per_float();
             })->per_float();
  for (MeshPoint& point : out.points) point.rise = point.per_float() / out.beta - 1;
  return out;
}

/// What a curve looks like.
struct Shape {
  std::int64_t start = 0;             ///< first number of servers from which all meshes take longer; 0: none
  double slope = 0;                   ///< of the rise from there on, in units of beta per sender
  std::optional<double> correlation;  ///< between the rise and the counter
};

double slope_of(const std::vector<MeshPoint>& points, std::size_t first) {
  double x_mean = 0;
  double y_mean = 0;
  const auto count = static_cast<double>(points.size() - first);
  for (std::size_t i = first; i < points.size(); ++i) {
    x_mean += static_cast<double>(points[i].servers) / count;
    y_mean += points[i].rise / count;
  }
  double xx = 0;
  double xy = 0;
  for (std::size_t i = first; i < points.size(); ++i) {
    const double x = static_cast<double>(points[i].servers) - x_mean;
    xx += x * x;
    xy += x * (points[i].rise - y_mean);
  }
  return xx > 0 ? xy / xx : 0;
}

std::optional<double> correlation_of(const std::vector<MeshPoint>& all) {
  std::vector<MeshPoint> points;
  std::copy_if(all.begin(), all.end(), std::back_inserter(points), [](const MeshPoint& p) { return p.counter >= 0; });
  if (points.size() < 3) return std::nullopt;
  double rise_mean = 0;
  double counter_mean = 0;
  for (const MeshPoint& p : points) {
    rise_mean += p.rise / static_cast<double>(points.size());
    counter_mean += p.counter / static_cast<double>(points.size());
  }
  double rr = 0;
  double cc = 0;
  double rc = 0;
  for (const MeshPoint& p : points) {
    rr += (p.rise - rise_mean) * (p.rise - rise_mean);
    cc += (p.counter - counter_mean) * (p.counter - counter_mean);
    rc += (p.rise - rise_mean) * (p.counter - counter_mean);
  }
  if (rr <= 0 || cc <= 0) return std::nullopt;
  return rc / std::sqrt(rr * cc);
}

Shape shape_of(const MeshCurve& curve) {
  Shape out;
  std::size_t first = curve.points.size();
  while (first > 0 && curve.points[first - 1].rise > kRiseThreshold) --first;
  if (first < curve.points.size()) {
    out.start = curve.points[first].servers;
    out.slope = slope_of(curve.points, first > 0 ? first - 1 : 0);
  }
  out.correlation = correlation_of(curve.points);
  return out;
}

std::string shape_words(const MeshCurve& curve, const Shape& shape) {
  const std::int64_t last = curve.points.back().servers;
  std::string out = shape.start == 0
                        ? fmt::format("no rise beyond {:.0f}% up to x = {}", 100 * kRiseThreshold, last)
                        : fmt::format("rises from x = {} on, by {:.2f} beta per sender, to {:.2f} beta at x = {}",
                                      shape.start, shape.slope, curve.points.back().rise, last);
  if (curve.counter.empty()) return out + "; nothing was counted along";
  return out + (shape.correlation ? fmt::format("; correlation with the {} {:.3f}", curve.counter, *shape.correlation)
                                  : fmt::format("; the {} do not vary with it", curve.counter));
}

Json shape_json(const Shape& shape) {
  Json out;
  out["rises_from_servers"] = shape.start > 0 ? Json(shape.start) : Json(nullptr);
  out["slope_in_beta"] = shape.slope;
  out["correlation"] = shape.correlation ? Json(*shape.correlation) : Json(nullptr);
  return out;
}

std::string estimate_words(const Estimate& e) {
  return fmt::format("{:.3g} ({:.2g} to {:.2g})", e.value, e.low, e.high);
}

/// The level as meshes without admission show it: every rank sends as soon as it can.
LevelProfile free_level(LevelProfile level) {
  level.incast = level.free_incast;
  level.epsilon = level.free_epsilon;
  level.incast_threshold = level.free_incast_threshold;
  return level;
}

Json fit_json(const LevelProfile& level) {
  const auto estimate = [](const Estimate& e) {
    return Json{{"value", e.value}, {"low", e.low}, {"high", e.high}, {"identified", e.is_identified}};
  };
  return {{"incast", to_string(level.incast)},
          {"beta", estimate(level.beta)},
          {"epsilon", estimate(level.epsilon)},
          {"incast_threshold", estimate(level.incast_threshold)}};
}

/// `beta` is the unit: what the fastest mesh takes per float.
std::string fit_words(const LevelProfile& level, double beta) {
  std::string out = fmt::format("incast {}", to_string(level.incast));
  if (level.incast == Incast::kPresent || level.incast == Incast::kDrift) {
    out += fmt::format(": beyond w_t = {:g} senders ({:g} to {:g}) each costs epsilon = {} s per float",
                       level.incast_threshold.value, level.incast_threshold.low, level.incast_threshold.high,
                       estimate_words(level.epsilon));
    out += fmt::format(", {:.2f} beta", level.epsilon.value / beta);
  }
  return out;
}

std::string comparison_words(const Shape& paper, const Shape& ours, std::int64_t largest) {
  if (ours.start > 0) {
    return fmt::format("the paper's rises from x = {} on, this one from x = {}; its slope is {:.2f} times the paper's",
                       paper.start, ours.start, ours.slope / paper.slope);
  }
  return fmt::format("the paper's rises from x = {} on; here {}", paper.start,
                     largest < paper.start ? fmt::format("the largest mesh has x = {}, too few to compare", largest)
                                           : fmt::format("nothing rises up to x = {}", largest));
}

/// A file that was asked for, and what is in it.
struct MeshFile {
  std::string path;
  Measurements measurements;
};

void show_measured_incast(const MeshFile& file, const Shape& paper, const Context& context, Json& document) {
  const auto& [path, measurements] = file;
  const MeshCurve mesh = curve_of(measurements, "cps");
  if (mesh.points.size() < 2) {
    throw InvalidArgument(
        fmt::format("{}: holds {} meshes (allgather with cps); at least 2 with different numbers of servers are "
                    "needed; gar fit --save makes them",
                    path, mesh.points.size()));
  }
  const MeshCurve shift = curve_of(measurements, "ring");
  const Shape ours = shape_of(mesh);
  std::optional<Profile> profile;
  std::string fitted;
  try {
    profile = fit(measurements);
    fitted = fit_words(free_level(profile->levels.front()), mesh.beta);
  } catch (const InvalidArgument& error) {
    fitted = error.what();  // the curve can be looked at all the same
  }
  Table table({{"x", true},
               {"floats", true},
               {"mesh", true},
               {"rise", true},
               {mesh.counter.empty() ? "counted" : mesh.counter, true},
               {"shift", true},
               {"rise", true}});
  Json rows = Json::array();
  for (const MeshPoint& p : mesh.points) {
    const auto control = std::find_if(shift.points.begin(), shift.points.end(),
                                      [&](const MeshPoint& s) { return s.servers == p.servers; });
    const bool has_control = control != shift.points.end();
    table.add_row({fmt::format("{}", p.servers), format_count(to_whole(p.received)), format_seconds(p.seconds),
                   fmt::format("{:.3f}", p.rise), p.counter >= 0 ? fmt::format("{:g}", p.counter) : "-",
                   has_control ? format_seconds(control->seconds) : "-",
                   has_control ? fmt::format("{:.3f}", control->rise) : "-"});
    rows.push_back({{"servers", p.servers},
                    {"received_floats", p.received},
                    {"seconds", p.seconds},
                    {"rise", p.rise},
                    {"counter", p.counter >= 0 ? Json(p.counter) : Json(nullptr)},
                    {"shift_seconds", has_control ? Json(control->seconds) : Json(nullptr)},
                    {"shift_rise", has_control ? Json(control->rise) : Json(nullptr)}});
  }
  std::vector<std::string> words = {"mesh: " + shape_words(mesh, ours)};
  if (!shift.points.empty()) words.push_back("shift (the control): " + shape_words(shift, shape_of(shift)));
  words.push_back("fit: " + fitted);
  words.push_back(comparison_words(paper, ours, mesh.points.back().servers));
  document["measured"] = {{"file", path},
                          {"points", rows},
                          {"counter", mesh.counter},
                          {"shape", shape_json(ours)},
                          {"fit", profile ? fit_json(free_level(profile->levels.front())) : Json(nullptr)},
                          {"words", words}};
  if (context.json) return;
  say(fmt::format("\nmeasured ({}): a mesh of x servers, and a shift, in which everyone has one sender at a time\n\n",
                  escaped(path)));
  say(table.folded(use_color(context.color, stdout)));
  say("\n");
  for (const std::string& line : words) print(list_item(line));
}

}  // namespace

bool reproduce_incast(const std::string& measured, const Context& context, Json& document) {
  std::optional<MeshFile> file;
  if (!measured.empty()) file = MeshFile{measured, read_measurements_file(measured)};
  const Measurements paper = paper_measurements("incast");
  const Profile profile = fit(paper);
  const LevelProfile& level = profile.levels.front();
  const MeshCurve curve = curve_of(paper, "cps");
  const Shape shape = shape_of(curve);
  bool ok = level.incast == Incast::kPresent;
  Table table({{"x", true},
               {"extra", true},
               {"rise", true},
               {"pause frames", true},
               {"fitted extra", true},
               {"rise", true},
               {"error", true}});
  document["cells"] = Json::array();
  for (std::size_t i = 0; i < paper.observations.size(); ++i) {
    const PaperIncast point = incast_point(paper.observations[i]);
    const double fitted = predict_seconds(paper.observations[i], profile);
    const double error = fitted / paper.observations[i].seconds.front() - 1;
    const bool in_tolerance = std::abs(error) <= kIncastTolerance;
    ok = ok && in_tolerance;
    const double extra = fitted - PaperIncast::kBaseSeconds;
    table.add_row({fmt::format("{}", point.servers), fmt::format("{:.3f} s", point.extra_s),
                   fmt::format("{:.3f}", curve.points[i].rise), fmt::format("{:g}", point.pause_frames),
                   fmt::format("{:.3f} s", extra), fmt::format("{:.3f}", extra / PaperIncast::kBaseSeconds),
                   Cell(fmt::format("{:+.1f}%", 100 * error), in_tolerance ? Paint::kGreen : Paint::kRed)});
    document["cells"].push_back({{"servers", point.servers},
                                 {"extra_seconds", point.extra_s},
                                 {"pause_frames", point.pause_frames},
                                 {"fitted_seconds", fitted},
                                 {"error", error},
                                 {"in_tolerance", in_tolerance}});
  }
  document["assumed_base_seconds"] = PaperIncast::kBaseSeconds;
  document["shape"] = shape_json(shape);
  document["fit"] = fit_json(level);
  document["tolerance"] = kIncastTolerance;
  if (!context.json) {
    const bool color = use_color(context.color, stdout);
    say(fmt::format(
        "fig:incast: x servers, everyone receives 2e7 floats from all others; extra time of the paper's meshes, and by "
        "our fit;\n  the time without incast is assumed to be {} (10 Gbit/s), rise = extra / that, errors are of the "
        "sum\n\n",
        format_seconds(PaperIncast::kBaseSeconds)));
    say(table.folded(color));
    print("\n" + list_item("paper: " + shape_words(curve, shape)) + list_item("fit: " + fit_words(level, curve.beta)));
    say(fmt::format(
        "\ntolerance of each point: {}; {}\n", format_percent(kIncastTolerance),
        ok ? paint("all in tolerance", Paint::kGreen, color) : paint("OUT OF TOLERANCE", Paint::kRed, color)));
  }
  if (file) {
    show_measured_incast(*file, shape, context, document);
  } else if (!context.json) {
    say("\nyour own network beside it: gar fit --save net.json, then gar reproduce fig:incast --measured net.json\n");
  }
  return ok;
}

}  // namespace gar::cli
