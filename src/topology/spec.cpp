// Topologies by name: the paper's six networks and the generators of the command line.
//
// The paper's networks (Section 5, simulated networks, with the parameters of Table `tab:gtcoe`):
//   ss24, ss32      one switch with 24 or 32 servers
//   sym384, sym512  16 racks of 24 or 32 servers
//   asy384          8 racks of 32 servers, then 8 racks of 16
//   cdc384          two data centres: 8 racks of 32 servers in the first, 8 racks of 16 in the second
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "gar/errors.hpp"
#include "gar/network_words.hpp"
#include "gar/topology.hpp"

namespace gar {
namespace {

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

// A regular tree under the name of one of the paper's networks.
Topology named(std::string_view name, const std::vector<std::int64_t>& factors, const PaperParams& p) {
  const Topology tree = make_tree(factors, p);
  std::vector<Node> nodes;
  for (NodeId id = 0; id < tree.num_nodes(); ++id) nodes.push_back(tree.node(id));
  return Topology(std::string(name), std::move(nodes), tree.root());
}

struct Builtin {
  std::string_view name;
  Topology (*make)(const PaperParams& p);
};

constexpr Builtin kBuiltins[] = {
    {"ss24", [](const PaperParams& p) { return named("ss24", {24}, p); }},
    {"ss32", [](const PaperParams& p) { return named("ss32", {32}, p); }},
    {"sym384",
     [](const PaperParams& p) {
       return named("sym384", {16, 24}, p);
     }},
    {"sym512",
     [](const PaperParams& p) {
       return named("sym512", {16, 32}, p);
     }},
    {"asy384", make_asy384},
    {"cdc384", make_cdc384},
};

constexpr auto kBuiltinNames = [] {
  std::array<std::string_view, std::size(kBuiltins)> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kBuiltins[i].name;
  return names;
}();

using Factors = std::vector<std::int64_t>;
using Make = Topology (*)(const Factors& factors, const PaperParams& params);

// The same generators with parameters, in the same order.
constexpr Make kMakers[] = {make_tree, make_tree,
                            [](const Factors& f, const PaperParams& p) { return make_leaf_spine(f[0], f[1], f[2], p); },
                            [](const Factors& f, const PaperParams& p) { return make_fat_tree(f[0], p); }};
constexpr TopologyGenerator kGenerators[] = {
    {"star", "star:N", "star:24", 1, [](const Factors& f) { return make_tree(f); }},
    {"tree", "tree:AxB[xC...]", "tree:16x24", 0, [](const Factors& f) { return make_tree(f); }},
    {"leafspine", "leafspine:SPINESxLEAVESxSERVERS", "leafspine:4x16x24", 3,
     [](const Factors& f) { return make_leaf_spine(f[0], f[1], f[2]); }},
    {"fattree", "fattree:K", "fattree:8", 1, [](const Factors& f) { return make_fat_tree(f[0]); }},
};

static_assert(std::size(kMakers) == std::size(kGenerators));

// "a built-in name (ss24, ...), star:N, ... or fattree:K with whole numbers, for example tree:16x24".
std::string accepted_forms() {
  std::string out = fmt::format("a built-in name ({})", fmt::join(kBuiltinNames, ", "));
  for (const TopologyGenerator& generator : kGenerators) {
    out += &generator == std::end(kGenerators) - 1 ? " or " : ", ";
    out += generator.form;
  }
  return out + " with whole numbers, for example tree:16x24, and speeds if you like: star:12@100Gbit/s,2us";
}

// "16x24" as whole numbers above 0, digits only.
std::vector<std::int64_t> parse_factors(std::string_view spec, std::string_view text) {
  std::vector<std::int64_t> factors;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    const std::string_view digits = text.substr(begin, end - begin);
    const auto fail = [&](const std::string& problem) {
      throw InvalidArgument(fmt::format("topology '{}': {}; expected {}, each number from 1 to {}", spec, problem,
                                        accepted_forms(), kMaxServers));
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
    throw InvalidArgument(fmt::format("topology '{}' has {} numbers where {} are needed; expected {}", spec,
                                      factors.size(), expected, accepted_forms()));
  }
}

}  // namespace

std::span<const std::string_view> builtin_topologies() { return kBuiltinNames; }

std::span<const TopologyGenerator> topology_generators() { return kGenerators; }

bool is_builtin_topology(std::string_view name) {
  return std::find(kBuiltinNames.begin(), kBuiltinNames.end(), name) != kBuiltinNames.end();
}

Topology builtin_topology(std::string_view name) {
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.name == name) return builtin.make(PaperParams{});
  }
  throw InvalidArgument(fmt::format("there is no built-in topology '{}'; expected {}", name, accepted_forms()));
}

Topology topology_from_spec(std::string_view spec) {
  if (is_builtin_topology(spec)) return builtin_topology(spec);
  const std::string_view shown = spec.substr(0, 80);
  const std::size_t colon = spec.find(':');
  const std::string_view kind = spec.substr(0, colon);
  const auto* generator = std::find_if(std::begin(kGenerators), std::end(kGenerators),
                                       [&](const TopologyGenerator& g) { return g.name == kind; });
  if (colon == std::string_view::npos || generator == std::end(kGenerators)) {
    throw InvalidArgument(fmt::format("unknown topology '{}'; expected {}", shown, accepted_forms()));
  }
  const std::size_t at = std::min(spec.find('@'), spec.size());
  const Factors factors = parse_factors(shown, spec.substr(colon + 1, at - colon - 1));
  if (generator->num_factors > 0) check_num_factors(shown, factors, generator->num_factors);
  try {
    if (at == spec.size()) return generator->make(factors);
    const Make make = kMakers[generator - std::begin(kGenerators)];
    return network_in_words(std::string(spec), spec.substr(at + 1), make, factors);

  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("topology '{}': {}", shown, error.what()));
  }
}

}  // namespace gar
