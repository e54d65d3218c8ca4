// Files of several kinds onto one page.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "gar/errors.hpp"
#include "gar/fit.hpp"
#include "gar/profile_io.hpp"
#include "gar/results_io.hpp"
#include "io/json_reader.hpp"
#include "io/text_file.hpp"
#include "report/html.hpp"

namespace gar {
namespace {

constexpr std::int64_t kMaxReportFileBytes = std::int64_t{16} << 20;

/// What was found in the files, each with its name.
struct Found {
  std::vector<std::pair<std::string, Profile>> profiles;
  std::vector<std::pair<std::string, Measurements>> measurements;
  std::vector<std::pair<std::string, Results>> results;
  std::vector<std::pair<std::string, NcclLog>> logs;
};

void read_into(Found& found, const std::string& path) {
  const std::string text = read_text_file(path, kMaxReportFileBytes);
  const std::string name = std::filesystem::path(path).filename().string();
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const std::string schema = begin != std::string::npos && text[begin] == '{' ? peek_schema(text) : "";
  if (schema.starts_with("gar.profile/")) {
    found.profiles.emplace_back(name, parse_profile(text, path));
  } else if (schema.starts_with("gar.measurements/")) {
    found.measurements.emplace_back(name, parse_measurements(text, path));
  } else if (schema.starts_with("gar.fit/")) {
    const nlohmann::json document = parse_json(text, path);
    const JsonPlace profile = JsonPlace(document, path).at("profile", "a profile");
    found.profiles.emplace_back(name, parse_profile(profile.value().dump(), path));
  } else if (!schema.empty() && !schema.starts_with("gar.bench/")) {
    throw ParseError(
        fmt::format("{}: its schema is \"{}\"; expected profiles and measurements (gar fit -o, --save), what gar "
                    "bench and gar fit "
                    "print with --json, the tables of gar bench, nccl-tests and osu_allreduce, and logs of NCCL",
                    path, schema));
  } else if (is_nccl_log(text) && !has_results(text)) {
    found.logs.emplace_back(name, parse_nccl_log(text, path));
  } else {
    found.results.emplace_back(name, parse_results(text, path));
  }
}

/// The profile of the same network, or null.
const Profile* profile_for(const Found& found, std::int64_t num_ranks) {
  const auto fits = [&](const auto& named) { return named.second.topology.num_servers() == num_ranks; };
  const auto exact = std::find_if(found.profiles.begin(), found.profiles.end(), fits);
  if (exact != found.profiles.end()) return &exact->second;
  return found.profiles.size() == 1 ? &found.profiles.front().second : nullptr;
}

}  // namespace

void add_files_to_report(ReportPage& page, const std::vector<std::string>& paths) {
  Found found;
  for (const std::string& path : paths) read_into(found, path);
  std::vector<const Profile*> told;
  // Measurements without their profile are fitted here.
  for (const auto& one : found.measurements) {
    const Measurements& measurements = one.second;
    const auto own = std::find_if(found.profiles.begin(), found.profiles.end(), [&](const auto& named) {
      return named.second.topology.num_servers() == measurements.topology.num_servers();
    });
    const bool is_known = own != found.profiles.end();
    const bool has_held_out =
        std::any_of(measurements.observations.begin(), measurements.observations.end(),
                    [](const Observation& o) { return !o.is_fitted && !o.is_native && !o.seconds.empty(); });
    FitReport report{is_known ? own->second : fit(measurements), measurements, has_held_out};
    if (has_held_out && report.profile.validation.empty()) {
      report.profile.validation = validate(report.profile, measurements.observations);
    }
    if (is_known) told.push_back(&own->second);
    add_to_report(page, report, is_known ? own->first : one.first);
  }
  for (const auto& [name, results] : found.results)
    add_to_report(page, results, profile_for(found, results.num_ranks), name);
  for (const auto& [name, results] : found.results) {
    if (results.nccl && results.nccl->num_ranks > 0) add_to_report(page, *results.nccl, name);
  }
  for (const auto& [name, log] : found.logs) add_to_report(page, log, name);
  for (const auto& [name, profile] : found.profiles) {
    if (std::find(told.begin(), told.end(), &profile) == told.end()) add_to_report(page, profile, name);
  }
}

}  // namespace gar
