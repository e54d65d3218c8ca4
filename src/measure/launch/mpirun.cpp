// An mpirun: whether one has started this process, and how to start one.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include "base/clock.hpp"
#include "gar/environment.hpp"
#include "gar/measure/launch.hpp"
#include "measure/launch/launcher.hpp"

namespace gar::measure {
namespace {

struct LauncherName {
  std::string_view name;
  LauncherKind kind;
};
constexpr std::array<LauncherName, 12> kLaunchers{{{"mpirun", LauncherKind::kMpi},
                                                   {"mpiexec", LauncherKind::kMpi},
                                                   {"orterun", LauncherKind::kMpi},
                                                   {"prterun", LauncherKind::kMpi},
                                                   {"prun", LauncherKind::kMpi},
                                                   {"hydra", LauncherKind::kMpi},
                                                   {"srun", LauncherKind::kScheduler},
                                                   {"aprun", LauncherKind::kScheduler},
                                                   {"jsrun", LauncherKind::kScheduler},
                                                   {"lrun", LauncherKind::kScheduler},
                                                   {"ibrun", LauncherKind::kScheduler},
                                                   {"flux", LauncherKind::kScheduler}}};

constexpr std::array<MpiLibrary, 2> kLibraries{MpiLibrary::kOpenMpi, MpiLibrary::kMpich};

std::optional<int> number(const char* text) {
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

constexpr int kHangingChecks = 30;  // one a second

struct Ended {
  int code = 0;  ///< 128 + signal when it was killed
  bool is_interrupted = false;
};

/// Has a process children, all of which have ended without its noticing?
bool has_only_dead_children(pid_t parent) {
  bool has_any = false;
  std::error_code error;
  std::filesystem::directory_iterator thread(fmt::format("/proc/{}/task", parent), error);
  for (; !error && thread != std::filesystem::directory_iterator(); thread.increment(error)) {
    std::ifstream children(thread->path() / "children");
    for (pid_t child = 0; children >> child;) {
      std::ifstream file(fmt::format("/proc/{}/stat", child));
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      const std::size_t end_of_name = text.rfind(") ");
      if (end_of_name == std::string::npos || text[end_of_name + 2] != 'Z') return false;
      has_any = true;
    }
  }
  return has_any;
}

/// Starts a command and waits for it. Ctrl-C at a terminal reaches it by itself, a signal to this process is handed on;
/// it ends with this process. Open MPI's mpirun can hang in its own end when a rank was killed at a bad moment: it is
/// ended when it has not looked at its dead ranks for kHangingChecks seconds, if `ends_hanging`.
Ended run_command(const std::vector<std::string>& words, const Report& report, bool ends_hanging) {
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, &before);
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "starting " + words.front());
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (getppid() != parent) _exit(kExitRunTime);
    try {
      become(words);
    } catch (const std::exception& error) {
      report(error.what());
      _exit(kExitRunTime);
    }
  }
  Ended out;
  int num_hanging = 0;
  for (;;) {
    siginfo_t info = {};
    constexpr timespec kSecond{1, 0};
    const int signal = sigtimedwait(&signals, &info, &kSecond);
    if (signal < 0 && errno == EAGAIN) {
      num_hanging = ends_hanging && has_only_dead_children(pid) ? num_hanging + 1 : 0;
      if (num_hanging == kHangingChecks) {
        report(fmt::format("{} hangs although all of its ranks have ended; it was killed", words.front()));
        kill(pid, SIGKILL);
      }
      continue;
    }
    if (signal == SIGCHLD) {
      int status = 0;
      if (waitpid(pid, &status, WNOHANG) != pid) continue;
      out.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      break;
    }
    if (signal < 0) continue;
    out.is_interrupted = true;
    if (info.si_code != SI_KERNEL) kill(pid, signal);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return out;
}

/// What a command prints on standard output, its first few kilobytes; it has `seconds` for that.
std::string output_of(const std::vector<std::string>& words, double seconds) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return "";
  const pid_t pid = fork();
  if (pid == 0) {
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execl(words[0].c_str(), words[0].c_str(), words[1].c_str(), static_cast<char*>(nullptr));
    _exit(kExitRunTime);
  }
  close(ends[1]);
  const auto end = seconds_from_now(seconds);
  std::string text;
  std::array<char, 4096> part{};
  while (pid > 0 && text.size() < 65536) {
    const int left = milliseconds_until(end);
    pollfd ready{ends[0], POLLIN, 0};
    if (left == 0 || poll(&ready, 1, left) <= 0) break;
    const ssize_t bytes = read(ends[0], part.data(), part.size());
    if (bytes <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(bytes));
  }
  close(ends[0]);
  if (pid > 0) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  return text;
}

/// What is missing for a library; empty: nothing.
std::string missing_for(MpiLibrary library) {
  if (!find_mpirun(library)) {
    return fmt::format("no mpirun of {} on the PATH (Debian: {})", title(library),
                       library == MpiLibrary::kOpenMpi ? "openmpi-bin" : "mpich");
  }
  if (!find_program(library)) {
    return fmt::format("no program gar-{} in {}, which is built where {} is installed", word(library),
                       own_path().parent_path().string(),
                       library == MpiLibrary::kOpenMpi ? "libopenmpi-dev" : "libmpich-dev");
  }
  return "";
}

MpiLibrary choose_library(std::optional<MpiLibrary> wish) {
  if (wish) {
    const std::string missing = missing_for(*wish);
    if (missing.empty()) return *wish;
    throw std::runtime_error(fmt::format("{} cannot be started: {}", title(*wish), missing));
  }
  std::string all_missing;
  for (const MpiLibrary library : kLibraries) {
    const std::string missing = missing_for(library);
    if (missing.empty()) return library;
    all_missing += (all_missing.empty() ? "" : "; ") + missing;
  }
  throw std::runtime_error("native and --transport mpi need an MPI: " + all_missing);
}

}  // namespace

std::filesystem::path own_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

[[noreturn]] void become(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::fflush(nullptr);
  execv(argv[0], argv.data());
  throw std::runtime_error(fmt::format("{} cannot be started: {}", words.front(), std::strerror(errno)));
}

std::optional<std::string> find_on_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  const std::string_view places = path == nullptr ? "/usr/bin" : path;
  for (std::size_t begin = 0; begin <= places.size();) {
    const std::size_t end = std::min(places.find(':', begin), places.size());
    const std::string candidate = fmt::format("{}/{}", places.substr(begin, end - begin), name);
    if (end > begin && access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return std::nullopt;
}

std::optional<MpiLibrary> library_of(const std::string& launcher) {
  constexpr double kVersionSeconds = 5;
  return mpi_library_of(output_of({launcher, "--version"}, kVersionSeconds));
}

LauncherKind launcher_kind(std::string_view word) {
  const std::string_view name = word.substr(word.rfind('/') + 1);  // npos + 1 is 0
  const std::string_view stem = name.substr(0, name.find_first_of(".-"));
  for (const LauncherName& launcher : kLaunchers) {
    if (stem == launcher.name) return launcher.kind;
  }
  return LauncherKind::kNone;
}

std::string launcher_names() {
  std::string out;
  for (const LauncherName& launcher : kLaunchers) out += (out.empty() ? "" : " ") + std::string(launcher.name);
  return out;
}

int run_and_wait(const std::vector<std::string>& words, const Report& report) {
  return run_command(words, report, false).code;
}

std::string_view title(MpiLibrary library) { return library == MpiLibrary::kOpenMpi ? "Open MPI" : "MPICH"; }
std::string_view word(MpiLibrary library) { return library == MpiLibrary::kOpenMpi ? "openmpi" : "mpich"; }

std::optional<MpiJob> mpi_job(const Lookup& environment) {
  const auto read = [&](const char* rank, const char* size) -> std::optional<std::pair<int, int>> {
    const std::optional<int> r = number(environment(rank));
    const std::optional<int> n = number(environment(size));
    if (!r || !n) return std::nullopt;
    return std::pair{*r, *n};
  };
  if (const auto job = read("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")) {
    return MpiJob{MpiLibrary::kOpenMpi, job->first, job->second};
  }
  // srun with PMIx, which Open MPI speaks; with PMI-2 it looks like MPICH's own.
  if (const auto job = read("PMIX_RANK", "SLURM_NTASKS")) {
    return MpiJob{MpiLibrary::kOpenMpi, job->first, job->second};
  }
  if (const auto job = read("PMI_RANK", "PMI_SIZE")) return MpiJob{MpiLibrary::kMpich, job->first, job->second};
  return std::nullopt;
}

std::optional<MpiJob> current_mpi_job() {
  return mpi_job([](const char* name) { return std::getenv(name); });  // NOLINT(concurrency-mt-unsafe): only read
}

MpiCommand mpi_command(MpiLibrary library, const std::string& mpirun, int size, const MpiHost& host) {
  MpiCommand out;
  if (library == MpiLibrary::kOpenMpi) {
    out.words = {mpirun, "--oversubscribe", "--bind-to", "none", "-n", std::to_string(size)};
    // PMIx's other store is memory that all ranks share: a rank that is killed with its lock makes mpirun wait for
    // ever.
    out.settings = {
        {"OMPI_MCA_btl_tcp_if_include", "lo"}, {"OMPI_MCA_oob_tcp_if_include", "lo"}, {"PMIX_MCA_gds", "hash"}};
    if (host.is_root) {
      out.settings.insert(out.settings.end(),
                          {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
    }
    // Ranks that wait would keep the others from the cores.
    if (size > host.num_cores) out.settings.emplace_back("OMPI_MCA_mpi_yield_when_idle", "1");
    return out;
  }
  out.words = {mpirun, "-iface", "lo", "-bind-to", "none", "-n", std::to_string(size)};
  out.settings = {{"UCX_NET_DEVICES", "lo"}};
  return out;
}

std::optional<std::string> find_mpirun(MpiLibrary library) {
  const std::string suffix(word(library));
  for (const std::string& name : {"mpirun." + suffix, "mpiexec." + suffix}) {
    if (auto found = find_on_path(name)) return found;
  }
  for (const char* name : {"mpirun", "mpiexec", "mpiexec.hydra"}) {
    auto found = find_on_path(name);
    if (found && library_of(*found) == library) return found;
  }
  return std::nullopt;
}

std::optional<std::string> find_program(MpiLibrary library) {
  const std::string path = (own_path().parent_path() / fmt::format("gar-{}", word(library))).string();
  if (access(path.c_str(), X_OK) != 0) return std::nullopt;
  return path;
}

bool has_mpi(std::optional<MpiLibrary> wish) {
  return std::any_of(kLibraries.begin(), kLibraries.end(), [&](MpiLibrary library) {
    return (!wish || *wish == library) && find_mpirun(library) && find_program(library);
  });
}

void become_program(MpiLibrary library) {
  const std::optional<std::string> program = find_program(library);
  if (!program) {
    throw std::runtime_error(
        fmt::format("under {} the program gar-{} is needed next to gar, in {}; it is built where {} is installed",
                    title(library), word(library), own_path().parent_path().string(),
                    library == MpiLibrary::kOpenMpi ? "libopenmpi-dev" : "libmpich-dev"));
  }
  std::vector<std::string> words = own_arguments();
  words.front() = *program;
  become(words);
}

int run_mpirun(std::optional<MpiLibrary> wish, int size, const Report& report) {
  const MpiLibrary library = choose_library(wish);
  const MpiCommand command = mpi_command(library, *find_mpirun(library), size, {num_cores(), geteuid() == 0});
  for (const auto& [name, value] : command.settings) setenv(name.c_str(), value.c_str(), 0);
  setenv(environment::kStarted.name, launcher_text().c_str(), 1);
  std::vector<std::string> words = command.words;
  words.push_back(*find_program(library));
  const std::vector<std::string> arguments = own_arguments();
  words.insert(words.end(), arguments.begin() + 1, arguments.end());
  const Ended ended = run_command(words, report, true);
  if (ended.is_interrupted) return kExitRunTime;
  if (ended.code <= kExitRunTime) return ended.code;
  // Open MPI adds 128 to the signal that ended a rank, MPICH does not.
  const int signal = ended.code - (ended.code > 128 ? 128 : 0);
  const char* name = signal < NSIG ? sigdescr_np(signal) : nullptr;
  report(fmt::format("{} ended with code {}{}", words.front(), ended.code,
                     name != nullptr ? fmt::format(": a rank was killed by signal {} ({})", signal, name) : ""));
  return kExitRunTime;
}

bool is_started_by_us() { return !environment::text(environment::kStarted).empty(); }

}  // namespace gar::measure
