// Simulations as documents.
#include <algorithm>
#include <cmath>

#include "documents/json.hpp"
#include "gar/critical_path.hpp"
#include "gar/documents.hpp"
#include "gar/explain_simulation.hpp"
#include "gar/limits.hpp"

namespace gar {
namespace {

using documents::Json;

Json link_json(const Topology& topology, const LinkUse& use, double seconds) {
  Json out;
  out["name"] = link_name(topology, use.link);
  out["count"] = use.count;
  out["busy_fraction"] = seconds > 0 ? use.busy_seconds / seconds : 0;
  out["busy_seconds"] = use.busy_seconds;
  out["incast_seconds"] = use.incast_seconds;
  out["floats"] = use.floats;
  out["utilisation"] = use.utilisation;
  out["max_senders"] = use.max_senders;
  return out;
}

Json stage_use_json(const Topology& topology, const StageUse& stage, bool has_chunks) {
  const double time = stage.end - stage.begin;
  Json out;
  out["half"] =
      stage.is_exchange ? "exchange" : to_string(stage.is_gather ? Collective::kAllGather : Collective::kReduceScatter);
  out["what"] = stage.label;
  out["first_step"] = stage.first_step;
  out["steps"] = stage.num_steps;
  out["begin"] = stage.begin;
  out["end"] = stage.end;
  out["busiest_link"] = stage.busy_seconds > 0 ? Json(link_name(topology, stage.busiest)) : Json(nullptr);
  out["busy_fraction"] = time > 0 ? stage.busy_seconds / time : 0;
  out["busy_seconds"] = stage.busy_seconds;
  out["incast_seconds"] = stage.incast_seconds;
  out["senders"] = stage.senders;
  out["calculation_seconds"] = stage.calculation_seconds;
  out["bottleneck"] = bottleneck_words(topology, stage, has_chunks);
  return out;
}

Json part_json(const Topology& topology, const PathPart& part) {
  Json out;
  out["stage"] = part.stage;
  out["hops"] = part.num_hops;
  out["from"] = part.from;
  out["rank"] = part.rank;
  out["first_chunk"] = part.first_chunk;
  out["last_chunk"] = part.last_chunk;
  out["first_step"] = part.first_step;
  out["last_step"] = part.last_step;
  out["begin"] = part.begin;
  out["end"] = part.end;
  out["terms"] = documents::terms_json(part.terms);
  out["link"] = part.has_message ? Json(link_name(topology, part.link)) : Json(nullptr);
  return out;
}

void add_numbers(const SimulatedPlan& plan, Json& out) {
  const Simulation& simulation = plan.simulation;
  out["algorithm"] = plan.algorithm;
  out["collective"] = to_string(plan.collective);
  out["chunks"] = plan.num_chunks;
  out["complete"] = simulation.is_complete;
  out["seconds"] = simulation.seconds;
  out["communication_seconds"] = simulation.communication_seconds();
  out["calculation_seconds"] = simulation.calculation_seconds();
  if (simulation.handling_seconds() > 0) out["handling_seconds"] = simulation.handling_seconds();
  out["terms"] = documents::terms_json(simulation.terms);
  out["predicted_seconds"] = plan.predicted.total();
  out["predicted_terms"] = documents::terms_json(plan.predicted);
  out["flows"] = to_whole(simulation.flows);
  out["flows_done"] = to_whole(simulation.flows_done);
  out["events"] = simulation.events;
  out["engine"] = to_string(simulation.engine);
  out["rank_classes"] = simulation.rank_classes;
  out["flow_classes"] = simulation.flow_classes;
  out["solves"] = simulation.solves;
  out["memoised_steps"] = simulation.memoised_steps;
}

void add_simulation(const Topology& topology, const SimulatedPlan& plan, const SimulationDetail& detail, Json& out) {
  add_numbers(plan, out);
  const Simulation& simulation = plan.simulation;
  const std::size_t num_links = detail.max_links < 0
                                    ? simulation.links.size()
                                    : std::min(simulation.links.size(), static_cast<std::size_t>(detail.max_links));
  out["links"] = Json::array();
  for (std::size_t i = 0; i < num_links; ++i) {
    out["links"].push_back(link_json(topology, simulation.links[i], simulation.seconds));
  }
  out["stages"] = Json::array();
  for (const StageUse& stage : simulation.stages) {
    out["stages"].push_back(stage_use_json(topology, stage, plan.num_chunks > 1));
  }
  out["path_hops"] = simulation.path.size();
  out["path"] = Json::array();
  for (const PathPart& part : detail.all_hops ? path_hops(simulation) : path_parts(simulation)) {
    out["path"].push_back(part_json(topology, part));
  }
}

}  // namespace

std::string simulate_document(const Scene& scene, const std::vector<SimulatedPlan>& plans, bool is_complete,
                              const SimulationDetail& detail) {
  Json document = documents::begin_scene(scene, "gar.simulate/2");
  document["count"] = scene.size.count;
  add_simulation(scene.topology, plans.front(), detail, document);
  document["complete"] = is_complete;
  document["best"] = plans.front().simulation.is_complete ? Json(plans.front().algorithm) : Json(nullptr);
  document["results"] = Json::array();
  for (const SimulatedPlan& plan : plans) {
    Json one;
    add_simulation(scene.topology, plan, detail, one);
    document["results"].push_back(one);
  }
  return documents::text_of(document);
}

std::string trace_summary(const Scene& scene, const SimulatedPlan& plan, const std::string& error) {
  Json about = documents::begin("gar.trace/1");
  about["topology"] = scene.topology.name();
  about["algorithm"] = plan.algorithm;
  about["count"] = scene.size.count;
  about["dtype"] = to_string(scene.size.dtype);
  about["barrier"] = scene.barrier;
  about["what_if"] = documents::what_if_json(scene.what_if);
  about["seconds"] = plan.simulation.seconds;
  about["complete"] = plan.simulation.is_complete;
  if (!error.empty()) about["error"] = error;
  return documents::line_of(about);
}

}  // namespace gar
