// What-if conditions: parsing, and finding the places of a network that they name.
#include "gar/what_if.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/quantity.hpp"

namespace gar {
namespace {

struct ConditionForm {
  Condition::Kind kind;
  const char* word;
  const char* form;
  const char* value;  ///< what the number may be
  double least;       ///< the smallest number that is accepted
  double most;        ///< and the largest
};

constexpr ConditionForm kForms[] = {
    {Condition::Kind::kSlow, "slow", "NAME=FACTOR", "a factor from 1e-9 to 1e9", 1 / kMaxFactor, kMaxFactor},
    {Condition::Kind::kDegrade, "degrade", "NAME.uplink=CAPACITY", "a capacity from 1e-9 to 1e9, or 0", 0, kMaxFactor},
    {Condition::Kind::kFail, "fail", "NAME.uplink", "", 0, 0},
    {Condition::Kind::kBackground, "background", "NAME.uplink=SHARE", "a share from 0 to 0.999999999", 0,
     1 - 1 / kMaxFactor},
};

const ConditionForm& find_form(Condition::Kind kind) { return kForms[static_cast<std::size_t>(kind)]; }

std::string accepted(const ConditionForm& form) {
  switch (form.kind) {
    case Condition::Kind::kSlow:
      return fmt::format("NAME=FACTOR with a node's name or a rank and {}, such as rack3/server5=2 or 17=1.5",
                         form.value);
    case Condition::Kind::kFail:
      return "NAME.uplink (both directions), NAME.up or NAME.down, such as rack3.uplink or 17.up";
    case Condition::Kind::kDegrade:
    case Condition::Kind::kBackground:
      break;
  }
  return fmt::format("{} (or NAME.up, NAME.down for one direction) with {}, such as rack3.uplink=0.5 or 50%", form.form,
                     form.value);
}

/// The text of a condition while it is parsed.
struct Source {
  const ConditionForm& form;
  std::string_view name;
  std::string_view text;

  [[noreturn]] void reject(std::string_view why) const {
    throw UsageError(fmt::format("{} '{}': {}; expected {}", name, text, why, accepted(form)));
  }
};

// Takes ".uplink", ".up" or ".down" off the end of `place`.
void take_direction(const Source& source, std::string_view& place, Condition& out) {
  const std::size_t dot = place.rfind('.');
  const std::string_view direction = dot == std::string_view::npos ? "" : place.substr(dot + 1);
  if (direction != "uplink" && direction != "up" && direction != "down") {
    source.reject(dot == std::string_view::npos ? "which link is not said"
                                                : fmt::format("'.{}' is no link of a node", direction));
  }
  out.up = direction != "down";
  out.down = direction != "up";
  place = place.substr(0, dot);
}

NodePlace place_of(const Condition& condition, const Topology& topology) {
  try {
    return find_place(topology, condition.name);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", condition.source, error.what()));
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

/// What all conditions together do to the servers and to the link directions that they name.
class Effects {
 public:
  explicit Effects(const Topology& topology) : topology_(topology) {}

  void add(const Condition& condition) {
    const NodePlace place = place_of(condition, topology_);
    if (condition.kind == Condition::Kind::kSlow) {
      slow_down(place, condition.value);
      return;
    }
    if (place.depth == 0) {
      throw InvalidArgument(fmt::format("{}: '{}' is the root and has no link to a parent; name a node below it",
                                        condition.source, topology_.node(topology_.root()).name));
    }
    if (condition.up) change_link(place, true, condition);
    if (condition.down) change_link(place, false, condition);
  }

  void move_into(SimulationOptions& options) const {
    for (const auto& [rank, factor] : slow_) options.slow_servers.push_back({rank, factor});
    for (const auto& entry : links_) options.links.push_back(entry.second);
  }

 private:
  void slow_down(const NodePlace& place, double factor) {
    const std::int64_t end = place.rank + servers_below(topology_, place);
    for (std::int64_t rank = place.rank; rank < end; ++rank) slow_.try_emplace(rank, 1).first->second *= factor;
  }

  void change_link(const NodePlace& place, bool up, const Condition& condition) {
    const LinkCondition sound{.node = place, .up = up, .down = !up, .capacity = 1, .background = 0};
    LinkCondition& link = links_.try_emplace({place.rank, place.depth, up}, sound).first->second;
    if (condition.kind != Condition::Kind::kBackground) {
      link.capacity *= condition.value;
      return;
    }
    link.background += condition.value;
    if (link.background >= 1) {
      throw InvalidArgument(fmt::format(
          "{}: with the other flags nothing of that link is left; expected shares below 1 in all", condition.source));
    }
  }

  const Topology& topology_;
  std::map<std::int64_t, double> slow_;
  std::map<std::tuple<std::int64_t, int, bool>, LinkCondition> links_;  // per direction
};

}  // namespace

std::string_view to_string(Condition::Kind kind) { return find_form(kind).word; }

std::string_view form_of(Condition::Kind kind) { return find_form(kind).form; }

Condition parse_condition(Condition::Kind kind, std::string_view name, const std::string& text) {
  const Source source{find_form(kind), name, text};
  Condition out;
  out.kind = kind;
  out.source = fmt::format("{} {}", name, text);
  std::string_view place = text;
  if (kind == Condition::Kind::kFail) {
    out.value = 0;
  } else {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos) source.reject("'=' and a number are missing");
    const std::string number = text.substr(equals + 1);
    const bool is_share = kind != Condition::Kind::kSlow;
    const std::optional<double> value = !is_share && number.ends_with('%') ? std::nullopt : share_of(number);
    if (!value) source.reject(fmt::format("'{}' is not a number", number));
    const bool is_tiny = kind == Condition::Kind::kDegrade && *value > 0 && *value < 1 / kMaxFactor;
    if (!(*value >= source.form.least && *value <= source.form.most) || is_tiny) {
      source.reject(fmt::format("{} is out of range", number));
    }
    out.value = *value;
    place = place.substr(0, equals);
  }
  if (kind != Condition::Kind::kSlow) take_direction(source, place, out);
  if (place.empty()) source.reject("the name is missing");
  out.name = place;
  return out;
}

double parse_jitter(std::string_view name, const std::string& text) {
  const std::optional<double> jitter = share_of(text);
  if (!jitter || *jitter < 0 || *jitter > kMaxJitter) {
    throw UsageError(
        fmt::format("{} '{}': expected a share from 0 to {:g}, such as 0.05 or 5%", name, text, kMaxJitter));
  }
  return *jitter;
}

std::uint64_t parse_seed(std::string_view name, const std::string& text) {
  std::uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, seed);
  if (error != std::errc() || stopped != end) {
    throw UsageError(fmt::format("{} '{}': expected a whole number from 0 to 2^64 - 1", name, text));
  }
  return seed;
}

void apply(const WhatIf& what_if, const Topology& topology, SimulationOptions& options) {
  options.jitter = what_if.jitter;
  options.seed = what_if.seed;
  Effects effects(topology);
  for (const Condition& condition : what_if.conditions) effects.add(condition);
  effects.move_into(options);
}

namespace {

/// A copy of a network's nodes in which single instances become different from those that they were one with.
class Changes {
 public:
  explicit Changes(const Topology& topology) : topology_(topology) {
    for (NodeId id = 0; id < topology.num_nodes(); ++id) nodes_.push_back(topology.node(id));
  }

  void add(const Condition& condition) {
    const NodePlace place = place_of(condition, topology_);
    const bool is_slow = condition.kind == Condition::Kind::kSlow;
    if (!is_slow) check_link(condition, place);
    root_ = changed(topology_.root(), place.rank, place.depth, condition);
  }

  Topology done(std::string name) { return {std::move(name), std::move(nodes_), root_}; }

 private:
  static void check_link(const Condition& condition, const NodePlace& place) {
    if (condition.kind != Condition::Kind::kDegrade) {
      throw InvalidArgument(
          fmt::format("{}: expected a slow server or a degraded link; gar simulate has the rest", condition.source));
    }
    if (condition.value <= 0) {
      throw InvalidArgument(
          fmt::format("{}: nothing is left of this link, so no plan reaches what is below it; expected more than 0, or "
                      "a network without it",
                      condition.source));
    }
    if (!condition.up || !condition.down) {
      throw InvalidArgument(fmt::format("{}: plans are made for links with equal directions; expected {}.uplink={:g}",
                                        condition.source, condition.name, condition.value));
    }
    if (place.depth == 0) {
      throw InvalidArgument(
          fmt::format("{}: the root has no link to a parent; name a node below it", condition.source));
    }
  }

  NodeId store(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<NodeId>(nodes_.size()) - 1;
  }

  // The node `id` with what is `depth` levels below it, at or above its `server`-th server, changed.
  NodeId changed(NodeId id, std::int64_t server, int depth, const Condition& condition) {
    if (depth == 0) {
      if (condition.kind == Condition::Kind::kSlow) return slowed(id, condition.value);
      Node out = topology_.node(id);
      out.uplink.beta /= condition.value;
      out.uplink.epsilon /= condition.value;
      return store(std::move(out));
    }
    const ChildPosition child = topology_.child_at(id, server);
    const NodeId other = changed(child.node, server - child.first_server, depth - 1, condition);
    Node out = topology_.node(id);
    out.children.clear();
    const std::vector<ChildRun>& runs = topology_.node(id).children;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::int64_t before = i == child.run ? child.index : runs[i].count;
      if (before > 0) out.children.push_back({runs[i].node, before});
      if (i != child.run) continue;
      out.children.push_back({other, 1});
      if (runs[i].count > before + 1) out.children.push_back({runs[i].node, runs[i].count - before - 1});
    }
    return store(std::move(out));
  }

  NodeId slowed(NodeId id, double factor) {
    Node out = topology_.node(id);
    out.server.gamma *= factor;
    out.server.delta *= factor;
    out.server.mu *= factor;
    for (ChildRun& run : out.children) run.node = slowed(run.node, factor);
    return store(std::move(out));
  }

  const Topology& topology_;
  std::vector<Node> nodes_;
  NodeId root_ = 0;
};

}  // namespace

Topology with_conditions(const Topology& topology, const WhatIf& what_if) {
  if (what_if.jitter > 0) throw InvalidArgument("jitter is random, so no plan is made for it; gar simulate has it");
  Topology out = topology;
  for (const Condition& condition : what_if.conditions) {
    Changes changes(out);
    changes.add(condition);
    out = changes.done(fmt::format("{} {}", out.name(), condition.source));
  }
  return out;
}

}  // namespace gar
