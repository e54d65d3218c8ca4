// Figure `fig:breakdown`, measured on this machine: how much of an AllReduce is calculation, and how much the rest.
//
// The paper has a timer around its reduce function and calls the rest communication. Our runtime overlaps the two, and
// between processes of one host no link stands between them. So the total is that of real AllReduces between processes,
// and calculation is measured by itself: every rank makes the reductions of its program (the same kernels, fan-ins,
// block lengths and chunks) on its own vector and a buffer that stands for what the others have staged, all ranks at
// the same time. Communication is the difference: copies into shared memory, waiting for each other, and what the
// overlap does not hide.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <stdexcept>
#include <system_error>

#include "apps/gar/reproduce/paper.hpp"
#include "apps/gar/reproduce/reproduce.hpp"
#include "gar/algorithms.hpp"
#include "gar/measure/launch.hpp"
#include "gar/measure/world.hpp"
#include "gar/plan.hpp"
#include "gar/reduction.hpp"
#include "gar/stats.hpp"

namespace gar::cli {
namespace {

constexpr int kPaperRanks = 12;
constexpr int kMostRanks = 64;
constexpr std::int64_t kLeastCount = 1000;
constexpr int kBreakdownRounds = 15;
constexpr int kBreakdownWarmup = 2;
constexpr double kTimeout = 30;

/// One reduction of a rank's program: `fan_in` operands, the rank's own included.
struct Reduction {
  std::size_t fan_in = 0;
  std::int64_t begin = 0;  ///< units
  std::int64_t end = 0;
};

/// The rank's reductions, in order.
std::vector<Reduction> reductions_of(const Plan& plan, int rank) {
  std::vector<Reduction> out;
  for (const Step& step : PlanIndex(plan).program(rank).steps) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> fan_in;
    for (const Message& m : step.recvs) {
      if (m.accumulate) ++fan_in[{m.begin, m.end}];
    }
    for (const auto& [interval, received] : fan_in) out.push_back({received + 1, interval.first, interval.second});
  }
  return out;
}

/// The calculation of one rank, apart from everything else.
class Calculation {
 public:
  Calculation(const Plan& plan, int rank, std::int64_t count, std::int64_t num_chunks)
      : reductions_(reductions_of(plan, rank)), num_units_(plan.num_units), count_(count), num_chunks_(num_chunks) {
    std::int64_t most = 0;
    const std::int64_t chunk = count / num_chunks + 1;
    for (const Reduction& r : reductions_) {
      const std::int64_t length = (r.end - r.begin) * chunk / num_units_ + 2;
      most = std::max(most, length * static_cast<std::int64_t>(r.fan_in));
    }
    staged_.assign(static_cast<std::size_t>(most), 1.0F);
  }

  void run(const float* in, float* out) const {
    std::vector<const void*> operands;
    for (std::int64_t c = 0; c < num_chunks_; ++c) {
      const std::int64_t first = element_of_unit(c, num_chunks_, count_);
      const std::int64_t length = element_of_unit(c + 1, num_chunks_, count_) - first;
      for (const Reduction& r : reductions_) {
        const std::int64_t begin = element_of_unit(r.begin, num_units_, length);
        const std::int64_t block = element_of_unit(r.end, num_units_, length) - begin;
        if (block == 0) continue;
        operands.assign(1, in + first + begin);
        for (std::size_t k = 0; k + 1 < r.fan_in; ++k) {
          operands.push_back(staged_.data() + static_cast<std::int64_t>(k) * block);
        }
        reduce(DataType::kFloat32, ReduceOp::kSum, out + first + begin, operands, block);
      }
    }
  }

 private:
  std::vector<Reduction> reductions_;
  std::int64_t num_units_;
  std::int64_t count_;
  std::int64_t num_chunks_;
  std::vector<float> staged_;
};

/// Seconds of one algorithm: from the first rank's begin to the last one's end, in the fastest round, because
/// other programs only ever add time.
struct Breakdown {
  double total = 0;
  double calculation = 0;
  [[nodiscard]] double communication() const { return total - calculation; }
};

/// Memory in which rank 0 leaves the results for the process that started it.
class ResultBoard {
 public:
  explicit ResultBoard(std::size_t size) : bytes_(size * sizeof(Breakdown)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "shared memory for the results");
    rows_ = static_cast<Breakdown*>(memory);
  }
  ~ResultBoard() { munmap(rows_, bytes_); }
  ResultBoard(const ResultBoard&) = delete;
  ResultBoard& operator=(const ResultBoard&) = delete;
  Breakdown& operator[](std::size_t i) const { return rows_[i]; }

 private:
  std::size_t bytes_;
  Breakdown* rows_ = nullptr;
};

/// Seconds on a clock that all processes of a host share.
double common_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// From the moment in which the first rank begins to that in which the last one ends. Where ranks share cores, some end
/// before others have been woken; the time of any single rank would not be that of all of them.
template <class F>
double seconds_of_all(Control& control, F action) {
  control.barrier();
  const double begin = common_clock();
  action();
  const double end = control.largest(common_clock());
  return end - control.smallest(begin);
}

/// Everything that one rank does. All algorithms in turns, as in gar bench.
int measure_rank(World& world, const std::vector<std::string>& algorithms, std::int64_t count,
                 const ResultBoard& board) {
  Control control(world, kTimeout);
  std::vector<Communicator> communicators;
  std::vector<Calculation> calculations;
  for (const std::string& algorithm : algorithms) {
    CommunicatorOptions options;
    options.algorithm = algorithm;
    options.timeout_s = kTimeout;
    communicators.push_back(world.communicator(options));
    const PlanReport report = communicators.back().report(Collective::kAllReduce, count, DataType::kFloat32);
    calculations.emplace_back(build_plan(parse_algorithm(algorithm), world.size()), world.rank(), count,
                              report.num_chunks);
  }
  const std::vector<float> in(static_cast<std::size_t>(count), 1.0F);
  std::vector<float> out(in.size());
  std::vector<std::vector<double>> totals(algorithms.size());
  std::vector<std::vector<double>> alone(algorithms.size());
  for (int round = 0; round < kBreakdownWarmup + kBreakdownRounds; ++round) {
    for (std::size_t k = 0; k < algorithms.size(); ++k) {
      const std::size_t i = (k + static_cast<std::size_t>(round)) % algorithms.size();
      const double total = seconds_of_all(
          control, [&] { communicators[i].all_reduce(std::span<const float>(in), std::span<float>(out)); });
      const auto expected = static_cast<float>(world.size());
      if (out.front() != expected || out.back() != expected) {
        throw std::runtime_error(fmt::format("{} left a wrong sum", algorithms[i]));
      }
      const double calculation = seconds_of_all(control, [&] { calculations[i].run(in.data(), out.data()); });
      if (control.any(world.is_stopping())) return kExitRunTime;
      if (round < kBreakdownWarmup) continue;
      totals[i].push_back(total);
      alone[i].push_back(calculation);
    }
  }
  control.barrier();
  if (world.rank() == 0) {
    for (std::size_t i = 0; i < algorithms.size(); ++i) {
      board[i] = {spread_of(totals[i]).min, spread_of(alone[i]).min};
    }
  }
  return kExitOk;
}

std::vector<std::string> breakdown_algorithms(std::int64_t num_ranks) {
  std::vector<std::string> out = {"ring"};
  for (std::int64_t f = 2; f < num_ranks; ++f) {
    if (num_ranks % f == 0) out.push_back(fmt::format("hcps:{}x{}", f, num_ranks / f));
  }
  out.emplace_back("cps");
  return out;
}

void check_breakdown(int num_ranks, std::int64_t count) {
  if (num_ranks < 2 || num_ranks > kMostRanks) {
    throw UsageError(fmt::format("--ranks {}: expected 2 to {}; the paper has {}", num_ranks, kMostRanks, kPaperRanks));
  }
  if (count < kLeastCount) {
    throw UsageError(fmt::format("--count {}: too few to be measured; expected {} and more", count, kLeastCount));
  }
  const double needed = 12.0 * static_cast<double>(count) * num_ranks;
  const double available = available_bytes();
  if (available < 0 || needed <= 0.9 * available) return;
  throw UsageError(fmt::format("--count {}: {} ranks need {}, and {} of memory are free", format_count(count),
                               num_ranks, format_bytes(needed), format_bytes(available)));
}

using Values = std::vector<double>;

/// "yes", or the first place where the next value is larger.
std::string falls_words(const std::vector<std::string>& names, const Values& values) {
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] > values[i - 1]) return fmt::format("not from {} to {}", names[i - 1], names[i]);
  }
  return "yes";
}

/// How many pairs both series put in the same order.
std::string pairs_words(const Values& a, const Values& b) {
  int alike = 0;
  int pairs = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = i + 1; j < a.size(); ++j) {
      ++pairs;
      alike += (a[i] < a[j]) == (b[i] < b[j]) ? 1 : 0;
    }
  }
  return fmt::format("{} of {}", alike, pairs);
}

/// The names with the least value; less than 0.1% more is no difference.
std::string least_of(const std::vector<std::string>& names, const Values& values) {
  const double least = *std::min_element(values.begin(), values.end());
  std::string out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 1.001 * least) out += (out.empty() ? "" : " and ") + names[i];
  }
  return out;
}

struct Columns {
  Values communication;
  Values calculation;
  [[nodiscard]] Values total() const {
    Values out = communication;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += calculation[i];
    return out;
  }
};

/// What the numbers say, sentence by sentence.
std::vector<std::string> breakdown_words(const std::vector<std::string>& names, const Columns& ours, bool has_paper) {
  const auto saved = [](const Values& calculation) {
    return fmt::format("{:.0f}%", 100 * (1 - calculation.back() / calculation.front()));
  };
  if (!has_paper) {
    return {"calculation falls from ring to cps: " + falls_words(names, ours.calculation),
            "cps calculates " + saved(ours.calculation) + " less than ring",
            "fastest: " + least_of(names, ours.total())};
  }
  Columns slow;
  Columns fast;
  for (const PaperBreakdown& bar : paper_breakdown()) {
    slow.communication.push_back(bar.communication_10g);
    slow.calculation.push_back(bar.calculation_10g);
    fast.communication.push_back(bar.communication_100g);
    fast.calculation.push_back(bar.calculation_100g);
  }
  return {fmt::format("calculation falls from ring to cps: paper {} (10 Gbit/s), {} (100 Gbit/s); here {}",
                      falls_words(names, slow.calculation), falls_words(names, fast.calculation),
                      falls_words(names, ours.calculation)),
          fmt::format("cps calculates {} and {} less than ring in the paper, {} here", saved(slow.calculation),
                      saved(fast.calculation), saved(ours.calculation)),
          fmt::format("pairs of algorithms in the same order as in the paper at 100 Gbit/s: {} by calculation, {} by "
                      "communication, {} by the total",
                      pairs_words(fast.calculation, ours.calculation),
                      pairs_words(fast.communication, ours.communication), pairs_words(fast.total(), ours.total())),
          fmt::format("fastest: {} at 10 Gbit/s, {} at 100 Gbit/s, {} here", least_of(names, slow.total()),
                      least_of(names, fast.total()), least_of(names, ours.total()))};
}

}  // namespace

bool reproduce_breakdown(int num_ranks, std::int64_t count, const Context& context, Json& document) {
  check_breakdown(num_ranks, count);
  const std::vector<std::string> algorithms = breakdown_algorithms(num_ranks);
  const ResultBoard board(algorithms.size());
  std::fflush(stdout);  // or every rank would print what stands there
  RankStart start;
  start.num_ranks = num_ranks;
  start.report = print_failure;
  const int code = run_ranks({.timeout_s = kTimeout}, start,
                             [&](World& world) { return measure_rank(world, algorithms, count, board); });
  if (code != kExitOk) throw std::runtime_error("fig:breakdown: the ranks did not finish");

  const bool has_paper = num_ranks == kPaperRanks;
  Table table({{"algorithm"},
               {"10G comm.", true},
               {"calc.", true},
               {"100G comm.", true},
               {"calc.", true},
               {"here total", true},
               {"comm.", true},
               {"calc.", true},
               {"of ring", true}});
  Columns ours;
  document["ranks"] = num_ranks;
  document["count"] = count;
  document["cells"] = Json::array();
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    const Breakdown& b = board[i];
    ours.communication.push_back(b.communication());
    ours.calculation.push_back(b.calculation);
    Json cell = {{"algorithm", algorithms[i]}};
    cell["ours"] = {
        {"seconds", b.total}, {"communication_seconds", b.communication()}, {"calculation_seconds", b.calculation}};
    std::vector<Cell> row = {algorithms[i], "-", "-", "-", "-"};
    if (has_paper) {
      const PaperBreakdown& p = paper_breakdown()[i];
      const double bars[] = {p.communication_10g, p.calculation_10g, p.communication_100g, p.calculation_100g};
      for (std::size_t k = 0; k < std::size(bars); ++k) row[k + 1] = fmt::format("{:.4f} s", bars[k]);
      cell["paper"] = {{"communication_seconds_10g", bars[0]},
                       {"calculation_seconds_10g", bars[1]},
                       {"communication_seconds_100g", bars[2]},
                       {"calculation_seconds_100g", bars[3]}};
    }
    row.emplace_back(format_seconds(b.total));
    row.emplace_back(format_seconds(b.communication()));
    row.emplace_back(format_seconds(b.calculation));
    row.emplace_back(format_percent(b.calculation / board[0].calculation));
    table.add_row(std::move(row));
    document["cells"].push_back(cell);
  }
  const std::vector<std::string> words = breakdown_words(algorithms, ours, has_paper);
  const bool ok = ours.calculation.back() < ours.calculation.front();
  document["words"] = words;
  if (context.json) return ok;

  const bool color = use_color(context.color, stdout);
  say(fmt::format(
      "fig:breakdown: communication and calculation of an AllReduce; paper: 1e8 floats, 12 servers, links of 10 and of "
      "100 Gbit/s;\n  here: {} floats, {} processes of this host on {} cores, the fastest of {} rounds; calculation is "
      "that "
      "of all ranks at once\n  without the rest, communication what remains of the total\n\n",
      format_count(count), num_ranks, num_cores(), kBreakdownRounds));
  say(table.folded(color));
  say("\n");
  for (const std::string& line : words) print(list_item(line));
  say(fmt::format("\ncps calculates less than ring: {}\n",
                  ok ? paint("yes", Paint::kGreen, color) : paint("NO", Paint::kRed, color)));
  return ok;
}

}  // namespace gar::cli
