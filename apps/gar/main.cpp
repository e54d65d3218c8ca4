// gar: predicts, plans, proves and simulates AllReduce. One file per verb; see verbs.hpp.
#include <exception>
#include <memory>
#include <string>

#include "apps/gar/cli/help.hpp"
#include "apps/gar/verbs/verbs.hpp"

namespace {

using gar::cli::Context;

// What CLI11 calls subcommands.
void call_verbs(CLI::App& app) {
  for (CLI::App* verb : app.get_subcommands({})) {
    if (verb->get_group() == "Subcommands") verb->group("Verbs");
    call_verbs(*verb);
  }
}

void set_up(CLI::App& program, Context& context) {
  program.require_subcommand(1);
  program.set_version_flag("--version", "gar " + std::string(gar::version()));
  program.formatter(std::make_shared<gar::cli::HelpFormatter>());
  program.get_formatter()->column_width(26);
  program.get_formatter()->label("SUBCOMMAND", "VERB");
  gar::cli::add_color_option(program, context);
  gar::cli::set_examples(program, {{"which AllReduce is fastest for 1e8 floats on 16 racks of 24 servers, and why",
                                    "gar predict -t tree:16x24 --count 1e8"},
                                   {"make its plan, and prove it",
                                    "gar plan -t tree:16x24 --count 1e8 -o plan.json && gar verify plan.json"},
                                   {"run it in a simulator while one rack has half its uplink",
                                    "gar simulate -t tree:16x24 --plan plan.json --degrade rack3.uplink=0.5"}});

  // The verbs, in the order of the help. Each has a file of its own.
  gar::cli::add_topo(program, context);
  gar::cli::add_predict(program, context);
  gar::cli::add_plan(program, context);
  gar::cli::add_verify(program, context);
  gar::cli::add_simulate(program, context);
  gar::cli::add_compare(program, context);
  gar::cli::add_bench(program, context);
  gar::cli::add_fit(program, context);
  gar::cli::add_tune(program, context);
  gar::cli::add_mpirun(program, context);
  gar::cli::add_store(program, context);
  gar::cli::add_profile(program, context);
  gar::cli::add_diagnose(program, context);
  gar::cli::add_nccl(program, context);
  gar::cli::add_explore(program, context);
  gar::cli::add_report(program, context);
  gar::cli::add_demo(program, context);
  gar::cli::add_reproduce(program, context);
  gar::cli::add_completion(program, context);
  gar::cli::add_manual(program, context);
  program.add_subcommand("help", "Print this help, or that of a verb: gar help plan");  // run_program does it
  call_verbs(program);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Context context;
    CLI::App program("Predicts, plans, proves, simulates and runs the fastest AllReduce for a network.", "gar");
    set_up(program, context);
    return gar::cli::run_program(program, context, argc, argv);
  } catch (const std::exception& error) {
    gar::cli::print_failure(error.what());
    return gar::cli::kExitRunTime;
  }
}
