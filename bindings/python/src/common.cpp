// Words of Python's side as requests of the library.
#include "common.hpp"

#include <algorithm>

#include "gar/errors.hpp"
#include "gar/predict.hpp"

namespace gar::python {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& text, const std::string& accepted) {
  throw UsageError(name + " '" + text + "': expected " + accepted);
}

}  // namespace

VectorSize vector_size(const SizeText& size) {
  const DataType dtype = parse_dtype("dtype", size.dtype);
  return size.name == "size" ? vector_size_of_bytes(size.name, size.text, dtype)
                             : vector_size_of_count(size.name, size.text, dtype);
}

ModelOptions model_options(const std::string& model, const std::string& incast_degree) {
  ModelOptions out;
  if (model == "paper") {
    out.kind = ModelKind::kPaper;
  } else if (model == "abc") {
    out.kind = ModelKind::kAbc;
  } else if (model != "genmodel") {
    refuse("model", model, "genmodel, paper or abc");
  }
  if (incast_degree == "participants") {
    out.degree = IncastDegree::kParticipants;
  } else if (incast_degree != "senders") {
    refuse("incast_degree", incast_degree, "senders or participants");
  }
  return out;
}

std::vector<AlgorithmSpec> algorithm_specs(const std::vector<std::string>& names) {
  std::vector<AlgorithmSpec> out;
  const auto add = [&](const AlgorithmSpec& spec) {
    const std::string name = to_string(spec);
    if (std::none_of(out.begin(), out.end(), [&](const AlgorithmSpec& o) { return to_string(o) == name; })) {
      out.push_back(spec);
    }
  };
  for (const std::string& name : names) {
    if (name != "all") {
      add(parse_algorithm(name));
      continue;
    }
    for (const AlgorithmSpec& spec : classic_algorithms()) add(spec);
    for (const AlgorithmInfo& info : algorithms()) {
      if (info.needs_network()) add({std::string(info.name), {}, false});
    }
  }
  if (out.empty()) throw UsageError("algorithms: there are none; expected at least one, such as 'gentree+'");
  return out;
}

Collective collective_of(const std::string& text) {
  const auto known = parse_collective(text);
  if (!known) refuse("collective", text, "allreduce, reduce-scatter or allgather");
  return *known;
}

WhatIf what_if_of(const WhatIfText& text) {
  using Kind = Condition::Kind;
  WhatIf out;
  for (const auto& [name, condition] : text.conditions) {
    bool is_known = false;
    for (const Kind kind : {Kind::kSlow, Kind::kDegrade, Kind::kFail, Kind::kBackground}) {
      if (name != to_string(kind)) continue;
      is_known = true;
      out.conditions.push_back(parse_condition(kind, name, condition));
    }
    if (!is_known) refuse("what_if", name, "slow, degrade, fail or background");
  }
  out.jitter = parse_jitter("jitter", text.jitter);
  out.seed = parse_seed("seed", text.seed);
  return out;
}

SimulationOptions simulation_options(const SimulationText& text, const ModelOptions& model) {
  SimulationOptions out;
  out.barrier = text.barrier;
  if (text.engine == "flows") {
    out.engine = SimulationEngine::kFlows;
  } else if (text.engine == "classes") {
    out.engine = SimulationEngine::kClasses;
  } else if (text.engine == "graph") {
    out.engine = SimulationEngine::kGraph;
  } else if (text.engine == "filling") {
    out.engine = SimulationEngine::kFilling;
  } else if (text.engine != "auto") {
    refuse("engine", text.engine, "auto, flows, classes, graph or filling");
  }
  if (!(text.tolerance >= 0 && text.tolerance <= kMaxTolerance)) {
    refuse("tolerance", std::to_string(text.tolerance), "a share from 0 to 0.1, such as 1e-3");
  }
  out.tolerance = text.tolerance;
  out.model = model.kind;
  out.degree = model.degree;
  return out;
}

}  // namespace gar::python
