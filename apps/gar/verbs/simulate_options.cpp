// The flags that `gar simulate` and `gar compare` share.
#include "apps/gar/verbs/simulate_options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <tuple>

#include "gar/errors.hpp"

namespace gar::cli {
namespace {

struct FlagForm {
  Condition::Kind kind;
  const char* flag;
  const char* form;   ///< as in the help
  const char* value;  ///< what the number may be
  double least;       ///< the number is above this (slow) or at least this
  double below;       ///< and below this
};

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

const FlagForm& form_of(Condition::Kind kind) {
  static const std::vector<FlagForm> kForms{
      {Condition::Kind::kSlow, "--slow", "NAME=FACTOR", "a factor above 0", 0, kNoLimit},
      {Condition::Kind::kDegrade, "--degrade", "NAME.uplink=CAPACITY", "a capacity of at least 0", 0, kNoLimit},
      {Condition::Kind::kFail, "--fail", "NAME.uplink", "", 0, kNoLimit},
      {Condition::Kind::kBackground, "--background", "NAME.uplink=SHARE", "a share from 0 to below 1", 0, 1},
  };
  return kForms[static_cast<std::size_t>(kind)];
}

std::string accepted(const FlagForm& form) {
  switch (form.kind) {
    case Condition::Kind::kSlow:
      return "NAME=FACTOR with a node's name or a rank and a factor above 0, such as rack3/server5=2 or 17=1.5";
    case Condition::Kind::kFail:
      return "NAME.uplink (both directions), NAME.up or NAME.down, such as rack3.uplink or 17.up";
    case Condition::Kind::kDegrade:
    case Condition::Kind::kBackground:
      break;
  }
  return fmt::format("{} (or NAME.up, NAME.down for one direction) with {}, such as rack3.uplink=0.5", form.form,
                     form.value);
}

[[noreturn]] void reject(const FlagForm& form, std::string_view text, std::string_view why) {
  throw UsageError(fmt::format("{} '{}': {}; accepted: {}", form.flag, text, why, accepted(form)));
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Takes ".uplink", ".up" or ".down" off the end of `place`.
void take_direction(const FlagForm& form, std::string_view text, std::string_view& place, Condition& out) {
  const std::size_t dot = place.rfind('.');
  const std::string_view direction = dot == std::string_view::npos ? "" : place.substr(dot + 1);
  if (direction != "uplink" && direction != "up" && direction != "down") {
    reject(form, text,
           dot == std::string_view::npos ? "which link is not said"
                                         : fmt::format("'.{}' is no link of a node", direction));
  }
  out.up = direction != "down";
  out.down = direction != "up";
  place = place.substr(0, dot);
}

Condition parse_condition(Condition::Kind kind, const std::string& text) {
  const FlagForm& form = form_of(kind);
  Condition out;
  out.kind = kind;
  out.flag = fmt::format("{} {}", form.flag, text);
  std::string_view place = text;
  if (kind == Condition::Kind::kFail) {
    out.value = 0;
  } else {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos) reject(form, text, "'=' and a number are missing");
    const std::optional<double> value = number_of(std::string_view(text).substr(equals + 1));
    if (!value) reject(form, text, fmt::format("'{}' is not a number", text.substr(equals + 1)));
    if (*value < form.least || *value >= form.below || (kind == Condition::Kind::kSlow && *value == 0)) {
      reject(form, text, fmt::format("{} is out of range", text.substr(equals + 1)));
    }
    out.value = *value;
    place = place.substr(0, equals);
  }
  if (kind != Condition::Kind::kSlow) take_direction(form, text, place, out);
  if (place.empty()) reject(form, text, "the name is missing");
  out.name = place;
  return out;
}

std::string directions(const Condition& c) { return c.up && c.down ? "uplink" : c.up ? "up" : "down"; }

// "the link of rack3", "the uplink of rack3", "the link of rank 5"
std::string link_words(const Condition& c) {
  const bool is_rank = c.name.find_first_not_of("0123456789") == std::string::npos;
  return fmt::format("the {} of {}{}",
                     c.up && c.down ? "link"
                     : c.up         ? "uplink"
                                    : "downlink",
                     is_rank ? "rank " : "", c.name);
}

std::string words(const Condition& c) {
  switch (c.kind) {
    case Condition::Kind::kSlow: {
      const bool is_rank = c.name.find_first_not_of("0123456789") == std::string::npos;
      return fmt::format("calculation of {}{} takes {:g} times as long", is_rank ? "rank " : "", c.name, c.value);
    }
    case Condition::Kind::kDegrade:
      return fmt::format("{} has {:.4g}% of its capacity", link_words(c), 100 * c.value);
    case Condition::Kind::kFail:
      return fmt::format("{} has failed", link_words(c));
    case Condition::Kind::kBackground:
      break;
  }
  return fmt::format("other traffic takes {:.4g}% of {}", 100 * c.value, link_words(c));
}

NodePlace place_of(const Condition& c, const Topology& topology) {
  try {
    return find_place(topology, c.name);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", c.flag, error.what()));
  }
}

/// Servers below a node instance.
std::int64_t servers_below(const Topology& topology, const NodePlace& place) {
  NodeId id = topology.root();
  std::int64_t server = place.rank;
  for (int depth = 0; depth < place.depth; ++depth) {
    const ChildPosition child = topology.child_at(id, server);
    server -= child.first_server;
    id = child.node;
  }
  return topology.num_servers(id);
}

}  // namespace

void add_simulation_options(CLI::App& verb, SimulationArgs& args) {
  verb.add_flag("--barrier", args.barrier, "Nobody starts a step before everybody has finished the one before");
  verb.add_option("--engine", args.engine, "Every flow on its own, or classes of flows that cannot be told apart")
      ->type_name("E")
      ->check(CLI::IsMember({"auto", "flows", "classes"}))
      ->capture_default_str();
  const auto add = [&](Condition::Kind kind, std::vector<std::string>& list, const char* what) {
    const FlagForm& form = form_of(kind);
    verb.add_option(form.flag, list, what)->type_name(form.form)->allow_extra_args(false)->group("What if");
  };
  add(Condition::Kind::kSlow, args.slow, "Calculation of a server (of all below a switch) takes FACTOR times as long");
  add(Condition::Kind::kDegrade, args.degrade, "What is left of a link's capacity; .up or .down for one direction");
  add(Condition::Kind::kFail, args.fail, "A link carries nothing any more");
  add(Condition::Kind::kBackground, args.background, "Share of a link that other traffic takes");
  verb.add_option("--jitter", args.jitter, "Mean random extra share of every latency and calculation")
      ->type_name("SHARE")
      ->capture_default_str()
      ->group("What if");
  verb.add_option("--seed", args.seed, "Seed of the jitter")->type_name("N")->capture_default_str()->group("What if");
}

WhatIf parse_what_if(const SimulationArgs& args) {
  WhatIf out;
  const auto add = [&](Condition::Kind kind, const std::vector<std::string>& list) {
    for (const std::string& text : list) out.conditions.push_back(parse_condition(kind, text));
  };
  add(Condition::Kind::kSlow, args.slow);
  add(Condition::Kind::kDegrade, args.degrade);
  add(Condition::Kind::kFail, args.fail);
  add(Condition::Kind::kBackground, args.background);
  const std::optional<double> jitter = number_of(args.jitter);
  if (!jitter || *jitter < 0) {
    throw UsageError(fmt::format("--jitter '{}': accepted is a share of at least 0, such as 0.05", args.jitter));
  }
  out.jitter = *jitter;
  const char* end = args.seed.data() + args.seed.size();
  const auto [stopped, error] = std::from_chars(args.seed.data(), end, out.seed);
  if (error != std::errc() || stopped != end) {
    throw UsageError(fmt::format("--seed '{}': accepted is a whole number from 0 to 2^64 - 1", args.seed));
  }
  return out;
}

SimulationEngine parse_engine(const std::string& name) {
  return name == "flows"     ? SimulationEngine::kFlows
         : name == "classes" ? SimulationEngine::kClasses
                             : SimulationEngine::kAuto;
}

std::string engine_name(SimulationEngine engine) {
  return engine == SimulationEngine::kFlows ? "flows" : engine == SimulationEngine::kClasses ? "classes" : "auto";
}

void apply(const WhatIf& what_if, const Topology& topology, SimulationOptions& options) {
  options.jitter = what_if.jitter;
  options.seed = what_if.seed;
  std::map<std::int64_t, double> slow;
  std::map<std::tuple<std::int64_t, int, bool>, LinkCondition> links;  // per direction
  for (const Condition& c : what_if.conditions) {
    const NodePlace place = place_of(c, topology);
    if (c.kind == Condition::Kind::kSlow) {
      const std::int64_t end = place.rank + servers_below(topology, place);
      for (std::int64_t rank = place.rank; rank < end; ++rank) slow.try_emplace(rank, 1).first->second *= c.value;
      continue;
    }
    if (place.depth == 0) {
      throw InvalidArgument(fmt::format("{}: '{}' is the root and has no link to a parent; name a node below it",
                                        c.flag, topology.node(topology.root()).name));
    }
    for (const bool up : {true, false}) {
      if (!(up ? c.up : c.down)) continue;
      LinkCondition& link =
          links.try_emplace({place.rank, place.depth, up}, LinkCondition{place, up, !up, 1, 0}).first->second;
      if (c.kind == Condition::Kind::kBackground) {
        link.background += c.value;
        if (link.background >= 1) {
          throw InvalidArgument(
              fmt::format("{}: with the other flags nothing of that link is left; shares below 1 in "
                          "all are accepted",
                          c.flag));
        }
      } else {
        link.capacity *= c.value;
      }
    }
  }
  for (const auto& [rank, factor] : slow) options.slow_servers.push_back({rank, factor});
  for (const auto& entry : links) options.links.push_back(entry.second);
}

std::vector<std::string> what_if_words(const WhatIf& what_if) {
  std::vector<std::string> out;
  for (const Condition& c : what_if.conditions) out.push_back(words(c));
  if (what_if.jitter > 0) out.push_back(fmt::format("jitter of {:.4g}%, seed {}", 100 * what_if.jitter, what_if.seed));
  return out;
}

Json what_if_json(const WhatIf& what_if) {
  Json out = Json::array();
  for (const Condition& c : what_if.conditions) {
    Json one;
    one["kind"] = form_of(c.kind).flag + 2;
    one["name"] = c.name;
    if (c.kind != Condition::Kind::kSlow) one["link"] = directions(c);
    if (c.kind != Condition::Kind::kFail) one["value"] = c.value;
    out.push_back(one);
  }
  if (what_if.jitter > 0) out.push_back({{"kind", "jitter"}, {"value", what_if.jitter}, {"seed", what_if.seed}});
  return out;
}

}  // namespace gar::cli
