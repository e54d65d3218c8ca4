// A topology file as it was written: the first half of reading one. References between its parts are still names.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gar/topology.hpp"

namespace gar {

inline constexpr std::string_view kTopologySchema = "gar.topology/1";
/// The longest topology file that is read: within a second, and a flat list of a million servers fits.
inline constexpr std::int64_t kMaxTopologyBytes = 64 << 20;

static_assert(kLinkParams[0].value == &LinkParams::beta);

/// The parameters of a node are numbered: its latency, those of its link, those of a server.
inline constexpr std::size_t kAlpha = 0;
inline constexpr std::size_t kFirstLinkParam = 1;
inline constexpr std::size_t kFirstServerParam = kFirstLinkParam + kLinkParams.size();
inline constexpr std::size_t kNumParams = kFirstServerParam + kServerParams.size();
/// Two of them can be said in words instead: how fast the link is, and how long messages take (gar/network_words.hpp).
inline constexpr std::size_t kBandwidth = kNumParams;    ///< stands for beta; as seconds per float
inline constexpr std::size_t kLatency = kNumParams + 1;  ///< stands for alpha; end to end
inline constexpr std::size_t kNumFields = kNumParams + 2;
inline constexpr std::array<const char*, kNumFields> kParamNames = [] {
  std::array<const char*, kNumFields> names{"alpha"};
  names[kBandwidth] = "bandwidth";
  names[kLatency] = "latency";
  for (std::size_t i = 0; i < kLinkParams.size(); ++i) names[kFirstLinkParam + i] = kLinkParams[i].name;
  for (std::size_t i = 0; i < kServerParams.size(); ++i) names[kFirstServerParam + i] = kServerParams[i].name;
  return names;
}();
/// The largest value of each.
inline constexpr std::array<double, kNumParams> kParamMost = [] {
  std::array<double, kNumParams> most{kMaxParameter};
  for (std::size_t i = 0; i < kLinkParams.size(); ++i) most[kFirstLinkParam + i] = kLinkParams[i].most;
  for (std::size_t i = 0; i < kServerParams.size(); ++i) most[kFirstServerParam + i] = kServerParams[i].most;
  return most;
}();

/// Some of a node's parameters.
struct ParamSet {
  std::array<double, kNumFields> value{};
  std::array<bool, kNumFields> has{};
  bool is_usual_latency = false;  ///< that of a named class of links, which counts at servers only

  void set(std::size_t param, double new_value) {
    value[param] = new_value;
    has[param] = true;
    if (param == kLatency) is_usual_latency = false;
  }
  /// Takes over what `other` has.
  void override_with(const ParamSet& other) {
    for (std::size_t i = 0; i < kNumFields; ++i) {
      if (other.has[i]) set(i, other.value[i]);
    }
    if (other.has[kLatency]) is_usual_latency = other.is_usual_latency;
  }
  [[nodiscard]] bool empty() const { return has == std::array<bool, kNumFields>{}; }
};

enum class NodeKind : std::uint8_t { kUnsaid, kServer, kSwitch };

/// A node of the file; indices refer to TopologyDocument::nodes, in the order of the file.
struct NodeSpec {
  std::string name;
  std::string target;  ///< "ref" in a tree, "parent" in a flat list
  std::vector<std::int32_t> classes;
  std::vector<std::int32_t> children;
  ParamSet params;
  std::int64_t repeat = 1;
  std::int32_t owner = -1;    ///< the node in whose "children" it stands
  std::int32_t position = 0;  ///< its place in "children", "nodes" or the subtrees
  NodeKind kind = NodeKind::kUnsaid;
  bool has_name = false;
  bool has_target = false;
  bool has_children = false;
  bool has_repeat = false;
};

struct ClassSpec {
  std::string name;
  ParamSet params;
  bool is_defined = false;
  std::string first_use;  ///< path of the first field that names it
};

/// An entry of "subtrees", or the tree itself: the nodes [begin, end).
struct TreeSpec {
  std::string name;
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

struct TopologyDocument {
  std::string source;  ///< file name, for messages
  std::string name;
  std::vector<NodeSpec> nodes;
  std::vector<ClassSpec> classes;
  std::unordered_map<std::string, std::int32_t> class_ids;
  std::vector<TreeSpec> subtrees;
  std::unordered_map<std::string, std::int32_t> subtree_ids;
  TreeSpec tree;
  bool has_tree = false;
  bool has_flat = false;  ///< "nodes" is there; all of `nodes` outside subtrees belong to it
  std::int32_t flat_begin = 0;
  std::int32_t flat_end = 0;

  /// "tree.children[0]", "subtrees.rack", "nodes[3]".
  [[nodiscard]] std::string path_of(std::int32_t node) const;
  /// Throws ParseError "source: path: problem".
  [[noreturn]] void fail(const std::string& path, const std::string& problem) const;
};

/// What to say about a parameter that is not there.
std::string missing_param(const char* why);

/// Is `param` a second word for what `params` say already? Then what is wrong, else nothing.
std::string said_twice(const ParamSet& params, std::size_t param);

/// Reads the JSON and checks everything that can be seen in one place. Throws ParseError.
TopologyDocument parse_topology_document(std::string_view text, const std::string& source);

}  // namespace gar
