// The questions: each takes a request in words and gives the library's document, the one that `gar --json` prints.
#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "common.hpp"
#include "gar/compare.hpp"
#include "gar/documents.hpp"
#include "gar/errors.hpp"
#include "gar/explain.hpp"
#include "gar/fit.hpp"
#include "gar/limits.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "gar/results_io.hpp"
#include "gar/verify.hpp"

namespace gar::python {
namespace {

/// What all questions about a network and a size have in common.
struct Question {
  std::shared_ptr<const Topology> topology;
  SizeText size;
  std::string model = "genmodel";
  std::string incast_degree = "senders";
};

std::string predict_text(const Question& question, const std::vector<std::string>& algorithms,
                         const std::string& collective, const Profile* profile) {
  const VectorSize size = vector_size(question.size);
  ModelOptions model = model_options(question.model, question.incast_degree);
  model.collective = collective_of(collective);
  const PredictAnswer answer = predict({*question.topology, size.floats(), algorithm_specs(algorithms), model});
  std::optional<SizeCorrection> correction;
  // Corrections are relative to GenModel.
  if (profile != nullptr && model.kind == ModelKind::kGenModel) {
    const SizeCorrection* const known = correction_of(*profile, static_cast<double>(size.bytes));
    if (known != nullptr) correction = *known;
  }
  return predict_document(*question.topology, size, model, answer, correction);
}

Policy policy_of(const std::string& text) {
  if (text == "runtime") return Policy::kRuntime;
  if (text != "model") throw UsageError("policy '" + text + "': expected model or runtime");
  return Policy::kModel;
}

std::pair<Plan, std::string> plan_text(const Question& question, const std::vector<std::string>& algorithms,
                                       const std::string& collective, const std::string& policy, bool explains) {
  const VectorSize size = vector_size(question.size);
  const PlanRequest request{.topology = *question.topology,
                            .size_floats = size.floats(),
                            .algorithms = algorithm_specs(algorithms),
                            .model = model_options(question.model, question.incast_degree),
                            .collective = collective_of(collective),
                            .policy = policy_of(policy)};
  PlanAnswer answer = plan(request);
  answer.plan.count = size.count;
  std::ostringstream document;
  write_plan_document(request, answer, answer.priced->critical_stages(size.floats()),
                      explains ? PlanDetail::kExplained : PlanDetail::kPlain, document);
  return {std::move(answer.plan), document.str()};
}

std::string verify_text(const Plan& plan, bool is_exact, const std::optional<std::string>& seed,
                        const std::string& file) {
  VerifyOptions options{.num_elements = 2, .seed = std::nullopt};
  if (is_exact && seed) throw UsageError("exact and seed: expected only one of them, as an exact proof draws nothing");
  if (is_exact) options.kind = ProofKind::kExact;
  if (seed) {
    options.kind = ProofKind::kFingerprints;
    options.seed = parse_proof_seed(*seed);
  }
  // A proof looks at every message; a short file can stand for more of them than any machine can do.
  if (!plan.is_explicit() && plan.num_ranks > 1) {
    check_work(kRankLimit, static_cast<double>(plan.num_ranks), file);
    check_work(kMessageLimit, digit_messages(plan), file);
  }
  return verify_document(plan, verify(plan, options), file);
}

/// What is simulated: algorithms that are planned first, or a plan.
struct SimulationRequest {
  Question question;
  std::vector<std::string> algorithms;
  std::shared_ptr<const Plan> plan;
  std::string collective = "allreduce";
  WhatIfText what_if;
  SimulationText simulation;
};

Scene scene_of(const Question& question, const WhatIfText& what_if, const SimulationText& simulation) {
  return {*question.topology,  vector_size(question.size), model_options(question.model, question.incast_degree),
          what_if_of(what_if), simulation.barrier,         simulation.tolerance};
}

SimulatedPlan simulated(const Scene& scene, const Plan& plan, const std::string& algorithm, const Terms& predicted,
                        SimulationOptions options) {
  Interrupts interrupts;
  options.progress = [&](const SimulationProgress& /*now*/) { return interrupts.go_on(); };
  SimulatedPlan out;
  out.algorithm = algorithm;
  out.collective = plan.collective;
  out.num_chunks = plan.num_chunks;
  out.is_explicit = plan.is_explicit();
  out.predicted = predicted;
  out.simulation = simulate(plan, scene.topology, scene.size.floats(), options);
  interrupts.check();
  return out;
}

std::string simulate_text(const SimulationRequest& request, bool all_hops) {
  const Scene scene = scene_of(request.question, request.what_if, request.simulation);
  SimulationOptions options = simulation_options(request.simulation, scene.model);
  apply(scene.what_if, scene.topology, options);
  const double floats = scene.size.floats();
  std::vector<SimulatedPlan> plans;
  if (request.plan) {
    const Plan& given = *request.plan;
    const Terms predicted = PricedPlan(given, scene.topology, scene.model).cost(floats);
    plans.push_back(simulated(scene, given, given.algorithm, predicted, options));
  } else {
    for (const AlgorithmSpec& spec : algorithm_specs(request.algorithms)) {
      const PlanAnswer planned = plan({.topology = scene.topology,
                                       .size_floats = floats,
                                       .algorithms = {spec},
                                       .model = scene.model,
                                       .collective = collective_of(request.collective)});
      plans.push_back(simulated(scene, planned.plan, to_string(planned.spec), planned.terms, options));
    }
    std::stable_sort(plans.begin(), plans.end(), [](const SimulatedPlan& a, const SimulatedPlan& b) {
      return a.simulation.seconds < b.simulation.seconds;
    });
  }
  return simulate_document(scene, plans, true, {.max_links = -1, .all_hops = all_hops});
}

ComparedPlan compared(const Scene& scene, const PlanAnswer& planned, const SimulationOptions& plain,
                      const SimulationOptions& options) {
  const auto run = [&](const SimulationOptions& conditions) {
    const Simulation s = simulated(scene, planned.plan, "", {}, conditions).simulation;
    return ComparedRun{s.seconds, s.terms};
  };
  ComparedPlan out;
  out.algorithm = to_string(planned.spec);
  out.num_chunks = planned.plan.num_chunks;
  out.predicted = planned.terms;
  if (!scene.what_if.is_empty()) out.without = run(plain);
  out.simulated = run(options);
  out.why = out.without
                ? what_grew(out.without->terms, out.simulated.terms)
                : why_simulated_differs(out.predicted, out.simulated.terms, {out.num_chunks > 1, scene.barrier});
  return out;
}

std::string compare_text(const SimulationRequest& request, const std::vector<std::string>& sizes) {
  if (sizes.empty()) throw UsageError(request.question.size.name + ": there are none; expected at least one");
  std::vector<VectorSize> lengths;
  for (const std::string& text : sizes) {
    lengths.push_back(vector_size({request.question.size.name, text, request.question.size.dtype}));
  }
  Question first = request.question;
  first.size.text = sizes.front();
  Comparison comparison{scene_of(first, request.what_if, request.simulation), {}, true};
  comparison.collective = collective_of(request.collective);
  Scene& scene = comparison.scene;
  SimulationOptions plain = simulation_options(request.simulation, scene.model);
  plain.keep_path = false;
  SimulationOptions options = plain;
  apply(scene.what_if, scene.topology, options);
  const std::vector<AlgorithmSpec> specs = algorithm_specs(request.algorithms);
  for (const VectorSize& size : lengths) {
    scene.size = size;
    ComparedSize block{size, {}, 0};
    for (const AlgorithmSpec& spec : specs) {
      const PlanAnswer planned = plan({.topology = scene.topology,
                                       .size_floats = size.floats(),
                                       .algorithms = {spec},
                                       .model = scene.model,
                                       .collective = comparison.collective});
      block.plans.push_back(compared(scene, planned, plain, options));
    }
    std::stable_sort(block.plans.begin(), block.plans.end(), [](const ComparedPlan& a, const ComparedPlan& b) {
      return a.simulated.seconds < b.simulated.seconds;
    });
    const auto best = std::min_element(
        block.plans.begin(), block.plans.end(),
        [](const ComparedPlan& a, const ComparedPlan& b) { return a.predicted.total() < b.predicted.total(); });
    block.model_best = static_cast<std::size_t>(best - block.plans.begin());
    comparison.sizes.push_back(std::move(block));
  }
  scene.size = lengths.front();
  return compare_document(comparison);
}

/// The number of ranks of results: what they say, what was given, or all of the profile's.
std::int64_t ranks_of(const Results& results, const std::string& file, std::optional<std::int64_t> given,
                      std::int64_t known) {
  const std::string name = std::to_string(results.num_ranks);
  if (given && results.num_ranks > 0 && *given != results.num_ranks) {
    throw UsageError("ranks " + std::to_string(*given) + ": " + file + " says " + name + "; leave ranks out");
  }
  const std::int64_t ranks = results.num_ranks > 0 ? results.num_ranks : given.value_or(known);
  if (ranks < 2 || ranks > known) {
    throw InvalidArgument(std::to_string(ranks) + " ranks: the profile knows " + std::to_string(known) +
                          " servers; expected results of 2 to " + std::to_string(known) + " ranks");
  }
  return ranks;
}

std::string diagnose_text(const Profile& profile, const std::string& profile_file,
                          const std::optional<std::string>& text, const std::string& file,
                          std::optional<std::int64_t> given_ranks) {
  const Results results = text ? parse_results(*text, file) : read_results_file(file);
  const std::int64_t ranks = ranks_of(results, file, given_ranks, profile.topology.num_servers());
  const std::vector<Observation> observations = observations_of(results.rows, profile.topology, ranks);
  const Diagnosis diagnosis = diagnose(profile, observations);
  return diagnose_document({.profile_file = profile_file,
                            .results_file = file,
                            .results = results,
                            .observations = observations,
                            .num_ranks = ranks,
                            .diagnosis = diagnosis});
}

py::dict lower_bound_of(const Question& question, const std::string& collective) {
  LowerBound bound;
  {
    const py::gil_scoped_release no_gil;
    bound = lower_bound(*question.topology, vector_size(question.size).floats(), collective_of(collective),
                        model_options(question.model, question.incast_degree).kind);
  }
  py::dict out;
  out["seconds"] = bound.seconds();
  out["sequential_seconds"] = bound.sequential_seconds();
  out["alpha"] = bound.alpha;
  out["bandwidth"] = bound.bandwidth;
  out["calculation"] = bound.calculation;
  out["binding"] = bound.binding();
  out["cut"] = bound.cut;
  return out;
}

}  // namespace

void add_answers(py::module_& module) {
  py::class_<SizeText>(module, "SizeText")
      .def(py::init<std::string, std::string, std::string>(), py::arg("name"), py::arg("text"), py::arg("dtype"))
      .def_property_readonly("count", [](const SizeText& size) { return vector_size(size).count; })
      .def_property_readonly("bytes", [](const SizeText& size) { return vector_size(size).bytes; });
  py::class_<Question>(module, "Question")
      .def(
          py::init([](std::shared_ptr<Topology> topology, SizeText size, std::string model, std::string incast_degree) {
            return Question{std::move(topology), std::move(size), std::move(model), std::move(incast_degree)};
          }),
          py::arg("topology"), py::arg("size"), py::arg("model"), py::arg("incast_degree"));
  py::class_<WhatIfText>(module, "WhatIfText")
      .def(py::init<std::vector<std::pair<std::string, std::string>>, std::string, std::string>(),
           py::arg("conditions"), py::arg("jitter"), py::arg("seed"));
  py::class_<SimulationText>(module, "SimulationText")
      .def(py::init<bool, std::string, double>(), py::arg("barrier"), py::arg("engine"), py::arg("tolerance"));
  py::class_<SimulationRequest>(module, "SimulationRequest")
      .def(py::init([](Question question, std::vector<std::string> algorithms, std::shared_ptr<Plan> plan,
                       std::string collective, WhatIfText what_if, SimulationText simulation) {
             return SimulationRequest{std::move(question),   std::move(algorithms), std::move(plan),
                                      std::move(collective), std::move(what_if),    std::move(simulation)};
           }),
           py::arg("question"), py::arg("algorithms"), py::arg("plan").none(true), py::arg("collective"),
           py::arg("what_if"), py::arg("simulation"));

  module.def(
      "counts_of", [](const std::string& text) { return parse_count_list("counts", text); }, py::arg("text"));
  module.def(
      "with_conditions",
      [](const Topology& topology, const WhatIfText& text) {
        WhatIf what_if = what_if_of(text);
        for (Condition& condition : what_if.conditions) condition.source.insert(0, "--");  // as documents name networks
        return with_conditions(topology, what_if);
      },
      py::arg("topology"), py::arg("what_if"), NoGil());
  module.def("predict", &predict_text, py::arg("question"), py::arg("algorithms"), py::arg("collective"),
             py::arg("profile").none(true), NoGil());
  module.def("plan", &plan_text, py::arg("question"), py::arg("algorithms"), py::arg("collective"), py::arg("policy"),
             py::arg("explain"), NoGil());
  module.def("verify", &verify_text, py::arg("plan"), py::arg("exact"), py::arg("seed").none(true), py::arg("file"),
             NoGil());
  module.def("simulate", &simulate_text, py::arg("request"), py::arg("all_hops"), NoGil());
  module.def("compare", &compare_text, py::arg("request"), py::arg("sizes"), NoGil());
  module.def("diagnose", &diagnose_text, py::arg("profile"), py::arg("profile_file"), py::arg("text").none(true),
             py::arg("file"), py::arg("ranks").none(true), NoGil());
  module.def("lower_bound", &lower_bound_of, py::arg("question"), py::arg("collective"));
}

}  // namespace gar::python
