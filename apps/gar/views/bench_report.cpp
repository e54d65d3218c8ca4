// What `gar bench` prints. Lines that are no results begin with #, as in nccl-tests.
#include "apps/gar/views/bench_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
  return fmt::format("predictions are the model's times the profile's correction for the size: {}", list);
}

/// Where TCP had to send most again, if that is worth a word.
std::string resent_words(const std::vector<BenchResult>& results) {
  constexpr double kFew = 0.01;
  const auto most = std::max_element(results.begin(), results.end(),
                                     [](const BenchResult& a, const BenchResult& b) { return a.resent < b.resent; });
  if (most == results.end() || most->resent < kFew) return "";
  return fmt::format("packets are lost: TCP sent up to {} of its segments again ({} at {})",
                     format_percent(most->resent), most->entry.name, format_binary_bytes(most->size.bytes));
}

std::string error_of(const BenchResult& r) {
  if (r.predicted_seconds <= 0) return "-";
  return fmt::format("{:+.0f}%", 100 * prediction_error(r.seconds.median, r.predicted_seconds));
}

std::string range_of(const BenchResult& r) {
  return fmt::format("{}..{}", format_us(r.seconds.p10), format_us(r.seconds.p90));
}

std::string bound_of(const BenchResult& r) { return r.bound_seconds > 0 ? format_us(r.bound_seconds) : "-"; }
std::string times_bound(const BenchResult& r) {
  return r.bound_seconds > 0 ? fmt::format("{:.2f}", r.seconds.median / r.bound_seconds) : "-";
}

/// The columns of nccl-tests and a name. What is painted is as wide as it has to be.
std::string narrow_line(const BenchLayout& layout, const std::string& size, const std::array<std::string, 8>& cells,
                        const std::string& name) {
  const auto& [count, type, op, root, time, algbw, busbw, wrong] = cells;
  const std::size_t before = layout.size + layout.count + layout.type + layout.op + 4 + 8 + 3 * 6 + 9;
  const bool has_room = before + name.size() <= terminal_columns();
  const std::string below = has_room ? "" : fmt::format("# {:>{}}\n", name, terminal_columns() - 2);
  return fmt::format("{} {:>{}} {:>{}} {:>{}} {:>4} {:>8} {:>6} {:>6} {:>6} {}\n{}", size, count, layout.count, type,
                     layout.type, op, layout.op, root, time, algbw, busbw, wrong, has_room ? name : kLabelBelow, below);
}

/// What a narrow table has no room for, in comments.
std::string second_table(const std::vector<BenchResult>& results, const BenchLayout& layout) {
  std::vector<Column> columns{{"size", true}, {"p10..p90", true}, {"predicted", true}, {"error", true}};
  if (layout.is_on_gpu) columns.insert(columns.end(), {{"bound", true}, {"times", true}});
  columns.push_back({"algorithm"});
  Table table(columns);
  for (const BenchResult& r : results) {
    std::vector<Cell> row{fmt::to_string(r.size.bytes), range_of(r),
                          r.predicted_seconds > 0 ? format_us(r.predicted_seconds) : "-", error_of(r)};
    if (layout.is_on_gpu) row.insert(row.end(), {bound_of(r), times_bound(r)});
    row.emplace_back(to_string(label_of(r)));
    table.add_row(std::move(row));
  }
  std::string out = "#\n# times in us\n";
  const std::string text = table.to_string(false);
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    out += commented(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return out + "#\n";
}

}  // namespace

BenchLayout bench_layout(const BenchConfig& config) {
  constexpr std::size_t kWide = 155;
  BenchLayout out;
  out.is_wide = terminal_columns() >= kWide;
  out.is_on_gpu = config.device == Device::kCuda;
  const std::int64_t largest = *std::max_element(config.sizes.begin(), config.sizes.end());
  std::int64_t element = sizeof(double);
  for (const BenchCase& kind : config.cases) {
    element = std::min<std::int64_t>(element, size_of(kind.type));
    out.type = std::max(out.type, to_string(kind.type).size());
    out.op = std::max(out.op, to_string(kind.op).size());
  }
  out.size = std::max<std::size_t>(fmt::to_string(largest).size(), 6);  // "# size"
  out.count = std::max<std::size_t>(fmt::to_string(largest / element).size(), 5);
  out.type = std::max<std::size_t>(out.type, 4);
  out.op = std::max<std::size_t>(out.op, 5);
  return out;
}

std::string bench_header(const BenchConfig& config, const std::string& world, const std::string& remark,
                         const BenchLayout& layout) {
  const std::string opening =
      fmt::format("{} between {}, {}, {} iteration{} after {} for warming up{}", to_string(config.collective), world,
                  config.in_place ? "in place" : "out of place", config.iterations, config.iterations == 1 ? "" : "s",
                  config.warmup, config.check ? ", every element checked" : "");
  std::string out;
  for (const std::string& line : {opening, remark}) {
    if (!line.empty()) out += layout.is_wide ? fmt::format("# {}\n", escaped(line)) : commented(line);
  }
  out += "#\n";
  if (layout.is_wide) {
    const auto bound = [&](const char* seconds, const char* times) {
      return config.device == Device::kCuda ? fmt::format(fmt::runtime(kBound), seconds, times) : "";
    };
    out += fmt::format(fmt::runtime(kLine), "#        size", "count", "type", "redop", "root", "time", "algbw", "busbw",
                       "#wrong", "predicted", "error", "p10..p90", bound("bound", "times"), "algorithm");
    out += fmt::format(fmt::runtime(kLine), "#         (B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "",
                       "(us)", "", "(us)", bound("(us)", "bound"), "");
  } else {
    std::string first = fmt::format("{:>{}}", "size", layout.size);
    std::string second = fmt::format("{:>{}}", "(B)", layout.size);
    first.front() = second.front() = '#';
    out +=
        narrow_line(layout, first, {"count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong"}, "algorithm");
    out += narrow_line(layout, second, {"", "", "", "", "(us)", "(GB/s)", "(GB/s)", ""}, "");
  }
  while (out.ends_with(" \n")) out.erase(out.size() - 2, 1);
  return out;
}

std::string bench_line(const BenchResult& r, bool color, const BenchLayout& layout) {
  const bool is_predicted = r.predicted_seconds > 0;
  const std::string wrong = fmt::format("{:>{}}", r.wrong ? std::to_string(*r.wrong) : "N/A", layout.is_wide ? 7 : 6);
  const std::string painted = paint(wrong, r.wrong.value_or(0) > 0 ? Paint::kRed : Paint::kPlain, color);
  if (!layout.is_wide) {
    return narrow_line(
        layout, fmt::format("{:>{}}", r.size.bytes, layout.size),
        {fmt::to_string(r.size.count), std::string(to_string(r.kind.type)), std::string(operator_word(r)), "-1",
         format_us(r.seconds.median), format_bandwidth(r.algbw), format_bandwidth(r.busbw), painted},
        to_short_string(label_of(r)));
  }
  const std::string bound = !r.is_on_gpu ? "" : fmt::format(fmt::runtime(kBound), bound_of(r), times_bound(r));
  return fmt::format(fmt::runtime(kLine), r.size.bytes, r.size.count, to_string(r.kind.type), operator_word(r), -1,
                     format_us(r.seconds.median), format_bandwidth(r.algbw), format_bandwidth(r.busbw), painted,
                     is_predicted ? format_us(r.predicted_seconds) : "-", error_of(r), range_of(r), bound,
                     to_string(label_of(r)));
}

std::string bench_csv_titles() {
  return csv_line({"bytes", "count", "type", "redop", "algorithm", "seconds", "seconds_p10", "seconds_p90",
                   "algbw_gb_s", "busbw_gb_s", "wrong", "predicted_seconds", "resent"});
}

std::string bench_csv_line(const BenchResult& r) {
  return csv_line({fmt::to_string(r.size.bytes), fmt::to_string(r.size.count), std::string(to_string(r.kind.type)),
                   std::string(operator_word(r)), to_string(label_of(r)), fmt::to_string(r.seconds.median),
                   fmt::to_string(r.seconds.p10), fmt::to_string(r.seconds.p90), fmt::to_string(r.algbw / 1e9),
                   fmt::to_string(r.busbw / 1e9), r.wrong ? fmt::to_string(*r.wrong) : "",
                   r.predicted_seconds > 0 ? fmt::to_string(r.predicted_seconds) : "",
                   r.resent >= 0 ? fmt::to_string(r.resent) : ""});
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

std::string bench_footer(const std::vector<BenchResult>& results, const BenchOutcome& outcome,
                         const BenchLayout& layout) {
  std::string out = layout.is_wide || results.empty() ? "" : second_table(results, layout);
  const auto add = [&](const std::string& line) {
    out += layout.is_wide ? fmt::format("# {}\n", escaped(line)) : commented(line);
  };
  for (const BenchRatio& ratio : bench_ratios(results)) add(ratio_words(ratio));
  if (const std::string words = correction_words(results); !words.empty()) add(words);
  if (outcome.copy_bytes_per_s > 0) {
    add(
        fmt::format("bound: the bytes that all ranks' reductions and copies read and write, at the {} of a copy in GPU "
                    "memory in this run",
                    format_memory_bandwidth(outcome.copy_bytes_per_s)));
  }
  if (const std::string words = resent_words(results); !words.empty()) add(words);
  if (outcome.num_wrong > 0) {
    add(fmt::format("WRONG: {} elements are wrong", format_grouped(outcome.num_wrong)));
  }
  if (!outcome.is_complete) add("partial: interrupted; what was not finished is not shown");
  return out;
}

}  // namespace gar::cli
