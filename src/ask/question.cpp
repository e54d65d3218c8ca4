#include "ask/question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "gar/errors.hpp"
#include "gar/format.hpp"
#include "gar/plan_io.hpp"
#include "gar/predict.hpp"
#include "gar/topology_io.hpp"
#include "io/topology/topology_text.hpp"

namespace gar::ask {
namespace {

constexpr std::size_t kMaxSizesAsked = 1000;

/// A network by name. No file is opened, whatever the name looks like.
Topology named_topology(const std::string& name) {
  const std::string_view shipped = topology_text(name);
  if (!shipped.empty() && !is_builtin_topology(name)) return parse_topology(shipped, name);
  return topology_from_spec(name);
}

}  // namespace

std::string Question::text(std::string_view field) const {
  const auto place = document_.find(field);
  if (!place) return "";
  if (!place->value().is_string()) place->refuse("a text");
  return place->value().get<std::string>();
}

std::string Question::needed_text(std::string_view field, std::string_view accepted) const {
  (void)document_.at(field, accepted);
  return text(field);
}

bool Question::flag(std::string_view field) const {
  const auto place = document_.find(field);
  return place && place->boolean();
}

std::vector<std::string> Question::texts(std::string_view field) const {
  std::vector<std::string> out;
  const auto place = document_.find(field);
  if (!place) return out;
  for (const JsonPlace& item : place->items("a list of texts")) {
    if (!item.value().is_string()) item.refuse("a text");
    out.push_back(item.value().get<std::string>());
  }
  return out;
}

std::int64_t Question::whole(std::string_view field, std::int64_t otherwise, std::int64_t least,
                             std::int64_t most) const {
  const auto place = document_.find(field);
  return place ? place->whole(least, most) : otherwise;
}

Network Question::network() const {
  const std::string name = text("topology");
  const std::string file = text("network");
  const std::string profile_text = text("profile");
  if (!name.empty() && !file.empty()) document_.fail("only one of \"topology\" and \"network\" is needed");
  if (name.empty() && file.empty() && profile_text.empty()) {
    document_.fail(
        "a network is needed: \"topology\" (a name or a generator such as tree:16x24), \"network\" (the text of a "
        "topology file) or \"profile\" (that of a profile)");
  }
  const std::string given = text("name");
  const std::string source = given.empty() ? "network" : escaped(given);
  if (profile_text.empty()) return {name.empty() ? parse_topology(file, source) : named_topology(name), {}, {}};
  Profile profile = parse_profile(profile_text, "profile");
  if (name.empty() && file.empty()) {
    Topology own = profile.topology;
    return {std::move(own), std::move(profile), {}};
  }
  Topology laid = lay_over(profile, name.empty() ? parse_topology(file, source) : named_topology(name));
  return {std::move(laid), std::move(profile), {}};
}

VectorSize Question::size() const {
  const std::string given = text("dtype");
  const DataType dtype = parse_dtype("dtype", given.empty() ? "float32" : given);
  const std::string size = text("size");
  const std::string count = text("count");
  if (size.empty() == count.empty()) {
    document_.fail(fmt::format("{} \"size\" and \"count\" is needed, as texts: \"400MB\" or \"1e8\"",
                               size.empty() ? "one of" : "only one of"));
  }
  return count.empty() ? vector_size_of_bytes("size", size, dtype) : vector_size_of_count("count", count, dtype);
}

std::vector<VectorSize> Question::sizes() const {
  const std::string given = text("dtype");
  const DataType dtype = parse_dtype("dtype", given.empty() ? "float32" : given);
  const std::vector<std::string> counts = texts("counts");
  if (counts.empty() || counts.size() > kMaxSizesAsked) {
    document_.fail(fmt::format("\"counts\" has {} numbers; expected 1 to {} texts such as \"1e6\"", counts.size(),
                               kMaxSizesAsked));
  }
  std::vector<VectorSize> out;
  for (const std::string& count : counts) out.push_back(vector_size_of_count("counts", count, dtype));
  return out;
}

std::vector<AlgorithmSpec> Question::algorithms(const std::string& otherwise) const {
  const std::string given = text("algo");
  return parse_algorithm_list("algo", given.empty() ? otherwise : given);
}

ModelOptions Question::model() const {
  ModelOptions out;
  const std::string kind = text("model");
  const std::string degree = text("incast_degree");
  if (kind == "abc") {
    out.kind = ModelKind::kAbc;
  } else if (kind == "paper") {
    out.kind = ModelKind::kPaper;
  } else if (!kind.empty() && kind != "genmodel") {
    throw UsageError(fmt::format("model '{}': expected genmodel, paper or abc", escaped(kind)));
  }
  if (degree == "participants") {
    out.degree = IncastDegree::kParticipants;
  } else if (!degree.empty() && degree != "senders") {
    throw UsageError(fmt::format("incast_degree '{}': expected senders or participants", escaped(degree)));
  }
  return out;
}

Collective Question::collective() const {
  const std::string given = text("collective");
  if (given.empty()) return Collective::kAllReduce;
  const auto known = parse_collective(given);
  if (!known)
    throw UsageError(fmt::format("collective '{}': expected allreduce, reduce-scatter or allgather", escaped(given)));
  return *known;
}

std::optional<Plan> Question::plan() const {
  const std::string given = text("plan");
  if (given.empty()) return std::nullopt;
  std::istringstream in(given);
  const std::string name = text("name");
  return read_plan(in, name.empty() ? "plan" : escaped(name));
}

WhatIf Question::what_if() const {
  WhatIf out;
  using Kind = Condition::Kind;
  for (const Kind kind : {Kind::kSlow, Kind::kDegrade, Kind::kFail, Kind::kBackground}) {
    for (const std::string& one : texts(to_string(kind))) {
      out.conditions.push_back(parse_condition(kind, to_string(kind), one));
    }
  }
  if (has("jitter")) out.jitter = parse_jitter("jitter", text("jitter"));
  if (has("seed")) out.seed = parse_seed("seed", text("seed"));
  return out;
}

}  // namespace gar::ask
