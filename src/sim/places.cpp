// Names of node instances, back to the instances.
//
// A name is a path of child names ("rack3/server5"). Children are runs of equal nodes, so a child is found by its run
// and its number within it: O(runs on the way), whatever the number of servers.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "gar/errors.hpp"
#include "gar/simulate.hpp"

namespace gar {
namespace {

constexpr std::size_t kNamesInMessage = 6;

// A number as names and ranks are written: digits only, without leading zeros.
std::optional<std::int64_t> plain_number(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct Position {
  NodeId node = 0;
  NodePlace place;
};

// Some children of a switch that are called by one name and numbers from `first` on; -1: by the name alone.
struct Family {
  std::string_view name;
  NodeId node = 0;
  std::int64_t first = -1;
  std::int64_t count = 1;
  std::int64_t first_rank = 0;
};

Family family_of(const Topology& topology, const Position& parent, const ChildRun& run, std::int64_t first_rank) {
  const std::string& base = topology.node(run.node).name;
  const std::string path = topology.instance_name(first_rank, parent.place.depth + 1);
  const std::string_view number = std::string_view(path).substr(path.rfind('/') + 1).substr(base.size());
  return {base, run.node, plain_number(number).value_or(-1), run.count, first_rank};
}

std::vector<Family> families_of(const Topology& topology, const Position& parent) {
  std::vector<Family> out;
  std::int64_t rank = parent.place.rank;
  for (const ChildRun& run : topology.node(parent.node).children) {
    const Family family = family_of(topology, parent, run, rank);
    rank += run.count * topology.num_servers(run.node);
    const bool continues =
        !out.empty() && out.back().name == family.name && out.back().first + out.back().count == family.first;
    if (continues) {
      out.back().count += family.count;
    } else {
      out.push_back(family);
    }
  }
  return out;
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t length = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(length), b.begin()).first - a.begin());
}

// "rack0..rack15, spare": those that look most like `wanted` when there are too many.
std::string children_words(const Topology& topology, const Position& parent, std::string_view wanted) {
  std::vector<Family> families = families_of(topology, parent);
  std::string rest;
  if (families.size() > kNamesInMessage) {
    rest = fmt::format(" and {} more", families.size() - kNamesInMessage);
    std::stable_sort(families.begin(), families.end(), [&](const Family& a, const Family& b) {
      return common_prefix(a.name, wanted) > common_prefix(b.name, wanted);
    });
    families.resize(kNamesInMessage);
  }
  std::string out;
  for (const Family& f : families) {
    if (!out.empty()) out += ", ";
    if (f.first < 0) {
      out += f.name;
    } else if (f.count == 1) {
      out += fmt::format("{}{}", f.name, f.first);
    } else {
      out += fmt::format("{0}{1}..{0}{2}", f.name, f.first, f.first + f.count - 1);
    }
  }
  return out + rest;
}

std::optional<Position> find_child(const Topology& topology, const Position& parent, std::string_view name) {
  std::int64_t rank = parent.place.rank;
  for (const ChildRun& run : topology.node(parent.node).children) {
    const std::int64_t servers = topology.num_servers(run.node);
    const std::string& base = topology.node(run.node).name;
    if (name.starts_with(base)) {
      const Family family = family_of(topology, parent, run, rank);
      const std::string_view number = name.substr(base.size());
      const std::int64_t index =
          family.first < 0 ? (number.empty() ? 0 : -1) : plain_number(number).value_or(-1) - family.first;
      if (index >= 0 && index < run.count) {
        return Position{run.node, {rank + index * servers, parent.place.depth + 1}};
      }
    }
    rank += run.count * servers;
  }
  return std::nullopt;
}

NodePlace server_of_rank(const Topology& topology, std::string_view text) {
  const std::optional<std::int64_t> rank = plain_number(text);
  if (!rank || *rank >= topology.num_servers()) {
    throw InvalidArgument(
        fmt::format("there is no rank {}; '{}' has ranks 0 to {}", text, topology.name(), topology.num_servers() - 1));
  }
  NodeId id = topology.root();
  NodePlace place{*rank, 0};
  std::int64_t server = *rank;
  while (!topology.node(id).is_server()) {
    const ChildPosition child = topology.child_at(id, server);
    server -= child.first_server;
    id = child.node;
    ++place.depth;
  }
  return place;
}

[[noreturn]] void refuse(const Topology& topology, const Position& parent, const std::string& name,
                         std::string_view component) {
  const std::string wrong = component.size() == name.size() ? fmt::format("'{}'", name)
                            : component.empty()             ? fmt::format("'{}': a name is missing", name)
                                                            : fmt::format("'{}': no '{}'", name, component);
  const std::string where = parent.place.depth == 0
                                ? fmt::format("the root '{}'", topology.node(parent.node).name)
                                : fmt::format("'{}'", topology.instance_name(parent.place.rank, parent.place.depth));
  if (topology.node(parent.node).is_server()) {
    throw InvalidArgument(fmt::format("there is no {}; {} is a server and has nothing below it", wrong, where));
  }
  throw InvalidArgument(fmt::format("there is no {}; the children of {} are {} (servers also go by rank: 0 to {})",
                                    wrong, where, children_words(topology, parent, component),
                                    topology.num_servers() - 1));
}

}  // namespace

std::string link_name(const Topology& topology, const LinkId& link) {
  return (link.is_down ? "downlink of " : "uplink of ") + topology.instance_name(link.node.rank, link.node.depth);
}

NodePlace find_place(const Topology& topology, const std::string& name) {
  if (is_digits(name)) return server_of_rank(topology, name);
  Position at{topology.root(), {}};
  std::size_t begin = 0;
  while (begin <= name.size()) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view component = std::string_view(name).substr(begin, end - begin);
    const std::optional<Position> child = find_child(topology, at, component);
    if (!child) {
      if (name == topology.node(topology.root()).name) return {};
      refuse(topology, at, name, component);
    }
    at = *child;
    begin = end + 1;
  }
  return at.place;
}

}  // namespace gar
