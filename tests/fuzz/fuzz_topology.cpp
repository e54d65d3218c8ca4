// The topology reader on arbitrary bytes: it either throws ParseError or returns a sound tree that survives a round
// trip through our own writer.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

#include "fuzz/harness.hpp"
#include "gar/errors.hpp"
#include "gar/topology_io.hpp"
#include "io/json_reader.hpp"

namespace {

using gar::fuzz::require;

void check(const gar::Topology& t) {
  require(t.num_servers() >= 1 && t.num_servers() <= gar::kMaxServers);
  require(t.height(t.root()) <= gar::kMaxDepth);
  for (gar::NodeId id = 0; id < t.num_nodes(); ++id) {
    std::int64_t servers = t.node(id).is_server() ? 1 : 0;
    for (const gar::ChildRun& run : t.node(id).children) {
      require(run.node < id && run.count >= 1);
      servers += run.count * t.num_servers(run.node);
    }
    require(servers == t.num_servers(id));
  }
  require(t.path_latency(0, t.num_servers() - 1) >= 0);
  require(!t.instance_name(t.num_servers() - 1, t.height(t.root()) > 0 ? 1 : 0).empty());
  if (t.num_servers() + t.num_switches() <= 10'000) {
    const gar::ExpandedTree tree = gar::expand(t, t.root());
    require(tree.num_ranks() == t.num_servers());
    require(static_cast<std::int64_t>(tree.size()) == t.num_servers() + t.num_switches());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)gar::peek_schema(text);  // tells profiles from topologies
  try {
    const gar::Topology t = gar::parse_topology(text, "fuzz.json");
    check(t);
    std::ostringstream out;
    gar::write_topology(t, out);
    const gar::Topology back = gar::parse_topology(out.str(), "back.json");
    require(back.num_nodes() == t.num_nodes() && back.num_shapes() == t.num_shapes());
    require(back.num_servers() == t.num_servers());
    gar::write_topology_dot(t, out);
  } catch (const gar::ParseError&) {
  }
  return 0;
}
