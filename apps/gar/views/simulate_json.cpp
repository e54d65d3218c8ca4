// What `gar simulate` prints as JSON.
#include <algorithm>
#include <cmath>

#include "apps/gar/views/simulate_report.hpp"
#include "apps/gar/views/terms.hpp"
#include "gar/critical_path.hpp"
#include "apps/gar/cli/plan_args.hpp"

namespace gar::cli {
namespace {

Json link_json(const Topology& topology, const LinkUse& use, double seconds) {
  Json j;
  j["name"] = link_name(topology, use.link);
  j["count"] = use.count;
  j["busy_fraction"] = seconds > 0 ? use.busy_seconds / seconds : 0;
  j["busy_seconds"] = use.busy_seconds;
  j["incast_seconds"] = use.incast_seconds;
  j["floats"] = use.floats;
  j["utilisation"] = use.utilisation;
  j["max_senders"] = use.max_senders;
  return j;
}

Json stage_json(const Topology& topology, const StageUse& stage, bool has_chunks) {
  const double time = stage.end - stage.begin;
  Json j;
  j["half"] = to_string(stage.is_gather ? Collective::kAllGather : Collective::kReduceScatter);
  j["what"] = stage.label;
  j["first_step"] = stage.first_step;
  j["steps"] = stage.num_steps;
  j["begin"] = stage.begin;
  j["end"] = stage.end;
  j["busiest_link"] = stage.busy_seconds > 0 ? Json(link_name(topology, stage.busiest)) : Json(nullptr);
  j["busy_fraction"] = time > 0 ? stage.busy_seconds / time : 0;
  j["busy_seconds"] = stage.busy_seconds;
  j["incast_seconds"] = stage.incast_seconds;
  j["senders"] = stage.senders;
  j["calculation_seconds"] = stage.calculation_seconds;
  j["bottleneck"] = bottleneck_words(topology, stage, has_chunks);
  return j;
}

Json part_json(const Topology& topology, const PathPart& part) {
  Json j;
  j["stage"] = part.stage;
  j["hops"] = part.num_hops;
  j["from"] = part.from;
  j["rank"] = part.rank;
  j["first_chunk"] = part.first_chunk;
  j["last_chunk"] = part.last_chunk;
  j["first_step"] = part.first_step;
  j["last_step"] = part.last_step;
  j["begin"] = part.begin;
  j["end"] = part.end;
  j["terms"] = terms_json(part.terms);
  j["link"] = part.has_message ? Json(link_name(topology, part.link)) : Json(nullptr);
  return j;
}

}  // namespace

Json simulation_document(const Scene& scene, const char* schema) {
  Json document = json_document(schema);
  document["topology"] = scene.topology.name();
  document["num_ranks"] = scene.topology.num_servers();
  document["dtype"] = to_string(scene.size.dtype);
  document["model"] = scene.model.kind == ModelKind::kAbc ? "abc" : "genmodel";
  document["barrier"] = scene.barrier;
  document["what_if"] = what_if_json(scene.what_if);
  return document;
}

void add_simulation_json(const Scene& scene, const SimulatedPlan& plan, const ReportOptions& options, Json& document) {
  const Simulation& s = plan.simulation;
  document["algorithm"] = plan.algorithm;
  document["collective"] = to_string(plan.collective);
  document["chunks"] = plan.num_chunks;
  document["complete"] = s.is_complete;
  document["seconds"] = s.seconds;
  document["communication_seconds"] = s.communication_seconds();
  document["calculation_seconds"] = s.calculation_seconds();
  document["terms"] = terms_json(s.terms);
  document["predicted_seconds"] = plan.predicted.total();
  document["predicted_terms"] = terms_json(plan.predicted);
  document["flows"] = std::llround(s.flows);
  document["flows_done"] = std::llround(s.flows_done);
  document["events"] = s.events;
  document["engine"] = engine_name(s.engine);
  document["rank_classes"] = s.rank_classes;
  document["flow_classes"] = s.flow_classes;
  document["solves"] = s.solves;
  document["memoised_steps"] = s.memoised_steps;
  document["links"] = Json::array();
  const std::size_t shown =
      options.max_links < 0 ? s.links.size() : std::min(s.links.size(), static_cast<std::size_t>(options.max_links));
  for (std::size_t i = 0; i < shown; ++i) {
    document["links"].push_back(link_json(scene.topology, s.links[i], s.seconds));
  }
  document["stages"] = Json::array();
  for (const StageUse& stage : s.stages)
    document["stages"].push_back(stage_json(scene.topology, stage, plan.num_chunks > 1));
  document["path_hops"] = s.path.size();
  document["path"] = Json::array();
  for (const PathPart& part : options.all_hops ? path_hops(s) : path_parts(s)) {
    document["path"].push_back(part_json(scene.topology, part));
  }
}

}  // namespace gar::cli
