// gar demo: half a minute, half a screen, one number. This machine is measured, an AllReduce is planned and proved, and
// runs against the MPI library's own: between processes here, and on a virtual cluster where one can be made. Without
// an MPI the number comes from the simulator.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "apps/gar/cli/environment.hpp"
#include "apps/gar/cli/interrupt.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/page.hpp"
#include "gar/algorithms.hpp"
#include "gar/documents.hpp"
#include "gar/explain_topology.hpp"
#include "gar/files.hpp"
#include "gar/measure/launch.hpp"
#include "gar/plan_io.hpp"
#include "gar/planner.hpp"
#include "gar/profile_io.hpp"
#include "gar/report.hpp"
#include "gar/results_io.hpp"
#include "gar/simulate.hpp"
#include "gar/topology_io.hpp"
#include "gar/verify.hpp"

namespace gar::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kProcesses = 4;
constexpr int kHosts = 12;
constexpr std::string_view kProcessSize = "4MiB";
constexpr std::string_view kClusterSize = "1MB";
constexpr std::string_view kSimulatedNetwork = "tree:16x24";
constexpr std::string_view kSimulatedSize = "400MB";

/// A command that has run.
struct CommandResult {
  int code = 0;  ///< -1: it could not be started, or was killed
  std::string out;
  std::string err;
};

/// Memory that takes what a command prints.
class Catcher {
 public:
  Catcher() : file_(memfd_create("gar-demo", MFD_CLOEXEC)) {
    if (file_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
  ~Catcher() { close(file_); }
  Catcher(const Catcher&) = delete;
  Catcher& operator=(const Catcher&) = delete;
  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] std::string text() const {
    std::string out;
    std::array<char, 4096> part{};
    for (ssize_t size = 0; (size = pread(file_, part.data(), part.size(), static_cast<off_t>(out.size()))) > 0;) {
      out.append(part.data(), static_cast<std::size_t>(size));
    }
    return out;
  }

 private:
  int file_;
};

/// Runs a command, which ends with this process, to its end.
CommandResult run_quietly(const std::vector<std::string>& words) {
  const Catcher out;
  const Catcher err;
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "starting " + words.front());
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(kExitRunTime);
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(out.file(), STDOUT_FILENO);
    dup2(err.file(), STDERR_FILENO);
    try {
      become(words);
    } catch (const std::exception&) {
      _exit(127);
    }
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out.text(), err.text()};
}

/// The end of what a command has said about its failure.
std::string reason_of(const CommandResult& result) {
  const std::string& text = result.err;
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return fmt::format("exit code {}", result.code);
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

void check_interrupt() {
  if (is_interrupted()) throw std::runtime_error("interrupted");
}

/// A folder that is gone in the end.
class Folder {
 public:
  Folder() {
    std::string path = (fs::temp_directory_path() / "gar-demo-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) throw std::system_error(errno, std::generic_category(), path);
    path_ = path;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file(std::string_view name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

/// testbed/cluster, in the source folder that this program was built in, or as it was installed. Empty: neither.
std::string cluster_script() {
  const fs::path bin = own_path().parent_path();
  for (const std::string_view place : {"../../../testbed/cluster", "../share/gar/testbed/cluster"}) {
    fs::path path = (bin / place).lexically_normal();
    if (access(path.c_str(), X_OK) == 0) return path.string();
  }
  return "";
}

/// Why there can be no virtual cluster here; empty: there can.
std::string why_no_cluster() {
  if (geteuid() != 0) return "a virtual cluster needs root";
  if (!has_mpi(MpiLibrary::kOpenMpi)) return "a virtual cluster needs Open MPI";
  const std::string script = cluster_script();
  if (script.empty()) return "there is no testbed/cluster next to this program";
  const CommandResult check = run_quietly({script, "check"});
  return check.code == 0 ? "" : reason_of(check);
}

/// A virtual cluster, while it lives.
class VirtualCluster {
 public:
  VirtualCluster() : script_(cluster_script()), name_(fmt::format("gd{}", getpid() % 100000)) {
    const CommandResult up = run_quietly({script_, "up", "--name", name_, "--hosts", std::to_string(kHosts), "--rate",
                                          "25mbit", "--queue", "32kb", "--tcp", "bbr"});
    if (up.code != 0) throw std::runtime_error(reason_of(up));
  }
  ~VirtualCluster() {
    try {
      run_quietly({script_, "down", "--name", name_});
    } catch (const std::exception& error) {
      print_failure(error.what());
    }
  }
  VirtualCluster(const VirtualCluster&) = delete;
  VirtualCluster& operator=(const VirtualCluster&) = delete;
  [[nodiscard]] CommandResult run(const std::vector<std::string>& program) const {
    std::vector<std::string> words{script_, "run", "--name", name_, "--"};
    words.insert(words.end(), program.begin(), program.end());
    return run_quietly(words);
  }
  void write_topology(const std::string& path) const {
    const CommandResult written = run_quietly({script_, "topology", "--name", name_, "-o", path});
    if (written.code != 0) throw std::runtime_error(reason_of(written));
  }

 private:
  std::string script_;
  std::string name_;
};

/// Prints, unless a document is wanted.
class Screen {
 public:
  explicit Screen(bool is_silent) : is_silent_(is_silent) {}
  void line(const std::string& text) const {
    if (is_silent_) return;
    print(text + "\n");
    std::fflush(stdout);
  }

 private:
  bool is_silent_;
};

/// "4 MiB" for "4MiB", as people write it.
std::string spaced(std::string_view size) {
  const std::size_t unit = size.find_first_not_of("0123456789");
  return fmt::format("{} {}", size.substr(0, unit), size.substr(unit));
}

VectorSize floats_of(std::string_view size) { return vector_size_of_bytes("--size", size, DataType::kFloat32); }

/// A plan for a network, proved.
struct Proved {
  PlanAnswer answer;
  VerifyReport report;
};
Proved plan_and_prove(const Topology& network, std::string_view size, Policy policy) {
  Proved out{plan({.topology = network, .size_floats = floats_of(size).floats(), .policy = policy}), {}};
  out.report = verify(out.answer.plan);
  if (!out.report.ok) throw PlanError("the plan is wrong: " + out.report.problem);
  return out;
}
void show(const Screen& screen, const Proved& proved) {
  const std::int64_t chunks = proved.answer.plan.num_chunks;
  screen.line("  " + plan_words(proved.answer.switches) + (chunks > 1 ? fmt::format(", in {} chunks", chunks) : ""));
  const std::string chance = proved.report.is_exact ? ""
                                                    : fmt::format(" (chance of an error: 2^{:.0f})",
                                                                  std::log2(proved.report.error_probability));
  screen.line(fmt::format("  {} messages, proved correct{}; predicted {}", proved.report.num_messages, chance,
                          format_seconds(proved.answer.seconds())));
}

/// Rows of gar bench: ours, and the MPI library's.
DemoAnswer answer_of(const CommandResult& bench, const std::string& where, std::int64_t num_ranks) {
  if (bench.code != 0) throw std::runtime_error("gar bench: " + reason_of(bench));
  DemoAnswer out;
  out.where = where;
  out.num_ranks = num_ranks;
  for (const ResultRow& row : parse_results(bench.out, "gar bench").rows) {
    const BenchLabel label = parse_bench_label(row.label);
    if (label.name == "auto") {
      out.algorithm = label.plan;
      out.bytes = static_cast<std::int64_t>(row.bytes);
      out.seconds = row.seconds;
    } else if (label.name == "native") {
      out.other = label.plan;
      out.other_seconds = row.seconds;
    }
  }
  return out;
}
void show(const Screen& screen, const DemoAnswer& answer) {
  screen.line(
      fmt::format("  {:<24} {:>10}", fmt::format("gar ({})", answer.algorithm), format_seconds(answer.seconds)));
  if (answer.other_seconds > 0) {
    screen.line(fmt::format("  {:<24} {:>10}", answer.other, format_seconds(answer.other_seconds)));
  }
}

/// What a benchmark printed, onto the page, if one is wanted; with the lower limit of a network that is known (or
/// null).
void add_bench(ReportPage* page, const CommandResult& bench, const Network* network, const std::string& where) {
  if (page == nullptr || bench.code != 0) return;
  const Profile* profile = network != nullptr && network->profile ? &*network->profile : nullptr;
  add_to_report(*page, parse_results(bench.out, "gar bench"), profile, where,
                network != nullptr ? &network->topology : nullptr);
}

DemoAnswer on_processes(const Screen& screen, const Folder& folder, ReportPage* page) {
  const std::string gar = own_path().string();
  const std::string local = std::to_string(kProcesses);
  const std::string size(kProcessSize);
  screen.line(fmt::format("AllReduce between {} processes of this machine, {} of floats", local, spaced(size)));
  std::vector<std::string> profile{"-p", folder.file("host.json")};
  screen.line(fmt::format("  $ gar fit --local {} --budget 5s -o host.json", local));
  const auto begin = std::chrono::steady_clock::now();
  const CommandResult fit = run_quietly({gar, "fit", "--local", local, "--budget", "5s", "-o", profile.back()});
  check_interrupt();
  std::string network;
  if (fit.code == 0) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    screen.line(fmt::format("  latency, copies and reductions measured in {:.1f} s", seconds.count()));
  } else if (fit.code == kExitUsage || fit.code == kExitBadInput) {  // too few measurements, or contradictory ones
    screen.line("  too busy to be measured well: what follows is planned with typical values");
    profile.clear();
    network = "star:" + local;
  } else {
    throw std::runtime_error("gar fit: " + reason_of(fit));
  }
  const Network found = gar::load_network(network, profile.empty() ? "" : profile.back());
  const Topology& topology = found.topology;
  screen.line(fmt::format("  $ gar plan {} --size {} -o plan.json && gar verify plan.json",
                          profile.empty() ? "-t " + network : "-p host.json", size));
  const Proved proved = plan_and_prove(topology, kProcessSize, Policy::kModel);
  show(screen, proved);
  const bool has_other = has_mpi(std::nullopt);
  const std::string algorithms = has_other ? "auto,native" : "auto";
  screen.line(fmt::format("  $ gar bench --local {} {}--algo {} -b {} -e {}", local,
                          profile.empty() ? "" : "-p host.json ", algorithms, size, size));
  std::vector<std::string> words{gar,  "bench", "--local", local, "--algo", algorithms, "-b",    size,
                                 "-e", size,    "-n",      "20",  "-w",     "3",        "--json"};
  words.insert(words.end(), profile.begin(), profile.end());
  const CommandResult bench = run_quietly(words);
  add_bench(page, bench, found.profile ? &found : nullptr, fmt::format("{} processes of this machine", local));
  if (page != nullptr && found.profile) add_to_report(*page, *found.profile, "");
  DemoAnswer out = answer_of(bench, "processes", kProcesses);
  check_interrupt();
  out.predicted_seconds = proved.answer.seconds();
  show(screen, out);
  return out;
}

DemoAnswer on_cluster(const Screen& screen, const Folder& folder, ReportPage* page) {
  const std::string size(kClusterSize);
  screen.line(fmt::format("AllReduce between {} virtual hosts, {} of floats: real TCP, 25 Mbit/s cables", kHosts,
                          spaced(size)));
  screen.line(fmt::format("  $ testbed/cluster up --hosts {} && testbed/cluster topology -o net.json", kHosts));
  const VirtualCluster cluster;
  check_interrupt();
  const std::string file = folder.file("net.json");
  cluster.write_topology(file);
  screen.line(fmt::format("  $ gar plan -t net.json --size {} --policy runtime -o plan.json", size));
  const Network network = gar::load_network(file, "");
  const Proved proved = plan_and_prove(network.topology, kClusterSize, Policy::kRuntime);
  show(screen, proved);
  screen.line(fmt::format("  $ testbed/cluster run -- gar bench --algo auto,native --sizes {} -n 3 -w 1", size));
  const CommandResult bench = cluster.run(
      {own_path().string(), "bench", "--algo", "auto,native", "--sizes", size, "-n", "3", "-w", "1", "--json"});
  add_bench(page, bench, &network, fmt::format("{} virtual hosts with cables of 25 Mbit/s", kHosts));
  DemoAnswer out = answer_of(bench, "cluster", kHosts);
  check_interrupt();
  out.predicted_seconds = proved.answer.seconds();
  show(screen, out);
  return out;
}

DemoAnswer on_simulator(const Screen& screen, ReportPage* page) {
  const Topology network = load_topology(std::string(kSimulatedNetwork));
  const VectorSize size = floats_of(kSimulatedSize);
  screen.line(fmt::format("AllReduce between {} servers, {} of floats, simulated: 16 racks of 24",
                          network.num_servers(), spaced(kSimulatedSize)));
  screen.line(fmt::format("  {}", parameter_words(network)));
  screen.line(fmt::format("  $ gar plan -t {} --size {} -o plan.json && gar verify plan.json", kSimulatedNetwork,
                          kSimulatedSize));
  const Proved proved = plan_and_prove(network, kSimulatedSize, Policy::kModel);
  show(screen, proved);
  screen.line(fmt::format("  $ gar simulate -t {} --size {} --algo gentree+,ring", kSimulatedNetwork, kSimulatedSize));
  const AlgorithmSpec ring = parse_algorithm("ring");
  DemoAnswer out{.where = "simulator",
                 .num_ranks = network.num_servers(),
                 .bytes = size.bytes,
                 .algorithm = to_string(proved.answer.spec),
                 .seconds = simulate(proved.answer.plan, network, size.floats()).seconds,
                 .predicted_seconds = proved.answer.seconds(),
                 .other = "ring",
                 .other_seconds = simulate(build_plan(ring, network.num_servers()), network, size.floats()).seconds};
  if (page != nullptr) {
    const Scene scene{network, size, {}, {}, false};
    SimulatedPlan plan{.algorithm = out.algorithm, .predicted = proved.answer.terms, .simulation = {}};
    plan.num_chunks = proved.answer.plan.num_chunks;
    plan.simulation = simulate(proved.answer.plan, network, size.floats());
    add_to_report(*page, scene, {plan});
  }
  show(screen, out);
  return out;
}

int run(const std::string& place, const std::string& html, const Context& context) {
  check_writable("--html", html);
  check_environment(is_read_by_ranks);
  ReportPage report("AllReduce on this machine: what gar demo has measured");
  ReportPage* const page = html.empty() ? nullptr : &report;
  const InterruptGuard guard;
  const Screen screen(context.json);
  const bool is_auto = place == "auto";
  const std::string no_cluster = is_auto || place == "cluster" ? why_no_cluster() : "not asked for";
  if (place == "cluster" && !no_cluster.empty()) throw std::runtime_error("--on cluster: " + no_cluster);
  DemoAnswer answer;
  if (place == "simulator") {
    answer = on_simulator(screen, page);
  } else {
    const Folder folder;
    if (is_auto || place == "processes") {
      answer = on_processes(screen, folder, page);
      if (is_auto && !no_cluster.empty() && geteuid() == 0) {
        screen.line(fitted(fmt::format("(no virtual cluster: {})", no_cluster)));
      }
      if (is_auto && (no_cluster.empty() || answer.other_seconds <= 0)) screen.line("");
    }
    if (no_cluster.empty()) {
      answer = on_cluster(screen, folder, page);
    } else if (is_auto && answer.other_seconds <= 0) {
      screen.line("There is no MPI here to compare with (Debian: libopenmpi-dev and openmpi-bin).");
      answer = on_simulator(screen, page);
    }
  }
  if (page != nullptr) {
    add_to_report(*page, this_machine());
    if (!context.json) print("\n");
    save_page(*page, html, context.json);
  }
  if (context.json) {
    print(demo_document(answer));
    return kExitOk;
  }
  if (answer.other_seconds > 0) {
    const std::string name = answer.other.substr(0, answer.other.find_first_of("0123456789"));
    print(fmt::format("\n{:.2f} times as fast as {}\n", answer.other_seconds / answer.seconds,
                      answer.where == "simulator"
                          ? name
                          : fmt::format("{}'s own AllReduce", name.substr(0, name.find_last_not_of(' ') + 1))));
  } else {
    print(fmt::format("\n{} with gar; there is no MPI to compare with\n", format_seconds(answer.seconds)));
  }
  return kExitOk;
}

}  // namespace

void add_demo(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("demo", "Show in half a minute what gar does, on this machine");
  auto place = std::make_shared<std::string>("auto");
  verb.add_option("--on", *place,
                  "Where: a virtual cluster of 12 hosts (root), processes of this machine, or the simulator; auto: "
                  "what is possible here")
      ->type_name("WHERE")
      ->check(CLI::IsMember({"auto", "cluster", "processes", "simulator"}))
      ->capture_default_str();
  auto html = std::make_shared<std::string>();
  add_html_option(verb, *html);
  add_output_options(verb, context);
  set_examples(verb,
               {{"measure, plan, prove and run", "gar demo"}, {"without running anything", "gar demo --on simulator"}});
  on_run(verb, context, [place, html, &context] { return run(*place, *html, context); });
}

}  // namespace gar::cli
