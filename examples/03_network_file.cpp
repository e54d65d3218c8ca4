// Describe a network of your own, price plans on it, and see where the time goes.
#include <cstdio>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/planner.hpp"
#include "gar/topology.hpp"
#include "gar/topology_io.hpp"

// Seconds per float of 4 bytes: 3.2e-9 is 10 Gbit/s; the racks share 5 Gbit/s. gar::read_topology_file reads a file.
constexpr const char* kNetwork = R"({
  "schema": "gar.topology/1",
  "name": "four-and-three",
  "classes": {
    "server": {"alpha": 5e-6, "beta": 3.2e-9, "epsilon": 1e-10, "incast_threshold": 9, "gamma": 1e-10, "delta": 2e-10},
    "rack": {"alpha": 5e-6, "beta": 6.4e-9, "epsilon": 1e-11, "incast_threshold": 9}
  },
  "tree": {"name": "root", "alpha": 5e-6, "children": [
    {"name": "big", "class": "rack", "children": [{"name": "server", "repeat": 4, "class": "server"}]},
    {"name": "small", "class": "rack", "children": [{"name": "server", "repeat": 3, "class": "server"}]}
  ]}
})";

int main() {
  const gar::Topology network = gar::parse_topology(kNetwork, "four-and-three.json");
  const double floats = 25e6;  // 100 MB
  const gar::LowerBound bound = gar::lower_bound(network, floats);
  std::printf("%s: %d servers; no plan takes less than %.1f ms (%s)\n", network.name().c_str(),
              static_cast<int>(network.num_servers()), 1e3 * bound.seconds(), bound.binding().c_str());

  for (const char* name : {"cps", "rhd", "ring", "acps:4+3"}) {
    const gar::PlanAnswer planned =
        gar::plan({.topology = network, .size_floats = floats, .algorithms = {gar::parse_algorithm(name)}});
    std::printf("%-10s%7.1f ms\n", name, 1e3 * planned.seconds());
    for (const gar::StageCost& stage : planned.priced->critical_stages(floats)) {
      std::printf("    %-44s%7.1f ms, %s\n", stage.label.c_str(), 1e3 * stage.at(floats).total(), stage.link.c_str());
    }
  }
}
