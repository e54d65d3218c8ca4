// What a communicator has found out by measuring its own calls: which way of running an AllReduce is the fastest for a
// size class. Decisions are kept in a small file for each network, transport and number of ranks, so that the next job
// starts with them (docs/runtime.md). The file has the schema "gar.decisions/1" (docs/formats-decisions.md).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "gar/language.hpp"

namespace gar {

/// One way of running the operations of a size class.
struct DecisionCandidate {
  std::string name;               ///< "cps", "gather", "native", ...
  double seconds = -1;            ///< measured for a call: the lower quartile; -1: not tried
  std::int64_t num_calls = 0;     ///< that this rests on
  double predicted_seconds = -1;  ///< by the model; -1: no prediction
  bool operator==(const DecisionCandidate&) const = default;
};

/// What was decided for the AllReduces of one size class.
struct Decision {
  std::int64_t from_bytes = 0;                ///< smallest vector of the class
  std::int64_t to_bytes = 0;                  ///< largest vector of the class
  std::string winner;                         ///< the name of a candidate
  std::vector<DecisionCandidate> candidates;  ///< the model's first choice comes first
  bool is_settled = true;                     ///< false: not all candidates have been measured often enough yet
  std::int64_t num_calls = 0;                 ///< of this class, in the last job
  double seconds = 0;                         ///< that they took, on rank 0
  double extra_seconds = 0;                   ///< of these: what looking at slower candidates has cost
  bool operator==(const Decision&) const = default;

  /// The candidate of that name; null: there is none.
  [[nodiscard]] const DecisionCandidate* find(std::string_view name) const;
};

/// What a file of decisions is about. Decisions hold only where all of this is the same.
struct DecisionPlace {
  std::string network;       ///< its name, for people
  std::uint64_t digest = 0;  ///< of the hosts, or of the network that was given
  std::string transport;     ///< "shm", "mpi", "shm+mpi", ...
  int num_ranks = 1;         ///< of the communicator
  std::string library;       ///< whose AllReduce "native" is: "Open MPI 4.1.4"; empty: there is none
  bool operator==(const DecisionPlace&) const = default;
};

/// A file of decisions.
struct Decisions {
  DecisionPlace place;              ///< where they hold
  std::vector<Decision> decisions;  ///< in the order of sizes
  bool operator==(const Decisions&) const = default;
};

/// Reads a file of decisions. Throws ParseError that names file, field and what is accepted.
Decisions read_decisions_file(const std::string& path);
Decisions parse_decisions(std::string_view text, const std::string& source);  ///< from text; messages name `source`
/// Writes the document. Throws InvalidArgument when a number is not finite.
void write_decisions(const Decisions& decisions, std::ostream& out);

/// "decisions-0123456789abcdef.json": one file for each place.
std::string decisions_file_name(const DecisionPlace& place);
/// The folder of such files: GAR_DECISIONS, or `gar` in $XDG_CACHE_HOME, or .cache/gar in $HOME. Empty: decisions are
/// not kept, because GAR_DECISIONS=0 says so, there is no such folder, or the program has more rights than who has
/// called it.
std::string decisions_folder();

/// What a folder knows about a place.
struct KeptDecisions {
  std::vector<Decision> decisions;  ///< empty: nothing
  std::string problem;              ///< why a file that is there is not used; empty: there is no problem
};
/// Never throws: a file that cannot be read, or is about something else, is a problem in words.
KeptDecisions load_decisions(const std::string& folder, const DecisionPlace& place);
/// Puts decisions into the folder's file for their place, which is replaced at once and as a whole. Size classes that
/// only the file has, such as those of another job that has ended meanwhile, stay. Returns what went wrong in words;
/// empty: it is written. Never throws.
std::string keep_decisions(const std::string& folder, const Decisions& decisions);

}  // namespace gar
