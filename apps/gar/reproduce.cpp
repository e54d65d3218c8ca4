// gar reproduce: the paper's figures and tables, cell by cell.
#include "apps/gar/reproduce.hpp"

#include <fmt/format.h>

#include <memory>

#include "apps/gar/verbs.hpp"

namespace gar::cli {
namespace {

struct Target {
  const char* name;
  const char* what;
  Reproduction run;
};

constexpr Target kTargets[] = {
    {"fig:costmodel", "predictions of both models for 12 and 15 servers", reproduce_costmodel},
    {"table:gtplan", "what GenTree takes at every switch of the six networks", reproduce_gtplan},
    {"fig:hcps", "who holds which block, switch by switch, on two small trees", reproduce_hcps},
    {"table:gentreesimu", "all simulated cells: paper, the law behind them, our simulation", reproduce_gentreesimu},
    {"planners", "GenTree and GenTree+ against the baselines and the lower bound", reproduce_planners},
};

std::string target_names() {
  std::string names = "all";
  for (const Target& t : kTargets) names += fmt::format(" {}", t.name);
  return names;
}

int reproduce(const std::vector<std::string>& asked, const Context& context) {
  std::vector<const Target*> chosen;
  for (const std::string& name : asked) {
    bool known = name == "all";
    for (const Target& t : kTargets) {
      if (name != "all" && name != t.name) continue;
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
  auto asked = std::make_shared<std::vector<std::string>>();
  verb.add_option("target", *asked, fmt::format("What to reproduce: {}", target_names()))
      ->type_name("TARGET")
      ->default_val(std::vector<std::string>{"all"});
  add_output_options(verb, context);
  set_examples(verb, {{"the accuracy of GenModel and of (alpha,beta,gamma)", "gar reproduce fig:costmodel"},
                      {"GenTree's choices against the paper's, with reasons", "gar reproduce table:gtplan"},
                      {"the paper's simulated seconds and ours", "gar reproduce table:gentreesimu"},
                      {"all planners against the baselines and the lower bound", "gar reproduce planners"}});
  on_run(verb, context, [asked, &context] { return reproduce(*asked, context); });
}

}  // namespace gar::cli
