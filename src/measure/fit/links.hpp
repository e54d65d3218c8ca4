// Single links, measured one by one: every group of servers below a switch against the next one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gar/profile.hpp"
#include "gar/topology.hpp"
#include "measure/fit/engine.hpp"

namespace gar::measure {

/// Two children of a switch, whose servers exchange messages: the i-th of one with the i-th of the other.
struct LinkPair {
  struct End {
    std::string name;
    int level = 0;
    std::int64_t first_server = 0;
  };
  End a;
  End b;
  std::int64_t num_servers = 1;  ///< of each that take part
};
/// Pairs that can be measured at the same time, because they share no link: neighbours in turns, the last with the
/// first. Only pairs whose ends are on different hosts.
std::vector<std::vector<LinkPair>> link_rounds(const Topology& topology, const std::vector<int>& host_of);

/// Seconds of a pair's exchanges, on its slowest rank.
struct PairTimes {
  LinkPair pair;
  std::vector<double> short_s;
  std::vector<double> long_s;
};
/// A pair takes as long as the slower of its two links; so a link is as fast as the faster of its two pairs. Links that
/// the servers below cannot fill are not identified. Those of servers only up to 64.
std::vector<LinkProfile> links_of(const std::vector<PairTimes>& times, double floats);

/// Messages have `floats` floats. Nothing: a rank was asked to stop.
std::optional<std::vector<LinkProfile>> measure_links(FitEngine& engine, World& world, const Topology& topology,
                                                      const std::vector<int>& host_of, std::int64_t floats);

}  // namespace gar::measure
