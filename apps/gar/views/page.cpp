#include "apps/gar/views/page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <set>

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

/// The first line of a file, blanks instead of tabs; empty when it cannot be read.
std::string one_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

/// "eth0 1500, eth1 9000"
std::string mtu_words(const std::filesystem::path& interfaces) {
  std::set<std::string> words;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(interfaces, error)) {
    const std::string name = entry.path().filename().string();
    const std::string mtu = one_line(entry.path() / "mtu");
    if (name != "lo" && !mtu.empty()) words.insert(name + " " + mtu);
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

void add_html_option(CLI::App& verb, std::string& path) {
  verb.add_option("--html", path, "Also write a page with pictures to this file")->type_name("FILE");
}

Origin this_machine(const std::string& mpi, const std::filesystem::path& root) {
  Origin out;
  utsname system{};
  const Machine machine = read_machine(root);
  if (uname(&system) == 0) out.facts.emplace_back("kernel", fmt::format("{} {}", system.sysname, system.release));
  out.facts.emplace_back("processor", processor_words(machine));
  if (const std::string links = link_words(machine); !links.empty())
    out.facts.emplace_back("network interfaces", links);
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) out.facts.emplace_back(name, value);
  };
  add("processor governor", one_line(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  add("MTU", mtu_words(root / "sys/class/net"));
  const std::filesystem::path tcp = root / "proc/sys/net/ipv4";
  add("TCP congestion control", one_line(tcp / "tcp_congestion_control"));
  add("TCP receive buffer (least, usual, most)", one_line(tcp / "tcp_rmem"));
  add("TCP send buffer (least, usual, most)", one_line(tcp / "tcp_wmem"));
  add("MPI", mpi);
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
