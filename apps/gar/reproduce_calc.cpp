// Figure `fig:calc`, measured on this machine: what one add of a reduction costs when x vectors are reduced at once.
//
// T(x) = (x + 1) S delta + (x - 1) S gamma for x vectors of S floats (the paper's Equation eq:calc_bench): each vector
// is read once and the result written once, however many there are. The average time per add is a line in 1 / (x - 1):
// T / (x - 1) = 2 S delta / (x - 1) + S (delta + gamma), which is fitted by least squares, as in the paper.
//
// One thread. Every x is measured once per round and the fastest round counts, because other programs only ever add
// time. Ordinary stores read a cache line before they write it, which the formula does not know: delta and gamma absorb
// it. Streaming stores do not.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "apps/gar/launch.hpp"
#include "apps/gar/reproduce.hpp"
#include "apps/gar/reproduce_paper.hpp"
#include "apps/gar/reproduce_words.hpp"
#include "gar/fit.hpp"
#include "gar/reduction.hpp"

namespace gar::cli {
namespace {

constexpr int kMaxFanIn = 16;
constexpr int kNumRounds = 7;
constexpr std::int64_t kSlice = std::int64_t{1} << 20;
constexpr std::int64_t kMinCount = 1000;
constexpr double kMaxRatio = 0.45;  // of the time per add, x = 16 against x = 2

/// T / (x - 1) = slope / (x - 1) + offset.
struct Fit {
  double delta = 0, gamma = 0;  ///< seconds per float
  double r2 = 0;
};

struct Series {
  Stores stores = Stores::kCached;
  std::array<double, kMaxFanIn + 1> seconds{};  ///< [x]
  [[nodiscard]] double per_add(int x) const { return seconds[static_cast<std::size_t>(x)] / (x - 1); }
  [[nodiscard]] double ratio() const { return per_add(kMaxFanIn) / per_add(2); }
};

Fit fit(const Series& series, double count) {
  constexpr double kNum = kMaxFanIn - 1;
  double mean_u = 0;
  double mean_t = 0;
  for (int x = 2; x <= kMaxFanIn; ++x) {
    mean_u += 1.0 / (x - 1) / kNum;
    mean_t += series.per_add(x) / kNum;
  }
  double uu = 0;
  double ut = 0;
  double tt = 0;
  for (int x = 2; x <= kMaxFanIn; ++x) {
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

void check_count(std::int64_t count) {
  if (count < kMinCount) {
    throw UsageError(fmt::format("--count {}: too few to be measured; accepted: {} and more", count, kMinCount));
  }
  const double needed = 4.0 * (kMaxFanIn + 1) * static_cast<double>(count);
  const double available = available_bytes();
  if (available < 0 || needed <= 0.9 * available) return;
  throw UsageError(fmt::format(
      "--count {}: {} vectors of {} do not fit the {} of memory that are free; accepted here: up to {}",
      format_count(count), kMaxFanIn + 1, format_bytes(4.0 * static_cast<double>(count)), format_bytes(available),
      format_count(static_cast<std::int64_t>(0.9 * available / (4 * (kMaxFanIn + 1))))));
}

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

using Vectors = std::vector<std::unique_ptr<float[]>>;

/// Seconds that elements [begin, begin + count) of the first x vectors take; the last one is the result.
double seconds_of(const Vectors& vectors, int x, std::int64_t begin, std::int64_t count, Stores stores) {
  std::array<const void*, kMaxFanIn> operands{};
  for (std::size_t k = 0; k < operands.size(); ++k) operands[k] = vectors[k].get() + begin;
  const double start = thread_seconds();
  reduce(DataType::kFloat32, ReduceOp::kSum, vectors.back().get() + begin,
         std::span(operands).first(static_cast<std::size_t>(x)), count, stores);
  return thread_seconds() - start;
}

std::array<Series, 2> measure(std::int64_t count) {
  const auto size = static_cast<std::size_t>(count);
  Vectors vectors;
  for (int k = 0; k <= kMaxFanIn; ++k) {
    vectors.push_back(std::make_unique_for_overwrite<float[]>(size));
    std::fill_n(vectors.back().get(), size, static_cast<float>(k));
  }
  const auto num_slices = static_cast<std::size_t>((count + kSlice - 1) / kSlice);
  std::array<Series, 2> all = {Series{Stores::kCached}, Series{Stores::kStreaming}};
  std::vector<double> fastest(2 * (kMaxFanIn + 1) * num_slices, std::numeric_limits<double>::infinity());
  for (int round = 0; round < kNumRounds; ++round) {
    for (int x = 2; x <= kMaxFanIn; ++x) {
      for (std::size_t kind = 0; kind < all.size(); ++kind) {
        double* best = &fastest[(kind * (kMaxFanIn + 1) + static_cast<std::size_t>(x)) * num_slices];
        for (std::int64_t begin = 0; begin < count; begin += kSlice, ++best) {
          *best = std::min(*best, seconds_of(vectors, x, begin, std::min(kSlice, count - begin), all[kind].stores));
        }
      }
    }
  }
  auto next = fastest.begin();
  for (Series& series : all) {
    for (double& seconds : series.seconds) {
      seconds = std::accumulate(next, next + static_cast<std::ptrdiff_t>(num_slices), 0.0);
      next += static_cast<std::ptrdiff_t>(num_slices);
    }
  }
  return all;
}

Json to_json(const Fit& fit) {
  return {{"delta_s_per_float", fit.delta}, {"gamma_s_per_float", fit.gamma}, {"r2", fit.r2}};
}

std::string to_text(const Fit& fit) {
  return fmt::format("delta {:.3g}, gamma {:.3g} s per float, R2 {:.4f}", fit.delta, fit.gamma, fit.r2);
}

/// What `gar fit` says about the paper's points; it allows no negative parameter, and says so.
struct PaperFit {
  Profile profile;
  [[nodiscard]] Json json() const {
    const auto estimate = [](const Estimate& e) { return Json{{"value", e.value}, {"low", e.low}, {"high", e.high}}; };
    return {{"delta", estimate(profile.delta)}, {"gamma", estimate(profile.gamma)}, {"notes", profile.notes}};
  }
  [[nodiscard]] std::string text(const char* which) const {
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
};

}  // namespace

bool reproduce_calc(std::int64_t count, const Context& context, Json& document) {
  check_count(count);
  const auto floats = static_cast<double>(count);
  Series paper;
  for (int x = 2; x <= kMaxFanIn; ++x) {
    paper.seconds[static_cast<std::size_t>(x)] = paper_calc_cpu().seconds(x);
  }
  const std::array<Series, 2> ours = measure(count);
  const Fit paper_fit = fit(paper, PaperCalc::kCount);
  const Fit cached_fit = fit(ours[0], floats);
  const Fit streaming_fit = fit(ours[1], floats);
  const PaperFit paper_cpu{gar::fit(calc_measurements(paper_calc_cpu()))};
  const PaperFit paper_gpu{gar::fit(calc_measurements(paper_calc_gpu()))};
  const bool ok = ours[0].ratio() <= kMaxRatio;

  Table table({{"x", true},
               {"paper", true},
               {"of x=2", true},
               {"cached", true},
               {"of x=2", true},
               {"streaming", true},
               {"of x=2", true}});
  document["count"] = count;
  document["instruction_set"] = std::string(simd_name());
  document["cells"] = Json::array();
  for (int x = 2; x <= kMaxFanIn; ++x) {
    std::vector<Cell> row = {fmt::format("{}", x)};
    Json cell = {{"x", x}};
    const auto add = [&](const char* name, const Series& series, double num_floats) {
      row.emplace_back(fmt::format("{:.4f} ns", 1e9 * series.per_add(x) / num_floats));
      row.emplace_back(format_percent(series.per_add(x) / series.per_add(2)));
      cell[name] = {{"seconds", series.seconds[static_cast<std::size_t>(x)]}, {"seconds_per_add", series.per_add(x)}};
    };
    add("paper", paper, PaperCalc::kCount);
    add("cached", ours[0], floats);
    add("streaming", ours[1], floats);
    table.add_row(std::move(row));
    document["cells"].push_back(cell);
  }
  document["fits"] = {
      {"paper", to_json(paper_fit)}, {"cached", to_json(cached_fit)}, {"streaming", to_json(streaming_fit)}};
  document["non_negative_fits"] = {{"paper_cpu", paper_cpu.json()}, {"paper_gpu", paper_gpu.json()}};
  document["ratio"] = {{"paper", paper.ratio()},
                       {"cached", ours[0].ratio()},
                       {"streaming", ours[1].ratio()},
                       {"largest_accepted", kMaxRatio}};
  if (context.json) return ok;

  const bool color = use_color(context.color, stdout);
  print(fmt::format(
      "fig:calc: time per add and float, T / (x - 1) / S, when x vectors are reduced at once; paper: S = 1.5e8, "
      "its CPU;\n  here: S = {}, one thread (CPU time), {}, ordinary (cached) and streaming stores, the fastest of {} "
      "rounds\n\n",
      format_count(count), simd_name(), kNumRounds));
  print(table.to_string(color));
  print(fmt::format(
      "\nfit of T = (x + 1) S delta + (x - 1) S gamma:\n  paper      {}\n  cached     {}\n  streaming  {}\n",
      to_text(paper_fit), to_text(cached_fit), to_text(streaming_fit)));
  print("\nthe paper's points in gar fit, which accepts no negative parameter:\n" + paper_cpu.text("CPU") +
        paper_gpu.text("GPU"));
  print(fmt::format("\ncached stores: an add at x = {} takes {} of one at x = 2, at most {} demanded: {}\n", kMaxFanIn,
                    format_percent(ours[0].ratio()), format_percent(kMaxRatio),
                    ok ? paint("yes", Paint::kGreen, color) : paint("NO", Paint::kRed, color)));
  return ok;
}

}  // namespace gar::cli
