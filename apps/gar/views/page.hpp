// Pages that `gar report` and --html write.
#pragma once

#include <filesystem>
#include <string>

#include "gar/report.hpp"

namespace CLI {
class App;
}

namespace gar::cli {

/// Adds `--html FILE`.
void add_html_option(CLI::App& verb, std::string& path);

/// Kernel, processor, its governor, network interfaces and MTU, what TCP is set to, the MPI library (empty: none), the
/// environment variables that are set, and this command. What cannot be read below `root` is left out.
Origin this_machine(const std::string& mpi = "", const std::filesystem::path& root = "/");

/// Adds this command, for pages of what was measured at another time or not at all.
void add_own_command(ReportPage& page);

/// Writes the page, and says where it is unless `is_quiet`: standard output is for data then.
void save_page(const ReportPage& page, const std::string& path, bool is_quiet);

}  // namespace gar::cli
