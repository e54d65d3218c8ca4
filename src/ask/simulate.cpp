// Simulations: the document of `gar simulate`, its trace, and what a page needs to show one as a film.
#include "gar/simulate.hpp"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "ask/question.hpp"
#include "documents/json.hpp"
#include "gar/documents.hpp"
#include "gar/errors.hpp"
#include "gar/planner.hpp"
#include "gar/trace.hpp"

namespace gar::ask {
namespace {

using documents::Json;

/// A plan, what it is called, and what the model says about it.
struct Subject {
  std::string algorithm;
  Plan plan;
  Terms predicted;
};

/// The plan of the question, or those of its algorithms.
std::vector<Subject> subjects_of(const Question& question, const Topology& topology, double floats) {
  std::vector<Subject> out;
  const ModelOptions model = question.model();
  if (std::optional<Plan> given = question.plan()) {
    if (given->num_ranks != topology.num_servers()) {
      throw PlanError("plan: is for " + std::to_string(given->num_ranks) + " ranks; expected one for the " +
                      std::to_string(topology.num_servers()) + " servers of this network");
    }
    const Terms terms = PricedPlan(*given, topology, model).cost(floats);
    out.push_back({given->algorithm, std::move(*given), terms});
    return out;
  }
  for (const AlgorithmSpec& spec : question.algorithms("gentree+")) {
    PlanAnswer planned = gar::plan({.topology = topology,
                                    .size_floats = floats,
                                    .algorithms = {spec},
                                    .model = model,
                                    .collective = question.collective()});
    out.push_back({to_string(planned.spec), std::move(planned.plan), planned.terms});
  }
  return out;
}

SimulationOptions options_of(const Question& question, const Scene& scene) {
  SimulationOptions out;
  out.barrier = scene.barrier;
  out.model = scene.model.kind;
  out.degree = scene.model.degree;
  const std::string engine = question.text("engine");
  if (engine == "flows") out.engine = SimulationEngine::kFlows;
  if (engine == "classes") out.engine = SimulationEngine::kClasses;
  apply(scene.what_if, scene.topology, out);
  return out;
}

SimulatedPlan run(const Scene& scene, const Subject& subject, const SimulationOptions& options) {
  SimulatedPlan out;
  out.algorithm = subject.algorithm;
  out.collective = subject.plan.collective;
  out.num_chunks = subject.plan.num_chunks;
  out.is_explicit = subject.plan.is_explicit();
  out.predicted = subject.predicted;
  out.simulation = simulate(subject.plan, scene.topology, scene.size.floats(), options);
  return out;
}

Scene scene_of(const Question& question) {
  return {question.network().topology, question.size(), question.model(), question.what_if(), question.flag("barrier")};
}

/// The stored node that is at this place.
const Node& node_at(const Topology& topology, const NodePlace& place) {
  NodeId id = topology.root();
  std::int64_t server = place.rank;
  for (int depth = 0; depth < place.depth; ++depth) {
    const ChildPosition child = topology.child_at(id, server);
    server = (server - child.first_server) % topology.num_servers(child.node);
    id = child.node;
  }
  return topology.node(id);
}

/// Keeps what happens, up to a number of events of each kind.
class Recorder final : public SimulationObserver {
 public:
  Recorder(const Topology& topology, std::size_t most) : topology_(topology), most_(most) {}

  void on_rank(std::int64_t rank, std::int64_t alike) override { ranks_.push_back({rank, alike}); }
  void on_link(const LinkId& link, std::int64_t alike) override {
    place_of_[key(link)] = links_.size();
    links_.push_back({{"name", link_name(topology_, link)},
                      {"node", topology_.instance_name(link.node.rank, link.node.depth)},
                      {"rank", link.node.rank},
                      {"depth", link.node.depth},
                      {"down", link.is_down},
                      {"alike", alike},
                      {"incast_threshold", node_at(topology_, link.node).uplink.incast_threshold}});
  }
  void on_step(const StepEvent& e) override {
    keep(steps_, Json::array({e.rank, e.chunk, e.step, e.start, e.received, e.done}));
  }
  void on_flow(const FlowEvent& e) override {
    keep(flows_, Json::array({e.from, e.to, e.chunk, e.step, e.start, e.flowing, e.end, e.alike}));
  }
  void on_load(const LoadEvent& e) override {
    const auto link = place_of_.find(key(e.link));
    if (link != place_of_.end()) keep(loads_, Json::array({e.time, link->second, e.flows, e.senders}));
  }

  void add_to(Json& document) {
    document["recorded_all"] = is_complete_;
    document["ranks"] = std::move(ranks_);
    document["links"] = std::move(links_);
    document["loads"] = std::move(loads_);
    document["steps"] = std::move(steps_);
    document["flows"] = std::move(flows_);
  }

 private:
  static std::pair<std::pair<std::int64_t, int>, bool> key(const LinkId& link) {
    return {{link.node.rank, link.node.depth}, link.is_down};
  }
  void keep(Json& list, Json event) {
    if (list.size() < most_) {
      list.push_back(std::move(event));
    } else {
      is_complete_ = false;
    }
  }

  const Topology& topology_;
  std::size_t most_;
  bool is_complete_ = true;
  std::map<std::pair<std::pair<std::int64_t, int>, bool>, std::size_t> place_of_;
  Json ranks_ = Json::array();
  Json links_ = Json::array();
  Json loads_ = Json::array();
  Json steps_ = Json::array();
  Json flows_ = Json::array();
};

}  // namespace

std::string ask_simulate(const Question& question) {
  const Scene scene = scene_of(question);
  const SimulationOptions options = options_of(question, scene);
  std::vector<SimulatedPlan> plans;
  for (const Subject& subject : subjects_of(question, scene.topology, scene.size.floats())) {
    plans.push_back(run(scene, subject, options));
  }
  std::stable_sort(plans.begin(), plans.end(), [](const SimulatedPlan& a, const SimulatedPlan& b) {
    return a.simulation.seconds < b.simulation.seconds;
  });
  return simulate_document(scene, plans, true, {-1, false});
}

std::string ask_movie(const Question& question) {
  constexpr std::int64_t kMostEvents = 200'000;
  constexpr std::int64_t kUsualEvents = 20'000;
  const Scene scene = scene_of(question);
  SimulationOptions options = options_of(question, scene);
  const Subject subject = std::move(subjects_of(question, scene.topology, scene.size.floats()).front());
  Recorder recorder(scene.topology, static_cast<std::size_t>(question.whole("events", kUsualEvents, 1, kMostEvents)));
  options.observer = &recorder;
  const SimulatedPlan done = run(scene, subject, options);
  Json document = Json::parse(simulate_document(scene, {done}, true, {20, false}));
  document.erase("results");
  document["schema"] = "gar.movie/1";
  recorder.add_to(document);
  document["hops"] = Json::array();
  for (const PathHop& hop : done.simulation.path) {
    if (document["hops"].size() >= static_cast<std::size_t>(kUsualEvents)) break;
    document["hops"].push_back(
        Json::array({hop.is_message, hop.from, hop.rank, hop.chunk, hop.step, hop.begin, hop.received, hop.end}));
  }
  // One line: it is for programs, and long.
  return documents::line_of(document) + "\n";
}

std::string ask_trace(const Question& question) {
  const Scene scene = scene_of(question);
  SimulationOptions options = options_of(question, scene);
  const Subject subject = std::move(subjects_of(question, scene.topology, scene.size.floats()).front());
  std::ostringstream out;
  TraceWriter trace(out, subject.plan, scene.topology);
  options.observer = &trace;
  const SimulatedPlan done = run(scene, subject, options);
  trace.finish(done.simulation.seconds, trace_summary(scene, done));
  return out.str();
}

}  // namespace gar::ask
