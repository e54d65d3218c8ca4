// gar reproduce: the paper's figures and tables, cell by cell.
#include "apps/gar/reproduce/reproduce.hpp"

#include <fmt/format.h>

#include <memory>
#include <string_view>

#include "apps/gar/cli/device.hpp"
#include "apps/gar/reproduce/csv.hpp"
#include "apps/gar/reproduce/page.hpp"
#include "apps/gar/reproduce/summary.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/page.hpp"
#include "gar/files.hpp"

namespace gar::cli {
namespace {

struct Target {
  const char* name;
  Reproduction run;
  bool is_measured = false;  ///< here and now, hence no part of `all`
};

struct Options {
  std::vector<std::string> asked;
  std::string count;  ///< empty: that of the target
  std::string ranks = "12";
  std::string measured;
  std::string device = "cpu";
  std::string html;
};

std::vector<Target> all_targets(const Options& options) {
  const auto count_or = [count = options.count](const char* otherwise) {
    return parse_count("--count", count.empty() ? otherwise : count);
  };
  const Device device = parse_device(options.device);
  const auto calc = [count_or, device](const Context& context, Json& document) {
    if (device == Device::kCuda) return reproduce_calc_on_gpu(count_or("1.5e8"), context, document);
    return reproduce_calc(count_or("4e7"), context, document);
  };
  const auto breakdown = [count_or, ranks = options.ranks](const Context& context, Json& document) {
    return reproduce_breakdown(static_cast<int>(parse_ranks(ranks)), count_or("4e6"), context, document);
  };
  const auto incast = [file = options.measured](const Context& context, Json& document) {
    return reproduce_incast(file, context, document);
  };
  const auto gentreereal = [file = options.measured](const Context& context, Json& document) {
    return reproduce_gentreereal(file, context, document);
  };
  return {
      {"fig:costmodel", reproduce_costmodel},
      {"fig:model_five", reproduce_model_five},
      {"fig:incast", incast},
      {"table:gentreereal", gentreereal},
      {"table:gtplan", reproduce_gtplan},
      {"fig:hcps", reproduce_hcps},
      {"table:gentreesimu", reproduce_gentreesimu},
      {"planners", reproduce_planners},
      {"fig:calc", calc, true},
      {"fig:breakdown", breakdown, true},
  };
}

/// The paper's labels of tables begin with tab:.
std::string plain_name(const std::string& asked) {
  return asked.starts_with("tab:") ? "table:" + asked.substr(4) : asked;
}

std::string target_names() {
  std::string names = "all";
  for (const Target& t : all_targets({})) names += fmt::format(" {}", t.name);
  return names;
}

int reproduce(const Options& options, const Context& context) {
  const std::vector<Target> targets = all_targets(options);
  std::vector<const Target*> chosen;
  for (const std::string& asked : options.asked) {
    const std::string name = plain_name(asked);
    bool known = name == "all";
    for (const Target& t : targets) {
      if (name == "all" ? t.is_measured : name != t.name) continue;
      known = true;
      chosen.push_back(&t);
    }
    if (!known) throw UsageError(fmt::format("'{}' cannot be reproduced; expected {}", asked, target_names()));
  }
  if (parse_device(options.device) == Device::kCuda) {
    for (const Target* t : chosen) {
      if (std::string_view(t->name) != "fig:calc") {
        throw UsageError(fmt::format("--device cuda cannot be combined with {}; expected fig:calc", t->name));
      }
    }
    become_program_of(Device::kCuda);
  }
  check_writable("--html", options.html);
  bool ok = true;
  Json document = json_document("gar.reproduce/1");
  document["reproductions"] = Json::array();
  document["summary"] = Json::array();
  std::vector<ReproductionSummary> summaries;
  Context quiet = context;  // for what prints nothing itself where a document is wanted
  quiet.json = context.json || context.csv;
  for (const Target* t : chosen) {
    Json one;
    one["name"] = t->name;
    const bool in_tolerance = t->run(quiet, one);
    one["in_tolerance"] = in_tolerance;
    summaries.push_back(summary_of(t->name, one, in_tolerance));
    document["summary"].push_back(to_json(summaries.back()));
    document["reproductions"].push_back(one);
    ok = ok && in_tolerance;
  }
  document["in_tolerance"] = ok;
  if (!options.html.empty()) save_page(reproduction_page(summaries, document), options.html, quiet.json);
  if (context.csv) {
    print(summaries.size() == 1 ? reproduction_csv(document["reproductions"][0]) : summary_csv(summaries));
  } else if (context.json) {
    print_json(document);
  } else if (summaries.size() > 1) {
    say("\n" + summary_table(summaries, use_color(context.color, stdout)));
  }
  return ok ? kExitOk : kExitCheckFailed;
}

}  // namespace

std::vector<std::string> reproduction_names() {
  std::vector<std::string> names{"all"};
  for (const Target& t : all_targets({})) names.emplace_back(t.name);
  return names;
}

void add_reproduce(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("reproduce", "Reproduce the paper's figures and tables, cell by cell");
  auto options = std::make_shared<Options>();
  verb.add_option(
          "target", options->asked,
          fmt::format("What to reproduce: {} (the last two are measured here and are not part of all)", target_names()))
      ->type_name("TARGET")
      ->default_val(std::vector<std::string>{"all"});
  verb.add_option("--count", options->count,
                  "fig:calc: floats of each of its 17 vectors (4e7; on a GPU 1.5e8, as in the paper); fig:breakdown: "
                  "floats of the vector (4e6)")
      ->type_name("N");
  add_device_option(verb, options->device,
                    "fig:calc: whose memory is measured; cuda: a GPU's, beside the paper's K40c");
  verb.add_option("--ranks", options->ranks, "fig:breakdown: processes")->type_name("N")->capture_default_str();
  verb.add_option("--measured", options->measured,
                  "fig:incast, table:gentreereal: measurements of your own network (gar fit --save) beside the paper's")
      ->type_name("FILE");
  add_html_option(verb, options->html);
  add_output_options(verb, context);
  add_csv_option(verb, context);
  set_examples(
      verb, {{"the accuracy of GenModel and of (alpha,beta,gamma)", "gar reproduce fig:costmodel"},
             {"GenTree's choices against the paper's, with reasons", "gar reproduce table:gtplan"},
             {"the paper's simulated seconds and ours", "gar reproduce table:gentreesimu"},
             {"the cells of a table for a spreadsheet", "gar reproduce table:gtplan --csv"},
             {"all planners against the baselines and the lower bound", "gar reproduce planners"},
             {"the incast curve, the paper's and that of your network",
              "gar fit --save net.json && gar reproduce fig:incast --measured net.json"},
             {"the time per add of n-ary reductions, on this machine", "gar reproduce fig:calc"},
             {"the same on a GPU, beside the paper's", "gar reproduce fig:calc --device cuda"},
             {"calculation and communication between 12 processes, on this machine", "gar reproduce fig:breakdown"}});
  on_run(verb, context, [options, &context] { return reproduce(*options, context); });
}

}  // namespace gar::cli
