// The flags that `gar simulate` and `gar compare` share.
#include "apps/gar/verbs/simulate_options.hpp"

#include <fmt/format.h>

#include <optional>

#include "gar/quantity.hpp"

namespace gar::cli {
namespace {

using Kind = Condition::Kind;

constexpr const char* kSlowHelp =
    "A server, or every server below a switch, takes FACTOR times as long to calculate and to handle messages";

/// "--degrade".
std::string flag_of(Kind kind) { return fmt::format("--{}", to_string(kind)); }

void add_condition(CLI::App& verb, Kind kind, std::vector<std::string>& list, const char* what) {
  verb.add_option(flag_of(kind), list, what)
      ->type_name(std::string(form_of(kind)))
      ->allow_extra_args(false)
      ->group("What if");
}

}  // namespace

void add_condition_options(CLI::App& verb, SimulationArgs& args) {
  add_condition(verb, Kind::kSlow, args.slow, kSlowHelp);
  add_condition(verb, Kind::kDegrade, args.degrade, "Reduce a link to this share of its capacity, in both directions");
}

void add_simulation_options(CLI::App& verb, SimulationArgs& args) {
  verb.add_flag("--barrier", args.barrier, "No rank starts a step before all ranks have finished the previous one");
  verb.add_option("--engine", args.engine, "Every flow on its own, or classes of flows that cannot be told apart")
      ->type_name("E")
      ->check(CLI::IsMember({"auto", "flows", "classes", "graph", "filling"}))
      ->capture_default_str();
  verb.add_option(
          "--tolerance", args.tolerance,
          "Servers and links that differ by no more than this share count as equal, and smaller changes of rates "
          "are ignored; 0 (exact) to 0.1")
      ->type_name("SHARE")
      ->capture_default_str();
  add_condition(verb, Kind::kSlow, args.slow, kSlowHelp);
  add_condition(verb, Kind::kDegrade, args.degrade,
                "Reduce a link to this share of its capacity; .up or .down for one direction");
  add_condition(verb, Kind::kFail, args.fail, "A link carries nothing any more");
  add_condition(verb, Kind::kBackground, args.background, "Share of a link that other traffic takes");
  verb.add_option("--jitter", args.jitter, "Mean random extra share of every latency and calculation")
      ->type_name("SHARE")
      ->capture_default_str()
      ->group("What if");
  verb.add_option("--seed", args.seed, "Seed of the jitter")->type_name("N")->capture_default_str()->group("What if");
}

WhatIf parse_what_if(const SimulationArgs& args) {
  WhatIf out;
  const auto add = [&](Kind kind, const std::vector<std::string>& list) {
    for (const std::string& text : list) out.conditions.push_back(parse_condition(kind, flag_of(kind), text));
  };
  add(Kind::kSlow, args.slow);
  add(Kind::kDegrade, args.degrade);
  add(Kind::kFail, args.fail);
  add(Kind::kBackground, args.background);
  out.jitter = parse_jitter("--jitter", args.jitter);
  out.seed = parse_seed("--seed", args.seed);
  return out;
}

double parse_tolerance(const SimulationArgs& args) {
  const std::optional<double> tolerance = share_of(args.tolerance);
  if (!tolerance || *tolerance < 0 || *tolerance > kMaxTolerance) {
    throw UsageError(fmt::format("--tolerance '{}': expected a share from 0 to {:g}, such as 1e-3 or 0.1%",
                                 args.tolerance, kMaxTolerance));
  }
  return *tolerance;
}

SimulationEngine parse_engine(const std::string& name) {
  return name == "flows"     ? SimulationEngine::kFlows
         : name == "graph"   ? SimulationEngine::kGraph
         : name == "filling" ? SimulationEngine::kFilling
         : name == "classes" ? SimulationEngine::kClasses
                             : SimulationEngine::kAuto;
}

}  // namespace gar::cli
