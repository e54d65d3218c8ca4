// Several ranks from one command: threads of this process, processes of this host that it starts itself, processes on
// this host's GPUs, or an MPI job that it starts or was started by.
//
// Nothing here prints: what went wrong is handed to a function of the caller, one line at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gar/measure/cuda_session.hpp"
#include "gar/measure/failure.hpp"
#include "gar/measure/transport_kind.hpp"
#include "gar/mpi_library.hpp"

namespace gar::measure {

class World;

/// Gets one line about a failure, without its end.
using Report = std::function<void(std::string_view)>;

/// "Open MPI"; "openmpi".
std::string_view title(MpiLibrary library);
std::string_view word(MpiLibrary library);  ///< "openmpi", as in `--mpi` and in names of programs

/// Where the ranks of a measurement are, and what connects them.
struct RankOptions {
  std::optional<int> local = {};  ///< this many on this host; nothing: a number by its cores, or the MPI job's
  Device device = Device::kCpu;   ///< where the vectors are
  TransportKind transport = TransportKind::kAuto;  ///< what connects the ranks
  std::optional<MpiLibrary> mpi = {};              ///< which MPI, where one is needed
  double timeout_s = 30;                           ///< a rank that is silent for this long is an error
};

/// The job that an mpirun has started this process in, as its environment says.
struct MpiJob {
  MpiLibrary library = MpiLibrary::kOpenMpi;  ///< the MPI of the job
  int rank = 0;                               ///< this process, from 0
  int size = 1;                               ///< number of processes
};
using Lookup = std::function<const char*(const char*)>;    ///< the value of an environment variable; null: not set
std::optional<MpiJob> mpi_job(const Lookup& environment);  ///< the job that the variables describe; nothing: none
/// That of this process's own environment.
std::optional<MpiJob> current_mpi_job();

/// How run_ranks goes about it.
struct RankStart {
  std::optional<MpiJob> job;  ///< this process is one of its ranks
  int num_ranks = 2;          ///< to be started where there is no job
  bool needs_mpi = false;     ///< these are started by an mpirun
  /// In a job, before the ranks run: what it throws is the same on all ranks, and rank 0 alone reports it. May be
  /// empty.
  std::function<void(int num_ranks)> check;
  /// In a job, what the body throws as InvalidArgument is the same on all ranks, too. Otherwise any exception ends the
  /// job at once, since other ranks may wait for the one that threw.
  bool has_common_errors = false;
  Report report;  ///< gets what went wrong
};
/// Runs `body` on every rank and returns the exit code that they agree on; see run_local_processes for processes. In a
/// job of another MPI than this program is built with, the process becomes the program that is built with that one.
/// Outside of a job, `needs_mpi` starts an mpirun of this program. Throws std::runtime_error when MPI or CUDA is needed
/// and not there.
int run_ranks(const RankOptions& options, const RankStart& start, const std::function<int(World&)>& body);

/// One of the processes that run_local_processes has started.
struct LocalRank {
  int rank = 0;                       ///< this process, from 0
  int size = 1;                       ///< number of processes
  std::string name;                   ///< the same for all ranks, unlike that of any other run
  std::function<bool()> is_stopping;  ///< Ctrl-C: print what there is and end
};

/// How run_local_processes works.
struct LocalProcesses {
  int size = 2;         ///< number of processes
  double grace_s = 40;  ///< what the other ranks have to end after one has failed
  Report report;        ///< gets what went wrong
};
/// Runs `body` in `size` processes and returns when all have ended: with the exit code that they agree on, or with 4
/// when one was killed. Reports what ranks threw (equal messages once, with the ranks) and which were killed. The first
/// Ctrl-C makes is_stopping() true, the second one ends all processes at once; they also end when this process does.
int run_local_processes(const LocalProcesses& processes, const std::function<int(const LocalRank&)>& body);

/// "rank 3", "ranks 0, 1, 5".
std::string rank_words(const std::vector<int>& ranks);

/// Which MPI a launcher starts, as its --version says; it has some seconds for that. Nothing: another one.
std::optional<MpiLibrary> library_of(const std::string& launcher);

/// What a word in front of a command starts, by its name: "/opt/mpi/bin/mpirun.openmpi" is an mpirun.
enum class LauncherKind {
  kNone,       ///< no launcher that is known
  kMpi,        ///< an MPI's own, such as mpirun, which says with --version which MPI it starts
  kScheduler,  ///< such as srun: it starts ranks of any MPI, with its own environment
};
LauncherKind launcher_kind(std::string_view word);  ///< of a name or a path
/// The names of all launchers, for messages.
std::string launcher_names();
/// Runs a command and returns its exit code, 128 + N when signal N has ended it. Signals to this process are handed on,
/// and the command ends with this process. Throws std::system_error.
int run_and_wait(const std::vector<std::string>& words, const Report& report);

/// The path of this program.
std::filesystem::path own_path();
/// argv of this process.
std::vector<std::string> own_arguments();
/// The path of a program on the PATH; empty when there is none.
std::optional<std::string> find_on_path(const std::string& name);
/// Replaces this process; the first word is a path. Throws std::runtime_error when it cannot.
[[noreturn]] void become(const std::vector<std::string>& words);

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
/// The program that is built with this library: gar-openmpi or gar-mpich next to this one. Nothing when it is not
/// there.
std::optional<std::string> find_program(MpiLibrary library);
/// Is there an mpirun and a program for this library, or for any?
bool has_mpi(std::optional<MpiLibrary> wish);

/// Becomes the program of `library`, with this process's arguments. Throws std::runtime_error when it cannot.
[[noreturn]] void become_program(MpiLibrary library);
/// Runs an mpirun of `size` processes with this process's arguments; without a wish, of the first library that there is
/// everything for. Returns the exit code; a code that is not one of ours becomes 4, with a report. Throws
/// std::runtime_error that says what is missing.
int run_mpirun(std::optional<MpiLibrary> wish, int size, const Report& report);
/// Was this process started by run_mpirun?
bool is_started_by_us();

/// Cores that this process may use.
int num_cores();
/// Memory that the kernel would give without swapping, or -1.
double available_bytes();

}  // namespace gar::measure
