#include "gar/simulate.hpp"

#include "gar/errors.hpp"

namespace gar {

Simulation simulate(const Plan&, const Topology&, double, const SimulationOptions&) {
  throw Error("simulate: under construction");
}

}  // namespace gar
