// What the engine asks of a world. A world says which ranks, links and flows are simulated, how many real ones each of
// them stands for, and what the ranks' programs send. There are two: FlowWorld has every rank, link and flow,
// ClassWorld has one of each class. Both offer the same functions, and the engine is a template over them:
//
//   num_ranks, rank_id, rank_count, server            the ranks, their numbers in the plan, how many they stand for
//   num_links, link, link_id, link_count              the link directions, likewise
//   first, end, length, step                          the steps of a rank's program
//   num_flows, flow_count                             messages in all, and those that a flow stands for
//   for_sends, nth_send, find_send, for_followers     what a step sends, and which sends of a later step must wait
//   latency, for_path, path_stride                    the way of a flow
//   add_senders, remove_senders                       counts distinct senders on the links of a flow
#pragma once

#include <cstdint>

namespace gar::sim {

/// In place of an index: there is no such rank, link, flow or step.
inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// Names the way of a flow. In FlowWorld the key is the sending rank; in ClassWorld it is the number of the class of
/// flows, which alone determines the rest.
struct Route {
  std::uint32_t key = 0;
  std::uint32_t receiver = 0;  ///< rank or class of ranks
  bool operator==(const Route&) const = default;
};

/// A message of a step: where it goes, and which part of the vector it carries.
struct Send {
  Route route;
  double part = 0;
};

}  // namespace gar::sim
