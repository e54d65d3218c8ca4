// What people have: networks, profiles, plans and the output of benchmarks, as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "ask/question.hpp"
#include "documents/json.hpp"
#include "gar/documents.hpp"
#include "gar/errors.hpp"
#include "gar/explain_nccl.hpp"
#include "gar/explain_topology.hpp"
#include "gar/fit.hpp"
#include "gar/format.hpp"
#include "gar/plan_io.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "gar/results_io.hpp"
#include "gar/topology_io.hpp"

namespace gar::ask {
namespace {

using documents::Json;

std::string network_text(const Topology& topology) {
  std::ostringstream out;
  write_topology(topology, out);
  return out.str();
}

std::string source_of(const Question& question) {
  const std::string name = question.text("name");
  return name.empty() ? "text" : escaped(name);
}

Json results_json(const Results& results) {
  Json out;
  out["format"] = results.format;
  out["num_ranks"] = results.num_ranks;
  out["rows"] = Json::array();
  for (const ResultRow& row : results.rows) {
    out["rows"].push_back(
        {{"bytes", row.bytes}, {"seconds", row.seconds}, {"algorithm", row.algorithm}, {"label", row.label}});
  }
  return out;
}

Json topology_json(const Topology& topology) {
  Json out;
  out["words"] = Json::array({topology.name() + ": " + topology_totals(topology)});
  for (const std::string& remark : topology_remarks(topology)) out["words"].push_back(remark);
  out["num_servers"] = topology.num_servers();
  out["network"] = network_text(topology);
  return out;
}

/// The model's time for what a row says ran, or for the best where it does not say.
double expected_seconds(const Topology& topology, const ResultRow& row, std::string& algorithm) {
  const double floats = row.bytes / 4;
  std::vector<AlgorithmSpec> algorithms = classic_algorithms();
  if (!row.algorithm.empty()) algorithms = {parse_algorithm(row.algorithm)};
  const Prediction best = Predictor(topology, algorithms).at(floats).front();
  algorithm = best.algorithm();
  return best.seconds();
}

/// Results next to what the model says of a network that nobody has measured.
std::string judge_by_model(const Question& question, const Results& results) {
  const Topology topology = question.network().topology;
  if (results.num_ranks > 0 && results.num_ranks != topology.num_servers()) {
    throw InvalidArgument(
        fmt::format("the results are of {} ranks, and this network has {} servers; expected a "
                    "network of as many",
                    results.num_ranks, topology.num_servers()));
  }
  Json document = documents::begin("gar.judge/1");
  document["topology"] = topology.name();
  document["results"] = question.text("name");
  document["format"] = results.format;
  document["rows"] = Json::array();
  double least = 0;
  double most = 0;
  double most_at = 0;
  for (const ResultRow& row : results.rows) {
    std::string algorithm;
    const double expected = expected_seconds(topology, row, algorithm);
    const double ratio = expected > 0 ? row.seconds / expected : 0;
    document["rows"].push_back({{"bytes", row.bytes},
                                {"label", row.label},
                                {"algorithm", algorithm},
                                {"is_assumed", row.algorithm.empty()},
                                {"measured_seconds", row.seconds},
                                {"expected_seconds", expected},
                                {"ratio", ratio}});
    if (least == 0 || ratio < least) least = ratio;
    if (ratio > most) {
      most = ratio;
      most_at = row.bytes;
    }
  }
  document["words"] = {
      fmt::format("What was measured takes {:.2f} to {:.2f} times what the model says of {}; it is furthest off at {}.",
                  least, most, topology.name(), format_bytes(most_at)),
      "Nobody has measured this network, so the parameters decide: gar fit finds them, and with its profile this page "
      "says what is normal and what is at fault."};
  return documents::text_of(document);
}

/// What NCCL logged: in words, as a network that can be taken, and as `gar nccl explain` says it.
void add_log(const NcclLog& log, Json& out) {
  const NcclExplanation explained = explain_nccl_log(log);
  out["nccl"] = Json::parse(nccl_document(log, explained));
  out["findings"] = out["nccl"]["findings"];
  if (!explained.network.empty()) out["topology"] = explained.network;
}

Json inspect_log(const std::string& text, const std::string& source) {
  Json out;
  out["kind"] = "nccl-log";
  add_log(parse_nccl_log(text, source), out);
  out["words"] = Json::array({out["nccl"]["summary"]});
  for (const Json& finding : out["findings"]) out["words"].push_back(finding["words"]);
  if (out.contains("topology")) {
    out["words"].push_back("a network guessed from the log: " + out["topology"].get<std::string>());
  }
  return out;
}

Json inspect_results(const std::string& text, const std::string& source) {
  const Results results = parse_results(text, source);
  Json out = results_json(results);
  out["kind"] = "results";
  out["words"] = Json::array({fmt::format("{}: {} results of {}{}", source, results.rows.size(), results.format,
                                          results.num_ranks > 0 ? fmt::format(", {} ranks", results.num_ranks) : "")});
  if (results.nccl && results.nccl->num_ranks > 0) add_log(*results.nccl, out);
  return out;
}

Json inspect_profile(const std::string& text, const std::string& source) {
  const Profile profile = parse_profile(text, source);
  Json out = topology_json(profile.topology);
  out["kind"] = "profile";
  std::ostringstream written;
  write_profile(profile, written);
  out["profile"] = written.str();
  const Provenance& from = profile.provenance;
  out["words"].push_back(fmt::format("measured {}{}{}", from.date.empty() ? "at an unknown time" : from.date,
                                     from.mpi.empty() ? "" : " with " + from.mpi,
                                     from.transport.empty() ? "" : " over " + from.transport));
  for (const std::string& note : profile.notes) out["words"].push_back(note);
  return out;
}

Json inspect_plan(const std::string& text, const std::string& source) {
  std::istringstream in(text);
  const Plan plan = read_plan(in, source);
  Json out;
  out["kind"] = "plan";
  out["words"] = Json::array({fmt::format("{}: a plan ({}) for {} ranks{}", source, plan.algorithm, plan.num_ranks,
                                          plan.num_chunks > 1 ? fmt::format(", {} chunks", plan.num_chunks) : "")});
  out["algorithm"] = plan.algorithm;
  out["num_ranks"] = plan.num_ranks;
  out["count"] = plan.count;
  return out;
}

Json inspect_topology(const TopologyReader& reader, const std::string& text, const std::string& source) {
  Json out = topology_json(reader.read(text, source));
  out["kind"] = "topology";
  out["format"] = reader.name;
  return out;
}

Json inspect_measurements(const std::string& text, const std::string& source) {
  const Measurements all = parse_measurements(text, source);
  Json out = topology_json(all.topology);
  out["kind"] = "measurements";
  out["words"].push_back(
      fmt::format("{} measurements; gar fit --from {} makes a profile of them", all.observations.size(), source));
  return out;
}

Json inspect(const std::string& text, const std::string& source) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) throw ParseError(source + ": is empty");
  if (text[begin] == '{') {
    const std::string schema = peek_schema(text);
    const auto is = [&](std::string_view family) { return schema.starts_with(family); };
    if (is("gar.profile/")) return inspect_profile(text, source);
    if (is("gar.bench/")) return inspect_results(text, source);
    if (is("gar.plan/")) return inspect_plan(text, source);
    if (is("gar.measurements/")) return inspect_measurements(text, source);
    if (is("gar.fit/")) {
      const nlohmann::json document = parse_json(text, source);
      return inspect_profile(JsonPlace(document, source).at("profile", "a profile").value().dump(), source);
    }
    if (!schema.empty() && !is("gar.topology/")) {
      throw ParseError(
          fmt::format("{}: its schema is \"{}\"; expected topologies, profiles, plans, measurements and "
                      "the documents of gar bench and gar fit",
                      source, escaped(schema)));
    }
  }
  for (const TopologyReader& reader : topology_readers()) {
    if (reader.recognises(text)) return inspect_topology(reader, text, source);
  }
  if (is_nccl_log(text) && !has_results(text)) return inspect_log(text, source);
  return inspect_results(text, source);
}

}  // namespace

std::string ask_topology(const Question& question) { return topology_document(question.network().topology); }

std::string ask_network(const Question& question) {
  const Network network = question.network();
  Json document = documents::begin("gar.network/1");
  document["name"] = network.topology.name();
  document.update(topology_json(network.topology));
  document["parameters"] = parameter_words(network.topology);
  return documents::text_of(document);
}

std::string ask_profile(const Question& question) {
  return profile_document(parse_profile(question.needed_text("profile", "the text of a profile"), "profile"),
                          question.text("name"));
}

std::string ask_diagnose(const Question& question) {
  const Results results =
      parse_results(question.needed_text("results", "what a benchmark printed"), source_of(question));
  if (!question.has("profile")) return judge_by_model(question, results);
  const Profile profile = parse_profile(question.text("profile"), "profile");
  const std::int64_t known = profile.topology.num_servers();
  const std::int64_t num_ranks =
      results.num_ranks > 0 ? results.num_ranks : question.whole("ranks", known, 1, kMaxServers);
  if (num_ranks < 2 || num_ranks > known) {
    throw InvalidArgument(
        fmt::format("the results are of {} ranks; expected 2 to {}, which the profile knows", num_ranks, known));
  }
  const std::vector<Observation> observations = observations_of(results.rows, profile.topology, num_ranks);
  Diagnosis diagnosis = diagnose(profile, observations);
  if (results.nccl) add_log_words(*results.nccl, diagnosis.words);
  return diagnose_document({.profile_file = "profile",
                            .results_file = question.text("name"),
                            .results = results,
                            .observations = observations,
                            .num_ranks = num_ranks,
                            .diagnosis = diagnosis});
}

std::string ask_inspect(const Question& question) {
  const std::string text = question.needed_text("text", "the content of a file");
  Json document = documents::begin("gar.inspect/1");
  const std::string source = source_of(question);
  document["name"] = source;
  document.update(inspect(text, source));
  return documents::text_of(document);
}

}  // namespace gar::ask
