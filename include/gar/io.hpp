// Files to values and back: the only part of the library that knows a file format. See docs/formats-topology.md and
// docs/formats-plan.md.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "gar/plan.hpp"
#include "gar/topology.hpp"

namespace gar {

/// Reads a topology file (schema "gar.topology/1"). Throws ParseError that names file, field and what is accepted.
Topology read_topology_file(const std::string& path);
/// The same from text; `source` stands for the file name in messages.
Topology parse_topology(std::string_view text, const std::string& source);
/// Writes our format: repetition and shared parameter classes, so the file follows the distinct subtrees.
void write_topology(const Topology& topology, std::ostream& out);
/// Writes Graphviz DOT; identical subtrees once, with their multiplicity. At most 2,000 distinct ones.
void write_topology_dot(const Topology& topology, std::ostream& out);

/// A file when one exists under that name or the text looks like a path, otherwise a built-in name or a generator.
Topology load_topology(const std::string& spec_or_path);

/// Reads a plan file (schema "gar.plan/1") as a stream. Throws ParseError.
Plan read_plan_file(const std::string& path);
Plan read_plan(std::istream& in, const std::string& source);
/// Writes a plan as a stream.
void write_plan(const Plan& plan, std::ostream& out);

}  // namespace gar
