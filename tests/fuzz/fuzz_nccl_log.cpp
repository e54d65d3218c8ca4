// The reader of NCCL's logs on arbitrary bytes: it throws ParseError, or what it returns can be explained, as words, as
// a document and as a network that can be read.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/harness.hpp"
#include "gar/documents.hpp"
#include "gar/errors.hpp"
#include "gar/explain_nccl.hpp"
#include "gar/results_io.hpp"
#include "gar/topology_io.hpp"

namespace {

using gar::fuzz::require;

bool is_plain(const std::string& text) {
  for (const char c : text) {
    if (c < 0x20 || c > 0x7e) return false;
  }
  return true;
}

void check(const gar::NcclLog& log) {
  require(log.num_ranks >= 0 && log.num_channels >= 0);
  for (const auto& [rank, host] : log.hosts) require(rank >= 0 && rank < log.num_ranks && is_plain(host));
  for (const gar::NcclGraph& graph : log.graphs) {
    require(std::isfinite(graph.local_gb_per_s) && std::isfinite(graph.net_gb_per_s));
  }
  for (const gar::NcclTuning& cell : log.tuning) require(std::isfinite(cell.latency_s) && cell.latency_s >= 0);
  for (const gar::NcclChoice& choice : log.choices) require(std::isfinite(choice.bytes) && choice.bytes > 0);
  const gar::NcclExplanation explained = gar::explain_nccl_log(log);
  for (const gar::NcclFinding& finding : explained.findings) require(is_plain(finding.words) && !finding.words.empty());
  require(!gar::nccl_document(log, explained).empty());
  if (explained.network.empty()) return;
  // A job that is larger than what is accepted as a network is refused in words.
  gar::fuzz::attempt([&] { require(gar::load_topology(explained.network).num_servers() == log.num_ranks); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    check(gar::parse_nccl_log(text, "fuzz.log"));
  } catch (const gar::ParseError&) {
  }
  return 0;
}
