// The simulator's speed: next to SimGrid on the same work, alone at large sizes, and over the number of servers.
//
//   bench_peers            everything
//   bench_peers --peers    next to SimGrid
//   bench_peers --alone    large networks
//   bench_peers --curve    over the number of servers
//
// Every line runs in a process of its own. CPU time is that of the simulation (platform and programs included, making
// the plan not, no critical path); short ones are repeated. Peak memory is that of the process.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/planner.hpp"
#include "gar/simulate.hpp"
#include "simgrid_star.hpp"

namespace {

using gar::SimulationEngine;
using gar::bench::SimGridDriver;

constexpr double kSize = 1e7;  // floats: 40 MB per server
constexpr unsigned kLimitSeconds = 300;
constexpr rlim_t kLimitBytes = rlim_t{8} << 30;

struct Measured {
  double cpu_s = 0;
  double seconds = 0;  ///< simulated
  double flows = 0;
  double flow_classes = 0;
  double peak_megabytes = 0;
};

double cpu_now() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Runs f in a child; nothing when it fails, takes too long or too much memory.
std::optional<Measured> in_child(const std::function<Measured()>& f) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const rlimit limit{kLimitSeconds, kLimitSeconds};
    setrlimit(RLIMIT_CPU, &limit);
    const rlimit memory{kLimitBytes, kLimitBytes};
    setrlimit(RLIMIT_AS, &memory);
    alarm(2 * kLimitSeconds);
    try {
      const Measured result = f();
      _exit(write(ends[1], &result, sizeof result) == static_cast<ssize_t>(sizeof result) ? 0 : 1);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "bench_peers: %s\n", error.what());
      _exit(1);
    }
  }
  close(ends[1]);
  Measured result;
  const bool is_read = read(ends[0], &result, sizeof result) == static_cast<ssize_t>(sizeof result);
  close(ends[0]);
  rusage usage{};
  wait4(child, nullptr, 0, &usage);
  if (!is_read) return std::nullopt;
  result.peak_megabytes = static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
  return result;
}

/// The mean of so many runs that the clock's grain does not matter.
template <class F>
Measured mean(F f) {
  constexpr double kLongEnough = 0.3;
  Measured last = f();
  double sum_s = last.cpu_s;
  int num_runs = 1;
  for (; sum_s < kLongEnough && num_runs < 10'000; ++num_runs) {
    last = f();
    sum_s += last.cpu_s;
  }
  last.cpu_s = sum_s / num_runs;
  return last;
}

gar::Plan plan_of(const std::string& algorithm, const gar::Topology& topology) {
  const gar::AlgorithmSpec spec = gar::parse_algorithm(algorithm);
  if (!gar::is_tree_planner(spec)) return gar::build_plan(spec, topology.num_servers());
  return gar::plan({.topology = topology, .size_floats = kSize, .algorithms = {spec}}).plan;
}

/// A switch with servers of which no two have links of the same speed.
gar::Topology all_different(std::int64_t n, bool has_incast) {
  gar::PaperParams p;
  if (!has_incast) p.server_link.epsilon = 0;
  std::vector<gar::Node> nodes;
  gar::Node root{"root", p.alpha, {}, {}, {}};
  for (std::int64_t i = 0; i < n; ++i) {
    gar::Node server{"server" + std::to_string(i), p.alpha, p.server_link, p.server, {}};
    server.uplink.beta *= 1 + static_cast<double>(i * 7919 % n) / static_cast<double>(n);
    nodes.push_back(std::move(server));
    root.children.push_back({static_cast<gar::NodeId>(i), 1});
  }
  nodes.push_back(std::move(root));
  return gar::Topology("all-different", std::move(nodes), static_cast<gar::NodeId>(n));
}

using MakeTopology = std::function<gar::Topology()>;

std::optional<Measured> measure_ours(const MakeTopology& make_topology, const std::string& algorithm,
                                     SimulationEngine engine) {
  return in_child([&] {
    const gar::Topology topology = make_topology();
    const gar::Plan plan = plan_of(algorithm, topology);
    gar::SimulationOptions options;
    options.engine = engine;
    options.keep_path = false;
    return mean([&] {
      const double start = cpu_now();
      const gar::Simulation s = gar::simulate(plan, topology, kSize, options);
      return Measured{cpu_now() - start, s.seconds, s.flows, static_cast<double>(s.flow_classes), 0};
    });
  });
}

std::optional<Measured> measure_simgrid(const MakeTopology& make_topology, const std::string& algorithm,
                                        SimGridDriver driver) {
  const auto once = [&] {
    return in_child([&] {
      const gar::Topology topology = make_topology();
      const gar::Plan plan = plan_of(algorithm, topology);
      const double start = cpu_now();
      const gar::bench::SimGridResult r = gar::bench::run_simgrid_on_star(plan, topology, kSize, driver);
      return Measured{cpu_now() - start, r.seconds, r.flows, r.flows, 0};
    });
  };
  const std::optional<Measured> first = once();
  if (!first || first->cpu_s > 3) return first;
  std::vector<Measured> runs{*first};
  for (int i = 0; i < 2; ++i) {
    if (const auto again = once()) runs.push_back(*again);
  }
  std::sort(runs.begin(), runs.end(), [](const Measured& a, const Measured& b) { return a.cpu_s < b.cpu_s; });
  return runs[runs.size() / 2];
}

std::string cpu_text(double seconds) {
  return seconds < 0.1 ? fmt::format("{:.3f} ms", 1e3 * seconds) : fmt::format("{:.2f} s", seconds);
}

// --- next to SimGrid
// ---------------------------------------------------------------------------------------------------

struct PeerCase {
  std::string network;
  MakeTopology make_topology;
  std::string algorithm;
  std::vector<SimGridDriver> drivers;
  double flows_aim = 0;     ///< times faster than SimGrid's first driver, every flow on its own; 0: none
  bool has_classes = true;  ///< classes are tried, too
};

std::string driver_name(SimGridDriver driver) {
  if (driver == SimGridDriver::kPlain) return "plain";
  return driver == SimGridDriver::kTuned ? "tuned" : "eager";
}

void print_peer_case(const PeerCase& c) {
  std::vector<std::pair<std::string, Measured>> theirs;
  const auto line = [&](const std::string& simulator, const std::optional<Measured>& m, std::optional<double> aim) {
    fmt::print("{:<34}{:<18}", c.algorithm + ", " + c.network, simulator);
    if (!m) {
      fmt::print("{:>11}\n", "failed");
      return;
    }
    fmt::print("{:>11}{:>6.0f} MB{:>16.9g}", cpu_text(m->cpu_s), m->peak_megabytes, m->seconds);
    if (aim) {
      for (const auto& [driver, peer] : theirs) {
        const double reached = peer.cpu_s / m->cpu_s;
        if (driver == theirs.front().first) {
          fmt::print("{:>12.1e}  {}: ", m->seconds / peer.seconds - 1, driver);
          if (*aim > 0) fmt::print("aim {:.0f}x: ", *aim);
          fmt::print("{:.0f}x{}", reached, reached < *aim ? " MISSED" : "");
        } else {
          fmt::print("; {}: {:.0f}x", driver, reached);
        }
      }
    }
    fmt::print("\n");
    std::fflush(stdout);
  };
  for (const SimGridDriver driver : c.drivers) {
    const auto m = measure_simgrid(c.make_topology, c.algorithm, driver);
    line("SimGrid, " + driver_name(driver), m, std::nullopt);
    if (m) theirs.emplace_back(driver_name(driver), *m);
  }
  line("gar, every flow", measure_ours(c.make_topology, c.algorithm, SimulationEngine::kFlows), c.flows_aim);
  if (!c.has_classes) return;
  line("gar, classes", measure_ours(c.make_topology, c.algorithm, SimulationEngine::kClasses), 0);
}

void print_peers() {
  const auto star = [](std::int64_t n) { return [n] { return gar::topology_from_spec("star:" + std::to_string(n)); }; };
  const auto different = [](std::int64_t n) { return [n] { return all_different(n, false); }; };
  const std::vector<SimGridDriver> both{SimGridDriver::kPlain, SimGridDriver::kTuned};
  fmt::print("Next to SimGrid: AllReduce of {:g} floats per server, the paper's parameters, incast on equal links\n",
             kSize);
  fmt::print("{:<34}{:<18}{:>11}{:>9}{:>16}{:>12}  {}\n", "what", "simulator", "CPU", "peak", "simulated s",
             "difference", "times faster than SimGrid");
  for (const PeerCase& c : std::vector<PeerCase>{
           {"star:384", star(384), "ring", both, 0},
           {"star:512", star(512), "ring", both, 20},
           {"star:384", star(384), "hcps:24x16", both, 0},
           {"star:384", star(384), "hcps:8x6x8", both, 0},
           {"star:384", star(384), "cps", both, 300},
           {"64 different links", different(64), "cps", {SimGridDriver::kEager}, 0, false},
           {"128 different links", different(128), "ring", {SimGridDriver::kEager}, 0, false},
           {"384 different links", different(384), "hcps:8x6x8", {SimGridDriver::kEager}, 0, false}}) {
    print_peer_case(c);
  }
}

// --- alone
// -------------------------------------------------------------------------------------------------------------

void print_alone() {
  struct Case {
    std::string network, algorithm;
    SimulationEngine engine;
    double aim_s, aim_megabytes;  ///< 0: none
  };
  const std::vector<Case> cases{{"star:4096", "cps", SimulationEngine::kFlows, 10, 1000},
                                {"star:1000000", "ring", SimulationEngine::kClasses, 1, 0},
                                {"star:1000000", "cps", SimulationEngine::kClasses, 1, 0},
                                {"star:1000000", "hcps:100x100x100", SimulationEngine::kClasses, 1, 0},
                                {"tree:1000x1000", "gentree", SimulationEngine::kClasses, 1, 0},
                                {"tree:1000x1000", "gentree+", SimulationEngine::kClasses, 1, 0}};
  fmt::print("\nAlone\n{:<36}{:<12}{:>10}{:>14}{:>11}{:>9}{:>16}  {}\n", "what", "engine", "flows", "flow classes",
             "CPU", "peak", "simulated s", "aim");
  for (const Case& c : cases) {
    const auto m = measure_ours([&] { return gar::topology_from_spec(c.network); }, c.algorithm, c.engine);
    fmt::print("{:<36}{:<12}", c.algorithm + ", " + c.network,
               c.engine == SimulationEngine::kFlows ? "every flow" : "classes");
    if (!m) {
      fmt::print("{:>10}\n", "failed");
      continue;
    }
    const bool is_met = m->cpu_s < c.aim_s && (c.aim_megabytes == 0 || m->peak_megabytes < c.aim_megabytes);
    fmt::print("{:>10.3g}{:>14.3g}{:>11}{:>6.0f} MB{:>16.9g}  < {} s{}: {}\n", m->flows, m->flow_classes,
               cpu_text(m->cpu_s), m->peak_megabytes, m->seconds, c.aim_s,
               c.aim_megabytes > 0 ? fmt::format(", {:.0f} MB", c.aim_megabytes) : "", is_met ? "met" : "MISSED");
    std::fflush(stdout);
  }
}

// --- over the number of servers
// ------------------------------------------------------------------------------------------

/// Fan-ins of at most 16.
std::string hcps_of(std::int64_t n) {
  std::string text;
  for (std::int64_t left = n; left > 1;) {
    std::int64_t f = 16;
    while (left % f != 0) --f;
    text += (text.empty() ? "hcps:" : "x") + std::to_string(f);
    left /= f;
  }
  return text;
}

std::string tree_of(std::int64_t n) {
  auto racks = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % racks != 0) --racks;
  return "tree:" + std::to_string(racks) + "x" + std::to_string(n / racks);
}

void print_curve() {
  constexpr double kEnough = 10;  // seconds: nothing is started that would take longer
  struct Curve {
    std::string what;
    SimulationEngine engine;
    std::function<gar::Topology(std::int64_t)> network;
    std::function<std::string(std::int64_t)> algorithm;
    double growth;  ///< of the time: with which power of the servers, about
  };
  const auto star = [](std::int64_t n) { return gar::topology_from_spec("star:" + std::to_string(n)); };
  const auto tree = [](std::int64_t n) { return gar::topology_from_spec(tree_of(n)); };
  const auto different = [](std::int64_t n) { return all_different(n, true); };
  const auto always = [](const std::string& algorithm) { return [=](std::int64_t) { return algorithm; }; };
  const std::vector<Curve> curves{{"star", SimulationEngine::kFlows, star, hcps_of, 1.2},
                                  {"star", SimulationEngine::kFlows, star, always("ring"), 2},
                                  {"star", SimulationEngine::kFlows, star, always("cps"), 2},
                                  {"tree", SimulationEngine::kFlows, tree, always("gentree"), 1.2},
                                  {"all different", SimulationEngine::kFlows, different, hcps_of, 1.2},
                                  {"all different", SimulationEngine::kFlows, different, always("ring"), 2},
                                  {"all different", SimulationEngine::kFlows, different, always("cps"), 4},
                                  {"star", SimulationEngine::kClasses, star, hcps_of, 1},
                                  {"star", SimulationEngine::kClasses, star, always("ring"), 1},
                                  {"star", SimulationEngine::kClasses, star, always("cps"), 1},
                                  {"tree", SimulationEngine::kClasses, tree, always("gentree"), 1}};
  fmt::print(
      "\nOver the number of servers, up to about {:g} s\n{:<12}{:<16}{:<28}{:>10}{:>12}{:>14}{:>11}{:>12}{:>9}\n",
      kEnough, "engine", "network", "plan", "servers", "flows", "flow classes", "CPU", "ns per flow", "peak");
  for (const Curve& curve : curves) {
    double last_s = 0;
    std::int64_t last_n = 0;
    for (const std::int64_t n : {64, 256, 1024, 4096, 16384, 65536, 262144, 1000000}) {
      const std::string algorithm = curve.algorithm(n);
      const double more = last_n == 0 ? 0 : static_cast<double>(n) / static_cast<double>(last_n);
      if (last_s * std::pow(more, curve.growth) > kEnough) break;
      const auto m = measure_ours([&] { return curve.network(n); }, algorithm, curve.engine);
      fmt::print("{:<12}{:<16}{:<28}{:>10}", curve.engine == SimulationEngine::kFlows ? "every flow" : "classes",
                 curve.what, algorithm, n);
      if (!m) {
        fmt::print("{:>12}\n", "failed");
        break;
      }
      fmt::print("{:>12.4g}{:>14.4g}{:>11}{:>12.3g}{:>6.0f} MB\n", m->flows, m->flow_classes, cpu_text(m->cpu_s),
                 1e9 * m->cpu_s / m->flows, m->peak_megabytes);
      std::fflush(stdout);
      last_s = m->cpu_s;
      last_n = n;
      if (last_s > kEnough) break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 2 ? argv[1] : "";
  if (argc > 2 || (argc == 2 && what != "--peers" && what != "--alone" && what != "--curve")) {
    fmt::print(stderr, "usage: bench_peers [--peers | --alone | --curve]\n");
    return 2;
  }
  if (what.empty() || what == "--peers") print_peers();
  if (what.empty() || what == "--alone") print_alone();
  if (what.empty() || what == "--curve") print_curve();
}
