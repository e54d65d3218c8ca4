#include "io/topology/fields.hpp"

#include <fmt/format.h>

#include <array>

#include "gar/network_words.hpp"
#include "gar/topology.hpp"

namespace gar {
namespace {

constexpr std::array kTop{FieldName{"schema", Field::kSchema},
                          FieldName{"name", Field::kTopName},
                          FieldName{"description", Field::kDescription},
                          FieldName{"classes", Field::kClasses},
                          FieldName{"subtrees", Field::kSubtrees},
                          FieldName{"tree", Field::kTree},
                          FieldName{"nodes", Field::kNodes}};

// One table serves classes, nodes of a tree and nodes of a list: "children" and "ref" stand before the fields that
// both kinds of nodes have, the parameters after them, "parent" at the end.
constexpr std::size_t kFirstCommon = 2;
constexpr std::size_t kFirstParam = 6;
constexpr std::size_t kParent = kFirstParam + kNumFields;
constexpr std::array<FieldName, kParent + 1> kNodeFields = [] {
  std::array<FieldName, kParent + 1> fields{{{"children", Field::kChildren},
                                             {"ref", Field::kRef},
                                             {"name", Field::kName},
                                             {"class", Field::kClass},
                                             {"kind", Field::kKind},
                                             {"repeat", Field::kRepeat}}};
  for (std::size_t i = 0; i < kNumFields; ++i) fields[kFirstParam + i] = {kParamNames[i], static_cast<Field>(i)};
  fields[kParent] = {"parent", Field::kParent};
  return fields;
}();

}  // namespace

std::span<const FieldName> top_fields() { return kTop; }

std::span<const FieldName> class_fields() { return std::span(kNodeFields).subspan(kFirstParam, kNumFields); }
std::span<const FieldName> tree_fields() { return std::span(kNodeFields).first(kParent); }
std::span<const FieldName> flat_fields() { return std::span(kNodeFields).subspan(kFirstCommon); }

std::string accepted(Field field) {
  switch (field) {
    case Field::kSchema:
      return fmt::format("expected \"{}\"", kTopologySchema);
    case Field::kTopName:
    case Field::kDescription:
      return "expected a text";
    case Field::kName:
      return fmt::format("expected a text of 1 to {} bytes without '/'", kMaxNameBytes);
    case Field::kClasses:
      return "expected an object of parameter sets, for example {\"fast\": {\"beta\": 6.4e-10}}";
    case Field::kSubtrees:
      return "expected an object of nodes, for example {\"rack\": {\"alpha\": 0, \"children\": [...]}}";
    case Field::kTree:
      return "expected a node, for example {\"alpha\": 0, \"children\": [...]}";
    case Field::kNodes:
      return "expected a list of nodes, for example [{\"name\": \"s0\", \"parent\": \"sw0\", ...}]";
    case Field::kChildren:
      return "expected a list of at least one node; a server has no \"children\"";
    case Field::kClass:
      return "expected the name of an entry of \"classes\" or of a known kind such as 100GbE or DDR5, or a list of "
             "such names";
    case Field::kKind:
      return "expected \"server\" or \"switch\"";
    case Field::kRepeat:
      return fmt::format("expected a whole number from 1 to {}", kMaxServers);
    case Field::kRef:
      return "expected the name of an entry of \"subtrees\"";
    case Field::kParent:
      return "expected the name of one node (a node has exactly one parent, the root has none)";
    case Field::kBandwidthText:
      return fmt::format("expected {}", kAcceptedBandwidth);
    case Field::kLatencyText:
      return fmt::format("expected {}", kAcceptedLatency);
    default:
      return fmt::format("expected a number from 0 to {:g}", kParamMost[static_cast<std::size_t>(field)]);
  }
}

}  // namespace gar
