// gar reproduce: the paper's figures and tables, cell by cell.
#include "apps/gar/reproduce.hpp"

#include <fmt/format.h>

#include <memory>

#include "apps/gar/verbs.hpp"

namespace gar::cli {
namespace {

struct Target {
  const char* name;
  Reproduction run;
  bool is_measured = false;  ///< here and now, hence no part of `all`
};

struct Options {
  std::vector<std::string> asked;
  std::string count = "4e7";
};

std::vector<Target> all_targets(const Options& options) {
  const auto calc = [count = options.count](const Context& context, Json& document) {
    return reproduce_calc(parse_count("--count", count), context, document);
  };
  return {
      {"fig:costmodel", reproduce_costmodel},       {"table:gtplan", reproduce_gtplan}, {"fig:hcps", reproduce_hcps},
      {"table:gentreesimu", reproduce_gentreesimu}, {"planners", reproduce_planners},   {"fig:calc", calc, true},
  };
}

std::string target_names() {
  std::string names = "all";
  for (const Target& t : all_targets({})) names += fmt::format(" {}", t.name);
  return names;
}

int reproduce(const Options& options, const Context& context) {
  const std::vector<Target> targets = all_targets(options);
  std::vector<const Target*> chosen;
  for (const std::string& name : options.asked) {
    bool known = name == "all";
    for (const Target& t : targets) {
      if (name == "all" ? t.is_measured : name != t.name) continue;
      known = true;
      chosen.push_back(&t);
    }
    if (!known) throw UsageError(fmt::format("'{}' cannot be reproduced; accepted: {}", name, target_names()));
  }
  bool ok = true;
  Json document = json_document("gar.reproduce/1");
  document["reproductions"] = Json::array();
  for (const Target* t : chosen) {
    Json one;
    one["name"] = t->name;
    const bool in_tolerance = t->run(context, one);
    one["in_tolerance"] = in_tolerance;
    document["reproductions"].push_back(one);
    ok = ok && in_tolerance;
  }
  document["in_tolerance"] = ok;
  if (context.json) print_json(document);
  return ok ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_reproduce(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("reproduce", "Reproduce the paper's figures and tables, cell by cell");
  auto options = std::make_shared<Options>();
  verb.add_option("target", options->asked,
                  fmt::format("What to reproduce: {} (which is measured, and no part of all)", target_names()))
      ->type_name("TARGET")
      ->default_val(std::vector<std::string>{"all"});
  verb.add_option("--count", options->count, "fig:calc: floats of each of its 17 vectors")
      ->type_name("N")
      ->capture_default_str();
  add_output_options(verb, context);
  set_examples(verb, {{"the accuracy of GenModel and of (alpha,beta,gamma)", "gar reproduce fig:costmodel"},
                      {"GenTree's choices against the paper's, with reasons", "gar reproduce table:gtplan"},
                      {"the paper's simulated seconds and ours", "gar reproduce table:gentreesimu"},
                      {"all planners against the baselines and the lower bound", "gar reproduce planners"},
                      {"the time per add of n-ary reductions, on this machine", "gar reproduce fig:calc"}});
  on_run(verb, context, [options, &context] { return reproduce(*options, context); });
}

}  // namespace gar::cli
