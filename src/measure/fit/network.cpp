// Where the ranks of a fit are. Which ranks share a host their world says; which share a machine (and its cores) its
// boot id does, which hosts that only pretend to be several have in common.
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
#include "topology/hosts.hpp"

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
  const std::vector<std::string> boots = control.gather_texts(first_line("/proc/sys/kernel/random/boot_id"));
  const std::vector<std::string> processors = control.gather_texts(own_processors());
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

Provenance find_provenance(World& world, Control& control, const std::vector<int>& host_of) {
  Provenance out;
  out.date = date_now();
  out.command = words_of(own_arguments());
  out.gar_version = version();
  utsname names = {};
  uname(&names);
  const std::vector<std::string> host_names = control.gather_texts(names.nodename);
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
  const int num_hosts = 1 + *std::max_element(host_of.begin(), host_of.end());
  HostNodes nodes;
  nodes.rank.name = nodes.lone_rank.name = "rank";
  nodes.host.name = "host";
  nodes.network.name = "network";
  if (num_hosts == 1 || num_hosts < static_cast<int>(host_of.size())) {
    return topology_of_hosts(num_hosts == 1 ? "host" : "network", host_of, {}, nodes);
  }
  // One rank on every host: the hosts themselves are the servers.
  nodes.rank.name = "host";
  nodes.host.name = "network";
  return topology_of_hosts("network", std::vector<int>(host_of.size(), 0), {}, nodes);
}

Topology place_on(const Topology& network, const std::vector<int>& host_of) {
  if (network.num_servers() == static_cast<std::int64_t>(host_of.size())) return network;
  const std::vector<std::int64_t> servers = servers_of_ranks(network, host_of);
  check_order(network, servers);
  Node rank;
  rank.name = "rank";
  return place_ranks(network, servers, rank);
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

/// Ranks on one GPU share its memory, just as ranks on one core share that core.
void place_on_gpus(CudaSession& cuda, const FitConfig& config, FitNetwork& out) {
  const auto num_ranks = static_cast<double>(out.host_of.size());
  out.provenance.transport = num_ranks > 1 ? std::string(to_string(config.transport)) : "";
  if (num_ranks > 1 && config.transport == TransportKind::kCudaIpc) out.access = OperandAccess::kDirect;
  out.cores = shared_cores(out.topology, cuda.num_devices(), num_ranks);
}

}  // namespace

FitNetwork find_network(World& world, Control& control, const FitConfig& config) {
  const auto size = static_cast<std::size_t>(world.size());
  std::vector<int> host_of = world.hosts(control);
  const int num_hosts = 1 + *std::max_element(host_of.begin(), host_of.end());
  Topology topology = config.topology ? place_on(*config.topology, host_of) : discovered_topology(host_of);
  FitNetwork out{std::move(topology)};
  out.provenance = find_provenance(world, control, host_of);
  out.host_of = std::move(host_of);
  out.is_memory = num_hosts < static_cast<int>(size);
  const bool is_tcp = config.transport == TransportKind::kTcp;
  const bool is_mpi = world.mpi() != nullptr && config.transport == TransportKind::kMpi;
  const std::string messages = is_tcp || config.transport == TransportKind::kShmTcp ? "tcp" : "mpi";
  out.has_messages = is_mpi || is_tcp || num_hosts > 1;
  out.provenance.transport = num_hosts == static_cast<int>(size) || is_mpi || is_tcp ? messages
                             : num_hosts > 1                                         ? "shm+" + messages
                                                                                     : "shm";
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
