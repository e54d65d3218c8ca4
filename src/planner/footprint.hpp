// What a sub-plan leaves behind for the stages above it: how many active ranks lie below each link, and what has kept
// links and servers busy so far. Enough to price the digit stages of a switch without looking at its servers.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gar/model.hpp"
#include "gar/topology.hpp"
#include "planner/fragment.hpp"

namespace gar {

struct FootprintLink {
  LinkParams link;
  std::int64_t active = 0;  ///< active ranks below it
  double up = 0;            ///< busy so far, seconds per float of the vector
  double down = 0;
};

struct ServerUse {
  ServerParams server;
  double busy = 0;      ///< with calculation, seconds per float of the vector
  double handling = 0;  ///< with messages, seconds for every chunk
};

struct Footprint {
  std::vector<FootprintLink> links;  ///< of the subtree, its own uplink included; links that look the same once
  std::vector<ServerUse> servers;    ///< kinds of active servers
  double latency = 0;                ///< longest way from the subtree's top to an active server, both included
  std::int64_t active = 1;
  Terms fixed;                                   ///< of all stages so far, both halves: alpha and mu
  Terms slope;                                   ///< per float of the vector
  std::vector<std::pair<double, double>> steps;  ///< {alpha and mu, slope} of each kind of step

  [[nodiscard]] double seconds(double size_floats) const { return (fixed + size_floats * slope).total(); }
  /// With the vector in chunks, as PricedPlan::pipelined_cost says.
  [[nodiscard]] double pipelined_seconds(double size_floats, std::int64_t chunks) const;
  /// Busiest link direction or server, seconds per float.
  [[nodiscard]] double busiest() const;
  /// The most that a server spends on the messages of a chunk, seconds.
  [[nodiscard]] double busiest_handling() const;
};

/// A server below its uplink.
Footprint server_footprint(const Node& server);
/// Children side by side below a switch (they wait for the slowest), before its own stages.
Footprint joined(const std::vector<Footprint>& children);
/// Adds the switch itself and its uplink on top.
void put_below(Footprint& footprint, const Node& parent_switch);

/// What stages cost per float, and their latency.
struct StagePrice {
  Terms fixed;
  Terms slope;
  [[nodiscard]] Terms at(double size_floats) const { return fixed + size_floats * slope; }
};
/// A stage of `steps` equal steps, in which every active rank sends `fan - 1` pieces and reduces fan of them.
struct FootprintStage {
  std::int64_t fan = 2;
  double piece = 0;
  double steps = 1;
  double halves = 2;  ///< 2: with its mirror image
  bool reduces = true;
};
/// Equal ranks of children (joined; `active` is that of one child) form groups, and `latency` is their longest path.
/// Adds the stage to the footprint.
StagePrice add_stage(Footprint& footprint, const FootprintStage& stage, double latency, const ModelOptions& options);
/// The same for the stages of digits, after which more ranks are active.
StagePrice add_digits(Footprint& footprint, const Digits& digits, double pair_latency, const ModelOptions& options);
/// The fold of RHD: one child of each pair sends all it holds.
StagePrice add_fold(Footprint& footprint, double pair_latency, const ModelOptions& options);

/// The half of a collective: how often a stage that scatters, or gathers, is run (2: both ways).
double halves_of(Collective collective);

/// Time for everything that the subtree holds to leave through its uplink, and the same way back.
double transfer_out(const Footprint& footprint, double size_floats, const ModelOptions& options);

/// Active ranks below every link under `node`, counted one by one; `with_top` includes the node itself and its uplink.
/// `busy`, when given, is what a plan of that subtree keeps busy.
Footprint counted_footprint(const std::vector<Piece>& placement, const Topology& topology, NodeId node, bool with_top,
                            const BusyTimes* busy = nullptr);

}  // namespace gar
