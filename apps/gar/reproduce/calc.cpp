// Figure `fig:calc`, measured on this machine: what one add of a reduction costs when x vectors are reduced at once.
//
// T(x) = (x + 1) S delta + (x - 1) S gamma for x vectors of S floats (the paper's Equation eq:calc_bench): each vector
// is read once and the result written once, however many there are. The average time per add is a line in 1 / (x - 1):
// T / (x - 1) = 2 S delta / (x - 1) + S (delta + gamma), which is fitted by least squares, as in the paper.
//
// One thread. Every x is measured once per round and the fastest round counts, because other programs only ever add
// time. Ordinary stores read a cache line before they write it, which the formula does not know: delta and gamma absorb
// it. Streaming stores do not.
#include "apps/gar/reproduce/calc.hpp"

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

#include "apps/gar/reproduce/paper.hpp"
#include "apps/gar/reproduce/reproduce.hpp"
#include "gar/fit.hpp"
#include "gar/measure/launch.hpp"
#include "gar/reduction.hpp"

namespace gar::cli {
namespace {

constexpr int kNumRounds = 7;
constexpr std::int64_t kSlice = std::int64_t{1} << 20;
constexpr std::int64_t kMinCount = 1000;
void check_count(std::int64_t count) {
  if (count < kMinCount) {
    throw UsageError(fmt::format("--count {}: too few to be measured; expected {} and more", count, kMinCount));
  }
  const double needed = 4.0 * (kMaxCalcFanIn + 1) * static_cast<double>(count);
  const double available = available_bytes();
  if (available < 0 || needed <= 0.9 * available) return;
  throw UsageError(fmt::format(
      "--count {}: {} vectors of {} do not fit the {} of memory that are free; expected up to {}", format_count(count),
      kMaxCalcFanIn + 1, format_bytes(4.0 * static_cast<double>(count)), format_bytes(available),
      format_count(static_cast<std::int64_t>(0.9 * available / (4 * (kMaxCalcFanIn + 1))))));
}

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

using Vectors = std::vector<std::unique_ptr<float[]>>;

/// Seconds that elements [begin, begin + count) of the first x vectors take; the last one is the result.
double seconds_of(const Vectors& vectors, int x, std::int64_t begin, std::int64_t count, Stores stores) {
  std::array<const void*, kMaxCalcFanIn> operands{};
  for (std::size_t k = 0; k < operands.size(); ++k) operands[k] = vectors[k].get() + begin;
  const double start = thread_seconds();
  reduce(DataType::kFloat32, ReduceOp::kSum, vectors.back().get() + begin,
         std::span(operands).first(static_cast<std::size_t>(x)), count, stores);
  return thread_seconds() - start;
}

std::array<CalcSeries, 2> measure(std::int64_t count) {
  const auto size = static_cast<std::size_t>(count);
  Vectors vectors;
  for (int k = 0; k <= kMaxCalcFanIn; ++k) {
    vectors.push_back(std::make_unique_for_overwrite<float[]>(size));
    std::fill_n(vectors.back().get(), size, static_cast<float>(k));
  }
  const auto num_slices = static_cast<std::size_t>((count + kSlice - 1) / kSlice);
  constexpr std::array<Stores, 2> kStores = {Stores::kCached, Stores::kStreaming};
  std::array<CalcSeries, 2> all;
  std::vector<double> fastest(2 * (kMaxCalcFanIn + 1) * num_slices, std::numeric_limits<double>::infinity());
  for (int round = 0; round < kNumRounds; ++round) {
    for (int x = 2; x <= kMaxCalcFanIn; ++x) {
      for (std::size_t kind = 0; kind < all.size(); ++kind) {
        double* best = &fastest[(kind * (kMaxCalcFanIn + 1) + static_cast<std::size_t>(x)) * num_slices];
        for (std::int64_t begin = 0; begin < count; begin += kSlice, ++best) {
          *best = std::min(*best, seconds_of(vectors, x, begin, std::min(kSlice, count - begin), kStores[kind]));
        }
      }
    }
  }
  auto next = fastest.begin();
  for (CalcSeries& series : all) {
    for (double& seconds : series.seconds) {
      seconds = std::accumulate(next, next + static_cast<std::ptrdiff_t>(num_slices), 0.0);
      next += static_cast<std::ptrdiff_t>(num_slices);
    }
  }
  return all;
}

}  // namespace

bool reproduce_calc(std::int64_t count, const Context& context, Json& document) {
  check_count(count);
  const auto floats = static_cast<double>(count);
  const CalcSeries paper = series_of(paper_measurements("calc-cpu"));
  const std::array<CalcSeries, 2> ours = measure(count);
  const CalcFit paper_fit = fit_calc(paper, kPaperCalcCount);
  const CalcFit cached_fit = fit_calc(ours[0], floats);
  const CalcFit streaming_fit = fit_calc(ours[1], floats);
  const CalcProfile paper_cpu{gar::fit(paper_measurements("calc-cpu"))};
  const CalcProfile paper_gpu{gar::fit(paper_measurements("calc-gpu"))};
  const bool ok = ours[0].ratio() <= kMaxCalcRatio;

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
  for (int x = 2; x <= kMaxCalcFanIn; ++x) {
    std::vector<Cell> row = {fmt::format("{}", x)};
    Json cell = {{"x", x}};
    const auto add = [&](const char* name, const CalcSeries& series, double num_floats) {
      row.emplace_back(fmt::format("{:.4f} ns", 1e9 * series.per_add(x) / num_floats));
      row.emplace_back(format_percent(series.per_add(x) / series.per_add(2)));
      cell[name] = {{"seconds", series.seconds[static_cast<std::size_t>(x)]}, {"seconds_per_add", series.per_add(x)}};
    };
    add("paper", paper, kPaperCalcCount);
    add("cached", ours[0], floats);
    add("streaming", ours[1], floats);
    table.add_row(std::move(row));
    document["cells"].push_back(cell);
  }
  document["fits"] = {{"paper", paper_fit.json()}, {"cached", cached_fit.json()}, {"streaming", streaming_fit.json()}};
  document["non_negative_fits"] = {{"paper_cpu", paper_cpu.json()}, {"paper_gpu", paper_gpu.json()}};
  document["ratio"] = {{"paper", paper.ratio()},
                       {"cached", ours[0].ratio()},
                       {"streaming", ours[1].ratio()},
                       {"largest_accepted", kMaxCalcRatio}};
  if (context.json) return ok;

  const bool color = use_color(context.color, stdout);
  say(fmt::format(
      "fig:calc: time per add and float, T / (x - 1) / S, when x vectors are reduced at once; paper: S = 1.5e8, "
      "its CPU;\n  here: S = {}, one thread (CPU time), {}, ordinary (cached) and streaming stores, the fastest of {} "
      "rounds\n\n",
      format_count(count), simd_name(), kNumRounds));
  say(table.folded(color));
  say(fmt::format(
      "\nfit of T = (x + 1) S delta + (x - 1) S gamma:\n  paper      {}\n  cached     {}\n  streaming  {}\n",
      paper_fit.text(), cached_fit.text(), streaming_fit.text()));
  say("\nthe paper's points in gar fit, which accepts no negative parameter:\n" + paper_cpu.text("CPU") +
      paper_gpu.text("GPU"));
  say(fmt::format("\ncached stores: an add at x = {} takes {} of one at x = 2, at most {} demanded: {}\n",
                  kMaxCalcFanIn, format_percent(ours[0].ratio()), format_percent(kMaxCalcRatio),
                  ok ? paint("yes", Paint::kGreen, color) : paint("NO", Paint::kRed, color)));
  return ok;
}

}  // namespace gar::cli
