// gar mpirun: runs an MPI program that knows nothing of gar on our collectives (docs/preload.md). It finds out which
// MPI the launcher starts, finds the preload library for it, and becomes the launcher, which hands the settings to all
// ranks.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

struct MpirunArgs {
  std::string profile;
  std::string topology;
  std::string mpi;
  std::string algo;
  std::string min_bytes;
  bool check = false;
  bool debug = false;
  bool dry_run = false;
  std::vector<std::string> command;
};

/// Names and values for the ranks, in the order of names.
using Settings = std::map<std::string, std::string>;

/// What the user typed behind `--`, untouched: the parser sees it, too, but keeps only what it takes for an argument.
std::vector<std::string> command_of(const MpirunArgs& args) {
  const std::vector<std::string> words = own_arguments();
  const auto dashes = std::find(words.begin(), words.end(), "--");
  constexpr const char* kExample = "gar mpirun -- mpirun -n 8 ./program";
  if (dashes == words.end() && !args.command.empty()) {
    throw UsageError(fmt::format("the launcher and its words come behind --, as in: {}", kExample));
  }
  if (dashes == words.end() || dashes + 1 == words.end()) {
    throw UsageError(fmt::format("nothing to run; accepted is the launcher behind --, as in: {}", kExample));
  }
  return {dashes + 1, words.end()};
}

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
    throw UsageError("only one of --profile and --topology is needed: a profile is a network with its parameters");
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
  if (args.check) out[environment::kCheck.name] = "1";
  if (args.debug) out[environment::kDebug.name] = "INFO";
  return out;
}

std::string path_of_launcher(const std::string& word) {
  if (word.find('/') != std::string::npos) {
    if (access(word.c_str(), X_OK) == 0 && !fs::is_directory(word)) return word;
    throw std::runtime_error(fmt::format("{}: there is no such program", word));
  }
  if (std::optional<std::string> found = find_on_path(word)) return *found;
  throw std::runtime_error(fmt::format(
      "{}: there is no such program on the PATH; accepted behind -- is the launcher of an MPI, such as mpirun", word));
}

struct Launcher {
  std::string path;
  MpiLibrary library = MpiLibrary::kOpenMpi;
  bool is_known = false;  ///< it has words for the environment of the ranks
};

Launcher find_launcher(const std::string& name, const std::string& mpi) {
  Launcher out;
  out.path = path_of_launcher(name);
  const std::optional<MpiLibrary> found = library_of(out.path);
  const std::optional<MpiLibrary> wish =
      mpi.empty() ? std::nullopt : std::optional(mpi == "mpich" ? MpiLibrary::kMpich : MpiLibrary::kOpenMpi);
  if (!found && !wish) {
    throw UsageError(
        fmt::format("which MPI does {} start? Its --version names neither Open MPI nor MPICH; say --mpi openmpi or "
                    "--mpi mpich",
                    name));
  }
  if (found && wish && *found != *wish) {
    throw UsageError(fmt::format("--mpi {} does not go with {}, which starts {}", word(*wish), name, title(*found)));
  }
  out.is_known = found.has_value();
  out.library = found ? *found : *wish;
  return out;
}

std::string find_library(MpiLibrary library) {
  const fs::path bin = own_path().parent_path();
  const std::string name = fmt::format("libgar-preload-{}.so", word(library));
  std::vector<std::string> places;
  for (const std::string_view libdir : {std::string_view("../lib"), libdir_from_bindir()}) {
    const fs::path place = (bin / libdir / "gar").lexically_normal();
    if (access((place / name).c_str(), R_OK) == 0) return (place / name).string();
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place.string());
  }
  throw std::runtime_error(fmt::format("there is no {} in {}; it is built where {} is installed", name,
                                       fmt::join(places, " or "),
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

int run(const MpirunArgs& args) {
  const std::vector<std::string> command = command_of(args);
  Settings settings = settings_of(args);
  const Launcher launcher = find_launcher(command.front(), args.mpi);
  settings["LD_PRELOAD"] = preload_setting(find_library(launcher.library));
  std::vector<std::string> words;
  if (launcher.is_known) {
    words = launcher_words(launcher, command, settings);
  } else {
    words = command;
    words.front() = launcher.path;
  }
  if (!args.dry_run) {
    // Other launchers start ranks with the environment that they have themselves.
    for (const auto& [name, value] : settings) {
      if (!launcher.is_known) setenv(name.c_str(), value.c_str(), 1);
    }
    become(words);
  }
  std::vector<std::string> shown;
  if (!launcher.is_known) {
    shown.emplace_back("env");
    for (const auto& [name, value] : settings) shown.push_back(shell_word(fmt::format("{}={}", name, value)));
  }
  for (const std::string& word : words) shown.push_back(shell_word(word));
  print(fmt::format("{}\n", fmt::join(shown, " ")));
  return kExitOk;
}

}  // namespace

void add_mpirun(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("mpirun", "Run an MPI program that knows nothing of gar on our collectives");
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
  verb.add_flag("--check", args->check, "Compare every call with the MPI library's own; a difference fails the job");
  verb.add_flag("--debug", args->debug, "Say which plans run, and print a table of all calls at the end");
  verb.add_flag("--dry-run", args->dry_run, "Print the command instead of running it");
  verb.add_option("command", args->command, "Behind --: the launcher, its flags, the program and its arguments")
      ->type_name("WORD");
  set_examples(verb, {{"a program that is not recompiled", "gar mpirun -- mpirun -n 8 ./program input.txt"},
                      {"is every result the same as without gar?", "gar mpirun --check -- mpirun -n 4 ./program"},
                      {"on a network whose parameters are known, with a table of calls at the end",
                       "gar mpirun --profile cluster.json --debug -- mpirun -n 96 ./program"},
                      {"another launcher", "gar mpirun --mpi mpich -- srun -n 96 ./program"}});
  on_run(verb, context, [args] { return run(*args); });
}

}  // namespace gar::cli
