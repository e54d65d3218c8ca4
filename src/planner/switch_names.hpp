// What switches are called in plans, for people.
#pragma once

#include <string>
#include <vector>

#include "gar/topology.hpp"

namespace gar {

/// The names of all nodes: where two that differ have the same one, their paths below the root, "dcA/fast" and
/// "dcB/fast"; where these are the same, too, the paths of their first instances, "rack0" and "rack3". O(nodes).
class SwitchNames {
 public:
  explicit SwitchNames(const Topology& topology);
  [[nodiscard]] const std::string& of(NodeId id) const { return names_[static_cast<std::size_t>(id)]; }

 private:
  std::vector<std::string> names_;
};

}  // namespace gar
