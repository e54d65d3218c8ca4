// Measurements of several runs as one.
#include <fmt/format.h>

#include <algorithm>

#include "gar/errors.hpp"
#include "gar/fit.hpp"

namespace gar {

namespace {

std::string shape_of(const Topology& topology) {
  // Names and children; parameters do not count.
  std::string out;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    out += topology.node(id).name + "(";
    for (const ChildRun& run : topology.node(id).children) out += fmt::format("{}x{} ", run.count, run.node);
    out += ")";
  }
  return out;
}

double joined_mean(double a, std::size_t num_a, double b, std::size_t num_b) {
  if (a < 0 || b < 0) return std::max(a, b);
  return (a * static_cast<double>(num_a) + b * static_cast<double>(num_b)) / static_cast<double>(num_a + num_b);
}

void check_same_network(const Measurements& all, const Measurements& more) {
  if (shape_of(more.topology) != shape_of(all.topology)) {
    throw InvalidArgument(fmt::format(
        "the network '{}' of {} servers has another shape or other names than '{}' of {} servers; expected "
        "measurements of one network",
        more.topology.name(), more.topology.num_servers(), all.topology.name(), all.topology.num_servers()));
  }
  if (more.cores != all.cores || more.is_memory != all.is_memory) {
    const auto words = [](const Measurements& m) {
      return fmt::format("{:g} cores{}", m.cores, m.is_memory ? " and a memory" : "");
    };
    throw InvalidArgument(fmt::format("its ranks share {}, those before it {}; expected measurements of one machine",
                                      words(more), words(all)));
  }
}

}  // namespace

void join(Measurements& all, Measurements more) {
  check_same_network(all, more);
  for (Observation& observation : more.observations) {
    const auto found = std::find_if(all.observations.begin(), all.observations.end(),
                                    [&](const Observation& known) { return is_same_cell(known, observation); });
    if (found == all.observations.end()) {
      all.observations.push_back(std::move(observation));
      continue;
    }
    const std::size_t before = found->seconds.size();
    const std::size_t added = observation.seconds.size();
    found->retransmits = joined_mean(found->retransmits, before, observation.retransmits, added);
    found->pause_frames = joined_mean(found->pause_frames, before, observation.pause_frames, added);
    found->seconds.insert(found->seconds.end(), observation.seconds.begin(), observation.seconds.end());
  }
  for (LinkProfile& link : more.links) {
    const auto found = std::find_if(all.links.begin(), all.links.end(),
                                    [&](const LinkProfile& known) { return known.name == link.name; });
    if (found == all.links.end()) {
      all.links.push_back(std::move(link));
    } else if (link.beta.value < found->beta.value) {
      *found = std::move(link);  // what disturbs a link only makes it slower
    }
  }
  all.provenance.seconds += more.provenance.seconds;
  all.provenance.num_measurements += more.provenance.num_measurements;
  for (std::string& host : more.provenance.hosts) {
    if (std::find(all.provenance.hosts.begin(), all.provenance.hosts.end(), host) == all.provenance.hosts.end()) {
      all.provenance.hosts.push_back(std::move(host));
    }
  }
}

}  // namespace gar
