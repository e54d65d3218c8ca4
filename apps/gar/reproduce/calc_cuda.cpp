// Figure `fig:calc`, measured on a GPU beside the paper's K40c.
//
// Every x is measured once per round, by events around a few reductions that follow each other in a stream, and the
// fastest round counts. In the same rounds: a copy, which is what the memory can do, and the same x vectors added one
// after the other, which reads and writes the intermediate sums again.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "apps/gar/cli/device.hpp"
#include "apps/gar/reproduce/calc.hpp"
#include "apps/gar/reproduce/reproduce.hpp"

namespace gar::cli {
namespace {

constexpr int kNumDeviceRounds = 7;
constexpr std::int64_t kTimesInRow = 3;
constexpr std::int64_t kMinDeviceCount = 1000;
constexpr double kShareOfFreeMemory = 0.9;
/// Fewer floats are over before the GPU is busy, and nothing is demanded of them.
constexpr std::int64_t kJudgedCount = 10'000'000;
constexpr double kLeastOfCopy = 1.0;

class DeviceVectors {
 public:
  DeviceVectors(CudaSession& session, std::int64_t count) : session_(session), count_(count) {
    const std::vector<float> ones(static_cast<std::size_t>(count), 1.0F);
    for (int k = 0; k <= kMaxCalcFanIn; ++k) {
      vectors_.push_back(session.allocate(bytes()));
      session.upload(vectors_.back().get(), ones.data(), bytes());
    }
    for (int k = 0; k < kMaxCalcFanIn; ++k) operands_.push_back(vectors_[static_cast<std::size_t>(k)].get());
  }
  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(sizeof(float)) * count_; }

  double time_reduction(int x) {
    const std::span<const void* const> operands = std::span(operands_).first(static_cast<std::size_t>(x));
    return time([&] { reduce(operands); });
  }
  /// The first two, then each of the others on top.
  double time_chain(int x) {
    return time([&] {
      reduce(std::span(operands_).first(2));
      for (int k = 2; k < x; ++k) reduce(std::vector<const void*>{result(), operands_[static_cast<std::size_t>(k)]});
    });
  }
  double time_copy() {
    return time([&] { session_.copy(result(), operands_.front(), bytes()); });
  }

 private:
  [[nodiscard]] std::byte* result() const { return vectors_.back().get(); }
  void reduce(std::span<const void* const> operands) {
    session_.reduce(DataType::kFloat32, ReduceOp::kSum, result(), operands, count_);
  }
  template <class F>
  double time(F enqueue) {
    return session_.time(enqueue, kTimesInRow);
  }

  CudaSession& session_;
  std::int64_t count_;
  std::vector<DeviceMemory> vectors_;
  std::vector<const void*> operands_;
};

struct DeviceCalc {
  CalcSeries reduction;
  CalcSeries chain;
  double copy_s = 0;
};

DeviceCalc measure_on(CudaSession& session, std::int64_t count) {
  DeviceVectors vectors(session, count);
  DeviceCalc out;
  out.copy_s = std::numeric_limits<double>::infinity();
  out.reduction.seconds.fill(out.copy_s);
  out.chain.seconds.fill(out.copy_s);
  const auto keep_least = [](double& least, double seconds) { least = std::min(least, seconds); };
  for (int round = 0; round < kNumDeviceRounds; ++round) {
    keep_least(out.copy_s, vectors.time_copy());
    for (int x = 2; x <= kMaxCalcFanIn; ++x) {
      keep_least(out.reduction.seconds[static_cast<std::size_t>(x)], vectors.time_reduction(x));
      keep_least(out.chain.seconds[static_cast<std::size_t>(x)], vectors.time_chain(x));
    }
  }
  return out;
}

/// As many floats as asked for, or as fit; said on standard error.
std::int64_t count_that_fits(const CudaSession& session, std::int64_t count) {
  if (count < kMinDeviceCount) {
    throw UsageError(fmt::format("--count {}: too few to be measured; expected {} and more", count, kMinDeviceCount));
  }
  constexpr std::int64_t kRounded = 1'000'000;
  const double fits = kShareOfFreeMemory * static_cast<double>(session.free_bytes()) /
                      static_cast<double>(sizeof(float) * (kMaxCalcFanIn + 1));
  if (static_cast<double>(count) <= fits) return count;
  const auto less = std::max(static_cast<std::int64_t>(fits) / kRounded * kRounded, kMinDeviceCount);
  print_note(fmt::format("{} vectors of {} floats do not fit the GPU's free memory ({}): {} floats instead",
                         kMaxCalcFanIn + 1, format_count(count),
                         format_bytes(static_cast<double>(session.free_bytes())), format_count(less)));
  return less;
}

/// Reads and writes of a reduction, against those of a copy.
double share_of_copy(const DeviceCalc& ours, int x) {
  return (x + 1) / ours.reduction.seconds[static_cast<std::size_t>(x)] / (2 / ours.copy_s);
}

double least_share_of_copy(const DeviceCalc& ours) {
  double least = std::numeric_limits<double>::infinity();
  for (int x = 2; x <= kMaxCalcFanIn; ++x) least = std::min(least, share_of_copy(ours, x));
  return least;
}

void add_cells(const CalcSeries& paper, const DeviceCalc& ours, double floats, Table& table, Json& cells) {
  cells = Json::array();
  for (int x = 2; x <= kMaxCalcFanIn; ++x) {
    const auto at = static_cast<std::size_t>(x);
    const double bytes_per_s = sizeof(float) * floats * (x + 1) / ours.reduction.seconds[at];
    const double saved = ours.chain.seconds[at] / ours.reduction.seconds[at];
    table.add_row({fmt::format("{}", x), fmt::format("{:.3f} ms", 1e3 * paper.per_add(x)),
                   fmt::format("{:.4f} ms", 1e3 * ours.reduction.per_add(x)),
                   fmt::format("{:.4f} ms", 1e3 * ours.chain.per_add(x)), fmt::format("{:.2f}", saved),
                   format_memory_bandwidth(bytes_per_s), format_percent(share_of_copy(ours, x))});
    cells.push_back({{"x", x},
                     {"paper", {{"seconds", paper.seconds[at]}, {"seconds_per_add", paper.per_add(x)}}},
                     {"gpu", {{"seconds", ours.reduction.seconds[at]}, {"seconds_per_add", ours.reduction.per_add(x)}}},
                     {"chained", {{"seconds", ours.chain.seconds[at]}, {"seconds_per_add", ours.chain.per_add(x)}}},
                     {"bytes_per_s", bytes_per_s},
                     {"share_of_copy", share_of_copy(ours, x)}});
  }
}

}  // namespace

bool reproduce_calc_on_gpu(std::int64_t asked, const Context& context, Json& document) {
  const std::unique_ptr<CudaSession> session = start_cuda(0, 1);
  const std::int64_t count = count_that_fits(*session, asked);
  const auto floats = static_cast<double>(count);
  const CalcSeries paper = series_of(paper_measurements("calc-gpu"));
  const DeviceCalc ours = measure_on(*session, count);
  const CalcFit paper_fit = fit_calc(paper, kPaperCalcCount);
  const CalcFit our_fit = fit_calc(ours.reduction, floats);
  const CalcProfile paper_profile{gar::fit(paper_measurements("calc-gpu"))};
  const CalcProfile our_profile{gar::fit(calc_measurements(ours.reduction, floats))};
  const double copy_bandwidth = 2 * sizeof(float) * floats / ours.copy_s;
  const double least_share = least_share_of_copy(ours);
  const bool is_judged = count >= kJudgedCount;
  const bool ok = !is_judged || (ours.reduction.ratio() <= kMaxCalcRatio && least_share >= kLeastOfCopy);

  Table table({{"x", true},
               {"paper's K40c", true},
               {"here", true},
               {"pairwise", true},
               {"times", true},
               {"bandwidth", true},
               {"of the copy", true}});
  document["device"] = "cuda";
  document["gpu"] = session->words();
  document["count"] = count;
  document["copy"] = {{"seconds", ours.copy_s}, {"bytes_per_s", copy_bandwidth}};
  add_cells(paper, ours, floats, table, document["cells"]);
  document["fits"] = {{"paper", paper_fit.json()}, {"gpu", our_fit.json()}};
  document["non_negative_fits"] = {{"paper", paper_profile.json()}, {"gpu", our_profile.json()}};
  document["ratio"] = {{"paper", paper.ratio()}, {"gpu", ours.reduction.ratio()}, {"largest_accepted", kMaxCalcRatio}};
  document["share_of_copy"] = {{"least", least_share}, {"least_accepted", kLeastOfCopy}};
  document["judged"] = is_judged;
  if (context.json) return ok;

  const bool color = use_color(context.color, stdout);
  say(fmt::format(
      "fig:calc: time per add, T / (x - 1), when x vectors of S floats are reduced at once; paper: S = 1.5e8, K40c;\n"
      "  here: S = {}, {}, the fastest of {} rounds; pairwise: the same sums by x - 1 adds of two vectors, and how "
      "many "
      "times as long\n  they take\n\n",
      format_count(count), session->words(), kNumDeviceRounds));
  say(table.folded(color));
  say(fmt::format("\na copy in the same rounds: {} (reads and writes)\n", format_memory_bandwidth(copy_bandwidth)));
  say(fmt::format("\nfit of T = (x + 1) S delta + (x - 1) S gamma:\n  paper  {}\n  here   {}\n", paper_fit.text(),
                  our_fit.text()));
  say("\nthe same points in gar fit, which accepts no negative parameter:\n" + paper_profile.text("K40c") +
      our_profile.text("here"));
  if (!is_judged) {
    say(fmt::format("\nnothing is demanded of fewer than {} floats\n", format_count(kJudgedCount)));
    return ok;
  }
  say(fmt::format(
      "\nan add at x = {} takes {} of one at x = 2, at most {} demanded; the least bandwidth is {} of the copy's, at "
      "least {} demanded: {}\n",
      kMaxCalcFanIn, format_percent(ours.reduction.ratio()), format_percent(kMaxCalcRatio), format_percent(least_share),
      format_percent(kLeastOfCopy), ok ? paint("yes", Paint::kGreen, color) : paint("NO", Paint::kRed, color)));
  return ok;
}

}  // namespace gar::cli
