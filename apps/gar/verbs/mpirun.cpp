// gar mpirun: runs an MPI program that knows nothing of gar on our collectives (docs/preload.md). It finds out which
// MPI the launcher starts, finds the preload library for it, and runs the launcher, which hands the settings to all
// ranks. Inside of a job it becomes the program; rank 0 stays behind it, to say so if the program was not reached.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/gar/cli/environment.hpp"
#include "apps/gar/cli/installed.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "gar/algorithms.hpp"
#include "gar/environment.hpp"
#include "gar/errors.hpp"
#include "gar/measure/launch.hpp"
#include "gar/profile_io.hpp"
#include "gar/topology_io.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to programs

namespace gar::cli {
namespace {

namespace fs = std::filesystem;

constexpr rlimit kNoCore{0, 0};

struct MpirunArgs {
  std::string profile;
  std::string topology;
  std::string mpi;
  std::string algo;
  std::string min_bytes;
  bool check = false;
  bool compare = false;
  bool debug = false;
  bool dry_run = false;
  std::vector<std::string> command;
};

/// Names and values for the ranks, in the order of names.
using Settings = std::map<std::string, std::string>;

/// Where ranks of this host leave a sign that their program has been reached: memory of this process, which its ranks
/// find below /proc. Nothing of it can be left behind.
class Sign {
 public:
  Sign() {
    std::array<std::uint64_t, 2> token{};
    if (getrandom(token.data(), sizeof(token), 0) != static_cast<ssize_t>(sizeof(token))) return;
    token_ = fmt::format("{:016x}{:016x}", token[0], token[1]);
    file_ = memfd_create(("gar-mpirun-" + token_).c_str(), MFD_CLOEXEC);
  }
  ~Sign() {
    if (file_ >= 0) close(file_);
  }
  Sign(const Sign&) = delete;
  Sign& operator=(const Sign&) = delete;
  /// The value of GAR_MPIRUN.
  [[nodiscard]] std::string name() const { return file_ < 0 ? "1" : fmt::format("{}.{}.{}", getpid(), file_, token_); }
  /// Can ranks leave one? Without it nothing is known of them.
  [[nodiscard]] bool is_there() const { return file_ >= 0; }
  /// Has a rank on this host called MPI_Init?
  [[nodiscard]] bool is_reached() const { return is_left(0); }
  /// Has a job with a rank on this host compared calls with the MPI library's own?
  [[nodiscard]] bool has_compared() const { return is_left(1); }

 private:
  // The places are those of preload::Sign (apps/preload/sign.hpp).
  [[nodiscard]] bool is_left(off_t place) const {
    char byte = '\0';
    return pread(file_, &byte, 1, place) == 1 && byte == '+';
  }

  std::string token_;
  int file_ = -1;
};

/// What GAR_TOPOLOGY has to be for ranks that may start in another directory. Throws when the network cannot be read.
std::string topology_setting(const std::string& spec) {
  (void)load_topology(spec);
  std::error_code ignored;
  return fs::exists(spec, ignored) ? fs::absolute(spec).lexically_normal().string() : spec;
}

Settings settings_of(const MpirunArgs& args) {
  Settings out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (text.starts_with("GAR_") && equals != std::string_view::npos) {
      out[std::string(text.substr(0, equals))] = text.substr(equals + 1);
    }
  }
  if (!args.profile.empty() && !args.topology.empty()) {
    throw UsageError("--profile and --topology cannot be used together: a profile is a network with its parameters");
  }
  if (!args.profile.empty()) (void)read_profile_file(args.profile);
  const std::string& network = args.profile.empty() ? args.topology : args.profile;
  if (!network.empty()) out[environment::kTopology.name] = topology_setting(network);
  if (!args.algo.empty()) {
    if (args.algo != "auto") (void)parse_algorithm(args.algo);
    out[environment::kAlgo.name] = args.algo;
  }
  if (!args.min_bytes.empty())
    out[environment::kMinBytes.name] = fmt::to_string(parse_bytes("--min-bytes", args.min_bytes));
  if (args.compare) out[environment::kCompare.name] = "1";
  if (args.check) out[environment::kCheck.name] = "1";
  if (args.debug) out[environment::kDebug.name] = "INFO";
  out[environment::kMpirun.name] = "1";
  return out;
}

/// What ranks would find out by themselves, on every host. Flags win over variables, and have been looked at.
void check_variables(const Settings& settings) {
  if (environment::flag(environment::kDisable).value_or(false)) return;
  check_environment([&](const EnvironmentVariable& variable) {
    const auto setting = settings.find(variable.name);
    return variable.reader != EnvironmentReader::kInternal && setting != settings.end() &&
           setting->second == environment::text(variable);
  });
}

std::string path_of_launcher(const std::string& word) {
  if (word.find('/') != std::string::npos) {
    if (access(word.c_str(), X_OK) == 0 && !fs::is_directory(word)) return word;
    throw std::runtime_error(fmt::format("{}: there is no such program", word));
  }
  if (std::optional<std::string> found = find_on_path(word)) return *found;
  throw std::runtime_error(
      fmt::format("{}: there is no such program on the PATH; expected the launcher of an MPI, such as mpirun", word));
}

/// How the settings reach the ranks.
enum class Way {
  kWords,        ///< as words of an MPI's launcher
  kEnvironment,  ///< another launcher starts ranks with the environment that it has itself
  kBecome,       ///< this process is a rank, and becomes the program
};

struct Launcher {
  std::string path;
  MpiLibrary library = MpiLibrary::kOpenMpi;
  Way way = Way::kEnvironment;
};

std::string library_name(MpiLibrary library) { return fmt::format("libgar-preload-{}.so", word(library)); }

/// The folders in which the preload libraries can be.
std::vector<fs::path> library_folders() {
  const fs::path bin = own_path().parent_path();
  std::vector<fs::path> out;
  for (const std::string_view libdir : {std::string_view("../lib"), libdir_from_bindir()}) {
    fs::path folder = (bin / libdir / "gar").lexically_normal();
    if (std::find(out.begin(), out.end(), folder) == out.end()) out.push_back(std::move(folder));
  }
  return out;
}

/// Empty: there is none.
std::string path_of_library(MpiLibrary library) {
  for (const fs::path& folder : library_folders()) {
    const fs::path path = folder / library_name(library);
    if (access(path.c_str(), R_OK) == 0) return path.string();
  }
  return "";
}

/// The one MPI that there is a library for.
std::optional<MpiLibrary> only_library() {
  const bool has_openmpi = !path_of_library(MpiLibrary::kOpenMpi).empty();
  const bool has_mpich = !path_of_library(MpiLibrary::kMpich).empty();
  if (has_openmpi == has_mpich) return std::nullopt;
  return has_openmpi ? MpiLibrary::kOpenMpi : MpiLibrary::kMpich;
}

/// Is this process a rank, or a task of Slurm that will be one?
bool is_in_job(const std::optional<MpiJob>& job) {
  return job || std::getenv("SLURM_PROCID") != nullptr || std::getenv("PMIX_RANK") != nullptr;
}

/// `name`: the first word of the command. By it alone is decided whether it is a launcher: other programs are never
/// asked for their version, for they might do something else.
Launcher find_launcher(const std::string& name, const std::string& mpi) {
  Launcher out;
  out.path = path_of_launcher(name);
  const LauncherKind kind = launcher_kind(name);
  std::optional<MpiLibrary> wish;
  if (!mpi.empty()) wish = mpi == "mpich" ? MpiLibrary::kMpich : MpiLibrary::kOpenMpi;
  std::optional<MpiLibrary> found;
  if (kind == LauncherKind::kMpi) {
    found = library_of(out.path);
    if (found && wish && *found != *wish) {
      throw UsageError(
          fmt::format("--mpi {} cannot be combined with {}, which starts {}", word(*wish), name, title(*found)));
    }
    if (found) out.way = Way::kWords;
  } else if (kind == LauncherKind::kNone) {  // the program, or with --mpi a script that starts a launcher
    const std::optional<MpiJob> job = current_mpi_job();
    if (is_in_job(job)) {
      out.way = Way::kBecome;
      if (job) found = job->library;
    } else if (!wish) {
      throw UsageError(fmt::format(
          "{} is not the name of a launcher, and this is no MPI job; expected one of {}, as in: gar mpirun mpirun -n 8 "
          "{}; or, where {} is a script with a launcher in it, --mpi openmpi or --mpi mpich",
          name, launcher_names(), name, name));
    }
  }
  if (wish) {
    out.library = *wish;
  } else if (found) {
    out.library = *found;
  } else if (const std::optional<MpiLibrary> only = only_library(); only && kind != LauncherKind::kMpi) {
    out.library = *only;
  } else {
    throw UsageError(fmt::format(
        "which MPI does {} start? {}; say --mpi openmpi or --mpi mpich", name,
        kind == LauncherKind::kMpi ? "Its --version names neither Open MPI nor MPICH" : "It can start any"));
  }
  return out;
}

std::string find_library(MpiLibrary library) {
  std::string path = path_of_library(library);
  if (!path.empty()) return path;
  std::vector<std::string> folders;
  for (const fs::path& folder : library_folders()) folders.push_back(folder.string());
  throw std::runtime_error(fmt::format("there is no {} in {}; it is built where {} is installed", library_name(library),
                                       fmt::join(folders, " or "),
                                       library == MpiLibrary::kOpenMpi ? "libopenmpi-dev" : "libmpich-dev"));
}

/// Ours comes first: a library of the user's that also stands in front of MPI then sees what we leave to MPI.
std::string preload_setting(const std::string& library) {
  if (library.find_first_of(" :") != std::string::npos) {
    throw std::runtime_error(fmt::format(
        "{} cannot be preloaded: LD_PRELOAD takes spaces and colons for separators; install gar elsewhere", library));
  }
  const char* before = std::getenv("LD_PRELOAD");
  return before == nullptr || *before == '\0' ? library : fmt::format("{}:{}", library, before);
}

/// The words that make a launcher hand the settings on. Open MPI's -x holds up to the next colon, hydra's -genv for
/// all.
std::vector<std::string> launcher_words(const Launcher& launcher, const std::vector<std::string>& command,
                                        const Settings& settings) {
  std::vector<std::string> options;
  for (const auto& [name, value] : settings) {
    if (launcher.library == MpiLibrary::kOpenMpi) {
      options.insert(options.end(), {"-x", fmt::format("{}={}", name, value)});
    } else {
      options.insert(options.end(), {"-genv", name, value});
    }
  }
  std::vector<std::string> out{launcher.path};
  out.insert(out.end(), options.begin(), options.end());
  for (std::size_t i = 1; i < command.size(); ++i) {
    out.push_back(command[i]);
    if (launcher.library == MpiLibrary::kOpenMpi && command[i] == ":") {
      out.insert(out.end(), options.begin(), options.end());
    }
  }
  return out;
}

/// The command with the settings, as the launcher needs it.
std::vector<std::string> words_of(const Launcher& launcher, const std::vector<std::string>& command,
                                  const Settings& settings) {
  if (launcher.way == Way::kWords) return launcher_words(launcher, command, settings);
  std::vector<std::string> out = command;
  out.front() = launcher.path;
  return out;
}

void print_command(const Launcher& launcher, const std::vector<std::string>& words, const Settings& settings) {
  std::vector<std::string> shown;
  if (launcher.way != Way::kWords) {
    shown.emplace_back("env");
    for (const auto& [name, value] : settings) shown.push_back(shell_word(fmt::format("{}={}", name, value)));
  }
  for (const std::string& word : words) shown.push_back(shell_word(word));
  print(fmt::format("{}\n", fmt::join(shown, " ")));
}

/// Ends as the program has ended.
int end_as(int code) {
  const int signal = code - 128;
  if (signal <= 0 || signal >= NSIG) return code;
  setrlimit(RLIMIT_CORE, &kNoCore);
  std::signal(signal, SIG_DFL);
  raise(signal);
  return code;
}

/// Can a launcher have started all ranks on other hosts? Of those nothing is known here but what they say.
bool may_start_elsewhere(const Launcher& launcher, const std::vector<std::string>& command) {
  if (launcher.way == Way::kBecome) return false;
  if (launcher.way == Way::kEnvironment) return true;
  for (const char* name : {"SLURM_JOB_ID", "PBS_NODEFILE", "PE_HOSTFILE", "LSB_DJOB_HOSTFILE", "HYDRA_HOST_FILE",
                           "OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return std::any_of(command.begin() + 1, command.end(), [](const std::string& word) {
    if (word == "-H" || word == "-f") return true;
    return word.starts_with('-') &&
           (word.find("host") != std::string::npos || word.find("machine") != std::string::npos);
  });
}

/// What a program that ended well has not done of what was asked for: says it, and is the exit code.
int judge(const Launcher& launcher, const std::vector<std::string>& command, const Settings& settings,
          const Sign& sign) {
  const auto is_set = [&](const EnvironmentVariable& variable) {
    const auto setting = settings.find(variable.name);
    return setting != settings.end() && setting->second == "1";
  };
  if (!sign.is_there()) return kExitOk;
  const bool checks = is_set(environment::kCheck);
  const bool compares = checks || is_set(environment::kCompare);
  const std::string also = compares ? ", so nothing was compared" : "";
  if (is_set(environment::kDisable)) {
    if (compares) print_failure(fmt::format("warning: {}=1 in the environment{}", environment::kDisable.name, also));
  } else if (!sign.is_reached()) {
    const bool is_elsewhere = may_start_elsewhere(launcher, command);
    print_failure(
        fmt::format("warning: {}: the program has not called MPI_Init, is linked statically, or something on the way "
                    "to it drops LD_PRELOAD{}",
                    launcher.way == Way::kBecome ? "rank 0 was not reached" : "no rank on this host was reached",
                    is_elsewhere ? " (ranks on other hosts say for themselves what they did)" : also));
    if (is_elsewhere) return kExitOk;
  } else if (compares && !sign.has_compared()) {
    print_failure(fmt::format("warning: nothing was compared with {}'s own{}; the lines above say why",
                              title(launcher.library), checks ? ", so the exit code is 1" : ""));
  }
  return checks && !sign.has_compared() ? kExitCheckFailed : kExitOk;
}

int run(const MpirunArgs& args, const std::vector<std::string>& command) {
  if (command.empty()) {
    throw UsageError("nothing to run; expected a launcher and its words, as in: gar mpirun mpirun -n 8 ./program");
  }
  Settings settings = settings_of(args);
  check_variables(settings);
  const Launcher launcher = find_launcher(command.front(), args.mpi);
  settings["LD_PRELOAD"] = preload_setting(find_library(launcher.library));
  if (args.dry_run) {
    print_command(launcher, words_of(launcher, command, settings), settings);
    return kExitOk;
  }
  const Sign sign;
  const std::optional<MpiJob> job = current_mpi_job();
  const bool stays = launcher.way != Way::kBecome || (job && job->rank == 0);
  if (stays) settings[environment::kMpirun.name] = sign.name();
  const std::vector<std::string> words = words_of(launcher, command, settings);
  if (launcher.way != Way::kWords) {
    for (const auto& [name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
  }
  if (!stays) become(words);
  const int code = run_and_wait(words, print_failure);
  if (code == kExitOk) return judge(launcher, command, settings, sign);
  return launcher.way == Way::kBecome ? end_as(code) : code;
}

/// All ranks of a job see the same error; one of them says it.
int run_once(const MpirunArgs& args, const std::vector<std::string>& command) {
  const std::optional<MpiJob> job = current_mpi_job();
  try {
    return run(args, command);
  } catch (...) {
    if (!job || job->rank == 0) throw;
    return describe_failure(std::current_exception()).code;
  }
}

}  // namespace

void add_mpirun(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("mpirun", "Run an unmodified MPI program on gar's collectives");
  auto args = std::make_shared<MpirunArgs>();
  verb.add_option("-p,--profile", args->profile, "The network with its measured parameters, as gar fit writes it")
      ->type_name("FILE");
  verb.add_option("-t,--topology", args->topology,
                  "The network, one server per rank or per host (default: measured at the start)")
      ->type_name("T");
  verb.add_option("--mpi", args->mpi, "Which MPI the launcher starts, where it does not say so itself (srun)")
      ->type_name("M")
      ->check(CLI::IsMember({"openmpi", "mpich"}));
  verb.add_option("--algo", args->algo, "One algorithm for everything; auto (default): the fastest for each size")
      ->type_name("A");
  verb.add_option("--min-bytes", args->min_bytes, "Leave shorter vectors to the MPI library")->type_name("SIZE");
  verb.add_flag("--check", args->check,
                "Compare every call with the MPI library's own; a difference, or nothing to compare, fails the job");
  verb.add_flag("--compare", args->compare,
                "Run every call here and in the MPI library, in turns; print both times for each size");
  verb.add_flag("--debug", args->debug, "Say which plans run, and print a table of all calls at the end");
  verb.add_flag("--dry-run", args->dry_run, "Print the command instead of running it");
  verb.add_option("command", args->command,
                  "The launcher, its flags, the program and its arguments; -- may come before it")
      ->type_name("WORD");
  set_examples(verb, {{"a program that is not recompiled", "gar mpirun mpirun -n 8 ./program input.txt"},
                      {"how fast is it next to the MPI library, on the program's own calls?",
                       "gar mpirun --compare mpirun -n 8 ./program"},
                      {"is every result the same as without gar?", "gar mpirun --check mpirun -n 4 ./program"},
                      {"on a network whose parameters are known, with a table of calls at the end",
                       "gar mpirun --profile cluster.json --debug mpirun -n 96 ./program"},
                      {"another launcher", "gar mpirun --mpi mpich srun -n 96 ./program"},
                      {"in front of the program, inside of a job", "srun -n 96 gar mpirun ./program"}});
  take_command(verb, context);
  on_run(verb, context, [args, &context] { return run_once(*args, context.command); });
}

}  // namespace gar::cli
