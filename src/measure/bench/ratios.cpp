// How the entries of a benchmark compare with each other.
#include <algorithm>
#include <optional>
#include <utility>

#include "gar/measure/bench.hpp"
#include "gar/stats.hpp"

namespace gar::measure {
namespace {

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

}  // namespace

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

}  // namespace gar::measure
