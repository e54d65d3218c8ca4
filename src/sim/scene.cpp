// Names of the simulation engines.
#include "gar/scene.hpp"

namespace gar {

std::string_view to_string(SimulationEngine engine) {
  switch (engine) {
    case SimulationEngine::kFlows:
      return "flows";
    case SimulationEngine::kClasses:
      return "classes";
    case SimulationEngine::kGraph:
      return "graph";
    case SimulationEngine::kFilling:
      return "filling";
    case SimulationEngine::kAuto:
      break;
  }
  return "auto";
}

}  // namespace gar
