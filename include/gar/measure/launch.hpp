// Several ranks from one command: processes of this host that the program starts itself, or an MPI that it starts or
// was started by.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gar/measure/failure.hpp"

namespace gar::measure {

/// One of the processes that run_local_processes has started.
struct LocalRank {
  int rank = 0;                       ///< this process, from 0
  int size = 1;                       ///< number of processes
  std::string name;                   ///< the same for all ranks, unlike that of any other run
  std::function<bool()> is_stopping;  ///< Ctrl-C: print what there is and end
};

/// Runs `body` in `size` processes and returns when all have ended: with the exit code that they agree on, or with 4
/// when one was killed. Prints what ranks threw (equal messages once, with the ranks) and which were killed. The first
/// Ctrl-C makes is_stopping() true, the second one ends all processes at once; they also end when this process does.
/// Once a rank has failed, the others have `grace_s` seconds.
int run_local_processes(int size, double grace_s, const std::function<int(const LocalRank&)>& body);

/// "rank 3", "ranks 0, 1, 5".
std::string rank_words(const std::vector<int>& ranks);

/// The MPI libraries that programs are built for.
enum class MpiLibrary { kOpenMpi, kMpich };
/// "Open MPI", for people.
std::string_view title(MpiLibrary library);
/// "openmpi", as on the command line.
std::string_view word(MpiLibrary library);

/// Which MPI a launcher starts, as its --version says; it has some seconds for that. Empty for any other.
std::optional<MpiLibrary> library_of(const std::string& launcher);

/// The path of this program.
std::filesystem::path own_path();
/// argv of this process.
std::vector<std::string> own_arguments();
/// The path of a program on the PATH; empty when there is none.
std::optional<std::string> find_on_path(const std::string& name);
/// Replaces this process; the first word is a path. Throws std::runtime_error when it cannot.
[[noreturn]] void become(const std::vector<std::string>& words);

/// The job that an mpirun has started this process in, as its environment says.
struct MpiJob {
  MpiLibrary library = MpiLibrary::kOpenMpi;  ///< whose mpirun it was
  int rank = 0;                               ///< this process, from 0
  int size = 1;                               ///< number of processes
};
/// Looks up an environment variable; null when it is not set.
using Lookup = std::function<const char*(const char*)>;
/// The job that this process belongs to; empty when no mpirun has started it.
std::optional<MpiJob> mpi_job(const Lookup& environment);

/// How `mpirun` starts a program on this host: words before the program, and settings that are made unless the user
/// made them.
struct MpiCommand {
  std::vector<std::string> words;                             ///< the launcher and its flags
  std::vector<std::pair<std::string, std::string>> settings;  ///< environment variables
};
/// What the launcher's flags depend on.
struct MpiHost {
  int num_cores = 1;     ///< cores of this host
  bool is_root = false;  ///< mpirun of Open MPI refuses root unless it is told
};
/// The command that starts `size` processes on this host.
MpiCommand mpi_command(MpiLibrary library, const std::string& mpirun, int size, const MpiHost& host);

/// The mpirun of a library on the PATH; empty when there is none.
std::optional<std::string> find_mpirun(MpiLibrary library);
/// The program that is built with this library: gar-openmpi or gar-mpich next to this one. Empty when it is not there.
std::optional<std::string> find_program(MpiLibrary library);

/// Becomes the program of `library`, with this process's arguments. Throws std::runtime_error when it cannot.
[[noreturn]] void become_program(MpiLibrary library);
/// Runs an mpirun of `size` processes with this process's arguments; without a wish, of the first library that there is
/// everything for. Returns the exit code; one that is none of ours becomes 4, with a message. Throws std::runtime_error
/// that says what is missing.
int run_mpirun(std::optional<MpiLibrary> wish, int size);
/// True when this process was started by run_mpirun.
bool is_started_by_us();

/// Cores that this process may use.
int num_cores();
/// Memory that the kernel would give without swapping, or -1.
double available_bytes();

}  // namespace gar::measure
