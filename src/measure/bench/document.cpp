// The results of a benchmark as a document.
#include <nlohmann/json.hpp>

#include "gar/measure/bench.hpp"
#include "gar/reduction.hpp"
#include "gar/version.hpp"

namespace gar::measure {
namespace {

/// Keeps the order in which fields are added.
using Json = nlohmann::ordered_json;

Json or_null(double value) { return value >= 0 ? Json(value) : Json(nullptr); }

Json result_json(int num_ranks, const BenchResult& r) {
  Json out;
  out["algorithm"] = r.entry.name;
  out["plan"] = r.plan;
  out["transport"] = r.transport;
  out["ranks"] = num_ranks;
  out["bytes"] = r.size.bytes;
  out["count"] = r.size.count;
  out["dtype"] = to_string(r.kind.type);
  out["op"] = operator_word(r);
  out["seconds"] = r.seconds.median;
  out["median"] = r.seconds.median;
  out["min"] = r.seconds.min;
  out["max"] = r.seconds.max;
  out["p10"] = r.seconds.p10;
  out["p90"] = r.seconds.p90;
  out["algbw"] = r.algbw;
  out["busbw"] = r.busbw;
  out["wrong"] = r.wrong ? Json(*r.wrong) : Json(nullptr);
  out["predicted_seconds"] = or_null(r.predicted_seconds);
  if (r.correction != 1) out["correction"] = r.correction;
  out["error"] =
      r.predicted_seconds > 0 ? Json(prediction_error(r.seconds.median, r.predicted_seconds)) : Json(nullptr);
  out["resent"] = or_null(r.resent);
  out["iterations"] = r.iterations;
  out["batch"] = r.batch;
  out["chunks"] = r.num_chunks;
  out["reproducible"] = r.entry.is_reproducible;
  out["reason"] = r.reason;
  if (r.is_on_gpu) {
    out["bound_seconds"] = or_null(r.bound_seconds);
    out["times_bound"] = r.bound_seconds > 0 ? Json(r.seconds.median / r.bound_seconds) : Json(nullptr);
  }
  return out;
}

Json ratio_json(const BenchRatio& ratio) {
  Json out;
  out["fast"] = ratio.fast;
  out["slow"] = ratio.slow;
  out["mean"] = ratio.mean;
  out["least"] = ratio.least;
  out["least_at_bytes"] = ratio.least_at;
  out["most"] = ratio.most;
  out["most_at_bytes"] = ratio.most_at;
  return out;
}

}  // namespace

BenchLabel label_of(const BenchResult& result) {
  return {.name = result.entry.name,
          .is_reproducible = result.entry.is_reproducible,
          .plan = result.plan,
          .num_chunks = result.num_chunks};
}

std::string_view operator_word(const BenchResult& result) {
  return result.collective == Collective::kAllGather ? "none" : to_string(result.kind.op);
}

std::string bench_document(const BenchConfig& config, const BenchRecord& record) {
  Json out;
  out["gar_version"] = version();
  out["schema"] = "gar.bench/2";
  out["collective"] = to_string(config.collective);
  out["ranks"] = record.num_ranks;
  out["world"] = record.world;
  out["requested_transport"] = to_string(config.transport);
  if (config.device == Device::kCuda) {
    out["device"] = "cuda";
    out["copy_bytes_per_s"] = record.outcome.copy_bytes_per_s;
  }
  out["in_place"] = config.in_place;
  out["iterations"] = config.iterations;
  out["warmup"] = config.warmup;
  out["checked"] = config.check;
  out["simd"] = simd_name();
  out["complete"] = record.outcome.is_complete;
  out["wrong"] = config.check ? Json(record.outcome.num_wrong) : Json(nullptr);
  out["results"] = Json::array();
  for (const BenchResult& r : record.results) out["results"].push_back(result_json(record.num_ranks, r));
  out["ratios"] = Json::array();
  for (const BenchRatio& ratio : bench_ratios(record.results)) out["ratios"].push_back(ratio_json(ratio));
  out["notes"] = record.notes;
  out["origin"] = {{"facts", Json::array()}, {"commands", record.origin.commands}};
  for (const auto& [name, value] : record.origin.facts) {
    out["origin"]["facts"].push_back({{"name", name}, {"value", value}});
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gar::measure
