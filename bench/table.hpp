// Timing for the benchmark programs: medians, and multiples of a reference that is measured in the same run.
#pragma once

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gar::bench {

struct Sample {
  double median_s = 0, min_s = 0, max_s = 0;
  std::size_t num_runs = 0;
};

/// Runs f (returns a number, so that nothing is optimised away) once to warm up, then `num_runs` times.
template <class F>
Sample measure(F f, std::size_t num_runs) {
  static volatile double sink = 0;
  std::vector<double> seconds;
  sink = sink + f();
  while (seconds.size() < num_runs) {
    const auto start = std::chrono::steady_clock::now();
    sink = sink + f();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return {(seconds[(num_runs - 1) / 2] + seconds[num_runs / 2]) / 2, seconds.front(), seconds.back(), num_runs};
}

/// The reference: 10 million dependent steps of an integer hash (arithmetic only, no memory).
inline double hash_steps() {
  std::uint64_t x = 1;
  for (int i = 0; i < 10'000'000; ++i) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9ULL;
  }
  return static_cast<double>(x >> 60);
}

/// Of the whole process, so far.
inline double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1000;
}

inline std::string time_text(double s) {
  if (s < 1e-3) return fmt::format("{:.1f} us", 1e6 * s);
  return s < 1 ? fmt::format("{:.2f} ms", 1e3 * s) : fmt::format("{:.2f} s", s);
}

}  // namespace gar::bench
