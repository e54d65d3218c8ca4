// Generated networks: regular trees, and the multi-rooted ones folded into a tree.
//
// Folding: leaf-spine and fat-tree networks give every pair of racks several equal ways. A tree has one, so the
// parallel switches become one logical switch and the parallel cables one bundle. A sender spreads its transfers (to
// many destinations, or packet by packet) over all cables of the bundle, so every cable carries 1/c of the bytes and
// every one of the c ports still sees every sender. Per port a float costs beta + max(w - w_t, 0) epsilon; c ports work
// at once, so on the bundle it costs that divided by c: beta and epsilon are divided, the threshold w_t stays.
// The number of switches on a path does not change, so latencies are those of the real network.
#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "gar/errors.hpp"
#include "gar/topology.hpp"

namespace gar {
namespace {

LinkParams bundle(const LinkParams& cable, std::int64_t cables) {
  const auto c = static_cast<double>(cables);
  LinkParams out = cable;
  out.beta /= c;
  out.epsilon /= c;
  return out;
}

// One level of a regular network: `count` nodes called `name` below each node of the level above.
struct Level {
  const char* name = "";
  std::int64_t count = 1;
  LinkParams uplink;
};

// Levels from the root's children down to the servers.
Topology regular(std::string name, const char* root_name, const std::vector<Level>& levels, const PaperParams& params) {
  std::vector<Node> nodes(levels.size() + 1);
  for (std::size_t i = 0; i <= levels.size(); ++i) {
    Node& node = nodes[i];
    node.name = i == 0 ? root_name : levels[i - 1].name;
    node.alpha = params.alpha;
    if (i > 0) node.uplink = levels[i - 1].uplink;
    if (i == levels.size()) {
      node.server = params.server;
    } else {
      node.children = {{static_cast<NodeId>(i + 1), levels[i].count}};
    }
  }
  return Topology(std::move(name), std::move(nodes), 0);
}

void check_positive(std::int64_t value, const char* what) {
  if (value < 1 || value > kMaxServers) {
    throw InvalidArgument(fmt::format("{} is {}; expected 1 to {}", what, value, kMaxServers));
  }
}

// The names of switches by the number of levels below them.
const char* tier_name(std::size_t height) {
  static constexpr const char* kNames[] = {"server", "rack", "pod", "zone", "region"};
  return height < std::size(kNames) ? kNames[height] : "tier";
}

}  // namespace

Topology make_tree(const std::vector<std::int64_t>& factors, const PaperParams& params) {
  if (factors.empty() || factors.size() > static_cast<std::size_t>(kMaxDepth)) {
    throw InvalidArgument(fmt::format("a tree has 1 to {} levels, not {}", kMaxDepth, factors.size()));
  }
  std::string name = factors.size() == 1 ? "star:" : "tree:";
  std::vector<Level> levels;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    name += (i == 0 ? "" : "x") + std::to_string(factors[i]);
    const std::size_t height = factors.size() - 1 - i;
    levels.push_back({tier_name(height), factors[i], height == 0 ? params.server_link : params.inner_link});
  }
  for (const std::int64_t factor : factors) check_positive(factor, "a number of children");
  return regular(std::move(name), "root", levels, params);
}

Topology make_leaf_spine(std::int64_t spines, std::int64_t leaves, std::int64_t servers, const PaperParams& params) {
  std::string name = fmt::format("leafspine:{}x{}x{}", spines, leaves, servers);
  check_positive(spines, "the number of spines");
  check_positive(leaves, "the number of leaves");
  check_positive(servers, "the number of servers below a leaf");
  return regular(std::move(name), "spine",
                 {{"leaf", leaves, bundle(params.inner_link, spines)}, {"server", servers, params.server_link}},
                 params);
}

Topology make_fat_tree(std::int64_t k, const PaperParams& params) {
  std::string name = fmt::format("fattree:{}", k);
  check_positive(k, "k");
  if (k % 2 != 0) throw InvalidArgument(fmt::format("k is {}; expected an even number of ports", k));
  const std::int64_t half = k / 2;
  return regular(std::move(name), "root",
                 {{"pod", k, bundle(params.inner_link, half * half)},
                  {"edge", half, bundle(params.inner_link, half)},
                  {"server", half, params.server_link}},
                 params);
}

}  // namespace gar
