// Topologies by what users call them: files, built-in names, generators; and files in other formats.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "gar/errors.hpp"
#include "gar/profile_io.hpp"
#include "gar/topology_io.hpp"
#include "io/json_reader.hpp"
#include "io/text_file.hpp"
#include "io/topology/document.hpp"
#include "io/topology/topology_text.hpp"

namespace gar {
namespace {

// Looks for the words first, since a topology of a million nodes is not to be read twice.
bool is_profile(std::string_view text) {
  constexpr std::string_view kFamily = "gar.profile/";
  return text.find(kFamily) != std::string_view::npos && peek_schema(text).starts_with(kFamily);
}

// "star:12@100Gbit/s" has the slash of a path, too.
bool has_generator(std::string_view text) {
  const std::string_view kind = text.substr(0, text.find(':'));
  const std::span<const TopologyGenerator> all = topology_generators();
  return kind.size() < text.size() && text.find('@') != std::string_view::npos &&
         std::any_of(all.begin(), all.end(), [&](const TopologyGenerator& g) { return g.name == kind; });
}

const TopologyReader& reader_for(std::string_view text) {
  const std::span<const TopologyReader> all = topology_readers();
  const auto found = std::find_if(all.begin(), all.end(), [&](const TopologyReader& r) { return r.recognises(text); });
  return found == all.end() ? all.front() : *found;
}

}  // namespace

Topology read_topology_file(const std::string& path) {
  return parse_topology(read_text_file(path, kMaxTopologyBytes), path);
}

Topology import_topology(const std::string& path, const TopologyReader* reader) {
  const std::string text = read_text_file(path, kMaxTopologyBytes);
  return (reader == nullptr ? reader_for(text) : *reader).read(text, path);
}

std::optional<Profile> find_profile(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  const std::string text = read_text_file(path, kMaxTopologyBytes);
  if (!is_profile(text)) return std::nullopt;
  return parse_profile(text, path);
}

Topology load_topology(const std::string& spec_or_path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(spec_or_path, ignored);
  const bool is_there = std::filesystem::exists(status) && !std::filesystem::is_directory(status);
  const bool is_path =
      (spec_or_path.find('/') != std::string::npos && !has_generator(spec_or_path)) || spec_or_path.ends_with(".json");
  if (is_there || is_path) {
    const std::string text = read_text_file(spec_or_path, kMaxTopologyBytes);
    return is_profile(text) ? parse_profile(text, spec_or_path).topology : reader_for(text).read(text, spec_or_path);
  }
  const std::string_view shipped = topology_text(spec_or_path);
  if (!shipped.empty() && !is_builtin_topology(spec_or_path)) return parse_topology(shipped, spec_or_path);
  try {
    return topology_from_spec(spec_or_path);
  } catch (const InvalidArgument& error) {
    if (spec_or_path.find(':') != std::string::npos) throw;  // a generator is never meant as a file
    throw InvalidArgument(
        fmt::format("{}, a network that comes with gar ({}), or the path of a topology file (there is no file of that "
                    "name)",
                    error.what(), fmt::join(shipped_topologies(), ", ")));
  }
}

std::span<const std::string_view> shipped_topologies() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> out;
    for (const std::string_view name : topology_text_names()) {
      if (!is_builtin_topology(name)) out.push_back(name);
    }
    return out;
  }();
  return kNames;
}

}  // namespace gar
