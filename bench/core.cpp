// The core's own speed: loading networks, building, proving and pricing plans.
//
// Every line is the median of 20 runs with the fastest and the slowest, and the median as a multiple of a reference
// that is measured in the same run: 10 million dependent steps of an integer hash (arithmetic only, no memory). The
// multiples can be compared between machines; the seconds cannot.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/io.hpp"
#include "gar/model.hpp"
#include "gar/predict.hpp"
#include "gar/topology.hpp"
#include "gar/verify.hpp"

namespace {

constexpr int kRuns = 20;

// Results go here, so that nothing is optimised away.
volatile double sink = 0;

struct Sample {
  double median_s = 0, min_s = 0, max_s = 0;
};

template <class F>
Sample measure(F f) {
  std::vector<double> seconds;
  sink = sink + f();  // warm-up
  for (int i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    sink = sink + f();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return {(seconds[kRuns / 2 - 1] + seconds[kRuns / 2]) / 2, seconds.front(), seconds.back()};
}

double hash_steps() {
  std::uint64_t x = 1;
  for (int i = 0; i < 10'000'000; ++i) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9ULL;
  }
  return static_cast<double>(x >> 60);
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1000;
}

std::string time_text(double s) {
  if (s < 1e-3) return fmt::format("{:.1f} us", 1e6 * s);
  return s < 1 ? fmt::format("{:.2f} ms", 1e3 * s) : fmt::format("{:.2f} s", s);
}

class Table {
 public:
  Table() {
    fmt::print("{:<58}{:>12}{:>25}{:>13}{:>12}\n", "what", "median", "fastest..slowest", "x reference", "peak so far");
    reference_s_ = line("reference: 10 million dependent hash steps", hash_steps);
  }
  template <class F>
  double line(const std::string& what, F f) const {
    const Sample s = measure(f);
    const double reference = reference_s_ > 0 ? reference_s_ : s.median_s;
    fmt::print("{:<58}{:>12}{:>25}{:>13.3g}{:>9.0f} MB\n", what, time_text(s.median_s),
               time_text(s.min_s) + ".." + time_text(s.max_s), s.median_s / reference, peak_megabytes());
    return s.median_s;
  }

 private:
  double reference_s_ = 0;
};

double proved(const gar::Plan& plan) {
  const gar::VerifyReport report = gar::verify(plan);
  if (!report.ok) throw gar::PlanError(report.problem);
  return static_cast<double>(report.num_messages);
}

}  // namespace

int main() {
  const Table table;

  table.line("load tree:100x100x100 (1,000,000 servers) from its name",
             [] { return static_cast<double>(gar::topology_from_spec("tree:100x100x100").num_servers()); });
  const gar::Topology million = gar::topology_from_spec("tree:100x100x100");
  std::ostringstream file;
  gar::write_topology(million, file);
  const std::string text = file.str();
  table.line(fmt::format("load tree:100x100x100 from its file ({} bytes)", text.size()),
             [&] { return static_cast<double>(gar::parse_topology(text, "million.json").num_servers()); });

  table.line("build hcps:32x32 for 1,024 servers", [] {
    return static_cast<double>(gar::hcps(1024, {32, 32}).num_units);
  });
  table.line("build and verify hcps:32x32 for 1,024 servers", [] { return proved(gar::hcps(1024, {32, 32})); });
  table.line("build and verify flat cps for 1,024 servers", [] { return proved(gar::cps(1024)); });
  table.line("build and verify hcps:~32x32 for 1,021 servers (a prime)", [] {
    return proved(gar::uneven_hcps(1021, {32, 32}));
  });

  const gar::Topology sym512 = gar::builtin_topology("sym512");
  table.line("predict all algorithms on sym512, 1e8 floats", [&] {
    gar::Predictor predictor(sym512, gar::classic_algorithms());
    return predictor.at(1e8).front().seconds();
  });

  const gar::Plan hcps = gar::hcps(1'000'000, {100, 100, 100});
  const gar::PlanIndex index(hcps);
  table.line("program of one rank, hcps:100x100x100 on 1,000,000",
             [&] { return static_cast<double>(index.program(765'432).steps.size()); });
  table.line("price hcps:100x100x100 on 1,000,000 servers",
             [&] { return gar::PricedPlan(hcps, million).cost(1e8).total(); });
  const gar::Plan cps = gar::cps(1'000'000);
  table.line("price flat cps (1e12 messages) on 1,000,000 servers",
             [&] { return gar::PricedPlan(cps, million).cost(1e8).total(); });
  table.line("lower bound on 1,000,000 servers", [&] { return gar::lower_bound(million, 1e8).sequential_seconds(); });

  fmt::print("peak memory: {:.0f} MB\n", peak_megabytes());
}
