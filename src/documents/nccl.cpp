// What a log of NCCL says, as a document.
#include "documents/json.hpp"
#include "gar/documents.hpp"

namespace gar {

std::string nccl_document(const NcclLog& log, const NcclExplanation& explained) {
  using documents::Json;
  Json out = documents::begin("gar.nccl/1");
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  out["summary"] = explained.summary;
  out["version"] = text_or_null(log.version);
  out["network"] = text_or_null(log.network);
  out["interfaces"] = text_or_null(log.interfaces);
  out["num_ranks"] = log.num_ranks;
  out["num_hosts"] = explained.num_hosts;
  out["hosts"] = Json::array();
  for (const auto& [rank, host] : log.hosts) out["hosts"].push_back({{"rank", rank}, {"host", host}});
  out["num_channels"] = log.num_channels;
  out["ring"] = log.ring;
  out["findings"] = Json::array();
  for (const NcclFinding& finding : explained.findings) {
    out["findings"].push_back({{"problem", finding.is_problem}, {"words", finding.words}});
  }
  out["links"] = Json::array();
  for (const NcclLinkKind& kind : explained.links) {
    out["links"].push_back({{"way", kind.name},
                            {"within_host", kind.is_known ? Json(kind.is_local) : Json(nullptr)},
                            {"count", kind.count}});
  }
  out["graphs"] = Json::array();
  for (const NcclGraph& graph : log.graphs) {
    out["graphs"].push_back({{"pattern", graph.pattern},
                             {"channels", graph.num_channels},
                             {"local_gb_per_s", graph.local_gb_per_s},
                             {"net_gb_per_s", graph.net_gb_per_s},
                             {"local_path", graph.local_type},
                             {"net_path", graph.net_type}});
  }
  out["tuning"] = Json::array();
  for (const NcclTuning& cell : log.tuning) {
    out["tuning"].push_back({{"collective", cell.collective},
                             {"algorithm", cell.algorithm},
                             {"protocol", cell.protocol},
                             {"latency_seconds", cell.latency_s},
                             {"bytes_per_s", cell.bytes_per_s}});
  }
  out["ranges"] = Json::array();
  for (const NcclRange& range : explained.ranges) {
    out["ranges"].push_back(
        {{"from_bytes", range.from_bytes}, {"algorithm", range.algorithm}, {"protocol", range.protocol}});
  }
  out["choices"] = Json::array();
  for (const NcclChoice& choice : log.choices) {
    out["choices"].push_back({{"collective", text_or_null(choice.collective)},
                              {"bytes", choice.bytes},
                              {"algorithm", choice.algorithm},
                              {"protocol", choice.protocol},
                              {"expected_seconds", documents::or_null(choice.seconds)},
                              {"count", choice.count}});
  }
  out["settings"] = Json::array();
  for (const NcclSetting& setting : log.settings) {
    out["settings"].push_back({{"name", setting.name}, {"value", setting.value}});
  }
  out["warnings"] = Json::array();
  for (const NcclWarning& warning : log.warnings) {
    out["warnings"].push_back({{"host", text_or_null(warning.host)}, {"text", warning.text}, {"count", warning.count}});
  }
  out["topology"] = text_or_null(explained.network);
  return documents::text_of(out);
}

}  // namespace gar
