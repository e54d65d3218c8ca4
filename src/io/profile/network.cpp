// A network out of a topology and a profile.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gar/errors.hpp"
#include "gar/profile_io.hpp"
#include "gar/topology_io.hpp"

namespace gar {

Network load_network(const std::string& topology, const std::string& profile_path) {
  if (topology.empty() && profile_path.empty()) {
    throw InvalidArgument("a network is needed: a topology, a profile, or both");
  }
  if (profile_path.empty()) return {load_topology(topology), std::nullopt};
  Profile profile = read_profile_file(profile_path);
  if (topology.empty()) {
    Topology own = profile.topology;
    return {std::move(own), std::move(profile)};
  }
  std::vector<int> unknown;
  Topology laid = lay_over(profile, load_topology(topology), &unknown);
  Network network{std::move(laid), std::move(profile)};
  if (!unknown.empty()) {
    const std::size_t num_known = network.profile->levels.size();
    network.notes.push_back(fmt::format(
        "{} knows {} level{} of links, {} has {}; level{} {} keep{} the parameters of {}", profile_path, num_known,
        num_known == 1 ? "" : "s", network.topology.name(), network.topology.height(network.topology.root()),
        unknown.size() == 1 ? "" : "s", fmt::join(unknown, ", "), unknown.size() == 1 ? "s" : "", topology));
  }
  return network;
}

}  // namespace gar
