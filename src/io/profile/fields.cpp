// What profile files and measurements files have in common.
#include "io/profile/fields.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/topology_io.hpp"
#include "gar/version.hpp"

namespace gar {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxLineBytes = 118;
constexpr std::int64_t kMaxCount = std::int64_t{1} << 53;
constexpr double kLeastCores = 1e-3;
constexpr double kMostCores = 1e6;

/// Objects and lists with a space after ':' and ','.
std::string one_line(const Json& value) {
  std::string out;
  if (value.is_object()) {
    for (const auto& [key, item] : value.items())
      out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", Json(key).dump(), one_line(item));
    return "{" + out + "}";
  }
  if (value.is_array()) {
    for (const Json& item : value) out += (out.empty() ? "" : ", ") + one_line(item);
    return "[" + out + "]";
  }
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write_value(const Json& value, std::size_t indent, std::size_t column, std::ostream& out) {
  const std::string line = one_line(value);
  if (!value.is_structured() || value.empty() || column + line.size() < kMaxLineBytes) {
    out << line;
    return;
  }
  const std::string margin(indent + 2, ' ');
  out << (value.is_object() ? "{" : "[");
  const char* separator = "\n";
  for (const auto& [key, item] : value.items()) {
    const std::string prefix = value.is_object() ? Json(key).dump() + ": " : "";
    out << separator << margin << prefix;
    write_value(item, indent + 2, margin.size() + prefix.size(), out);
    separator = ",\n";
  }
  out << "\n" << std::string(indent, ' ') << (value.is_object() ? "}" : "]");
}

struct TextField {
  const char* name;
  std::string Provenance::*text;
};
/// The texts of a provenance in the order in which they are written; the hosts follow "gar_version".
constexpr TextField kProvenanceTexts[] = {{"date", &Provenance::date},
                                          {"command", &Provenance::command},
                                          {"gar_version", &Provenance::gar_version},
                                          {"kernel", &Provenance::kernel},
                                          {"cpu", &Provenance::cpu},
                                          {"mpi", &Provenance::mpi},
                                          {"device", &Provenance::device},
                                          {"transport", &Provenance::transport}};

Provenance read_provenance(const JsonPlace& document) {
  Provenance result;
  const auto place = document.find("provenance");
  if (!place) return result;
  place->expect_fields({"date", "command", "gar_version", "hosts", "kernel", "cpu", "mpi", "device", "transport",
                        "ranks", "measurements", "seconds"});
  for (const TextField& field : kProvenanceTexts) {
    if (const auto found = place->find(field.name)) result.*field.text = found->text();
  }
  if (const auto hosts = place->find("hosts")) result.hosts = read_texts(*hosts);
  if (const auto ranks = place->find("ranks")) result.num_ranks = ranks->whole(0, kMaxServers);
  if (const auto number = place->find("measurements")) result.num_measurements = number->whole(0, kMaxCount);
  if (const auto seconds = place->find("seconds")) result.seconds = seconds->number();
  return result;
}

OperandAccess read_access(const JsonPlace& place) {
  const std::string text = place.text();
  for (const OperandAccess access : {OperandAccess::kCopied, OperandAccess::kDirect}) {
    if (text == to_string(access)) return access;
  }
  place.refuse("\"copied\" or \"direct\"");
}

/// Files of version 1 do not say it; only one transport of that time read its operands in place.
OperandAccess access_of_transport(std::string_view transport) {
  return transport == "cuda-ipc" ? OperandAccess::kDirect : OperandAccess::kCopied;
}

Json provenance_json(const Provenance& provenance) {
  Json result = Json::object();
  for (const TextField& field : kProvenanceTexts) {
    if (!(provenance.*field.text).empty()) result[field.name] = provenance.*field.text;
    if (field.text == &Provenance::gar_version && !provenance.hosts.empty()) result["hosts"] = provenance.hosts;
  }
  if (provenance.num_ranks != 0) result["ranks"] = provenance.num_ranks;
  if (provenance.num_measurements != 0) result["measurements"] = provenance.num_measurements;
  if (provenance.seconds != 0) result["seconds"] = number_json(provenance.seconds, "the time that measuring took");
  return result;
}

Json topology_json(const Topology& topology) {
  std::ostringstream text;
  write_topology(topology, text);
  return Json::parse(text.str());
}

}  // namespace

Estimate read_estimate(const JsonPlace& place, double most) {
  place.expect_fields({"value", "low", "high", "identified"});
  Estimate result;
  result.value = place.at("value", fmt::format("a number from 0 to {:g}", most)).number(0, most);
  result.low = place.at("low", "a number of at least 0, the lower end of the interval").number(0, most);
  const JsonPlace high = place.at("high", "a number of at least 0, or null for an interval without an end");
  result.high = high.value().is_null() ? std::numeric_limits<double>::infinity() : high.number();
  if (result.low > result.high)
    place.fail(fmt::format("\"low\" is {} and \"high\" is {}; expected low at most high", result.low, result.high));
  if (const auto identified = place.find("identified")) result.is_identified = identified->boolean();
  return result;
}

std::vector<std::string> read_texts(const JsonPlace& place) {
  std::vector<std::string> result;
  for (const JsonPlace& item : place.items("a list of texts")) result.push_back(item.text());
  return result;
}

std::vector<LinkProfile> read_links(const JsonPlace& document, int num_levels) {
  std::vector<LinkProfile> result;
  const auto links = document.find("links");
  if (!links) return result;
  for (const JsonPlace& item : links->items("a list of links")) {
    item.expect_fields({"name", "level", "beta"});
    LinkProfile link;
    link.name = item.at("name", "the name of a node of the topology, for example \"rack2\"").text();
    const JsonPlace level = item.at("level", "0 for the links of servers, 1 for those of the switches above, ...");
    link.level = static_cast<int>(level.whole(0, std::max(0, num_levels - 1)));
    link.beta =
        read_estimate(item.at("beta", "an object with value, low and high, in seconds per float"), kMaxParameter);
    result.push_back(std::move(link));
  }
  return result;
}

Topology read_embedded_topology(const JsonPlace& place) {
  if (!place.value().is_object()) place.refuse("a gar.topology/1 document (docs/formats-topology.md)");
  return parse_topology(place.value().dump(), fmt::format("{}: {}", place.source(), place.path()));
}

Json number_json(double value, std::string_view what) {
  if (!std::isfinite(value)) throw InvalidArgument(fmt::format("{} is {}; expected a finite number", what, value));
  return value;
}

Json estimate_json(const Estimate& estimate, std::string_view what) {
  Json result;
  result["value"] = number_json(estimate.value, what);
  result["low"] = number_json(estimate.low, what);
  result["high"] = std::isinf(estimate.high) && estimate.high > 0 ? Json(nullptr) : number_json(estimate.high, what);
  if (!estimate.is_identified) result["identified"] = false;
  return result;
}

Json links_json(const std::vector<LinkProfile>& links) {
  Json result = Json::array();
  for (const LinkProfile& link : links) {
    Json item;
    item["name"] = link.name;
    item["level"] = link.level;
    item["beta"] = estimate_json(link.beta, fmt::format("beta of the link of {}", link.name));
    result.push_back(std::move(item));
  }
  return result;
}

MeasuredAt read_place(const JsonPlace& document, std::string_view schema) {
  MeasuredAt out;
  out.provenance = read_provenance(document);
  if (const auto cores = document.find("cores")) {
    out.cores = cores->number(0, kMostCores);
    if (out.cores > 0 && out.cores < kLeastCores)
      cores->refuse(fmt::format("0 or a number from {:g} to {:g}", kLeastCores, kMostCores));
  }
  if (const auto memory = document.find("memory")) out.is_memory = memory->boolean();
  const auto access = document.find("access");
  if (schema.ends_with("/1")) {
    if (access) access->fail("belongs to version 2 of the schema; expected none here");
    out.access = access_of_transport(out.provenance.transport);
  } else if (access) {
    out.access = read_access(*access);
  }
  return out;
}

Json begin_document(std::string_view schema, const Topology& topology, const MeasuredAt& place) {
  Json document;
  document["schema"] = schema;
  document["gar_version"] = version();
  document["provenance"] = provenance_json(place.provenance);
  document["topology"] = topology_json(topology);
  document["cores"] = number_json(place.cores, "cores");
  if (place.is_memory) document["memory"] = true;
  if (place.access != OperandAccess::kCopied) document["access"] = to_string(place.access);
  return document;
}

void write_json(const Json& document, std::ostream& out) {
  write_value(document, 0, kMaxLineBytes, out);
  out << "\n";
}

}  // namespace gar
