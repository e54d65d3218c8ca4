// Where the ranks of a fit are. Which ranks share a host MPI says; which share a machine (and its cores) its boot id
// does, which hosts that only pretend to be several have in common.
#include "measure/fit/network.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "gar/errors.hpp"
#include "gar/version.hpp"
#include "measure/fit/engine.hpp"

namespace gar::measure {
namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The processors that this process may use, as a text of numbers.
std::string own_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string out;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return out;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) out += fmt::format("{} ", i);
  }
  return out;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname names = {};
  return uname(&names) == 0 ? names.machine : "unknown";
}

/// The machines that ranks run on, each with its ranks and the processors that they may use.
struct Machine {
  std::int64_t num_ranks = 0;
  std::set<int> processors;
};
std::map<std::string, Machine> find_machines(Control& control) {
  const std::vector<std::string> boots = gather_texts(control, first_line("/proc/sys/kernel/random/boot_id"));
  const std::vector<std::string> processors = gather_texts(control, own_processors());
  std::map<std::string, Machine> out;
  for (std::size_t r = 0; r < boots.size(); ++r) {
    Machine& machine = out[boots[r]];
    ++machine.num_ranks;
    std::istringstream words(processors[r]);
    machine.processors.insert(std::istream_iterator<int>(words), std::istream_iterator<int>());
  }
  return out;
}

std::string words_of(const std::vector<std::string>& arguments) {
  std::string out;
  for (const std::string& argument : arguments) out += (out.empty() ? "" : " ") + argument;
  return out;
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

Provenance find_provenance(GroupWorld& world, Control& control, const std::vector<int>& host_of) {
  Provenance out;
  out.date = date_now();
  out.command = words_of(own_arguments());
  out.gar_version = version();
  utsname names = {};
  uname(&names);
  const std::vector<std::string> host_names = gather_texts(control, names.nodename);
  for (std::size_t r = 0; r < host_names.size(); ++r) {
    const bool is_new = std::find(out.hosts.begin(), out.hosts.end(), host_names[r]) == out.hosts.end();
    if (is_new && (r == 0 || host_of[r] != host_of[r - 1])) out.hosts.push_back(host_names[r]);
  }
  out.kernel = fmt::format("{} {}", names.sysname, names.release);
  if (world.mpi() != nullptr) out.mpi = world.mpi()->library_version();
  if (world.cuda() != nullptr) out.device = world.cuda()->words();
  out.num_ranks = world.size();
  return out;
}

}  // namespace

Topology discovered_topology(const std::vector<int>& host_of) {
  std::vector<std::int64_t> ranks_of_host;
  bool is_in_order = true;
  for (std::size_t r = 0; r < host_of.size(); ++r) {
    if (r > 0 && host_of[r] == host_of[r - 1]) {
      ++ranks_of_host.back();
      continue;
    }
    is_in_order = is_in_order && host_of[r] == static_cast<int>(ranks_of_host.size());
    ranks_of_host.push_back(1);
  }
  const auto num_ranks = static_cast<std::int64_t>(host_of.size());
  std::vector<Node> nodes(1);
  nodes[0].name = "rank";
  Node root;
  root.name = ranks_of_host.size() == 1 ? "host" : "network";
  const bool has_several = *std::max_element(ranks_of_host.begin(), ranks_of_host.end()) > 1;
  if (ranks_of_host.size() == 1 || !is_in_order) {
    root.children = {{0, num_ranks}};
  } else if (!has_several) {
    nodes[0].name = "host";
    root.children = {{0, num_ranks}};
  } else {
    for (const std::int64_t count : ranks_of_host) {
      Node host;
      host.name = "host";
      host.children = {{0, count}};
      root.children.push_back({static_cast<NodeId>(nodes.size()), 1});
      nodes.push_back(std::move(host));
    }
  }
  nodes.push_back(std::move(root));
  const auto id = static_cast<NodeId>(nodes.size()) - 1;
  return {ranks_of_host.size() == 1 ? "host" : "network", std::move(nodes), id};
}

Topology place_on(const Topology& network, const std::vector<int>& host_of) {
  const auto num_ranks = static_cast<std::int64_t>(host_of.size());
  if (network.num_servers() == num_ranks) return network;
  const std::int64_t num_hosts = 1 + *std::max_element(host_of.begin(), host_of.end());
  if (network.num_servers() != num_hosts || num_hosts < 2) {
    throw InvalidArgument(
        fmt::format("the topology '{}' has {} servers, but there are {} ranks on {} host{}; accepted is one server per "
                    "rank, such as star:{}, or one per host",
                    network.name(), network.num_servers(), num_ranks, num_hosts, num_hosts == 1 ? "" : "s", num_ranks));
  }
  if (!std::is_sorted(host_of.begin(), host_of.end())) {
    throw InvalidArgument(
        fmt::format("the topology '{}' has one server per host, and the ranks of a host do not follow each other; "
                    "accepted is a job whose ranks fill one host after the other",
                    network.name()));
  }
  Node rank;
  rank.name = "rank";
  return place_ranks(network, {host_of.begin(), host_of.end()}, rank);
}

double shared_cores(const Topology& topology, double num_cores, double num_ranks) {
  if (num_ranks <= num_cores) return 0;
  std::int64_t most = 1;  // ranks below a lowest switch
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    if (topology.height(id) == 1) most = std::max(most, topology.num_servers(id));
  }
  return num_cores * std::min(1.0, static_cast<double>(most) / num_ranks);
}

namespace {

/// Ranks that share a GPU share its memory, as ranks that share a core do that.
void place_on_gpus(CudaSession& cuda, const FitConfig& config, FitNetwork& out) {
  const auto num_ranks = static_cast<double>(out.host_of.size());
  out.provenance.transport = num_ranks > 1 ? word(config.transport) : "";
  if (num_ranks > 1 && config.transport == BenchTransport::kCudaIpc) out.access = OperandAccess::kDirect;
  out.cores = shared_cores(out.topology, cuda.num_devices(), num_ranks);
}

}  // namespace

FitNetwork find_network(GroupWorld& world, Control& control, const FitConfig& config) {
  const auto size = static_cast<std::size_t>(world.size());
  std::vector<int> host_of = world.mpi() != nullptr ? world.mpi()->hosts() : std::vector<int>(size, 0);
  const int num_hosts = 1 + *std::max_element(host_of.begin(), host_of.end());
  Topology topology = config.topology ? place_on(*config.topology, host_of) : discovered_topology(host_of);
  FitNetwork out{std::move(topology)};
  out.provenance = find_provenance(world, control, host_of);
  out.host_of = std::move(host_of);
  out.is_memory = num_hosts < static_cast<int>(size);
  const bool is_mpi = world.mpi() != nullptr && config.transport == BenchTransport::kMpi;
  out.has_messages = is_mpi || num_hosts > 1;
  out.provenance.transport = num_hosts == static_cast<int>(size) || is_mpi ? "mpi" : num_hosts > 1 ? "shm+mpi" : "shm";
  for (const auto& [boot, machine] : find_machines(control)) {
    const auto num_ranks = static_cast<double>(machine.num_ranks);
    const auto num_processors = std::max(static_cast<double>(machine.processors.size()), 1.0);
    out.ranks_per_machine = std::max(out.ranks_per_machine, machine.num_ranks);
    const double cores = shared_cores(out.topology, num_processors, num_ranks);
    if (cores > 0 && (out.cores == 0 || cores < out.cores)) out.cores = cores;
    if (out.provenance.cpu.empty()) {
      out.provenance.cpu = fmt::format("{}, {} core{}", cpu_model(), num_processors, num_processors == 1 ? "" : "s");
    }
  }
  if (world.cuda() != nullptr) place_on_gpus(*world.cuda(), config, out);
  return out;
}

}  // namespace gar::measure
