// How honest what gentree+ predicts is: its plans on random trees of 2 to 32 servers, predicted and simulated.
//
//   bench_chunks [CASES]     500 by default in each row
//
// Parameters are spread over a decade. The plans of an AllReduce in chunks are counted by themselves (1e6 to 1e9
// floats), and those in one piece (1e3 to 1e9); of a ReduceScatter and an AllGather all plans are (1e3 to 1e9 floats).
// Plans with more than two million messages are left out, because simulating them takes long, and their number is
// printed. Prints simulated over predicted time. Nothing here depends on how busy the machine is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "gar/planner.hpp"
#include "gar/simulate.hpp"
#include "gar/topology.hpp"
#include "support/random_topology.hpp"

namespace {

constexpr double kMostMessages = 2e6;

gar::Topology without_incast(const gar::Topology& topology) {
  std::vector<gar::Node> nodes;
  for (gar::NodeId id = 0; id < topology.num_nodes(); ++id) {
    nodes.push_back(topology.node(id));
    nodes.back().uplink.epsilon = 0;
  }
  return {topology.name(), nodes, topology.root()};
}

gar::Topology draw(std::mt19937_64& random) {
  gar::test::RandomTopologyOptions options;
  options.min_servers = 2;
  options.max_servers = 32;
  options.max_levels = 3;
  options.uneven_probability = 0.25 * static_cast<double>(random() % 4);
  options.decades = 0.5;
  options.same_per_level = random() % 2 == 0;
  return gar::test::random_topology(random, options);
}

/// Simulated over predicted time; 0 where there are too many messages.
double ratio_of(const gar::PlanAnswer& answer, const gar::Topology& topology, double size) {
  gar::SimulationOptions options;
  options.keep_path = false;
  bool is_long = false;
  options.progress = [&](const gar::SimulationProgress& progress) {
    is_long = progress.flows > kMostMessages;
    return !is_long;
  };
  const double seconds = gar::simulate(answer.plan, topology, size, options).seconds;
  return is_long ? 0 : seconds / answer.seconds();
}

/// Which plans a row is about.
struct Kind {
  const char* name = "";
  gar::Collective collective = gar::Collective::kAllReduce;
  double least_exponent = 3;  // of the size
  bool in_one_piece = true;   // these count
  bool in_chunks = true;      // and these
};

void print_row(int num_cases, const Kind& kind, bool has_incast) {
  std::vector<double> ratios;
  int num_left_out = 0;
  std::uint64_t worst = 0;
  std::uint64_t seed = 0;
  while (static_cast<int>(ratios.size()) < num_cases) {
    std::mt19937_64 random(++seed);
    gar::Topology topology = draw(random);
    const double part = static_cast<double>(random() >> 11) * 0x1.0p-53;
    const double size = std::floor(std::pow(10.0, kind.least_exponent + (9 - kind.least_exponent) * part));
    if (!has_incast) topology = without_incast(topology);
    const gar::PlanAnswer answer =
        gar::plan({.topology = topology, .size_floats = size, .collective = kind.collective});
    if (answer.plan.num_chunks == 1 ? !kind.in_one_piece : !kind.in_chunks) continue;
    const double ratio = ratio_of(answer, topology, size);
    if (ratio == 0) {
      ++num_left_out;
      continue;
    }
    if (ratios.empty() || ratio > *std::max_element(ratios.begin(), ratios.end())) worst = seed;
    ratios.push_back(ratio);
  }
  const auto num_above = std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio > 1.02; });
  std::sort(ratios.begin(), ratios.end());
  const auto at = [&](double q) {
    return fmt::format("{:+.1f}%",
                       100 * (ratios[static_cast<std::size_t>(q * static_cast<double>(ratios.size() - 1))] - 1));
  };
  fmt::print("{:<24}{:<7}{:>6}{:>11}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>7}{:>10}\n", kind.name,
             has_incast ? "yes" : "no", ratios.size(),
             fmt::format("{} ({:.1f}%)", num_above, 100 * static_cast<double>(num_above) / num_cases), at(0), at(0.05),
             at(0.25), at(0.5), at(0.75), at(0.95), at(1), worst, num_left_out);
}

}  // namespace

int main(int argc, char** argv) {
  const int num_cases = argc > 1 ? std::atoi(argv[1]) : 500;
  fmt::print("simulated against predicted time of gentree+'s plans, {} random trees in each row\n", num_cases);
  fmt::print("{:<24}{:<7}{:>6}{:>11}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>7}{:>10}\n", "", "incast", "cases",
             "above 2%", "least", "5%", "25%", "median", "75%", "95%", "most", "seed", "left out");
  const Kind kinds[] = {{"allreduce in chunks", gar::Collective::kAllReduce, 6, false, true},
                        {"allreduce in one piece", gar::Collective::kAllReduce, 3, true, false},
                        {"reduce-scatter", gar::Collective::kReduceScatter},
                        {"allgather", gar::Collective::kAllGather}};
  for (const Kind& kind : kinds) {
    for (const bool has_incast : {true, false}) print_row(num_cases, kind, has_incast);
  }
}
