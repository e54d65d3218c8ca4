// Topology files to values and back; docs/formats-topology.md describes our own format.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

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

/// Loads a network by what a user calls it: a file when one exists under that name or the text looks like a path,
/// otherwise a built-in name or a generator. Of a profile file, this is the topology that was measured.
Topology load_topology(const std::string& spec_or_path);

/// The names of the files of data/topologies, which are known wherever the library runs, without those of
/// builtin_topologies(), in alphabetical order.
std::span<const std::string_view> shipped_topologies();

/// A format that networks are imported from.
struct TopologyReader {
  std::string_view name;                      ///< for `--format`: "gar-json"
  std::string_view about;                     ///< a few words for people: "our own files, nested or flat"
  bool (*recognises)(std::string_view text);  ///< does a file look like this format?
  Topology (*read)(std::string_view text, const std::string& source);  ///< throws ParseError that names `source`
};
/// A format that networks are exported to.
struct TopologyWriter {
  std::string_view name;                                       ///< for `--format`: "dot"
  std::span<const std::string_view> extensions;                ///< names of files in this format end so
  void (*write)(const Topology& topology, std::ostream& out);  ///< writes the whole network
};
/// All formats; the first one is the default.
std::span<const TopologyReader> topology_readers();
std::span<const TopologyWriter> topology_writers();  ///< the first one is the default
/// The format with this name; null when there is none.
const TopologyReader* find_topology_reader(std::string_view name);
const TopologyWriter* find_topology_writer(std::string_view name);  ///< null when there is none
/// The format of a file with this name; of one without an ending the default; null for an ending that no format has.
const TopologyWriter* topology_writer_of(std::string_view path);

/// Reads a file in one of these formats; without `reader`, the one that recognises it, or the default. Throws
/// ParseError.
Topology import_topology(const std::string& path, const TopologyReader* reader = nullptr);

}  // namespace gar
