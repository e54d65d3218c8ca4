#include "apps/gar/views/machine_show.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "apps/gar/cli/output.hpp"
#include "gar/version.hpp"

namespace gar::cli {
namespace {

namespace fs = std::filesystem;

// No machine has more; a list such as "0-4294967295" must not become a loop.
constexpr int kMostProcessors = 1 << 16;

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<int> leading_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// "0-3,8" as 0 1 2 3 8.
std::vector<int> cpu_list(const std::string& text) {
  std::vector<int> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    const std::size_t dash = part.find('-');
    const auto first = leading_number(part);
    const auto last = dash == std::string_view::npos ? first : leading_number(part.substr(dash + 1));
    if (first && last && *first >= 0 && *last < kMostProcessors) {
      for (int cpu = *first; cpu <= *last; ++cpu) out.push_back(cpu);
    }
    begin = end + 1;
  }
  return out;
}

/// The entries of a folder that are called `prefix` and a number, by that number.
std::map<int, fs::path> numbered(const fs::path& folder, std::string_view prefix) {
  std::map<int, fs::path> out;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    if (const auto number = leading_number(std::string_view(name).substr(prefix.size()))) out[*number] = entry.path();
  }
  return out;
}

// "Node 0 MemTotal:  16384 kB" or "MemTotal:  16384 kB".
std::int64_t memory_of(const fs::path& meminfo) {
  std::ifstream in(meminfo);
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find("MemTotal:");
    if (at == std::string::npos) continue;
    const std::size_t digits = line.find_first_of("0123456789", at);
    if (digits == std::string::npos) return 0;
    std::int64_t kib = 0;
    std::from_chars(line.data() + digits, line.data() + line.size(), kib);
    return std::clamp<std::int64_t>(kib, 0, std::int64_t{1} << 50) * 1024;
  }
  return 0;
}

void count_processors(const fs::path& cpus, const std::vector<int>& list, MachineNode& node) {
  std::set<std::pair<int, int>> cores;
  node.socket = list.empty() ? -1 : 0;
  for (const int cpu : list) {
    const fs::path topology = cpus / fmt::format("cpu{}", cpu) / "topology";
    const int socket = leading_number(first_line(topology / "physical_package_id")).value_or(0);
    cores.emplace(socket, leading_number(first_line(topology / "core_id")).value_or(cpu));
    node.socket = socket;
  }
  node.num_cores = static_cast<int>(cores.size());
  node.num_threads = static_cast<int>(list.size());
}

std::vector<MachineLink> read_links(const fs::path& root) {
  std::vector<MachineLink> out;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "sys/class/net", error)) {
    const std::string name = entry.path().filename().string();
    // Bridges, tunnels and the loopback have no device; InfiniBand's own names come below.
    if (!fs::exists(entry.path() / "device", error) || name.starts_with("ib")) continue;
    const int mbits = leading_number(first_line(entry.path() / "speed")).value_or(0);
    out.push_back({name, std::max(mbits, 0) * 1e6, false});
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "sys/class/infiniband", error)) {
    for (const auto& [port, path] : numbered(entry.path() / "ports", "")) {
      const int gbits = leading_number(first_line(path / "rate")).value_or(0);
      out.push_back({fmt::format("{}:{}", entry.path().filename().string(), port), std::max(gbits, 0) * 1e9, true});
    }
  }
  std::sort(out.begin(), out.end(), [](const MachineLink& a, const MachineLink& b) { return a.name < b.name; });
  return out;
}

std::string counted(std::int64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string link_words(const MachineLink& link) {
  const std::string speed = link.bits_per_s > 0 ? " " + format_link_speed(32 / link.bits_per_s) : "";
  return link.name + speed + (link.is_infiniband ? " InfiniBand" : "");
}

struct MachineTotals {
  int cores = 0;
  int threads = 0;
  std::int64_t memory = 0;
  std::set<int> sockets;
};

MachineTotals totals_of(const Machine& machine) {
  MachineTotals out;
  for (const MachineNode& node : machine.nodes) {
    out.cores += node.num_cores;
    out.threads += node.num_threads;
    out.memory += node.memory_bytes;
    if (node.socket >= 0) out.sockets.insert(node.socket);
  }
  return out;
}

std::string core_words(int cores, int threads) {
  return counted(cores, "core") + (threads > cores ? fmt::format(", {} threads", threads) : "");
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : escaped(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

Machine read_machine(const fs::path& root) {
  Machine out;
  out.name = first_line(root / "proc/sys/kernel/hostname");
  const fs::path cpus = root / "sys/devices/system/cpu";
  for (const auto& [number, path] : numbered(root / "sys/devices/system/node", "node")) {
    MachineNode node{.number = number, .memory_bytes = memory_of(path / "meminfo")};
    count_processors(cpus, cpu_list(first_line(path / "cpulist")), node);
    out.nodes.push_back(node);
  }
  if (out.nodes.empty()) {  // a kernel without NUMA
    MachineNode node{.memory_bytes = memory_of(root / "proc/meminfo")};
    count_processors(cpus, cpu_list(first_line(cpus / "online")), node);
    out.nodes.push_back(node);
  }
  out.links = read_links(root);
  std::error_code error;
  for ([[maybe_unused]] const fs::directory_entry& gpu :
       fs::directory_iterator(root / "proc/driver/nvidia/gpus", error)) {
    ++out.num_gpus;
  }
  return out;
}

std::string draw_machine(const Machine& machine, bool color) {
  const MachineTotals totals = totals_of(machine);
  std::string out =
      fmt::format("{}: {} in {}, {} of memory\n\n",
                  paint(escaped(machine.name.empty() ? "this machine" : machine.name), Paint::kBold, color),
                  core_words(totals.cores, totals.threads), counted(std::ssize(totals.sockets), "socket"),
                  format_binary_bytes(totals.memory));
  std::vector<std::string> rows;
  for (const int socket : totals.sockets) {
    std::vector<std::string> nodes;
    for (const MachineNode& node : machine.nodes) {
      if (node.socket != socket) continue;
      nodes.push_back(fmt::format("NUMA node {}: {}, {}", node.number, core_words(node.num_cores, node.num_threads),
                                  format_binary_bytes(node.memory_bytes)));
    }
    rows.push_back(fmt::format("socket {}", socket));
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      rows.push_back((i + 1 == nodes.size() ? "   └─ " : "   ├─ ") + nodes[i]);
    }
  }
  for (const MachineNode& node : machine.nodes) {
    if (node.socket >= 0) continue;
    rows.push_back(fmt::format("NUMA node {}: memory alone, {}", node.number, format_binary_bytes(node.memory_bytes)));
  }
  if (machine.num_gpus > 0) rows.push_back(counted(machine.num_gpus, "GPU"));
  for (const MachineLink& link : machine.links) rows.push_back(escaped(link_words(link)));
  for (const std::string& row : rows) out += fmt::format("{}{}\n", row.starts_with(" ") ? "" : "── ", row);
  const int ranks = std::max(totals.cores, 2);
  out += fmt::format(
      "\nNothing is measured yet. To plan for this machine:\n"
      "  gar fit --local {0} -o net.json && gar predict -p net.json --size 1MB\n",
      ranks);
  for (const MachineLink& link : machine.links) {
    if (link.bits_per_s <= 0) continue;
    std::string speed = format_link_speed(32 / link.bits_per_s);
    std::erase(speed, ' ');
    out += fmt::format(
        "To plan for 16 of them on one switch (2us: what a ping-pong shows):\n"
        "  gar predict -t star:16@{},2us --size 1MB\n",
        speed);
    break;
  }
  return out;
}

std::string machine_document(const Machine& machine) {
  std::vector<std::string> nodes;
  for (const MachineNode& node : machine.nodes) {
    nodes.push_back(fmt::format(R"({{"number": {}, "socket": {}, "cores": {}, "threads": {}, "memory_bytes": {}}})",
                                node.number, node.socket, node.num_cores, node.num_threads, node.memory_bytes));
  }
  std::vector<std::string> links;
  for (const MachineLink& link : machine.links) {
    links.push_back(fmt::format(R"({{"name": {}, "bits_per_s": {}, "infiniband": {}}})", json_text(link.name),
                                link.bits_per_s, link.is_infiniband));
  }
  return fmt::format(
      "{{\n  \"gar_version\": \"{}\",\n  \"schema\": \"gar.machine/1\",\n  \"name\": {},\n  \"numa_nodes\": [{}],\n"
      "  \"interfaces\": [{}],\n  \"gpus\": {}\n}}\n",
      version(), json_text(machine.name), fmt::join(nodes, ", "), fmt::join(links, ", "), machine.num_gpus);
}

}  // namespace gar::cli
