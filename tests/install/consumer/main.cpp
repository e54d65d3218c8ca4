// A program that has nothing but the installed package: predicts one AllReduce, and proves its plan.
#include <iostream>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/topology.hpp"
#include "gar/topology_io.hpp"
#include "gar/verify.hpp"

int main() {
  const gar::Topology topology = gar::load_topology("star:24");
  const gar::Plan plan = gar::hcps(topology.num_servers(), {8, 3});
  const gar::VerifyReport report = gar::verify(plan);
  const double seconds = gar::PricedPlan(plan, topology).cost(1e8).total();
  std::cout << plan.algorithm << " on " << topology.num_servers() << " servers: " << seconds << " s, "
            << (report.ok ? "proven" : report.problem) << '\n';
  return report.ok && seconds > 0 ? 0 : 1;
}
