// Topologies as documents.
#include <span>
#include <string_view>
#include <vector>

#include "documents/json.hpp"
#include "gar/documents.hpp"
#include "gar/explain_topology.hpp"
#include "gar/network_words.hpp"
#include "gar/shapes.hpp"
#include "gar/topology_io.hpp"

namespace gar {
namespace {

using documents::Json;

constexpr double kBitsPerFloat = 32;

std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }

void add_totals(const Topology& topology, Json& document) {
  document["name"] = topology.name();
  document["num_servers"] = topology.num_servers();
  document["num_switches"] = topology.num_switches();
  document["levels"] = topology.height(topology.root());
  document["distinct_subtrees"] = topology.num_shapes();
  document["longest_path_seconds"] = longest_path_latency(topology);
}

/// One entry for each distinct subtree; children are named by their place in the list.
class NodeList {
 public:
  explicit NodeList(const Topology& topology)
      : topology_(topology), nodes_(one_of_each_shape(topology)), counts_(shape_counts(topology)) {
    place_.resize(index(topology.num_shapes()));
    for (std::size_t i = 0; i < nodes_.size(); ++i) place_[index(topology.shape(nodes_[i]))] = i;
  }

  [[nodiscard]] Json json() const {
    Json out = Json::array();
    for (const NodeId id : nodes_) out.push_back(entry(id));
    return out;
  }

 private:
  [[nodiscard]] Json entry(NodeId id) const {
    const Node& node = topology_.node(id);
    Json out;
    out["name"] = node.name;
    out["kind"] = node.is_server() ? "server" : "switch";
    out["count"] = counts_[index(topology_.shape(id))];
    out["num_servers"] = topology_.num_servers(id);
    out["alpha"] = node.alpha;
    if (id != topology_.root()) {
      for (const auto& param : kLinkParams) {
        if (!param.is_optional) out[std::string(param.name)] = node.uplink.*param.value;
      }
      if (node.uplink.beta > 0) out["bits_per_s"] = kBitsPerFloat / node.uplink.beta;
    }
    if (node.is_server()) {
      for (const auto& param : kServerParams) {
        const double value = node.server.*param.value;
        if (!param.is_optional || value > 0) out[std::string(param.name)] = value;
      }
    }
    const double ratio = oversubscription(topology_, id);
    if (ratio >= 0) out["oversubscription"] = ratio;
    if (!node.is_server()) out["children"] = children(node);
    return out;
  }

  [[nodiscard]] Json children(const Node& node) const {
    Json out = Json::array();
    for (const ChildRun& run : node.children) {
      const std::size_t child = place_[index(topology_.shape(run.node))];
      if (!out.empty() && out.back()["node"] == child) {
        out.back()["count"] = out.back()["count"].get<std::int64_t>() + run.count;
      } else {
        out.push_back({{"node", child}, {"count", run.count}});
      }
    }
    return out;
  }

  const Topology& topology_;
  std::vector<NodeId> nodes_;
  std::vector<std::int64_t> counts_;  // by shape
  std::vector<std::size_t> place_;    // by shape, in nodes_
};

}  // namespace

std::string topology_document(const Topology& topology) {
  Json document = documents::begin("gar.topo/1");
  add_totals(topology, document);
  document["nodes"] = NodeList(topology).json();
  return documents::text_of(document);
}

std::string topology_check_document(const Topology& topology) {
  Json document = documents::begin("gar.topo-check/1");
  document["valid"] = true;
  add_totals(topology, document);
  document["remarks"] = topology_remarks(topology);
  return documents::text_of(document);
}

std::string topology_error_document(const std::string& error) {
  Json document = documents::begin("gar.topo-check/1");
  document["valid"] = false;
  document["error"] = error;
  return documents::text_of(document);
}

std::string topology_written_document(const WrittenTopology& written) {
  Json document = documents::begin("gar.topo-convert/1");
  document["name"] = written.topology.name();
  document["num_servers"] = written.topology.num_servers();
  document["format"] = written.format;
  if (written.path.empty()) {
    document["content"] = written.text;
  } else {
    document["path"] = written.path;
    document["bytes"] = written.text.size();
  }
  return documents::text_of(document);
}

std::string topology_list_document() {
  Json document = documents::begin("gar.topo-list/1");
  document["networks"] = Json::array();
  for (const std::span<const std::string_view> names : {builtin_topologies(), shipped_topologies()}) {
    for (const std::string_view name : names) {
      const Topology topology = load_topology(std::string(name));
      Json one;
      one["name"] = name;
      one["is_paper"] = is_builtin_topology(name);
      one["num_servers"] = topology.num_servers();
      one["num_switches"] = topology.num_switches();
      one["levels"] = topology.height(topology.root());
      document["networks"].push_back(one);
    }
  }
  document["generators"] = Json::array();
  for (const TopologyGenerator& generator : topology_generators()) {
    document["generators"].push_back({{"form", generator.form}, {"example", generator.example}});
  }
  return documents::text_of(document);
}

std::string network_classes_document() {
  Json document = documents::begin("gar.topo-classes/1");
  document["classes"] = Json::array();
  for (const NetworkClass& c : network_classes()) {
    Json one;
    one["name"] = c.name;
    one["kind"] = c.is_link ? "link" : "memory";
    one["bytes_per_s"] = c.is_link ? c.bandwidth / 8 : c.bandwidth;
    if (c.is_link) one["latency_s"] = c.latency;
    if (!c.is_link) one["adds_per_s"] = c.adds_per_s;
    one["source"] = c.source;
    document["classes"].push_back(one);
  }
  return documents::text_of(document);
}

}  // namespace gar
