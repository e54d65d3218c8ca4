// What is preloaded: the functions that the dynamic linker finds before those of the MPI library.
//
// This library needs no MPI, for either build may find itself in a program of the other MPI, or in one that has none.
// At MPI_Init it asks the program's MPI for its name; if that is the one that it was built for, it loads the rest
// (interpose.cpp, a library in the same directory), and otherwise says so and stands aside. When MPI has started, the
// ranks agree: if one of them has no rest, none uses its own. Until and unless the rest is there, everything must reach
// the program's own library as it came. Handles are pointers in Open MPI and integers in MPICH, so arguments are
// machine words here. That is sound where a word holds every argument of a C function and an integer's upper half means
// nothing, as on x86-64 and aarch64.
//
// Fortran: Open MPI's functions call PMPI_Allreduce, so that name is ours as well; MPICH's call MPI_Allreduce, but
// PMPI_Init.
#include "apps/preload/exports.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "apps/preload/sign.hpp"
#include "gar/environment.hpp"
#include "gar/mpi_library.hpp"

using Word = std::uintptr_t;
static_assert(sizeof(Word) == sizeof(void*) && sizeof(Word) >= sizeof(int));

namespace {

using gar::preload::Hooks;

/// The rest of the library; null: it stands aside.
const Hooks* hooks = nullptr;

/// What MPI_Init has found out.
struct Start {
  std::optional<gar::MpiLibrary> library;  ///< the program's MPI
  std::string trouble;                     ///< why there is no rest on this rank; empty: there is
};

#ifdef GAR_PRELOAD_OPENMPI
constexpr const char* kBuiltFor = "Open MPI";
constexpr const char* kRest = "libgar-preload-openmpi-rest.so";
constexpr gar::MpiLibrary kLibrary = gar::MpiLibrary::kOpenMpi;
#else
constexpr const char* kBuiltFor = "MPICH";
constexpr const char* kRest = "libgar-preload-mpich-rest.so";
constexpr gar::MpiLibrary kLibrary = gar::MpiLibrary::kMpich;
#endif

/// The next definition behind ours. A program may also have loaded its MPI by hand and for itself (Python does).
void* look_up(const char* name) {
  if (void* found = dlsym(RTLD_NEXT, name)) return found;
  for (const char* library : {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi.so"}) {
    void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* found = dlsym(handle, name);
    dlclose(handle);
    if (found != nullptr) return found;
  }
  std::fprintf(stderr, "gar: %s is not in any MPI library that this program has loaded\n", name);
  std::abort();
}

/// The MPI library's own function; its arguments are what it is called with.
class Native {
 public:
  explicit Native(const char* name) : function_(look_up(name)) {}
  template <class... Words>
  int operator()(Words... words) const {
    return reinterpret_cast<int (*)(Words...)>(function_)(words...);  // NOLINT(*-reinterpret-cast): what dlsym gives
  }

 private:
  void* function_;
};

/// Of an MPI that we do not know, only the launcher knows the rank.
bool is_first_process() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): only read
    if (value != nullptr) return std::strcmp(value, "0") == 0;
  }
  return true;
}

/// Names of folders may hold anything: what a terminal would obey, or is not plain text, as \xNN.
std::string escaped(const std::string& text) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return out;
}

void say(const std::string& text) {
  const char* check = secure_getenv(gar::environment::kCheck.name);
  const bool checks = check != nullptr && std::strcmp(check, "1") == 0;
  const std::string line = "gar: " + escaped(text) + "; the program runs on its own library" +
                           (checks ? ", and GAR_CHECK compares nothing\n" : "\n");
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

std::string version_of_mpi() {
  std::string text(8192, '\0');  // MPICH's is that long
  int length = 0;
  Native("PMPI_Get_library_version")(text.data(), &length);
  return text.substr(0, text.find('\0'));
}

/// Where this library is, with all links followed; empty: not known. LD_PRELOAD may name it relative to the directory
/// in which the program was started, which the program is free to leave; so this is found out before it can.
std::string& own_path() {
  static std::string path;
  return path;
}

[[gnu::constructor]] void find_own_path() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&find_own_path), &here) == 0 || here.dli_fname == nullptr) return;
  char* path = realpath(here.dli_fname, nullptr);
  if (path == nullptr) return;
  own_path() = path;
  std::free(path);
}

/// Why nothing may be loaded from there: somebody else could have put it there. Who owns the library that runs already
/// could have done so anyway.
std::string why_not_trusted(const std::string& path, uid_t own) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return path + ": " + std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
  if (status.st_uid != 0 && status.st_uid != geteuid() && status.st_uid != own) {
    return path + " belongs to user " + std::to_string(status.st_uid) + "; expected root and user " +
           std::to_string(geteuid());
  }
  if ((status.st_mode & S_IWOTH) != 0) return path + " can be written by everybody; expected its owner and its group";
  return {};
}

/// The path of the rest; throws why it is not to be loaded.
std::string find_rest() {
  struct stat own {};
  if (own_path().empty() || stat(own_path().c_str(), &own) != 0) {
    throw std::runtime_error("the preload library does not find its own file; expected an absolute path in LD_PRELOAD");
  }
  const std::string beside = own_path().substr(0, own_path().rfind('/') + 1) + kRest;
  char* resolved = realpath(beside.c_str(), nullptr);
  if (resolved == nullptr) {
    throw std::runtime_error("the preload library is not complete: " + beside + ": " +
                             std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  }
  std::string path = resolved;
  std::free(resolved);
  for (const std::string& each : {path.substr(0, std::max<std::size_t>(path.rfind('/'), 1)), path}) {
    const std::string trouble = why_not_trusted(each, own.st_uid);
    if (!trouble.empty()) throw std::runtime_error("the preload library does not load its second part: " + trouble);
  }
  return path;
}

/// Throws why the rest cannot be had.
const Hooks* attach_rest(const std::string& version) {
  if (gar::mpi_library_of(version) != kLibrary) {
    throw std::runtime_error(std::string("this preload library was built for ") + kBuiltFor +
                             ", but the program's MPI is '" + gar::mpi_library_name(version) +
                             "'; expected the build for that MPI, which 'gar mpirun' finds");
  }
  const std::string path = find_rest();
  void* rest = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (rest == nullptr) {
    const char* reason = dlerror();
    throw std::runtime_error(std::string("the preload library is not complete: ") +
                             (reason == nullptr ? path : reason));
  }
  using Attach = const Hooks* (*)(void* (*)(const char*), const char*);
  const auto attach = reinterpret_cast<Attach>(dlsym(rest, "gar_preload_attach"));
  if (attach == nullptr) throw std::runtime_error(path + " is not the second part of this preload library");
  return attach(look_up, version.c_str());
}

Start load_rest() {
  gar::preload::leave_sign(gar::preload::Sign::kReached);
  const std::string version = version_of_mpi();
  Start out{gar::mpi_library_of(version), {}};
  try {
    if (hooks == nullptr) hooks = attach_rest(version);
  } catch (const std::exception& e) {
    out.trouble = e.what();
  }
  return out;
}

/// MPI's constants. Open MPI's are addresses of its objects, MPICH's are numbers; both keep them, for they are part of
/// their binary interfaces.
struct Constants {
  Word world;
  Word integer;
  Word minimum;
  Word no_status;
};

Constants constants_of(gar::MpiLibrary library) {
  if (library == gar::MpiLibrary::kMpich) return {0x44000000, 0x4c000405, 0x58000002, 1};
  // The linker may have moved an object into the program.
  const auto address = [](const char* name) {
    void* found = dlsym(RTLD_DEFAULT, name);
    return reinterpret_cast<Word>(found == nullptr ? look_up(name) : found);
  };
  return {address("ompi_mpi_comm_world"), address("ompi_mpi_int"), address("ompi_mpi_op_min"), 0};
}

/// The least of all ranks' numbers; waits as polite.hpp does. Nothing: MPI has refused.
std::optional<int> least_of_all(int number, const Constants& mpi) {
  int out = 0;
  Word request = 0;
  if (Native("PMPI_Iallreduce")(&number, &out, Word{1}, mpi.integer, mpi.minimum, mpi.world, &request) != 0) return {};
  const Native test("PMPI_Test");
  for (int is_done = 0; true; sched_yield()) {
    if (test(&request, &is_done, mpi.no_status) != 0) return {};
    if (is_done != 0) return out;
  }
}

/// "rank 3 (on node7): "
std::string prefix_of(int rank) {
  if (rank == 0) return {};
  char host[256] = {};
  gethostname(static_cast<char*>(host), sizeof(host) - 1);
  return "rank " + std::to_string(rank) + " (on " + static_cast<const char*>(host) + "): ";
}

/// A rank that took calls over while another does not would wait for it in vain. So all ranks use the rest, or none
/// does; of those that have none the first says why.
void agree(const Start& start) {
  if (!start.library) {  // no rank of this job has the rest
    if (is_first_process()) say(start.trouble);
    return;
  }
  constexpr int kNoRank = std::numeric_limits<int>::max();
  const Constants mpi = constants_of(*start.library);
  int rank = 0;
  Native("PMPI_Comm_rank")(mpi.world, &rank);
  const std::optional<int> first = least_of_all(start.trouble.empty() ? kNoRank : rank, mpi);
  if (first == kNoRank) {
    hooks->start();
    return;
  }
  hooks = nullptr;
  if (first == rank) say(prefix_of(rank) + start.trouble);
}

bool passes() { return hooks == nullptr || hooks->passes(); }

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): MPI's names
#pragma GCC visibility push(default)
extern "C" {

int MPI_Init(int* argc, char*** argv) {
  const Start start = load_rest();
  const int code = hooks == nullptr ? Native("PMPI_Init")(argc, argv) : hooks->init(argc, argv);
  if (code == 0) agree(start);
  return code;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const Start start = load_rest();
  const int code = hooks == nullptr ? Native("PMPI_Init_thread")(argc, argv, required, provided)
                                    : hooks->init_thread(argc, argv, required, provided);
  if (code == 0) agree(start);
  return code;
}

int MPI_Finalize() { return hooks == nullptr ? Native("PMPI_Finalize")() : hooks->finalize(); }

int MPI_Allreduce(Word a, Word b, Word c, Word d, Word e, Word f) {
  static const Native kNative("PMPI_Allreduce");
  if (passes()) return kNative(a, b, c, d, e, f);
  return hooks->all_reduce(a, b, c, d, e, f);
}

int MPI_Iallreduce(Word a, Word b, Word c, Word d, Word e, Word f, Word g) {
  static const Native kNative("PMPI_Iallreduce");
  if (passes()) return kNative(a, b, c, d, e, f, g);
  return hooks->iall_reduce(a, b, c, d, e, f, g);
}

int MPI_Reduce_scatter_block(Word a, Word b, Word c, Word d, Word e, Word f) {
  static const Native kNative("PMPI_Reduce_scatter_block");
  if (passes()) return kNative(a, b, c, d, e, f);
  return hooks->reduce_scatter_block(a, b, c, d, e, f);
}

int MPI_Allgather(Word a, Word b, Word c, Word d, Word e, Word f, Word g) {
  static const Native kNative("PMPI_Allgather");
  if (passes()) return kNative(a, b, c, d, e, f, g);
  return hooks->all_gather(a, b, c, d, e, f, g);
}

int PMPI_Init(int* argc, char*** argv) __attribute__((alias("MPI_Init")));
int PMPI_Init_thread(int* argc, char*** argv, int required, int* provided) __attribute__((alias("MPI_Init_thread")));
int PMPI_Finalize() __attribute__((alias("MPI_Finalize")));
#ifdef GAR_PRELOAD_OPENMPI
int PMPI_Allreduce(Word, Word, Word, Word, Word, Word) __attribute__((alias("MPI_Allreduce")));
int PMPI_Iallreduce(Word, Word, Word, Word, Word, Word, Word) __attribute__((alias("MPI_Iallreduce")));
int PMPI_Reduce_scatter_block(Word, Word, Word, Word, Word, Word) __attribute__((alias("MPI_Reduce_scatter_block")));
int PMPI_Allgather(Word, Word, Word, Word, Word, Word, Word) __attribute__((alias("MPI_Allgather")));
#endif
}
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming)
