// The core's own speed: loading networks, building, proving and pricing plans.
//
// Every line is the median of 20 runs with the fastest and the slowest, and the median as a multiple of a reference
// that is measured in the same run: 10 million dependent steps of an integer hash (arithmetic only, no memory). The
// multiples can be compared between machines; the seconds cannot.
#include <fmt/format.h>

#include <cstddef>
#include <sstream>
#include <string>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/model.hpp"
#include "gar/predict.hpp"
#include "gar/topology.hpp"
#include "gar/topology_io.hpp"
#include "gar/verify.hpp"
#include "table.hpp"

namespace {

using gar::bench::peak_megabytes;
using gar::bench::time_text;

constexpr std::size_t kRuns = 20;

class Table {
 public:
  Table() {
    fmt::print("{:<58}{:>12}{:>25}{:>13}{:>12}\n", "what", "median", "fastest..slowest", "x reference", "peak so far");
    reference_s_ = line("reference: 10 million dependent hash steps", gar::bench::hash_steps);
  }
  template <class F>
  double line(const std::string& what, F f) const {
    const gar::bench::Sample s = gar::bench::measure(f, kRuns);
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
