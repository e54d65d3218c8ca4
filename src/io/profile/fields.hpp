// What profile files and measurements files have in common.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "gar/profile.hpp"
#include "gar/topology.hpp"
#include "io/json_reader.hpp"

namespace gar {

inline constexpr std::string_view kProfileSchema = "gar.profile/1";
inline constexpr std::string_view kMeasurementsSchema = "gar.measurements/2";

Estimate read_estimate(const JsonPlace& place);
/// `num_levels`: of the topology; a link stands on one of them.
std::vector<LinkProfile> read_links(const JsonPlace& document, int num_levels);
Provenance read_provenance(const JsonPlace& document);
/// A gar.topology/1 document that stands inside another one.
Topology read_embedded_topology(const JsonPlace& place);
std::vector<std::string> read_texts(const JsonPlace& place);

/// A finite number; everything else is our own mistake and an InvalidArgument.
nlohmann::ordered_json number_json(double value, std::string_view what);
nlohmann::ordered_json estimate_json(const Estimate& estimate, std::string_view what);
nlohmann::ordered_json links_json(const std::vector<LinkProfile>& links);
nlohmann::ordered_json provenance_json(const Provenance& provenance);
nlohmann::ordered_json topology_json(const Topology& topology);
/// Starts a document with "schema" and "gar_version".
nlohmann::ordered_json begin_document(std::string_view schema);
/// What fits on a line stands on a line.
void write_json(const nlohmann::ordered_json& document, std::ostream& out);

}  // namespace gar
