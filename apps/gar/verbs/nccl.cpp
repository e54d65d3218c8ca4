// gar nccl explain: what NCCL chose, and why, from what it logged.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "apps/gar/verbs/verbs.hpp"
#include "gar/documents.hpp"
#include "gar/explain_nccl.hpp"
#include "gar/format.hpp"
#include "gar/results_io.hpp"

namespace gar::cli {
namespace {

void print_links(const NcclExplanation& explained, bool color) {
  if (explained.links.empty()) return;
  Table table({{"way"}, {"where"}, {"links", true}});
  for (const NcclLinkKind& kind : explained.links) {
    const bool is_slow = kind.is_known && kind.is_local && !kind.name.starts_with("P2P");
    table.add_row({Cell(kind.name, is_slow ? Paint::kYellow : Paint::kPlain),
                   kind.is_local ? "inside of a host" : "between hosts", fmt::to_string(kind.count)});
  }
  print("\n" + table.folded(color));
}

void print_choices(const NcclLog& log, bool color) {
  if (log.choices.empty()) return;
  Table table({{"collective"}, {"size", true}, {"algorithm"}, {"protocol"}, {"expected", true}, {"times", true}}, 2);
  for (const NcclChoice& choice : log.choices) {
    table.add_row({choice.collective.empty() ? "?" : choice.collective, format_bytes(choice.bytes), choice.algorithm,
                   choice.protocol, choice.seconds > 0 ? format_seconds(choice.seconds) : "-",
                   fmt::to_string(choice.count)});
  }
  print("\n" + table.folded(color));
}

int explain(const std::vector<std::string>& files, const Context& context) {
  const NcclLog log = read_nccl_log_files(files);
  const NcclExplanation explained = explain_nccl_log(log);
  if (context.json) {
    print(nccl_document(log, explained));
    return kExitOk;
  }
  const bool color = use_color(context.color, stdout);
  say(escaped(explained.summary) + "\n");
  for (const bool is_problem : {true, false}) {
    bool is_first = true;
    for (const NcclFinding& finding : explained.findings) {
      if (finding.is_problem != is_problem) continue;
      if (is_first) print("\n" + paint(is_problem ? "what costs time" : "what it does", Paint::kBold, color) + "\n");
      is_first = false;
      print(list_item(finding.words));
    }
  }
  print_links(explained, color);
  print_choices(log, color);
  if (!explained.network.empty()) {
    print("\n");
    say(fmt::format("A network guessed from the log: gar predict -t {} --size 64MiB\n", shell_word(explained.network)));
  }
  return kExitOk;
}

}  // namespace

void add_nccl(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("nccl", "Say what NCCL chose, and why");
  verb.require_subcommand(1);
  CLI::App& one = *verb.add_subcommand("explain", "Explain what NCCL wrote with NCCL_DEBUG=INFO");
  auto files = std::make_shared<std::vector<std::string>>();
  one.add_option("LOG", *files, "What NCCL wrote: one file, or one for each rank (NCCL_DEBUG_FILE)")
      ->required()
      ->type_name("");
  add_output_options(one, context);
  set_examples(verb, {{"which links, algorithms and settings a job had", "gar nccl explain log.txt"}});
  set_examples(one,
               {{"which links, algorithms and settings a job had",
                 "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING,ENV mpirun -n 16 ./all_reduce_perf >log.txt; "
                 "gar nccl explain log.txt"},
                {"a file of each rank", "gar nccl explain nccl.*.log --json"}});
  on_run(one, context, [files, &context] { return explain(*files, context); });
}

}  // namespace gar::cli
