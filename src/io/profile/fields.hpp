// What profile files and measurements files have in common.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "gar/profile.hpp"
#include "gar/topology.hpp"
#include "io/json_reader.hpp"

namespace gar {

/// The accepted schemas, the one that is written first. Version 1 has no "access"; its transport tells.
inline constexpr std::string_view kProfileSchemas[] = {"gar.profile/2", "gar.profile/1"};
inline constexpr std::string_view kMeasurementsSchemas[] = {"gar.measurements/2", "gar.measurements/1"};

/// What both kinds of files say about the place of the measurements, next to the topology.
struct MeasuredAt {
  double cores = 0;
  bool is_memory = false;
  OperandAccess access = OperandAccess::kCopied;
  Provenance provenance;
};
MeasuredAt read_place(const JsonPlace& document, std::string_view schema);

/// An estimate of what lies in [0, most].
Estimate read_estimate(const JsonPlace& place, double most);
/// `num_levels`: of the topology; a link stands on one of them.
std::vector<LinkProfile> read_links(const JsonPlace& document, int num_levels);
/// A gar.topology/1 document that stands inside another one.
Topology read_embedded_topology(const JsonPlace& place);
std::vector<std::string> read_texts(const JsonPlace& place);

/// A finite number; everything else is our own mistake and an InvalidArgument.
nlohmann::ordered_json number_json(double value, std::string_view what);
nlohmann::ordered_json estimate_json(const Estimate& estimate, std::string_view what);
nlohmann::ordered_json links_json(const std::vector<LinkProfile>& links);
/// Starts a document: schema, version, provenance, topology and the place.
nlohmann::ordered_json begin_document(std::string_view schema, const Topology& topology, const MeasuredAt& place);
/// What fits on a line stands on a line.
void write_json(const nlohmann::ordered_json& document, std::ostream& out);

}  // namespace gar
