#include "gar/errors.hpp"
#include "gar/simulate.hpp"

namespace gar {

std::string link_name(const Topology& topology, const LinkId& link) {
  return (link.is_down ? "downlink of " : "uplink of ") + topology.instance_name(link.node.rank, link.node.depth);
}

}  // namespace gar
