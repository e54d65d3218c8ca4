// Files to values and back: the only part of the library that knows a file format. See docs/formats-topology.md,
// docs/formats-plan.md and docs/formats-profile.md.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "gar/fit.hpp"
#include "gar/plan.hpp"
#include "gar/profile.hpp"
#include "gar/topology.hpp"

namespace gar {

/// Reads a topology file (schema "gar.topology/1"). Throws ParseError that names file, field and what is
/// expected.
Topology read_topology_file(const std::string& path);
/// The same from text; `source` stands for the file name in messages.
Topology parse_topology(std::string_view text, const std::string& source);
/// Writes our format: repetition and shared parameter classes, so the file follows the distinct subtrees.
void write_topology(const Topology& topology, std::ostream& out);
/// Writes Graphviz DOT; identical subtrees once, with their multiplicity. At most 2,000 distinct ones.
void write_topology_dot(const Topology& topology, std::ostream& out);

/// A file when one exists under that name or the text looks like a path, otherwise a built-in name or a generator. Of a
/// profile file, the topology that was measured.
Topology load_topology(const std::string& spec_or_path);

/// Reads a plan file (schema "gar.plan/1") as a stream. Throws ParseError.
Plan read_plan_file(const std::string& path);
/// The same from a stream; `source` stands for the file name in messages.
Plan read_plan(std::istream& in, const std::string& source);
/// Writes a plan as a stream.
void write_plan(const Plan& plan, std::ostream& out);

/// Reads a profile file (schema "gar.profile/1"). Throws ParseError that names file, field and what is expected.
Profile read_profile_file(const std::string& path);
/// The same from text; `source` stands for the file name in messages.
Profile parse_profile(std::string_view text, const std::string& source);
/// Writes a profile; numbers keep all their digits. Throws InvalidArgument when one is not finite (the high end of an
/// interval may be).
void write_profile(const Profile& profile, std::ostream& out);

/// Reads a measurements file (schema "gar.measurements/1"). Throws ParseError as above.
Measurements read_measurements_file(const std::string& path);
/// The same from text; `source` stands for the file name in messages.
Measurements parse_measurements(std::string_view text, const std::string& source);
/// Writes measurements; numbers keep all their digits.
void write_measurements(const Measurements& measurements, std::ostream& out);

/// One measured AllReduce out of a benchmark's output.
struct ResultRow {
  std::int64_t line = 0;  ///< where it stands; 0 in a document
  double bytes = 0;       ///< of the vector
  double seconds = 0;     ///< of one operation
  std::string algorithm;  ///< as on the command line; empty: unknown, or the library's own choice
  std::string label;      ///< what the benchmark says about it: "auto: cps, 4 chunks", "in place"
};
/// What a benchmark printed.
struct Results {
  std::string format;           ///< "gar bench", "nccl-tests" or "OSU"
  std::int64_t num_ranks = 0;   ///< 0: the file does not say
  std::vector<ResultRow> rows;  ///< at least one, in the order of the file
};
/// Reads the output of `gar bench` (table or --json), of nccl-tests' all_reduce_perf or of osu_allreduce, whichever it
/// is. At least one row. Throws ParseError that names file, line and what is expected.
Results read_results_file(const std::string& path);
/// The same from text; `source` stands for the file name in messages.
Results parse_results(std::string_view text, const std::string& source);

}  // namespace gar
