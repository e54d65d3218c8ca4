// Several ranks from one command: processes of this host that the program starts itself, or an MPI that it starts or
// was started by.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/runtime/transports/mpi/library_name.hpp"

namespace gar::cli {

/// What a rank ended with, in words and as an exit code.
struct Failure {
  int code = 0;
  std::string message;
};
/// Exit codes as in run_verb.
Failure describe_failure(const std::exception_ptr& error);
/// One line on standard error.
void print_failure(std::string_view message);

/// One of the processes that run_local_processes has started.
struct LocalRank {
  int rank = 0;
  int size = 1;
  std::string name;                   ///< the same for all ranks, unlike that of any other run
  std::function<bool()> is_stopping;  ///< Ctrl-C: print what there is and end
};

/// Runs `body` in `size` processes and returns when all have ended: with the exit code that they agree on, or with 4
/// when one was killed. Prints what ranks threw (equal messages once, with the ranks) and who was killed. The first
/// Ctrl-C makes is_stopping() true, the second one ends all processes at once; they also end when this process does.
/// Once a rank has failed, the others have `grace_s` seconds.
int run_local_processes(int size, double grace_s, const std::function<int(const LocalRank&)>& body);

/// "rank 3", "ranks 0, 1, 5".
std::string rank_words(const std::vector<int>& ranks);

/// "Open MPI"; "openmpi".
std::string_view title(MpiLibrary library);
std::string_view word(MpiLibrary library);

/// Which MPI a launcher starts, as its --version says; it has some seconds for that. Nothing: another one.
std::optional<MpiLibrary> library_of(const std::string& launcher);

/// Where this program is.
std::filesystem::path own_path();
/// argv of this process.
std::vector<std::string> own_arguments();
/// A program on the PATH.
std::optional<std::string> find_on_path(const std::string& name);
/// Replaces this process; the first word is a path. Throws std::runtime_error when it cannot.
[[noreturn]] void become(const std::vector<std::string>& words);

/// The job that an mpirun has started this process in, as its environment says.
struct MpiJob {
  MpiLibrary library = MpiLibrary::kOpenMpi;
  int rank = 0;
  int size = 1;
};
using Lookup = std::function<const char*(const char*)>;
std::optional<MpiJob> mpi_job(const Lookup& environment);

/// How `mpirun` starts a program on this host: words before the program, and settings that are made unless the user
/// made them.
struct MpiCommand {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> settings;
};
struct MpiHost {
  int num_cores = 1;
  bool is_root = false;
};
MpiCommand mpi_command(MpiLibrary library, const std::string& mpirun, int size, const MpiHost& host);

/// The mpirun of a library on the PATH.
std::optional<std::string> find_mpirun(MpiLibrary library);
/// The program that is built with this library: gar-openmpi, gar-mpich beside this one. Nothing when it is not there.
std::optional<std::string> find_program(MpiLibrary library);

/// Becomes the program of `library`, with this process's arguments. Throws std::runtime_error when it cannot.
[[noreturn]] void become_program(MpiLibrary library);
/// Runs an mpirun of `size` processes with this process's arguments; without a wish, of the first library that there is
/// everything for. Returns the exit code; one that is none of ours becomes 4, with a message. Throws std::runtime_error
/// that says what is missing.
int run_mpirun(std::optional<MpiLibrary> wish, int size);
/// Was this process started by run_mpirun?
bool is_started_by_us();

/// Cores that this process may use.
int num_cores();
/// Memory that the kernel would give without swapping, or -1.
double available_bytes();

}  // namespace gar::cli
