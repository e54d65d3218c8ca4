// One way to get a priced plan from any algorithm.
#include "apps/gar/planning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>

#include "gar/plan_io.hpp"

namespace gar::cli {

namespace {

TreePlan flat(const Topology& topology, const Prediction& p) {
  TreePlan out;
  out.plan = topology.num_servers() == 1 ? cps(1) : build_plan(p.spec, topology.num_servers());
  if (topology.num_servers() == 1) return out;
  SwitchChoice choice;
  choice.node = topology.root();
  choice.name = topology.node(topology.root()).name;
  choice.algorithm = p.spec.name == "hring" ? "ring" : p.spec.name;
  choice.factors = p.spec.factors.empty() ? std::vector<std::int64_t>{topology.num_servers()} : p.spec.factors;
  choice.terms = p.terms;
  out.switches.push_back(std::move(choice));
  return out;
}

}  // namespace

Planned plan_with(const AlgorithmSpec& spec, const Topology& topology, double size_floats,
                  const ModelOptions& options) {
  Planned out;
  out.spec = spec;
  if (spec.name == "gentree+") {
    out.tree = gentree_plus(topology, size_floats, options);
  } else if (is_tree_planner(spec)) {
    out.tree = gentree(topology, size_floats, {spec.name == "gentree", options});
  } else {
    const Prediction p = Predictor(topology, {spec}, options).at(size_floats).front();
    out.spec = p.spec;
    out.terms = p.terms;
    out.num_considered = p.num_considered;
    out.tree = flat(topology, p);
    return out;
  }
  out.terms = PricedPlan(out.tree.plan, topology, options).cost(size_floats);
  return out;
}

CLI::Option* add_collective_option(CLI::App& verb, std::string& collective, const std::string& what) {
  return verb.add_option("--collective", collective, what)
      ->type_name("C")
      ->check(CLI::IsMember({"allreduce", "reduce-scatter", "all-gather"}))
      ->capture_default_str();
}

Plan half_of(const Plan& allreduce, const std::string& collective) {
  if (collective == "reduce-scatter") return as_reduce_scatter(allreduce);
  if (collective == "all-gather") return as_all_gather(allreduce);
  return allreduce;
}

std::string collective_word(Collective collective) {
  return collective == Collective::kReduceScatter ? "reduce-scatter"
         : collective == Collective::kAllGather   ? "all-gather"
                                                  : "allreduce";
}

Plan load_plan(const std::string& path) {
  return path == "-" ? read_plan(std::cin, "standard input") : read_plan_file(path);
}

std::string factor_words(const std::vector<std::int64_t>& factors) {
  return fmt::format("{}", fmt::join(factors, "x"));
}

std::string plan_words(const TreePlan& tree) {
  std::string out;
  for (const SwitchChoice& s : tree.switches) {
    out += fmt::format("{}{} {} {}{}", out.empty() ? "" : "; ", s.name, s.algorithm, factor_words(s.factors),
                       s.is_rearranged ? " rearranged" : "");
  }
  return out.empty() ? "nothing to do" : out;
}

}  // namespace gar::cli
