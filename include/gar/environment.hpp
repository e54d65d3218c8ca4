// The environment variables GAR_*: each of them once, with what it accepts and what it does. The documentation
// (docs/environment.md, the manual page) is made from this table. The names can be used without linking the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gar/limits.hpp"

namespace gar {

/// Where a variable is read.
enum class EnvironmentReader { kAll, kRuntime, kPreload, kTests, kInternal };

/// What its value is.
enum class EnvironmentValue { kText, kFlag, kWhole, kNumber };

/// An environment variable: what it is called, what it accepts and what it does.
struct EnvironmentVariable {
  const char* name = "";                                   ///< "GAR_ALGO"
  EnvironmentReader reader = EnvironmentReader::kRuntime;  ///< which part of the project reads it
  const char* accepted = "";                               ///< behind "expected" in messages
  const char* otherwise = "";                              ///< what holds when it is not set
  const char* sentence = "";                               ///< what it does
  double least = 0;                                        ///< smallest accepted value of a number
  double most = 0;                                         ///< largest accepted value of a number
  EnvironmentValue value = EnvironmentValue::kText;        ///< kText: only who reads it can tell what is right
};

namespace environment {

inline constexpr double kMostInt = 2147483647;  ///< largest value of an int
inline constexpr double kMostWhole = 9e15;      ///< limit of whole numbers, which a double still holds exactly

namespace detail {

/// Text that is put together by the compiler.
struct FixedText {
  char text[600] = {};   ///< ends with a 0
  std::size_t size = 0;  ///< without it

  /// Too long a text does not compile.
  constexpr void add(std::string_view more) {
    for (const char c : more) text[size++] = c;
    text[size] = '\0';
  }
  /// "2e7"; what is not one digit and zeros does not compile.
  constexpr void add(double number) {
    int zeros = 0;
    for (; number >= 10; number /= 10) ++zeros;
    const int digit = static_cast<int>(number);
    if (digit != number || zeros > 9) throw "not one digit and up to nine zeros";
    const char digits[] = {static_cast<char>('0' + digit), 'e', static_cast<char>('0' + zeros), '\0'};
    add(std::string_view(digits));
  }
};

/// What GAR_LIMIT does, with the limits as they are.
constexpr FixedText limit_sentence() {
  FixedText out;
  out.add("A factor for the limits that refuse inputs which stand for too much work");
  std::string_view before = ": ";
  for (const WorkLimit& limit : kWorkLimits) {
    out.add(before);
    out.add(limit.most);
    out.add(" ");
    out.add(limit.things);
    before = ", ";
  }
  out.add(".");
  return out;
}

inline constexpr FixedText kLimitSentence = limit_sentence();  ///< in memory that outlives it

}  // namespace detail

/// GAR_LIMIT: a factor for the limits of work.
inline constexpr EnvironmentVariable kLimit{.name = "GAR_LIMIT",
                                            .reader = EnvironmentReader::kAll,
                                            .accepted = "a factor, 0.000001 to 1e6",
                                            .otherwise = "1",
                                            .sentence = detail::kLimitSentence.text,
                                            .least = 1e-6,
                                            .most = 1e6,
                                            .value = EnvironmentValue::kNumber};
/// GAR_INPUT_TIMEOUT: seconds of silence after which a pipe counts as dead.
inline constexpr EnvironmentVariable kInputTimeout{
    .name = "GAR_INPUT_TIMEOUT",
    .reader = EnvironmentReader::kAll,
    .accepted = "a number of seconds, 0.001 to 1e9",
    .otherwise = "60",
    .sentence =
        "A pipe, or another file without stored data, that is named as an input file and stays silent for this long, "
        "or "
        "has nobody who writes to it, is an error; so is a pipe that is named as an output file and that nobody reads "
        "for this long. Standard input, written as `-`, and standard output may take as long as they like.",
    .least = 1e-3,
    .most = 1e9,
    .value = EnvironmentValue::kNumber};

/// GAR_ALGO: the algorithm that runs.
inline constexpr EnvironmentVariable kAlgo{
    .name = "GAR_ALGO",
    .accepted = "an algorithm as on the command line, or auto",
    .otherwise = "chosen by the model",
    .sentence = "The algorithm that runs. `algorithm` and `plan` of the options win over it."};
/// GAR_TOPOLOGY: the network with its parameters.
inline constexpr EnvironmentVariable kTopology{
    .name = "GAR_TOPOLOGY",
    .accepted = "a topology file, a profile, or a name as on the command line",
    .otherwise = "measured",
    .sentence =
        "The network with its parameters: one server per rank, or over MPI one per host. `topology` of the "
        "options and `gar fit -t` win over it."};
/// GAR_TIMEOUT: seconds of silence after which a peer counts as failed.
inline constexpr EnvironmentVariable kTimeout{
    .name = "GAR_TIMEOUT",
    .accepted = "a number of seconds, 0.001 to 1e9",
    .otherwise = "`timeout_s` of the options, 30",
    .sentence = "A peer that is silent for this long is an error on every rank. It wins over the options.",
    .least = 1e-3,
    .most = 1e9,
    .value = EnvironmentValue::kNumber};
/// GAR_STAGING: bytes of shared memory for each rank.
inline constexpr EnvironmentVariable kStaging{
    .name = "GAR_STAGING",
    .accepted = "a number of bytes for each rank, 1024 to 1e12",
    .otherwise = "chosen from the caches of the machine",
    .sentence = "Shared memory that each rank stages its data in. `staging_bytes` of the options wins over it.",
    .least = 1024,
    .most = 1e12,
    .value = EnvironmentValue::kNumber};
/// GAR_MAX_SENDERS: how many ranks may send to a rank at the same time.
inline constexpr EnvironmentVariable kMaxSenders{
    .name = "GAR_MAX_SENDERS",
    .accepted = "a number of senders, or 0 for no limit",
    .otherwise = "by the links with incast",
    .sentence = "Over MPI and TCP: how many ranks may send to a rank at the same time.",
    .least = 0,
    .most = kMostInt,
    .value = EnvironmentValue::kWhole};
/// GAR_STORE: where the ranks of a TCP job find each other.
inline constexpr EnvironmentVariable kStore{
    .name = "GAR_STORE",
    .accepted = "tcp://HOST:PORT of a gar store, or file:///DIRECTORY",
    .otherwise = "`MASTER_ADDR` and `MASTER_PORT`, where rank 0 makes one; under Slurm its first host",
    .sentence = "Over TCP: where the ranks of a job find each other."};
/// GAR_SECRET: what the members of a TCP job share.
inline constexpr EnvironmentVariable kSecret{
    .name = "GAR_SECRET",
    .accepted = "16 characters or more",
    .otherwise = "`GAR_SECRET_FILE`",
    .sentence =
        "Over TCP: what the members of a job share and nobody else knows. Who has it can join. A store in a directory "
        "needs none."};
/// GAR_SECRET_FILE: a file with it.
inline constexpr EnvironmentVariable kSecretFile{
    .name = "GAR_SECRET_FILE",
    .accepted = "a file that its owner alone can read",
    .otherwise = "not set",
    .sentence = "Over TCP: the first line of this file is the secret of the job."};
/// GAR_INTERFACE: the network that a TCP job uses.
inline constexpr EnvironmentVariable kInterface{
    .name = "GAR_INTERFACE",
    .accepted = "the name of an interface, or a network such as 10.0.0.0/8 or fd00::/8",
    .otherwise = "the way to the store, or else the first interface that is up",
    .sentence =
        "Over TCP: the interface that all sockets of the job are bound to. `interface` of the options wins "
        "over it."};
/// GAR_DEBUG: whether notes are written to standard error.
inline constexpr EnvironmentVariable kDebug{
    .name = "GAR_DEBUG",
    .accepted = "INFO, WARN, or 0 for nothing",
    .otherwise = "0",
    .sentence =
        "INFO: rank 0 writes to standard error which plan runs and why, once per size class, and what was measured; "
        "the preload library adds a table of all calls at the end. WARN: only what is wrong with kept decisions. "
        "`log` of the options gets the notes instead."};
/// GAR_EXPLORE: whether candidates are measured on the program's own calls.
inline constexpr EnvironmentVariable kExplore{
    .name = "GAR_EXPLORE",
    .accepted = "0 or 1",
    .otherwise = "1 for communicators over MPI and the preload library, otherwise 0",
    .sentence =
        "1: AllReduces of a size class are run in several ways in turns, over MPI also with the MPI library's own "
        "function, and the fastest stays. 0: the model's choice runs. `explores` of the options wins over it; `gar "
        "bench` "
        "and `gar fit` take 1 only if it is set.",
    .value = EnvironmentValue::kFlag};
/// GAR_DECISIONS: where decisions are kept.
inline constexpr EnvironmentVariable kDecisions{
    .name = "GAR_DECISIONS",
    .accepted = "a folder, or 0 for none",
    .otherwise = "`$XDG_CACHE_HOME/gar`, or `~/.cache/gar`",
    .sentence = "Where what was measured on calls (`GAR_EXPLORE`) and by `gar tune` is kept for the next job."};

/// GAR_DISABLE: leaves all calls to the MPI library.
inline constexpr EnvironmentVariable kDisable{.name = "GAR_DISABLE",
                                              .reader = EnvironmentReader::kPreload,
                                              .accepted = "0 or 1",
                                              .otherwise = "0",
                                              .sentence = "1: everything is left to the MPI library.",
                                              .value = EnvironmentValue::kFlag};
/// GAR_CHECK: compares results with those of the MPI library.
inline constexpr EnvironmentVariable kCheck{
    .name = "GAR_CHECK",
    .reader = EnvironmentReader::kPreload,
    .accepted = "0 or 1",
    .otherwise = "0",
    .sentence = "1: every call that is taken over is also made with the MPI library's own function, and compared.",
    .value = EnvironmentValue::kFlag};
/// GAR_COMPARE: measures calls here and in the MPI library, in turns.
inline constexpr EnvironmentVariable kCompare{
    .name = "GAR_COMPARE",
    .reader = EnvironmentReader::kPreload,
    .accepted = "0 or 1",
    .otherwise = "0",
    .sentence =
        "1: every blocking call that is taken over, up to 256 MiB, runs here and in the MPI library, in turns. Results "
        "are compared as with `GAR_CHECK=1`, and a table at the end has the times of both.",
    .value = EnvironmentValue::kFlag};
/// GAR_MIN_BYTES: the smallest vector that is taken over from the MPI library.
inline constexpr EnvironmentVariable kMinBytes{
    .name = "GAR_MIN_BYTES",
    .reader = EnvironmentReader::kPreload,
    .accepted = "a whole number, 0 or more",
    .otherwise = "256; for `MPI_Iallreduce` 65536, or under MPICH no limit: all are left to it",
    .sentence = "Vectors with fewer bytes, all blocks together, are left to the MPI library.",
    .least = 0,
    .most = kMostWhole,
    .value = EnvironmentValue::kWhole};
/// GAR_THREADS: whether MPI is asked for several threads.
inline constexpr EnvironmentVariable kThreads{
    .name = "GAR_THREADS",
    .reader = EnvironmentReader::kPreload,
    .accepted = "0 or 1",
    .otherwise = "0",
    .sentence =
        "1: MPI is asked for several threads, which `MPI_Iallreduce` needs to be taken over, and which makes every "
        "call of MPI a little slower. 0: `MPI_Iallreduce` is left alone, unless the program asks for them itself.",
    .value = EnvironmentValue::kFlag};

/// GAR_FAKE_HOSTS: how many pretended hosts each host is divided into.
inline constexpr EnvironmentVariable kFakeHosts{
    .name = "GAR_FAKE_HOSTS",
    .reader = EnvironmentReader::kTests,
    .accepted = "a number of pretended hosts, 1 or more",
    .otherwise = "1",
    .sentence =
        "Over MPI and TCP: the ranks of every host are divided into this many pretended hosts of consecutive ranks. It "
        "changes plans and transports, not results.",
    .least = 1,
    .most = kMostInt,
    .value = EnvironmentValue::kWhole};
/// GAR_BENCH_STARTED: marks the ranks of an mpirun that `gar` has started.
inline constexpr EnvironmentVariable kStarted{.name = "GAR_BENCH_STARTED",
                                              .reader = EnvironmentReader::kInternal,
                                              .accepted = "a process and its start, `PID:TICKS`",
                                              .otherwise = "not set",
                                              .sentence =
                                                  "Set by `gar bench --local` and `gar fit --local` for the ranks of "
                                                  "the mpirun that they start: the ranks end when "
                                                  "that process does."};

/// GAR_MPIRUN: set by `gar mpirun` for the ranks that it starts.
inline constexpr EnvironmentVariable kMpirun{
    .name = "GAR_MPIRUN",
    .reader = EnvironmentReader::kInternal,
    .accepted = "1, or where that command looks for a sign of its ranks, `PID.FD.TOKEN`",
    .otherwise = "not set",
    .sentence = "Set by `gar mpirun`: rank 0 says at the end how many calls were taken over."};

/// All variables, in the order of the documentation.
inline constexpr EnvironmentVariable kAll[] = {kLimit,      kInputTimeout, kAlgo,    kTopology,   kTimeout,   kStaging,
                                               kMaxSenders, kStore,        kSecret,  kSecretFile, kInterface, kDebug,
                                               kExplore,    kDecisions,    kDisable, kCheck,      kCompare,   kMinBytes,
                                               kThreads,    kFakeHosts,    kStarted, kMpirun};

/// The value, or an empty text when the variable is not set, or when the program has more rights than who has called it
/// (set-user-id, set-group-id, file capabilities).
std::string text(const EnvironmentVariable& variable);
/// These return nothing when the variable is not set or empty, and throw InvalidArgument that names the variable and
/// says what is accepted.
std::optional<bool> flag(const EnvironmentVariable& variable);
std::optional<std::int64_t> whole_number(const EnvironmentVariable& variable);  ///< from `least` to `most`
std::optional<double> number(const EnvironmentVariable& variable);              ///< finite, from `least` to `most`

/// Throws the same when it is set to something else than what is accepted, as far as its EnvironmentValue tells. For
/// programs that read it later, when work has begun.
void check(const EnvironmentVariable& variable);

/// "GAR_DEBUG=x in the environment: expected ...", as an InvalidArgument.
[[noreturn]] void refuse(const EnvironmentVariable& variable, std::string_view value);

}  // namespace environment
}  // namespace gar
