#include "apps/gar/views/page.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>

#include "apps/gar/cli/command.hpp"
#include "apps/gar/cli/output.hpp"
#include "apps/gar/views/machine_show.hpp"
#include "gar/environment.hpp"
#include "gar/files.hpp"

namespace gar::cli {
namespace {

std::string processor_words(const Machine& machine) {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  std::string model = "unknown processor";
  while (std::getline(info, line)) {
    if (!line.starts_with("model name")) continue;
    model = line.substr(std::min(line.find(':') + 2, line.size()));
    break;
  }
  int num_cores = 0;
  for (const MachineNode& node : machine.nodes) num_cores += node.num_cores;
  return num_cores > 0 ? fmt::format("{}, {} core{}", model, num_cores, num_cores == 1 ? "" : "s") : model;
}

std::string link_words(const Machine& machine) {
  std::string out;
  for (const MachineLink& link : machine.links) {
    out += out.empty() ? "" : ", ";
    out += link.bits_per_s > 0 ? fmt::format("{} {}", link.name, format_link_speed(32 / link.bits_per_s)) : link.name;
  }
  return out;
}

}  // namespace

void add_html_option(CLI::App& verb, std::string& path) {
  verb.add_option("--html", path, "Also write a page with pictures to this file")->type_name("FILE");
}

ReportOrigin this_machine() {
  ReportOrigin out;
  utsname system{};
  const Machine machine = read_machine();
  if (uname(&system) == 0) out.facts.emplace_back("kernel", fmt::format("{} {}", system.sysname, system.release));
  out.facts.emplace_back("processor", processor_words(machine));
  if (const std::string links = link_words(machine); !links.empty())
    out.facts.emplace_back("network interfaces", links);
  for (const EnvironmentVariable& variable : environment::kAll) {
    const std::string value = environment::text(variable);
    if (!value.empty() && variable.reader != EnvironmentReader::kInternal) out.facts.emplace_back(variable.name, value);
  }
  out.commands.push_back(own_command());
  return out;
}

void add_own_command(ReportPage& page) {
  page.section("How this page was made");
  page.code(own_command());
}

void save_page(const ReportPage& page, const std::string& path, bool is_quiet) {
  const std::string text = page.html(date_of_now());
  save_file(path, [&](std::ostream& file) { file << text; });
  if (!is_quiet && path != "/dev/stdout") print(fmt::format("page written to {}\n", escaped(path)));
}

}  // namespace gar::cli
