// What `gar bench` prints. Lines that are no results begin with #, as in nccl-tests.
#include "apps/gar/views/bench_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "apps/gar/cli/device.hpp"
#include "apps/gar/cli/plan_args.hpp"
#include "gar/reduction.hpp"

namespace gar::cli {
namespace {

constexpr const char* kLine = "{:>13} {:>12} {:>9} {:>6} {:>5} {:>11} {:>8} {:>8} {:>7} {:>11} {:>8} {:>21}{}  {}\n";
constexpr const char* kBound = " {:>11} {:>7}";  // on GPUs

/// Microseconds with four digits.
std::string format_us(double seconds) {
  const double us = 1e6 * seconds;
  return fmt::format("{:.{}f}", us, us < 10 ? 3 : us < 100 ? 2 : us < 1000 ? 1 : 0);
}

/// GB/s.
std::string format_bandwidth(double bytes_per_s) {
  const double gb = bytes_per_s / 1e9;
  return fmt::format("{:.{}f}", gb, gb < 10 ? 3 : gb < 100 ? 2 : 1);
}

/// "# the predictions are the model's times the profile's correction: 1.08 from 4 KiB, 1 from 1 MiB"
std::string correction_words(const std::vector<BenchResult>& results) {
  std::map<std::int64_t, double> factors;  // by bytes
  for (const BenchResult& r : results) {
    if (r.predicted_seconds > 0) factors.try_emplace(r.size.bytes, r.correction);
  }
  std::string list;
  double last = 0;
  bool has_any = false;
  for (const auto& [bytes, factor] : factors) {
    has_any = has_any || factor != 1;
    if (factor != last)
      list += fmt::format("{}{:.3g} from {}", list.empty() ? "" : ", ", factor, format_binary_bytes(bytes));
    last = factor;
  }
  if (!has_any) return "";
  return fmt::format("# predictions are the model's times the profile's correction for the size: {}\n", list);
}

}  // namespace

std::string bench_header(const BenchConfig& config, const std::string& world) {
  std::string out =
      fmt::format("# {} between {}, {}, {} iterations after {} for warming up{}\n", to_string(config.collective),
                  escaped(world), config.in_place ? "in place" : "out of place", config.iterations, config.warmup,
                  config.check ? ", every element checked" : "");
  const auto bound = [&](const char* seconds, const char* times) {
    return config.device == Device::kCuda ? fmt::format(fmt::runtime(kBound), seconds, times) : "";
  };
  out += "#\n" + fmt::format(fmt::runtime(kLine), "#        size", "count", "type", "redop", "root", "time", "algbw",
                             "busbw", "#wrong", "predicted", "error", "p10..p90", bound("bound", "times"), "algorithm");
  out += fmt::format(fmt::runtime(kLine), "#         (B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "",
                     "(us)", "", "(us)", bound("(us)", "bound"), "");
  while (out.ends_with(" \n")) out.erase(out.size() - 2, 1);
  return out;
}

std::string bench_line(const BenchResult& r, bool color) {
  const bool is_predicted = r.predicted_seconds > 0;
  const std::string wrong = r.wrong ? std::to_string(*r.wrong) : "N/A";
  const std::string padded = fmt::format("{:>7}", wrong);
  const bool has_bound = r.bound_seconds > 0;
  const std::string bound =
      !r.is_on_gpu ? ""
                   : fmt::format(fmt::runtime(kBound), has_bound ? format_us(r.bound_seconds) : "-",
                                 has_bound ? fmt::format("{:.2f}", r.seconds.median / r.bound_seconds) : "-");
  return fmt::format(
      fmt::runtime(kLine), r.size.bytes, r.size.count, to_string(r.kind.type), operator_word(r), -1,
      format_us(r.seconds.median), format_bandwidth(r.algbw), format_bandwidth(r.busbw),
      paint(padded, r.wrong.value_or(0) > 0 ? Paint::kRed : Paint::kPlain, color),
      is_predicted ? format_us(r.predicted_seconds) : "-",
      is_predicted ? fmt::format("{:+.0f}%", 100 * prediction_error(r.seconds.median, r.predicted_seconds)) : "-",
      fmt::format("{}..{}", format_us(r.seconds.p10), format_us(r.seconds.p90)), bound, to_string(label_of(r)));
}

std::string bench_csv_titles() {
  return csv_line({"bytes", "count", "type", "redop", "algorithm", "seconds", "seconds_p10", "seconds_p90",
                   "algbw_gb_s", "busbw_gb_s", "wrong", "predicted_seconds"});
}

std::string bench_csv_line(const BenchResult& r) {
  return csv_line({fmt::to_string(r.size.bytes), fmt::to_string(r.size.count), std::string(to_string(r.kind.type)),
                   std::string(operator_word(r)), to_string(label_of(r)), fmt::to_string(r.seconds.median),
                   fmt::to_string(r.seconds.p10), fmt::to_string(r.seconds.p90), fmt::to_string(r.algbw / 1e9),
                   fmt::to_string(r.busbw / 1e9), r.wrong ? fmt::to_string(*r.wrong) : "",
                   r.predicted_seconds > 0 ? fmt::to_string(r.predicted_seconds) : ""});
}

std::string ratio_words(const BenchRatio& ratio) {
  const std::string range = ratio.num_sizes == 1 ? " at " + format_binary_bytes(ratio.most_at)
                                                 : fmt::format(" (geometric mean; {:.2f} at {} to {:.2f} at {})",
                                                               ratio.least, format_binary_bytes(ratio.least_at),
                                                               ratio.most, format_binary_bytes(ratio.most_at));
  if (ratio.is_price)
    return fmt::format("{} takes {:.2f} times as long as {}{}", ratio.slow, ratio.mean, ratio.fast, range);
  return fmt::format("{} is {:.2f} times as fast as {}{}", ratio.fast, ratio.mean, ratio.slow, range);
}

std::string bench_footer(const std::vector<BenchResult>& results, const BenchOutcome& outcome) {
  std::string out;
  for (const BenchRatio& ratio : bench_ratios(results)) out += fmt::format("# {}\n", ratio_words(ratio));
  out += correction_words(results);
  if (outcome.copy_bytes_per_s > 0) {
    out += fmt::format(
        "# bound: the bytes that all ranks' reductions and copies read and write, at the {} of a copy in GPU memory in "
        "this run\n",
        format_memory_bandwidth(outcome.copy_bytes_per_s));
  }
  if (outcome.num_wrong > 0) {
    out += fmt::format("# WRONG: {} elements are not what they must be\n", format_grouped(outcome.num_wrong));
  }
  if (!outcome.is_complete) out += "# partial: interrupted; what was not finished is not shown\n";
  return out;
}

}  // namespace gar::cli
