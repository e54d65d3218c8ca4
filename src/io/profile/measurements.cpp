// Measurements to a file of schema "gar.measurements/2" and back. See docs/formats-profile.md.
#include <fmt/format.h>

#include <numeric>
#include <optional>

#include "gar/errors.hpp"
#include "gar/fit.hpp"
#include "gar/limits.hpp"
#include "gar/profile_io.hpp"
#include "io/profile/fields.hpp"
#include "io/text_file.hpp"

namespace gar {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMaxMeasurementsBytes = std::int64_t{16} << 20;
// A short file may name many servers; this bounds what it can ask for.
constexpr std::size_t kMaxNamedServers = 10'000'000;
constexpr std::int64_t kMaxFanIn = 1'000'000;
constexpr double kLeastFloats = 0.25;  // one byte

struct KindName {
  ObservationKind kind;
  const char* name;
};
constexpr KindName kKinds[] = {{ObservationKind::kCollective, "collective"},
                               {ObservationKind::kGather, "gather"},
                               {ObservationKind::kReduction, "reduction"}};

ObservationKind read_kind(const JsonPlace& place) {
  const std::string text = place.text();
  for (const KindName& entry : kKinds) {
    if (text == entry.name) return entry.kind;
  }
  place.refuse("\"collective\", \"gather\" or \"reduction\"");
}

Collective read_collective(const JsonPlace& place) {
  const std::optional<Collective> collective = parse_collective(place.text());
  if (!collective) place.refuse("\"allreduce\", \"reduce-scatter\" or \"allgather\"");
  return *collective;
}

class MeasurementsReader {
 public:
  explicit MeasurementsReader(const JsonPlace& document) : document_(document) {}

  Measurements run() {
    const std::string_view schema = check_schema(document_, kMeasurementsSchemas, "what gar fit --save writes");
    document_.expect_fields(
        {"schema", "gar_version", "topology", "cores", "memory", "access", "provenance", "observations", "links"});
    MeasuredAt place = read_place(document_, schema);
    Measurements result{.topology = read_topology(),
                        .cores = place.cores,
                        .observations = {},
                        .links = {},
                        .provenance = std::move(place.provenance),
                        .is_memory = place.is_memory,
                        .access = place.access};
    num_servers_ = result.topology.num_servers();
    result.links = read_links(document_, result.topology.height(result.topology.root()));
    const JsonPlace list = document_.at("observations", "a list of what was measured");
    for (const JsonPlace& item : list.items("a list of what was measured"))
      result.observations.push_back(read_observation(item));
    return result;
  }

 private:
  [[nodiscard]] Topology read_topology() const {
    const JsonPlace place =
        document_.at("topology", "a gar.topology/1 document, or a built-in name or generator such as \"star:15\"");
    if (!place.value().is_string()) return read_embedded_topology(place);
    try {
      return topology_from_spec(place.text());
    } catch (const InvalidArgument& error) {
      place.fail(printable(error.what(), 1000));
    }
  }

  Observation read_observation(const JsonPlace& item) {
    item.expect_fields({"kind", "collective", "algorithm", "servers", "size_floats", "fan_in", "seconds", "retransmits",
                        "pause_frames", "fitted", "native", "max_senders"});
    Observation result;
    if (const auto kind = item.find("kind")) result.kind = read_kind(*kind);
    if (const auto native = item.find("native")) result.is_native = native->boolean();
    if (const auto fitted = item.find("fitted")) result.is_fitted = fitted->boolean();
    if (result.kind == ObservationKind::kCollective) {
      read_algorithm(item, result);
    } else {
      for (const char* field : {"collective", "algorithm", "native"}) {
        if (const auto found = item.find(field))
          found->fail("belongs to observations of the kind \"collective\"; expected none here");
      }
    }
    read_fan_in(item, result);
    result.servers = read_servers(item.at("servers", "a list of servers, or a number n for the first n"),
                                  result.kind == ObservationKind::kReduction ? 1 : 2);
    result.size_floats = item.at("size_floats", "the length of the vector").number(kLeastFloats, kMaxFloats);
    const JsonPlace seconds = item.at("seconds", "a list of at least one number above 0");
    for (const JsonPlace& repetition : seconds.items("a list of at least one number above 0"))
      result.seconds.push_back(repetition.number(kLeastSeconds, kMaxSeconds));
    if (result.seconds.empty()) seconds.fail("is empty; expected a list of at least one number above 0");
    if (const auto found = item.find("retransmits")) result.retransmits = found->number();
    if (const auto found = item.find("max_senders")) result.max_senders = found->whole(0, kMaxServers);
    if (const auto found = item.find("pause_frames")) result.pause_frames = found->number();
    return result;
  }

  static void read_algorithm(const JsonPlace& item, Observation& result) {
    if (const auto found = item.find("collective")) result.collective = read_collective(*found);
    const auto algorithm = item.find("algorithm");
    if (!algorithm) {
      if (!result.is_native) (void)item.at("algorithm", "an algorithm such as \"cps\" or \"hcps:4x3\"");
      return;
    }
    if (result.is_native) algorithm->fail("is there as well as \"native\"; expected one of them");
    try {
      result.algorithm = parse_algorithm(algorithm->text());
    } catch (const InvalidArgument& error) {
      algorithm->fail(printable(error.what(), 1000));
    }
  }

  static void read_fan_in(const JsonPlace& item, Observation& result) {
    const auto fan_in = item.find("fan_in");
    if (result.kind == ObservationKind::kReduction) {
      result.fan_in = item.at("fan_in", "the number of vectors that are reduced").whole(1, kMaxFanIn);
    } else if (fan_in) {
      fan_in->fail("belongs to observations of the kind \"reduction\"; expected none here");
    }
  }

  std::vector<std::int64_t> read_servers(const JsonPlace& place, std::int64_t least) {
    std::vector<std::int64_t> result;
    if (place.value().is_number()) {
      result.resize(static_cast<std::size_t>(checked(place, place.whole(least, num_servers_))));
      std::iota(result.begin(), result.end(), std::int64_t{0});
      return result;
    }
    for (const JsonPlace& item : place.items("a list of servers, or a number n for the first n")) {
      const std::int64_t server = item.whole(0, num_servers_ - 1);
      if (!result.empty() && server <= result.back())
        item.fail(fmt::format("is {} after {}; expected each server once, in ascending order", server, result.back()));
      result.push_back(server);
    }
    if (std::cmp_less(result.size(), least))
      place.fail(fmt::format("names {} servers; expected at least {}", result.size(), least));
    checked(place, static_cast<std::int64_t>(result.size()));
    return result;
  }

  std::int64_t checked(const JsonPlace& place, std::int64_t num) {
    named_servers_ += static_cast<std::size_t>(num);
    if (named_servers_ > kMaxNamedServers)
      place.fail(fmt::format("all observations together name more than {} servers, the most that is accepted",
                             kMaxNamedServers));
    return num;
  }

  const JsonPlace& document_;
  std::int64_t num_servers_ = 0;
  std::size_t named_servers_ = 0;
};

bool is_first_n(const std::vector<std::int64_t>& servers) {
  return !servers.empty() && servers.front() == 0 && std::cmp_equal(servers.back() + 1, servers.size());
}

Json observation_json(const Observation& observation) {
  Json result;
  for (const KindName& entry : kKinds) {
    if (entry.kind == observation.kind) result["kind"] = entry.name;
  }
  if (observation.kind == ObservationKind::kCollective) {
    result["collective"] = to_string(observation.collective);
    if (!observation.is_native) result["algorithm"] = to_string(observation.algorithm);
  }
  if (is_first_n(observation.servers)) {
    result["servers"] = observation.servers.size();
  } else {
    result["servers"] = observation.servers;
  }
  result["size_floats"] = number_json(observation.size_floats, "size_floats");
  if (observation.kind == ObservationKind::kReduction) result["fan_in"] = observation.fan_in;
  Json seconds = Json::array();
  for (const double value : observation.seconds) seconds.push_back(number_json(value, "a measured time"));
  result["seconds"] = std::move(seconds);
  if (observation.retransmits != -1) result["retransmits"] = number_json(observation.retransmits, "retransmits");
  if (observation.max_senders > 0) result["max_senders"] = observation.max_senders;
  if (observation.pause_frames != -1) result["pause_frames"] = number_json(observation.pause_frames, "pause_frames");
  if (!observation.is_fitted) result["fitted"] = false;
  if (observation.is_native) result["native"] = true;
  return result;
}

}  // namespace

Measurements parse_measurements(std::string_view text, const std::string& source) {
  const nlohmann::json value = parse_json(text, source);
  const JsonPlace document(value, source);
  return MeasurementsReader(document).run();
}

Measurements read_measurements_file(const std::string& path) {
  return parse_measurements(read_text_file(path, kMaxMeasurementsBytes), path);
}

void write_measurements(const Measurements& measurements, std::ostream& out) {
  Json document =
      begin_document(kMeasurementsSchemas[0], measurements.topology,
                     {measurements.cores, measurements.is_memory, measurements.access, measurements.provenance});
  document["observations"] = Json::array();
  for (const Observation& observation : measurements.observations)
    document["observations"].push_back(observation_json(observation));
  if (!measurements.links.empty()) document["links"] = links_json(measurements.links);
  write_json(document, out);
}

}  // namespace gar
