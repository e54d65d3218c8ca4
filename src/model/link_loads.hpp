// What one stage puts on the links of a tree, and what that costs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gar/model.hpp"
#include "gar/plan.hpp"
#include "gar/topology.hpp"

namespace gar {

/// An expanded part of the topology with what pricing needs of it.
struct PricingTree {
  ExpandedTree tree;
  std::vector<double> latency;    ///< sum of alpha from the tree's root (included) down to each instance (included)
  bool is_uniform = true;         ///< below every switch all servers have the same latency
  bool has_equal_servers = true;  ///< all servers have the same gamma, delta and mu
};
PricingTree make_pricing_tree(const Topology& topology, NodeId node);

/// Sum of alpha on the path between two ranks of the tree, both servers included.
double path_latency(const PricingTree& t, const Topology& topology, std::int32_t a, std::int32_t b);

/// Seconds per float of the vector that a load of a link takes.
struct LinkCost {
  double beta = 0;
  double epsilon = 0;
};
LinkCost cost_of_load(const LinkParams& link, double load, std::int64_t num_senders, const ModelOptions& options);

/// How long each link direction and each server is busy with all stages of a (sub-)plan, per float of the vector.
struct Busy {
  std::vector<LinkCost> up, down;         ///< per instance
  std::vector<ServerParams> calculation;  ///< per rank: seconds of adding and of memory access; of messages, per chunk
  [[nodiscard]] bool is_wanted() const { return !up.empty(); }
  std::size_t first_instance = 0;  ///< what up[0], down[0] and calculation[0] stand for, after trim()
  std::size_t first_rank = 0;
  void resize(std::size_t instances, std::size_t ranks);
  /// Drops what is idle at both ends.
  void trim();
  /// Adds another one whose instance 0 and rank 0 are ours at these places.
  void add(const Busy& other, std::size_t at_instance, std::size_t at_rank);
};

/// The busiest link direction found so far, and the worst incast.
struct Bottleneck {
  double beta = 0;  ///< seconds per float of the vector
  double epsilon = 0;
  std::int32_t instance = -1;
  bool is_down = false;
  std::int64_t senders = 0;
  double volume = 0;
  double max_excess = 0;  ///< over all links, not only the busiest

  void offer(const LinkParams& link, std::int32_t where, bool down, double load, std::int64_t num_senders,
             const ModelOptions& options);
};

/// A message of one step in ranks of the tree; volume as a fraction of the vector.
struct Transfer {
  std::int32_t from = 0;
  std::int32_t to = 0;
  double volume = 0;
};

/// Counts the loads of explicit transfers. Scratch arrays are kept between calls.
class LoadCounter {
 public:
  LoadCounter(const Topology& topology, const PricingTree& tree) : topology_(topology), tree_(tree) {}
  /// `transfers` sorted by sender. Returns the longest path in `latency`; adds to `busy` if that is wanted.
  Bottleneck count(const std::vector<Transfer>& transfers, const ModelOptions& options, double& latency, Busy& busy);

 private:
  struct Load {
    double volume = 0;
    std::int64_t senders = 0;
    std::int32_t last_sender = -1;
  };
  void put(std::vector<Load>& loads, std::int32_t instance, const Transfer& t);

  const Topology& topology_;
  const PricingTree& tree_;
  std::vector<Load> up_, down_;
  std::vector<std::int32_t> touched_;
};

/// Messages that a rank handles in one step. All that it sends to one other rank is one message.
struct MessageCount {
  std::int64_t sent = 0;
  std::int64_t received = 0;
};
/// Of one step of a digit stage: the same for every rank that takes part. O(1).
MessageCount messages_of(const Stage& digit_stage);
/// Of one step of a program.
MessageCount messages_of(const Step& step);

/// The slowest sender and the slowest receiver of a step found so far. One must have sent before the other receives, so
/// the step costs both.
struct Handling {
  double sending = 0;  ///< seconds
  double receiving = 0;
  void offer(const MessageCount& messages, double mu) {
    sending = std::max(sending, static_cast<double>(messages.sent) * mu);
    receiving = std::max(receiving, static_cast<double>(messages.received) * mu);
  }
  [[nodiscard]] double seconds() const { return sending + receiving; }
};

/// What a rank's receives of one step cost it.
struct Calculation {
  double adds = 0;      ///< sum of (f - 1) s, as a fraction of the vector
  double accesses = 0;  ///< sum of (f + 1) s
  std::int64_t fan_in = 0;
  /// One more piece s, which arrives so many times, and is added to the rank's own one if it has one.
  void add(double s, std::int64_t num_received, bool with_own) {
    const std::int64_t f = num_received + (with_own ? 1 : 0);
    fan_in = std::max(fan_in, f);
    if (f < 2) return;
    adds += static_cast<double>(f - 1) * s;
    accesses += static_cast<double>(f + 1) * s;
  }
};
Calculation calculation_of(const std::vector<Message>& recvs, std::int64_t num_units);

}  // namespace gar
