// gar report: profiles, measurements and results of benchmarks as one page for people.
#include "gar/report.hpp"

#include <memory>

#include "apps/gar/cli/command.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/page.hpp"
#include "gar/documents.hpp"
#include "gar/files.hpp"

namespace gar::cli {
namespace {

struct ReportArgs {
  std::vector<std::string> files;
  std::string output = "report.html";
  std::string title = "AllReduce: what was measured";
};

int run(const ReportArgs& args, const Context& context) {
  check_writable("-o", args.output);
  ReportPage page(args.title);
  add_files_to_report(page, args.files);
  add_own_command(page);
  save_page(page, args.output, context.json);
  if (context.json) {
    print(page_document(args.output, static_cast<std::int64_t>(page.html(date_of_now()).size())));
  }
  return kExitOk;
}

}  // namespace

void add_report(CLI::App& program, Context& context) {
  CLI::App& verb =
      *program.add_subcommand("report", "Write a page with pictures from profiles, measurements and benchmarks");
  auto args = std::make_shared<ReportArgs>();
  verb.add_option(
          "FILE", args->files,
          "Profiles and measurements (gar fit -o, --save), documents of gar bench and gar fit (--json), and the "
          "tables of gar bench, nccl-tests, osu_allreduce and IMB-MPI1, and logs of NCCL")
      ->required()
      ->type_name("");
  verb.add_option("-o,--output", args->output, "Where to write the page")->type_name("FILE")->capture_default_str();
  verb.add_option("--title", args->title, "The heading of the page")->type_name("TEXT")->capture_default_str();
  add_output_options(verb, context);
  set_examples(verb, {{"a network that was measured, and today's benchmark on it",
                       "gar report profile.json measurements.json today.json -o report.html"},
                      {"what nccl-tests printed, with NCCL_DEBUG=INFO or without", "gar report nccl.txt"}});
  on_run(verb, context, [args, &context] { return run(*args, context); });
}

}  // namespace gar::cli
