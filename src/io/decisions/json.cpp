// Decisions to a file of schema "gar.decisions/1" and back. See docs/formats-decisions.md.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gar/decisions.hpp"
#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/version.hpp"
#include "io/profile/fields.hpp"
#include "io/text_file.hpp"

namespace gar {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kDecisionsSchemas[] = {"gar.decisions/1"};
constexpr std::int64_t kMaxDecisionsBytes = std::int64_t{1} << 20;
constexpr std::size_t kMostDecisions = 64;
constexpr std::size_t kMostCandidates = 8;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr std::int64_t kMostCalls = std::int64_t{1} << 53;
constexpr std::int64_t kMostDecisionRanks = std::int64_t{1} << 30;

std::uint64_t read_digest(const JsonPlace& place) {
  const std::string text = place.text();
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  if (text.size() != 16 || error != std::errc() || end != text.data() + text.size()) {
    place.refuse("16 hexadecimal digits");
  }
  return out;
}

std::string read_name(const JsonPlace& place) {
  std::string out = place.text();
  if (out.empty() || out.size() > 200) place.refuse("a text of 1 to 200 characters");
  return out;
}

DecisionCandidate read_candidate(const JsonPlace& place) {
  place.expect_fields({"name", "seconds", "calls", "predicted_seconds"});
  DecisionCandidate out;
  out.name = read_name(place.at("name", "an algorithm, \"latency\" or \"native\""));
  if (const auto seconds = place.find("seconds")) {
    out.seconds = seconds->number(kLeastSeconds, kMaxSeconds);
    out.num_calls = place.at("calls", "the number of calls that were measured").whole(1, kMostCalls);
  } else if (place.find("calls")) {
    place.fail("has \"calls\", but no \"seconds\"; expected both or none");
  }
  if (const auto predicted = place.find("predicted_seconds")) out.predicted_seconds = predicted->number(0, kMaxSeconds);
  return out;
}

std::vector<DecisionCandidate> read_candidates(const JsonPlace& place) {
  std::vector<DecisionCandidate> out;
  for (const JsonPlace& item : place.items("a list of candidates")) {
    out.push_back(read_candidate(item));
    const auto is_same = [&](const DecisionCandidate& other) { return other.name == out.back().name; };
    if (std::count_if(out.begin(), out.end(), is_same) > 1) item.fail("is there twice; expected different names");
  }
  if (out.empty() || out.size() > kMostCandidates) {
    place.fail(fmt::format("has {} candidates; expected 1 to {}", out.size(), kMostCandidates));
  }
  return out;
}

Decision read_decision(const JsonPlace& place) {
  place.expect_fields(
      {"from_bytes", "to_bytes", "winner", "settled", "candidates", "calls", "seconds", "extra_seconds"});
  Decision out;
  out.from_bytes = place.at("from_bytes", "the bytes of the smallest vector").whole(1, kMostBytes);
  out.to_bytes = place.at("to_bytes", "the bytes of the largest vector").whole(out.from_bytes, 2 * kMostBytes);
  out.candidates = read_candidates(place.at("candidates", "a list of candidates"));
  const JsonPlace winner = place.at("winner", "the name of a candidate");
  out.winner = read_name(winner);
  const DecisionCandidate* won = out.find(out.winner);
  if (won == nullptr || won->seconds < 0) winner.refuse("the name of a candidate that was measured");
  if (const auto settled = place.find("settled")) out.is_settled = settled->boolean();
  out.num_calls = place.at("calls", "a number of calls").whole(0, kMostCalls);
  out.seconds = place.at("seconds", "a number of at least 0, in seconds").number(0, kMaxSeconds);
  out.extra_seconds = place.at("extra_seconds", "a number of at least 0, in seconds").number(0, kMaxSeconds);
  return out;
}

Json candidate_json(const DecisionCandidate& candidate) {
  Json out;
  out["name"] = candidate.name;
  if (candidate.seconds >= 0) {
    out["seconds"] = number_json(candidate.seconds, "the time of " + candidate.name);
    out["calls"] = candidate.num_calls;
  }
  if (candidate.predicted_seconds >= 0) {
    out["predicted_seconds"] = number_json(candidate.predicted_seconds, "the predicted time of " + candidate.name);
  }
  return out;
}

Json decision_json(const Decision& decision) {
  Json out;
  out["from_bytes"] = decision.from_bytes;
  out["to_bytes"] = decision.to_bytes;
  out["winner"] = decision.winner;
  if (!decision.is_settled) out["settled"] = false;
  out["candidates"] = Json::array();
  for (const DecisionCandidate& candidate : decision.candidates) out["candidates"].push_back(candidate_json(candidate));
  out["calls"] = decision.num_calls;
  out["seconds"] = number_json(decision.seconds, "the time of a size class");
  out["extra_seconds"] = number_json(decision.extra_seconds, "the cost of looking");
  return out;
}

}  // namespace

const DecisionCandidate* Decision::find(std::string_view name) const {
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const DecisionCandidate& candidate) { return candidate.name == name; });
  return found == candidates.end() ? nullptr : &*found;
}

Decisions parse_decisions(std::string_view text, const std::string& source) {
  const nlohmann::json value = parse_json(text, source);
  const JsonPlace document(value, source);
  check_schema(document, kDecisionsSchemas, "what communicators keep below $XDG_CACHE_HOME/gar");
  document.expect_fields(
      {"schema", "gar_version", "network", "digest", "transport", "num_ranks", "library", "decisions"});
  Decisions out;
  out.place.network = document.at("network", "the name of the network").text();
  out.place.digest = read_digest(document.at("digest", "16 hexadecimal digits"));
  out.place.transport = document.at("transport", "a text, for example \"mpi\"").text();
  out.place.num_ranks = static_cast<int>(document.at("num_ranks", "the number of ranks").whole(1, kMostDecisionRanks));
  if (const auto library = document.find("library")) out.place.library = library->text();
  const JsonPlace list = document.at("decisions", "a list of decisions");
  for (const JsonPlace& item : list.items("a list of decisions")) {
    out.decisions.push_back(read_decision(item));
    const std::size_t n = out.decisions.size();
    if (n > 1 && out.decisions[n - 1].from_bytes <= out.decisions[n - 2].to_bytes) {
      item.fail("begins before the end of the one before it; expected size classes in ascending order");
    }
    if (n > kMostDecisions) list.fail(fmt::format("has too many decisions; expected up to {}", kMostDecisions));
  }
  return out;
}

Decisions read_decisions_file(const std::string& path) {
  return parse_decisions(read_text_file(path, kMaxDecisionsBytes), path);
}

void write_decisions(const Decisions& decisions, std::ostream& out) {
  Json document;
  document["schema"] = kDecisionsSchemas[0];
  document["gar_version"] = version();
  document["network"] = decisions.place.network;
  document["digest"] = fmt::format("{:016x}", decisions.place.digest);
  document["transport"] = decisions.place.transport;
  document["num_ranks"] = decisions.place.num_ranks;
  if (!decisions.place.library.empty()) document["library"] = decisions.place.library;
  document["decisions"] = Json::array();
  for (const Decision& decision : decisions.decisions) document["decisions"].push_back(decision_json(decision));
  write_json(document, out);
}

}  // namespace gar
