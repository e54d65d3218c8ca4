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

std::string_view redop_word(const BenchResult& r) {
  return r.collective == Collective::kAllGather ? "none" : to_string(r.kind.op);
}

/// "auto: latency", "ring", "native: Open MPI 4.1.4", "gentree+: cps, 4 chunks".
std::string algorithm_words(const BenchResult& r) {
  std::string out = describe(r.entry);
  if (!r.plan.empty() && r.plan != r.entry.name) out += ": " + r.plan;
  if (r.num_chunks > 1) out += fmt::format(", {} chunks", r.num_chunks);
  return out;
}

Json number_or_null(double value) { return value >= 0 ? Json(value) : Json(nullptr); }

Json result_json(int num_ranks, const BenchResult& r) {
  Json out;
  out["algorithm"] = r.entry.name;
  out["plan"] = r.plan;
  out["transport"] = r.transport;
  out["ranks"] = num_ranks;
  out["bytes"] = r.size.bytes;
  out["count"] = r.size.count;
  out["dtype"] = to_string(r.kind.type);
  out["op"] = redop_word(r);
  out["seconds"] = r.seconds.median;
  out["median"] = r.seconds.median;
  out["min"] = r.seconds.min;
  out["max"] = r.seconds.max;
  out["p10"] = r.seconds.p10;
  out["p90"] = r.seconds.p90;
  out["algbw"] = r.algbw;
  out["busbw"] = r.busbw;
  out["wrong"] = r.wrong ? Json(*r.wrong) : Json(nullptr);
  out["predicted_seconds"] = number_or_null(r.predicted_seconds);
  if (r.correction != 1) out["correction"] = r.correction;
  out["error"] =
      r.predicted_seconds > 0 ? Json(prediction_error(r.seconds.median, r.predicted_seconds)) : Json(nullptr);
  out["iterations"] = r.iterations;
  out["batch"] = r.batch;
  out["chunks"] = r.num_chunks;
  out["reproducible"] = r.entry.is_reproducible;
  out["reason"] = r.reason;
  if (r.is_on_gpu) {
    out["bound_seconds"] = number_or_null(r.bound_seconds);
    out["times_bound"] = r.bound_seconds > 0 ? Json(r.seconds.median / r.bound_seconds) : Json(nullptr);
  }
  return out;
}

/// Results that may be compared: of one type and operator.
using Key = std::pair<int, int>;
Key key_of(const BenchResult& r) { return {static_cast<int>(r.kind.type), static_cast<int>(r.kind.op)}; }

void add_to(BenchRatio& ratio, double value, std::int64_t bytes, std::vector<double>& values) {
  if (values.empty() || value < ratio.least) {
    ratio.least = value;
    ratio.least_at = bytes;
  }
  if (values.empty() || value > ratio.most) {
    ratio.most = value;
    ratio.most_at = bytes;
  }
  values.push_back(value);
}

/// The times of `slow` over those of `fast`.
std::optional<BenchRatio> ratio_of(const std::vector<BenchResult>& results, const BenchEntry& fast,
                                   const BenchEntry& slow) {
  BenchRatio out;
  out.fast = describe(fast);
  out.is_price = slow.is_reproducible;
  out.slow = describe(slow);
  std::vector<double> values;
  for (const BenchResult& a : results) {
    for (const BenchResult& b : results) {
      const bool is_pair = a.entry == fast && b.entry == slow && a.size == b.size && key_of(a) == key_of(b);
      // Nothing to do takes no time worth comparing.
      if (is_pair && a.size.bytes > 0 && a.seconds.median > 0 && b.seconds.median > 0) {
        add_to(out, b.seconds.median / a.seconds.median, a.size.bytes, values);
      }
    }
  }
  if (values.empty()) return std::nullopt;
  out.mean = geometric_mean(values);
  out.num_sizes = values.size();
  return out;
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

Json ratio_json(const BenchRatio& ratio) {
  Json out;
  out["fast"] = ratio.fast;
  out["slow"] = ratio.slow;
  out["mean"] = ratio.mean;
  out["least"] = ratio.least;
  out["least_at_bytes"] = ratio.least_at;
  out["most"] = ratio.most;
  out["most_at_bytes"] = ratio.most_at;
  return out;
}

}  // namespace

std::string bench_header(const BenchConfig& config, const std::string& world) {
  std::string out = fmt::format("# {} between {}, {}, {} iterations after {} for warming up{}\n",
                                to_string(config.collective), world, config.in_place ? "in place" : "out of place",
                                config.iterations, config.warmup, config.check ? ", every element checked" : "");
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
      fmt::runtime(kLine), r.size.bytes, r.size.count, to_string(r.kind.type), redop_word(r), -1,
      format_us(r.seconds.median), format_bandwidth(r.algbw), format_bandwidth(r.busbw),
      paint(padded, r.wrong.value_or(0) > 0 ? Paint::kRed : Paint::kPlain, color),
      is_predicted ? format_us(r.predicted_seconds) : "-",
      is_predicted ? fmt::format("{:+.0f}%", 100 * prediction_error(r.seconds.median, r.predicted_seconds)) : "-",
      fmt::format("{}..{}", format_us(r.seconds.p10), format_us(r.seconds.p90)), bound, algorithm_words(r));
}

std::vector<BenchRatio> bench_ratios(const std::vector<BenchResult>& results) {
  std::vector<BenchEntry> entries;
  for (const BenchResult& r : results) {
    if (std::find(entries.begin(), entries.end(), r.entry) == entries.end()) entries.push_back(r.entry);
  }
  std::vector<BenchRatio> out;
  const auto add = [&](const BenchEntry& fast, const BenchEntry& slow) {
    if (const auto ratio = ratio_of(results, fast, slow)) out.push_back(*ratio);
  };
  for (const BenchEntry& native : entries) {
    if (!native.is_native) continue;
    for (const BenchEntry& ours : entries) {
      if (!ours.is_native) add(ours, native);
    }
  }
  for (const BenchEntry& reproducible : entries) {
    if (!reproducible.is_reproducible) continue;
    BenchEntry ordinary = reproducible;
    ordinary.is_reproducible = false;
    add(ordinary, reproducible);
  }
  return out;
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

Json bench_document(const BenchConfig& config, const BenchRecord& record) {
  Json out = json_document("gar.bench/2");
  out["collective"] = to_string(config.collective);
  out["ranks"] = record.num_ranks;
  out["world"] = record.world;
  out["requested_transport"] = to_string(config.transport);
  if (config.device == Device::kCuda) {
    out["device"] = "cuda";
    out["copy_bytes_per_s"] = record.outcome.copy_bytes_per_s;
  }
  out["in_place"] = config.in_place;
  out["iterations"] = config.iterations;
  out["warmup"] = config.warmup;
  out["checked"] = config.check;
  out["simd"] = simd_name();
  out["complete"] = record.outcome.is_complete;
  out["wrong"] = config.check ? Json(record.outcome.num_wrong) : Json(nullptr);
  out["results"] = Json::array();
  for (const BenchResult& r : record.results) out["results"].push_back(result_json(record.num_ranks, r));
  out["ratios"] = Json::array();
  for (const BenchRatio& ratio : bench_ratios(record.results)) out["ratios"].push_back(ratio_json(ratio));
  out["notes"] = record.notes;
  return out;
}

}  // namespace gar::cli
