// Topologies by name: the paper's six networks and the generators of the command line.
//
// The paper's networks (Section 5, simulated networks, with the parameters of Table `tab:gtcoe`):
//   ss24, ss32      one switch with 24 or 32 servers
//   sym384, sym512  16 racks of 24 or 32 servers
//   asy384          8 racks of 32 servers, then 8 racks of 16
//   cdc384          two data centres: 8 racks of 32 servers in the first, 8 racks of 16 in the second
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "gar/errors.hpp"
#include "gar/topology.hpp"

namespace gar {
namespace {

constexpr std::array<std::string_view, 6> kBuiltins{"ss24", "ss32", "sym384", "sym512", "asy384", "cdc384"};

constexpr const char* kAcceptedForms =
    "a built-in name (ss24, ss32, sym384, sym512, asy384, cdc384), star:N, tree:AxB[xC...], "
    "leafspine:SPINESxLEAVESxSERVERS or fattree:K with whole numbers, for example tree:16x24";

// Nodes shared by the two networks with racks of 32 and of 16.
enum : NodeId { kServer, kRack32, kRack16, kRoot, kFirstDc = kRoot, kSecondDc, kTop };

std::vector<Node> asymmetric_racks(const PaperParams& p) {
  return {{"server", p.alpha, p.server_link, p.server, {}},
          {"rack", p.alpha, p.inner_link, {}, {{kServer, 32}}},
          {"rack", p.alpha, p.inner_link, {}, {{kServer, 16}}}};
}

Topology make_asy384(const PaperParams& p) {
  std::vector<Node> nodes = asymmetric_racks(p);
  nodes.push_back({"root", p.alpha, {}, {}, {{kRack32, 8}, {kRack16, 8}}});
  return Topology("asy384", std::move(nodes), kRoot);
}

// A path across passes server, rack, dc, top, dc, rack, server. The paper charges 4 alpha + cross_alpha for it, so
// the top node carries cross_alpha less the alphas of the two data centres' own roots.
Topology make_cdc384(const PaperParams& p) {
  std::vector<Node> nodes = asymmetric_racks(p);
  nodes.push_back({"dc", p.alpha, p.cross_link, {}, {{kRack32, 8}}});
  nodes.push_back({"dc", p.alpha, p.cross_link, {}, {{kRack16, 8}}});
  nodes.push_back({"root", p.cross_alpha - 2 * p.alpha, {}, {}, {{kFirstDc, 1}, {kSecondDc, 1}}});
  return Topology("cdc384", std::move(nodes), kTop);
}

// "16x24" as whole numbers above 0, digits only.
std::vector<std::int64_t> parse_factors(std::string_view spec, std::string_view text) {
  std::vector<std::int64_t> factors;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    const std::string_view digits = text.substr(begin, end - begin);
    const auto fail = [&](const std::string& problem) {
      throw InvalidArgument(fmt::format("topology '{}': {}; accepted are {}, each number from 1 to {}", spec, problem,
                                        kAcceptedForms, kMaxServers));
    };
    if (digits.empty()) fail("a number is missing");
    std::int64_t value = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9') fail(fmt::format("'{:.40}' is not a whole number", digits));
      if (value <= kMaxServers) value = value * 10 + (c - '0');
    }
    if (value < 1 || value > kMaxServers) fail(fmt::format("'{:.40}' is out of range", digits));
    factors.push_back(value);
    if (end == text.size()) return factors;
    begin = end + 1;
  }
}

void check_num_factors(std::string_view spec, const std::vector<std::int64_t>& factors, std::size_t expected) {
  if (factors.size() != expected) {
    throw InvalidArgument(fmt::format("topology '{}' has {} numbers where {} are needed; accepted are {}", spec,
                                      factors.size(), expected, kAcceptedForms));
  }
}

}  // namespace

bool is_builtin_topology(std::string_view name) {
  for (const std::string_view builtin : kBuiltins) {
    if (name == builtin) return true;
  }
  return false;
}

Topology builtin_topology(std::string_view name) {
  const PaperParams params;
  const auto named = [&](const std::vector<std::int64_t>& factors) {
    const Topology tree = make_tree(factors, params);
    std::vector<Node> nodes;
    for (NodeId id = 0; id < tree.num_nodes(); ++id) nodes.push_back(tree.node(id));
    return Topology(std::string(name), std::move(nodes), tree.root());
  };
  if (name == "ss24") return named({24});
  if (name == "ss32") return named({32});
  if (name == "sym384") return named({16, 24});
  if (name == "sym512") return named({16, 32});
  if (name == "asy384") return make_asy384(params);
  if (name == "cdc384") return make_cdc384(params);
  throw InvalidArgument(fmt::format("there is no built-in topology '{}'; accepted are {}", name, kAcceptedForms));
}

Topology topology_from_spec(std::string_view spec) {
  if (is_builtin_topology(spec)) return builtin_topology(spec);
  const std::string_view shown = spec.substr(0, 80);
  const std::size_t colon = spec.find(':');
  const std::string_view kind = spec.substr(0, colon);
  if (colon == std::string_view::npos ||
      (kind != "star" && kind != "tree" && kind != "leafspine" && kind != "fattree")) {
    throw InvalidArgument(fmt::format("unknown topology '{}'; accepted are {}", shown, kAcceptedForms));
  }
  const std::vector<std::int64_t> factors = parse_factors(shown, spec.substr(colon + 1));
  if (kind != "tree") check_num_factors(shown, factors, kind == "leafspine" ? 3 : 1);
  try {
    if (kind == "leafspine") return make_leaf_spine(factors[0], factors[1], factors[2]);
    if (kind == "fattree") return make_fat_tree(factors[0]);
    return make_tree(factors);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("topology '{}': {}", shown, error.what()));
  }
}

}  // namespace gar
