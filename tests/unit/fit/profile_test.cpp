// Profiles and measurements: their files, a profile on another tree, and what changed between two.
#include "gar/profile.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "gar/errors.hpp"
#include "gar/fit.hpp"
#include "gar/profile_io.hpp"
#include "gar/topology_io.hpp"
#include "support/temp_folder.hpp"

namespace gar {
namespace {

Estimate around(double value, double share = 0.1) { return {value, value * (1 - share), value * (1 + share), true}; }

LevelProfile level(const std::string& name, double alpha, double beta) {
  LevelProfile out;
  out.name = name;
  out.alpha = around(alpha);
  out.beta = around(beta);
  out.epsilon = around(beta / 16);
  out.incast_threshold = {7, 6, 8, true};
  out.incast = Incast::kPresent;
  out.most_senders = 14;
  out.free_epsilon = out.epsilon;
  out.free_incast_threshold = out.incast_threshold;
  out.free_incast = out.incast;
  return out;
}

/// Three racks of four hosts.
Profile small_profile() {
  Profile p{topology_from_spec("tree:3x4"), {}, {}, {}, {}, 0, {}, {}, {}, {}, {}, {}};
  p.levels = {level("server", 1e-4, 1.0 / 3e7), level("rack", 5e-5, 1e-8)};
  p.gamma = around(6e-10);
  p.delta = {2e-10, 0, std::numeric_limits<double>::infinity(), false};
  p.two_beta_plus_gamma = around(6.7e-8);
  p.links = {{"rack2", 1, around(1.9e-7, 0.01)}};
  p.corrections = {{0, 65536, around(1.25)}, {65536, 1e6, around(1)}};
  p.residuals = {{"cps all_reduce, 12 ranks, 1e5 floats", 0.1, 1.0 / 3, 0.5}, {"ring", 1, 2, 1}};
  p.validation = {{"GenModel", 12, 4, 0.01, 0.05, 0.1, 0, 0.02, 0.03},
                  {"Open MPI's default", 3, 4, -1, -1, -1, 0.1, 1, 2}};
  p.notes = {"delta: nothing was reduced"};
  p.provenance = {"2026-11-15T17:00:00Z", "gar fit", "0.1.0", {"a", "b"}, "Linux 6.1.0", "a CPU, 2 cores",
                  "Open MPI 4.1.4",       "mpi",     12,      340,        30.25,         "a GPU"};
  p.cores = 2;
  p.is_memory = true;
  p.levels[1].max_senders = 3;
  p.levels[1].free_epsilon = around(9e-9);
  p.levels[1].free_incast_threshold = {4, 3, 5, true};
  p.levels[1].free_incast = Incast::kDrift;
  return p;
}

std::string written(const Profile& profile) {
  std::ostringstream out;
  write_profile(profile, out);
  return out.str();
}

std::string written(const Topology& topology) {
  std::ostringstream out;
  write_topology(topology, out);
  return out.str();
}

Observation observation(ObservationKind kind, std::vector<std::int64_t> servers) {
  Observation out;
  out.kind = kind;
  out.servers = std::move(servers);
  out.size_floats = 1e5 / 3;
  out.seconds = {0.1, 1.0 / 3, 1e-12};
  return out;
}

Measurements small_measurements() {
  Measurements m{topology_from_spec("star:5"), 2.5, {}, {{"server3", 0, around(1e-8)}}, {}};
  Observation collective = observation(ObservationKind::kCollective, {0, 1, 2, 3});
  collective.algorithm = parse_algorithm("hcps:2x2");
  collective.collective = Collective::kReduceScatter;
  collective.retransmits = 1.5;
  collective.max_senders = 2;
  collective.is_fitted = false;
  Observation gather = observation(ObservationKind::kGather, {1, 3, 4});
  gather.pause_frames = 0;
  Observation reduction = observation(ObservationKind::kReduction, {2});
  reduction.fan_in = 7;
  Observation native = observation(ObservationKind::kCollective, {0, 1});
  native.is_native = true;
  m.observations = {collective, gather, reduction, native};
  m.provenance.hosts = {"a", "b"};
  m.is_memory = true;
  return m;
}

std::string written(const Measurements& measurements) {
  std::ostringstream out;
  write_measurements(measurements, out);
  return out.str();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << "\nin: " << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

template <class Parse>
void expect_error(const Parse& parse, const std::string& text, const std::vector<std::string>& parts) {
  std::string message = "accepted";
  try {
    (void)parse(text, "p.json");
  } catch (const ParseError& error) {
    message = error.what();
    EXPECT_EQ(message.find("p.json: "), 0U) << message;
    EXPECT_LT(message.size(), 2000U);
  }
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << "\nin: " << message;
}

void expect_profile_error(const std::string& from, const std::string& to, const std::vector<std::string>& parts) {
  expect_error(parse_profile, replaced(written(small_profile()), from, to), parts);
}

void expect_measurements_error(const std::string& from, const std::string& to, const std::vector<std::string>& parts) {
  expect_error(parse_measurements, replaced(written(small_measurements()), from, to), parts);
}

TEST(ProfileFile, RoundTripKeepsEveryBit) {
  const Profile p = small_profile();
  const Profile q = parse_profile(written(p), "p.json");
  EXPECT_EQ(written(q.topology), written(p.topology));
  EXPECT_EQ(q.levels, p.levels);
  EXPECT_EQ(q.gamma, p.gamma);
  EXPECT_EQ(q.delta, p.delta);
  EXPECT_EQ(q.two_beta_plus_gamma, p.two_beta_plus_gamma);
  EXPECT_EQ(q.cores, p.cores);
  EXPECT_EQ(q.is_memory, p.is_memory);
  EXPECT_EQ(q.links, p.links);
  EXPECT_EQ(q.corrections, p.corrections);
  EXPECT_EQ(q.residuals, p.residuals);
  EXPECT_EQ(q.validation, p.validation);
  EXPECT_EQ(q.notes, p.notes);
  EXPECT_EQ(q.provenance, p.provenance);
  EXPECT_EQ(written(q), written(p));
}

// Files that were written before there was a mu stay what they are.
TEST(ProfileFile, MuMayBeLeftOut) {
  Profile p = small_profile();
  EXPECT_EQ(written(p).find("\"mu\""), std::string::npos);
  const Profile old = parse_profile(written(p), "p.json");
  EXPECT_EQ(old.mu.value, 0);
  EXPECT_FALSE(old.mu.is_identified);
  p.mu = around(2e-6);
  const Profile q = parse_profile(written(p), "p.json");
  EXPECT_EQ(q.mu, p.mu);
  EXPECT_EQ(written(q), written(p));
  const double share = lay_over(old, old.topology).node(0).server.gamma / old.gamma.value;
  EXPECT_DOUBLE_EQ(lay_over(q, q.topology).node(0).server.mu, share * 2e-6);
  EXPECT_EQ(lay_over(old, old.topology).node(0).server.mu, 0);
}

TEST(ProfileFile, MayLeaveOutWhatIsNotThere) {
  Profile p = small_profile();
  p.links.clear();
  p.corrections.clear();
  p.residuals.clear();
  p.validation.clear();
  p.notes.clear();
  p.provenance = {};
  p.cores = 0;
  p.is_memory = false;
  const std::string text = replaced(written(p), "\"cores\": 0.0,", "");
  const Profile q = parse_profile(text, "p.json");
  EXPECT_TRUE(q.links.empty() && q.corrections.empty() && q.residuals.empty() && q.validation.empty());
  EXPECT_EQ(q.cores, 0);
  EXPECT_EQ(q.provenance, Provenance{});
}

TEST(ProfileFile, NumbersThatAreNoneAreNotWritten) {
  Profile p = small_profile();
  p.levels[1].beta.value = std::numeric_limits<double>::quiet_NaN();
  try {
    (void)written(p);
    FAIL() << "accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("beta of level \"rack\""), std::string::npos) << error.what();
  }
}

TEST(ProfileFile, Errors) {
  expect_error(parse_profile, "", {"not valid JSON"});
  expect_error(parse_profile, "[1, 2", {"not valid JSON"});
  expect_error(parse_profile, "[]",
               {"document: is a list; expected an object with the schema \"gar.profile/2\" or \"gar.profile/1\""});
  expect_error(parse_profile, "{}", {"the field \"schema\" is missing; expected \"gar.profile/2\""});
  expect_error(parse_profile, std::string(500, '['), {"nested deeper than 200 levels"});
  expect_error(parse_profile, R"({"schema": "gar.profile/1", "schema": 1})", {"\"schema\" appears twice"});
  expect_profile_error("gar.profile/2", "gar.profile/3", {"schema: ", "newer gar", "expected \"gar.profile/2\""});
  expect_profile_error("gar.profile/2", "gar.topology/1", {"schema: is \"gar.topology/1\"", "gar fit -o"});
  expect_profile_error("\"levels\"", "\"level\"", {"unknown field \"level\"; expected schema, "});
  expect_profile_error("\"cores\": 2.0", "\"cores\": -1", {"cores: is -1; expected a number from 0 to 1e+06"});
  expect_profile_error("\"cores\": 2.0", "\"cores\": \"2\"", {"cores: is \"2\"; expected a number"});
  expect_profile_error("\"cores\": 2.0", "\"cores\": 1e999", {"not valid JSON"});
  expect_profile_error("\"gamma\": {\"value\"", "\"gamma\": {\"mean\"",
                       {"gamma: unknown field \"mean\"; expected value, low"});
  expect_profile_error("\"high\": null, ", "", {"delta: the field \"high\" is missing", "or null"});
  expect_profile_error("\"low\": 6.0, \"high\": 8.0", "\"low\": 9, \"high\": 8",
                       {"levels[0].incast_threshold: \"low\" is 9 and \"high\" is 8; expected low at most high"});
  expect_profile_error("\"incast\": \"present\"", "\"incast\": \"some\"",
                       {"levels[0].incast: is \"some\"; expected \"unknown\", \"none\", \"drift\" or \"present\""});
  expect_profile_error("\"most_senders\": 14", "\"most_senders\": 1.5",
                       {"levels[0].most_senders: is 1.5; expected a whole"});
  expect_profile_error("\"level\": 1", "\"level\": 2", {"links[0].level: is 2; expected a whole number from 0 to 1"});
  expect_profile_error("\"to_bytes\": 65536.0", "\"to_bytes\": 0", {"corrections[0]: ", "from_bytes below to_bytes"});
  expect_profile_error("\"from_bytes\": 65536.0", "\"from_bytes\": 65535", {"corrections[1]: ", "ascending order"});
  expect_profile_error("\"measured_s\": 0.1", "\"measured_s\": 0",
                       {"residuals[0].measured_s: is 0; expected ", "a number from 1e-12"});
  expect_profile_error("\"weight\": 0.5", "\"weight\": 1.5",
                       {"residuals[0].weight: is 1.5; expected a number from 0 to 1"});
  expect_profile_error("\"median_error\": 0.01", "\"median_error\": -1", {"validation[0].median_error: is -1"});
  expect_profile_error("\"hosts\": [\"a\"", "\"hosts\": [7", {"provenance.hosts[0]: is 7; expected a text"});
  expect_profile_error("\"ranks\": 12", "\"ranks\": -12", {"provenance.ranks: is -12; expected a whole number from 0"});
  // The topology's own reader complains about the topology.
  expect_profile_error("gar.topology/1", "gar.topology/9", {"p.json: topology: schema: "});
  expect_profile_error("\"topology\": {", "\"topology\": {\"color\": 1, ", {"p.json: topology: ", "color"});
}

TEST(ProfileFile, AsManyLevelsAsTheTopologyHas) {
  Profile p = small_profile();
  p.links.clear();
  p.levels.pop_back();
  expect_error(parse_profile, written(p), {"levels: has 1 levels; expected 2, the levels of links of the topology"});
}

// Version 1 did not say how operands are reached; its transport did.
TEST(ProfileFile, OperandAccess) {
  Profile p = small_profile();
  EXPECT_EQ(written(p).find("\"access\""), std::string::npos);
  p.access = OperandAccess::kDirect;
  EXPECT_EQ(parse_profile(written(p), "p.json").access, OperandAccess::kDirect);
  expect_error(parse_profile, replaced(written(p), "\"direct\"", "\"telepathy\""),
               {"access: is \"telepathy\"; expected \"copied\" or \"direct\""});
  expect_error(parse_profile, replaced(written(p), "gar.profile/2", "gar.profile/1"), {"access: belongs to version 2"});
  p.access = OperandAccess::kCopied;
  p.provenance.transport = "cuda-ipc";
  EXPECT_EQ(parse_profile(written(p), "p.json").access, OperandAccess::kCopied);
  const std::string old = replaced(written(p), "gar.profile/2", "gar.profile/1");
  EXPECT_EQ(parse_profile(old, "p.json").access, OperandAccess::kDirect);
  EXPECT_EQ(parse_profile(replaced(old, "cuda-ipc", "shm"), "p.json").access, OperandAccess::kCopied);
}

TEST(LoadNetwork, TopologyProfileOrBoth) {
  const std::string june = GAR_SOURCE_DIR "/data/profiles/june.json";
  EXPECT_THROW((void)load_network("", ""), InvalidArgument);
  EXPECT_FALSE(load_network("star:4", "").profile);
  EXPECT_EQ(load_network("", june).topology.num_servers(), 12);
  EXPECT_TRUE(load_network("tree:3x4", june).notes.empty());
  const Network deeper = load_network("tree:2x3x4", june);
  ASSERT_EQ(deeper.notes.size(), 1U);
  EXPECT_NE(deeper.notes[0].find("knows 2 levels of links, tree:2x3x4 has 3; level 2 keeps"), std::string::npos);
}

TEST(ProfileFile, IsATopologyForLoadTopology) {
  const test::TempFolder folder;
  const std::string path = folder.file("profile.json");
  std::ofstream(path) << written(small_profile());
  EXPECT_EQ(written(load_topology(path)), written(small_profile().topology));
  EXPECT_THROW((void)read_topology_file(path), ParseError);
  std::ofstream(path) << replaced(written(small_profile()), "\"cores\": 2.0", "\"cores\": true");
  EXPECT_THROW((void)load_topology(path), ParseError);
  // Words inside a topology do not make it a profile.
  std::ofstream(path) << replaced(written(topology_from_spec("star:3")), "\"name\"",
                                  R"("description": "gar.profile/1", "name")");
  EXPECT_EQ(load_topology(path).num_servers(), 3);
  std::filesystem::remove(path);
  EXPECT_THROW((void)read_profile_file(path), ParseError);
}

TEST(MeasurementsFile, RoundTripKeepsEveryBit) {
  const Measurements m = small_measurements();
  const Measurements n = parse_measurements(written(m), "m.json");
  EXPECT_EQ(written(n.topology), written(m.topology));
  EXPECT_EQ(n.cores, m.cores);
  EXPECT_EQ(n.is_memory, m.is_memory);
  EXPECT_EQ(n.links, m.links);
  EXPECT_EQ(n.provenance, m.provenance);
  ASSERT_EQ(n.observations.size(), m.observations.size());
  for (std::size_t i = 0; i < m.observations.size(); ++i) {
    const Observation& a = m.observations[i];
    const Observation& b = n.observations[i];
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.collective, b.collective);
    EXPECT_EQ(to_string(a.algorithm), to_string(b.algorithm));
    EXPECT_EQ(a.servers, b.servers);
    EXPECT_EQ(a.size_floats, b.size_floats);
    EXPECT_EQ(a.fan_in, b.fan_in);
    EXPECT_EQ(a.max_senders, b.max_senders);
    EXPECT_EQ(a.seconds, b.seconds);
    EXPECT_EQ(a.retransmits, b.retransmits);
    EXPECT_EQ(a.pause_frames, b.pause_frames);
    EXPECT_EQ(a.is_fitted, b.is_fitted);
    EXPECT_EQ(a.is_native, b.is_native);
  }
  EXPECT_EQ(written(n), written(m));
}

TEST(MeasurementsFile, ByHand) {
  const Measurements m = parse_measurements(R"({"schema": "gar.measurements/1", "topology": "star:15", "observations": [
      {"algorithm": "cps", "servers": 3, "size_floats": 1e5, "seconds": [0.25]},
      {"collective": "all_gather", "algorithm": "cps", "servers": 3, "size_floats": 1e5, "seconds": [0.25]}]})",
                                            "m.json");
  EXPECT_EQ(m.topology.num_servers(), 15);
  ASSERT_EQ(m.observations.size(), 2U);
  EXPECT_EQ(m.observations.back().collective, Collective::kAllGather);  // as version 1 spells it
  const Observation& o = m.observations.front();
  EXPECT_EQ(o.kind, ObservationKind::kCollective);
  EXPECT_EQ(o.collective, Collective::kAllReduce);
  EXPECT_EQ(o.servers, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_TRUE(o.is_fitted && !o.is_native);
  EXPECT_EQ(o.retransmits, -1);
}

TEST(MeasurementsFile, Errors) {
  expect_error(parse_measurements, "7", {"document: is 7; expected an object"});
  expect_measurements_error("gar.measurements/2", "gar.measurements/3", {"schema: ", "newer gar"});
  expect_measurements_error("gar.measurements/2", "gar.profile/1", {"schema: is \"gar.profile/1\""});
  expect_measurements_error("\"observations\"", "\"cells\"", {"unknown field \"cells\"; expected "});
  expect_measurements_error("\"kind\": \"gather\"", "\"kind\": \"scatter\"",
                            {"observations[1].kind: is \"scatter\"; expected "});
  expect_measurements_error("reduce-scatter", "scatter", {"observations[0].collective: is \"scatter\"; expected "});
  expect_measurements_error("hcps:2x2", "magic", {"observations[0].algorithm: ", "unknown algorithm 'magic'"});
  expect_measurements_error("\"algorithm\": \"hcps:2x2\",", "",
                            {"observations[0]: the field \"algorithm\" is missing"});
  expect_measurements_error("\"native\": true", "\"native\": true, \"algorithm\": \"cps\"",
                            {"observations[3].algorithm: "});
  expect_measurements_error("\"servers\": 4", "\"servers\": 6",
                            {"observations[0].servers: is 6; expected a whole number from 2 to 5"});
  expect_measurements_error("\"servers\": 4", "\"servers\": 1", {"observations[0].servers: is 1"});
  expect_measurements_error("[1, 3, 4]", "[1, 4, 3]",
                            {"observations[1].servers[2]: is 3 after 4; expected each server once"});
  expect_measurements_error("[1, 3, 4]", "[1, 3, 5]",
                            {"observations[1].servers[2]: is 5; expected a whole number from 0 to 4"});
  expect_measurements_error("[1, 3, 4]", "[1]", {"observations[1].servers: names 1 servers; expected at least 2"});
  expect_measurements_error("\"fan_in\": 7", "\"fan_in\": 0",
                            {"observations[2].fan_in: is 0; expected a whole number from 1"});
  expect_measurements_error("\"fan_in\": 7,", "", {"observations[2]: the field \"fan_in\" is missing"});
  expect_measurements_error("\"pause_frames\": 0.0", "\"fan_in\": 2", {"observations[1].fan_in: belongs to "});
  expect_measurements_error("\"pause_frames\": 0.0", "\"pause_frames\": -1", {"observations[1].pause_frames: is -1"});
  expect_measurements_error("\"seconds\": [0.1", "\"seconds\": [0",
                            {"observations[0].seconds[0]: is 0; expected a number from 1e-12 to 1e+09"});
  expect_error(parse_measurements, R"({"schema": "gar.measurements/1", "topology": "ring:5", "observations": []})",
               {"topology: ", "unknown topology 'ring:5'"});
  // A few bytes may not ask for gigabytes.
  std::string many = R"({"schema": "gar.measurements/1", "topology": "star:100000000", "observations": [)";
  many += R"({"algorithm": "cps", "servers": 100000000, "size_floats": 1, "seconds": [1]}]})";
  expect_error(parse_measurements, many, {"name more than 10000000 servers"});
}

// root            level 2: 4       a path to another pod: two servers, two pods, the root = 7 + 2 * 3 + 4
// +- pod x2       level 1: 3       to another rack: two servers, the pod = 7 + 3
//    +- rack x3   nothing          in the rack: two servers = 7
//       +- host x4   level 0 / 2
TEST(LayOver, LatenciesOfNodes) {
  Profile p = small_profile();
  p.levels = {level("host", 7, 1e-8), level("rack", 3, 1e-9), level("pod", 4, 1e-10)};
  p.cores = 0;
  std::vector<int> unknown{99};
  const Topology t = lay_over(p, topology_from_spec("tree:2x3x4"), &unknown);
  EXPECT_TRUE(unknown.empty());
  EXPECT_EQ(t.path_latency(0, 3), 7);
  EXPECT_EQ(t.path_latency(0, 4), 7 + 3);
  EXPECT_EQ(t.path_latency(0, 12), 7 + 2 * 3 + 4);
  for (NodeId id = 0; id < t.num_nodes(); ++id) {
    if (id == t.root()) continue;
    const LevelProfile& l = p.levels[static_cast<std::size_t>(t.height(id))];
    EXPECT_EQ(t.node(id).uplink, (LinkParams{l.beta.value, l.epsilon.value, 7, 0}));
  }
  EXPECT_EQ(t.node(0).server, (ServerParams{p.gamma.value, p.delta.value}));
  EXPECT_EQ(t.instance_name(0, 3), topology_from_spec("tree:2x3x4").instance_name(0, 3));
}

TEST(LayOver, RanksShareCores) {
  Profile p = small_profile();
  p.cores = 2;
  const Topology memory = lay_over(p, topology_from_spec("tree:3x5"));
  const Node& server = memory.node(0);
  EXPECT_DOUBLE_EQ(server.server.gamma, p.gamma.value * 2.5);
  EXPECT_DOUBLE_EQ(server.server.delta, p.delta.value * 2.5);
  EXPECT_DOUBLE_EQ(server.uplink.beta, p.levels[0].beta.value * 2.5);
  EXPECT_DOUBLE_EQ(server.uplink.epsilon, p.levels[0].epsilon.value * 2.5);
  EXPECT_DOUBLE_EQ(memory.path_latency(0, 1), 1e-4 * 2.5);
  EXPECT_DOUBLE_EQ(memory.path_latency(0, 5), 1e-4 * 2.5 + 5e-5);
  // A network's own links do not wait for cores.
  p.is_memory = false;
  const Topology network = lay_over(p, topology_from_spec("tree:3x5"));
  EXPECT_DOUBLE_EQ(network.node(0).server.gamma, p.gamma.value * 2.5);
  EXPECT_EQ(network.node(0).uplink.beta, p.levels[0].beta.value);
  EXPECT_EQ(network.node(0).uplink.epsilon, p.levels[0].epsilon.value);
  EXPECT_EQ(network.path_latency(0, 1), 1e-4);
  // With as many cores as ranks, or more, nobody waits.
  p.cores = 8;
  EXPECT_DOUBLE_EQ(lay_over(p, memory).node(0).server.gamma, p.gamma.value);
}

//     root
//     +- big    5 hosts     share 5 / 2
//     +- small  2 hosts     share 1
TEST(LayOver, RacksOfDifferentSizeShareDifferently) {
  const Topology mixed = parse_topology(R"({"schema": "gar.topology/1", "subtrees": {
      "host": {"alpha": 0, "beta": 1, "epsilon": 0, "incast_threshold": 0, "gamma": 0, "delta": 0}},
    "tree": {"alpha": 0, "children": [
      {"name": "big", "alpha": 0, "beta": 1, "epsilon": 0, "incast_threshold": 0, "children": [{"ref": "host", "repeat": 5}]},
      {"name": "small", "alpha": 0, "beta": 1, "epsilon": 0, "incast_threshold": 0, "children": [{"ref": "host", "repeat": 2}]}]}})",
                                        "mixed.json");
  Profile p = small_profile();
  p.cores = 2;
  const Topology t = lay_over(p, mixed);
  EXPECT_EQ(t.num_servers(), 7);
  EXPECT_DOUBLE_EQ(t.path_latency(0, 1), 1e-4 * 2.5);
  EXPECT_DOUBLE_EQ(t.path_latency(5, 6), 1e-4);
  EXPECT_DOUBLE_EQ(t.path_latency(0, 5), 0.5e-4 * 2.5 + 0.5e-4 + 5e-5);
  EXPECT_EQ(t.instance_name(0, 1), "big");
}

TEST(LayOver, UnknownLevelsKeepTheTreesParameters) {
  const Topology tree = topology_from_spec("tree:2x3x4");
  Profile p = small_profile();
  p.cores = 0;
  std::vector<int> unknown;
  const Topology t = lay_over(p, tree, &unknown);
  EXPECT_EQ(unknown, std::vector<int>{2});
  EXPECT_EQ(t.node(t.root()).alpha, tree.node(tree.root()).alpha);
  const auto uplink_of_height = [](const Topology& topology, int height) {
    for (NodeId id = 0; id < topology.num_nodes(); ++id) {
      if (topology.height(id) == height) return topology.node(id).uplink;
    }
    return LinkParams{};
  };
  EXPECT_EQ(uplink_of_height(t, 2), uplink_of_height(tree, 2));
  EXPECT_EQ(uplink_of_height(t, 1).beta, p.levels[1].beta.value);
  // A tree of fewer levels takes what it needs.
  const Topology star = lay_over(p, topology_from_spec("star:6"), &unknown);
  EXPECT_TRUE(unknown.empty());
  EXPECT_EQ(star.path_latency(0, 5), 1e-4);
  EXPECT_EQ(lay_over(p, topology_from_spec("star:1")).num_servers(), 1);
}

TEST(LayOver, KeepsHowManySendersWereAdmitted) {
  const Topology t = lay_over(small_profile(), topology_from_spec("tree:2x6"));
  EXPECT_EQ(t.node(0).uplink.max_senders, 0);
  EXPECT_EQ(t.node(1).uplink.max_senders, 3);
}

TEST(Corrected, BySizeClass) {
  const Profile p = small_profile();
  EXPECT_EQ(corrected(p, 2, 0), 2.5);
  EXPECT_EQ(corrected(p, 2, 65535), 2.5);
  EXPECT_EQ(corrected(p, 2, 65536), 2);
  EXPECT_EQ(corrected(p, 2, 1e9), 2);
  EXPECT_EQ(correction_of(p, 65535)->factor.value, 1.25);
  EXPECT_EQ(correction_of(p, 1e9), nullptr);
}

TEST(CompareProfiles, NothingChanged) {
  for (const ProfileChange& change : compare_profiles(small_profile(), small_profile())) {
    EXPECT_FALSE(change.is_significant) << change.what;
  }
}

TEST(CompareProfiles, SignificantOnesFirstLargestFirst) {
  const Profile before = small_profile();
  Profile after = before;
  after.links[0].beta = around(2.7e-7, 0.01);
  after.levels[0].alpha = around(1.3e-4);
  after.gamma = around(6.3e-10);  // inside the interval
  const std::vector<ProfileChange> changes = compare_profiles(before, after);
  ASSERT_GE(changes.size(), 3U);
  EXPECT_EQ(changes[0].words, "uplink of rack2: 30% less bandwidth (1.9e-07 -> 2.7e-07 s per float)");
  EXPECT_EQ(changes[0].what, "beta of the link of rack2");
  EXPECT_TRUE(changes[0].is_significant);
  EXPECT_EQ(changes[1].words, "links of level 0 (server): 30% more latency (0.0001 -> 0.00013 s)");
  EXPECT_TRUE(changes[1].is_significant);
  EXPECT_FALSE(changes[2].is_significant);
  EXPECT_EQ(changes[2].what, "gamma");
  EXPECT_EQ(changes[2].words, "adding takes 5.0% longer (6e-10 -> 6.3e-10 s per float)");
}

TEST(CompareProfiles, MuIsTheCostOfAMessage) {
  Profile before = small_profile();
  before.mu = around(1e-6, 0.01);
  Profile after = before;
  after.mu = around(3e-6, 0.01);
  const std::vector<ProfileChange> changes = compare_profiles(before, after);
  EXPECT_EQ(changes[0].what, "mu");
  EXPECT_TRUE(changes[0].is_significant);
  EXPECT_EQ(changes[0].words, "handling a message takes 3.0 times as long (1e-06 -> 3e-06 s per message)");
}

TEST(CompareProfiles, WhatIsNotIdentifiedIsNotSignificant) {
  const Profile before = small_profile();
  Profile after = before;
  after.delta = {9e-9, 8e-9, 1e-8, true};
  const std::vector<ProfileChange> changes = compare_profiles(before, after);
  EXPECT_FALSE(changes.front().is_significant);
  EXPECT_EQ(changes.front().what, "delta");
  EXPECT_NE(changes.front().words.find("not identified before"), std::string::npos) << changes.front().words;
}

TEST(CompareProfiles, ALinkThatOnlyOneListsIsLikeItsLevelInTheOther) {
  Profile before = small_profile();
  before.links.clear();
  Profile after = before;
  after.links = {{"rack1", 1, around(4e-8)}};  // four times that of its level
  const std::vector<ProfileChange> changes = compare_profiles(before, after);
  EXPECT_EQ(changes.front().words, "uplink of rack1: 75% less bandwidth (1e-08 -> 4e-08 s per float)");
  EXPECT_TRUE(changes.front().is_significant);
}

TEST(CompareProfiles, IncastThatCameWithWords) {
  Profile before = small_profile();
  before.levels[0].incast = Incast::kNone;
  before.levels[0].epsilon = {0, 0, 1e-11, true};
  Profile after = small_profile();
  const std::vector<ProfileChange> changes = compare_profiles(before, after);
  EXPECT_EQ(changes.front().words,
            "links of level 0 (server): cost of incast where there was none (0 -> 2.08e-09 s per float and sender), "
            "incast was none and is present");
  EXPECT_TRUE(changes.front().is_significant);
}

TEST(CompareProfiles, OtherNetworksAreRefused) {
  const Profile before = small_profile();
  Profile after = before;
  after.topology = topology_from_spec("tree:4x3");
  EXPECT_THROW((void)compare_profiles(before, after), InvalidArgument);
  // Names and parameters may differ, and how equal subtrees are written, too.
  after.topology = lay_over(before, topology_from_spec("tree:3x4"));
  EXPECT_NO_THROW((void)compare_profiles(before, after));
}

TEST(Incast, Words) {
  EXPECT_EQ(to_string(Incast::kUnknown), "unknown");
  EXPECT_EQ(to_string(Incast::kNone), "none");
  EXPECT_EQ(to_string(Incast::kDrift), "drift");
  EXPECT_EQ(to_string(Incast::kPresent), "present");
}

}  // namespace
}  // namespace gar
