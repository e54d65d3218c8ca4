// Networks by name and by generator ("tree:16x24"): the reader either throws InvalidArgument or returns a sound tree.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/harness.hpp"
#include "gar/errors.hpp"
#include "gar/topology.hpp"

namespace {

using gar::fuzz::require;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const gar::Topology t = gar::topology_from_spec(text);
    require(t.num_servers() >= 1 && t.num_servers() <= gar::kMaxServers);
    require(t.height(t.root()) <= gar::kMaxDepth);
    require(t.path_latency(0, t.num_servers() - 1) >= 0);
  } catch (const gar::InvalidArgument&) {
  }
  return 0;
}
