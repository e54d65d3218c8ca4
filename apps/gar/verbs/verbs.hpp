// The verbs of the command line program. A verb lives in one file (a long list of flags in NAME_options.cpp),
// which adds its subcommand to the program and, when the user calls it, runs and returns an exit code (see on_run in
// common.hpp). A new verb: a declaration here, a line in main.cpp, a file of its own.
#pragma once

#include "apps/gar/cli/common.hpp"

namespace gar::cli {

void add_topo(CLI::App& program, Context& context);
void add_predict(CLI::App& program, Context& context);
void add_plan(CLI::App& program, Context& context);
void add_verify(CLI::App& program, Context& context);
void add_simulate(CLI::App& program, Context& context);
void add_compare(CLI::App& program, Context& context);
void add_bench(CLI::App& program, Context& context);
void add_fit(CLI::App& program, Context& context);
void add_tune(CLI::App& program, Context& context);
/// `gar store`: where ranks find each other.
void add_store(CLI::App& program, Context& context);
void add_mpirun(CLI::App& program, Context& context);
/// `gar profile show|diff`.
void add_profile(CLI::App& program, Context& context);
void add_diagnose(CLI::App& program, Context& context);
/// `gar nccl explain`.
void add_nccl(CLI::App& program, Context& context);
void add_explore(CLI::App& program, Context& context);
void add_report(CLI::App& program, Context& context);
void add_demo(CLI::App& program, Context& context);
void add_reproduce(CLI::App& program, Context& context);
/// What `gar reproduce` knows: "all", "fig:costmodel", ...
std::vector<std::string> reproduction_names();
/// `gar completion bash|zsh|fish`.
void add_completion(CLI::App& program, Context& context);
/// `gar manual`: the manual page, for the installation.
void add_manual(CLI::App& program, Context& context);

}  // namespace gar::cli
