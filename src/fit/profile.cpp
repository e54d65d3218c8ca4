// What can be done with a profile that exists: lay it over a tree, correct a time.
//
// Notation. A node has height 0 (server), 1 (lowest switch), ...; the links above nodes of height h are level h, and
// alpha_h its latency. A path across a lowest switch passes two servers, so a server gets alpha_0 / 2 and a lowest
// switch nothing; a switch of height h + 1 gets alpha_h.
#include "gar/profile.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "gar/errors.hpp"

namespace gar {
namespace {

std::size_t place(NodeId id) { return static_cast<std::size_t>(id); }

class Overlay {
 public:
  Overlay(const Profile& profile, const Topology& topology) : profile_(profile), topology_(topology) {}

  Topology run() {
    switches_.resize(place(topology_.num_nodes()));
    for (NodeId id = 0; id < topology_.num_nodes(); ++id) {
      if (!topology_.node(id).is_server()) switches_[place(id)] = add_switch(id);
    }
    const NodeId root = topology_.root();
    const NodeId new_root = topology_.node(root).is_server() ? server(root, 1) : switches_[place(root)];
    return {topology_.name(), std::move(nodes_), new_root};
  }

  [[nodiscard]] std::vector<int> unknown_levels() const {
    std::vector<int> result;
    for (int h = static_cast<int>(profile_.levels.size()); h < topology_.height(topology_.root()); ++h)
      result.push_back(h);
    return result;
  }

 private:
  NodeId add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<NodeId>(nodes_.size() - 1);
  }

  [[nodiscard]] LinkParams link(std::size_t height) const {
    const LevelProfile& level = profile_.levels[height];
    return {.beta = level.beta.value,
            .epsilon = level.epsilon.value,
            .incast_threshold = level.incast_threshold.value,
            .max_senders = static_cast<double>(level.max_senders)};
  }

  /// A server below a switch with `num_ranks` servers of its own; they share the cores.
  NodeId server(NodeId id, std::int64_t num_ranks) {
    const auto [found, is_new] = servers_.try_emplace({id, num_ranks}, 0);
    if (!is_new) return found->second;
    const double share = profile_.cores > 0 ? std::max(1.0, static_cast<double>(num_ranks) / profile_.cores) : 1.0;
    Node node = topology_.node(id);
    node.server = {
        .gamma = profile_.gamma.value * share, .delta = profile_.delta.value * share, .mu = profile_.mu.value * share};
    if (!profile_.levels.empty()) {
      const double link_share = profile_.is_memory ? share : 1.0;
      node.alpha = profile_.levels.front().alpha.value / 2 * link_share;
      node.uplink = link(0);
      node.uplink.beta *= link_share;
      node.uplink.epsilon *= link_share;
    }
    return found->second = add(std::move(node));
  }

  NodeId add_switch(NodeId id) {
    Node node = topology_.node(id);
    const auto height = static_cast<std::size_t>(topology_.height(id));
    if (height < profile_.levels.size()) node.uplink = link(height);
    if (height <= profile_.levels.size()) node.alpha = height == 1 ? 0 : profile_.levels[height - 1].alpha.value;
    std::int64_t num_ranks = 0;
    for (const ChildRun& run : node.children) {
      if (topology_.node(run.node).is_server()) num_ranks += run.count;
    }
    for (ChildRun& run : node.children) {
      const bool is_server = topology_.node(run.node).is_server();
      run.node = is_server ? server(run.node, num_ranks) : switches_[place(run.node)];
    }
    return add(std::move(node));
  }

  const Profile& profile_;
  const Topology& topology_;
  std::vector<Node> nodes_;
  std::vector<NodeId> switches_;  // by node of the old tree
  std::map<std::pair<NodeId, std::int64_t>, NodeId> servers_;
};

}  // namespace

std::string_view to_string(Incast incast) {
  switch (incast) {
    case Incast::kNone:
      return "none";
    case Incast::kDrift:
      return "drift";
    case Incast::kPresent:
      return "present";
    default:
      return "unknown";
  }
}

std::string_view to_string(OperandAccess access) { return access == OperandAccess::kDirect ? "direct" : "copied"; }

double overlap_of(const Profile& profile) {
  return profile.overlap.is_identified && profile.overlap.low > 1 ? profile.overlap.value : 1;
}

Topology lay_over(const Profile& profile, const Topology& topology, std::vector<int>* unknown_levels) {
  Overlay overlay(profile, topology);
  if (unknown_levels != nullptr) *unknown_levels = overlay.unknown_levels();
  return overlay.run();
}

const SizeCorrection* correction_of(std::span<const SizeCorrection> corrections, double bytes) {
  const auto found = std::find_if(corrections.begin(), corrections.end(),
                                  [&](const SizeCorrection& c) { return bytes >= c.from_bytes && bytes < c.to_bytes; });
  return found == corrections.end() ? nullptr : &*found;
}

const SizeCorrection* correction_of(const Profile& profile, double bytes) {
  return correction_of(profile.corrections, bytes);
}

double corrected(const Profile& profile, double seconds, double bytes) {
  const SizeCorrection* correction = correction_of(profile, bytes);
  return correction == nullptr ? seconds : seconds * correction->factor.value;
}

}  // namespace gar
