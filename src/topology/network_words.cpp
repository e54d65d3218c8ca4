// Speeds, latencies and named classes of networks.
//
// Problem: people know "100 Gbit/s, 2 us"; the model wants seconds per float, and an alpha for every node, of which a
// path pays the sum. A latency in words is end to end, so it fixes only sums. With L_h the latency between servers that
// meet at a switch of height h: a server gets L_1 / 2, a switch of height 1 nothing, and one of height h > 1 what L_h
// has left when the nodes below it on both sides are paid. A path up to height h then costs exactly L_h.
#include "gar/network_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/index.hpp"
#include "gar/errors.hpp"
#include "gar/format.hpp"

namespace gar {
namespace {

// A standard gives no latency. Ethernet: TCP in the kernel of both hosts, whose order of magnitude this is. InfiniBand:
// the adapters and one switch (below 0.6 us and 0.15 us by their manuals), and the MPI library on both sides. Inside of
// a host: a kernel on a GPU that sees what another one has written.
constexpr double kEthernetLatency = 20e-6;
constexpr double kRdmaLatency = kTypicalLatency;
constexpr double kInsideLatency = 2e-6;

constexpr NetworkClass link(std::string_view name, double bits_per_s, double latency, std::string_view source) {
  return {name, true, bits_per_s, latency, 0, source};
}
constexpr NetworkClass server(std::string_view name, double bytes_per_s, double adds_per_s, std::string_view source) {
  return {name, false, bytes_per_s, 0, adds_per_s, source};
}

constexpr NetworkClass kClasses[] = {
    link("1GbE", 1e9, 50e-6, "IEEE 802.3ab"),
    link("10GbE", 10e9, kEthernetLatency, "IEEE 802.3ae"),
    link("25GbE", 25e9, kEthernetLatency, "IEEE 802.3by"),
    link("40GbE", 40e9, kEthernetLatency, "IEEE 802.3ba"),
    link("50GbE", 50e9, kEthernetLatency, "IEEE 802.3cd"),
    link("100GbE", 100e9, kEthernetLatency, "IEEE 802.3ba"),
    link("200GbE", 200e9, kEthernetLatency, "IEEE 802.3bs"),
    link("400GbE", 400e9, kEthernetLatency, "IEEE 802.3bs"),
    link("800GbE", 800e9, kEthernetLatency, "IEEE 802.3df"),
    link("100G-EDR", 100e9, kRdmaLatency, "InfiniBand roadmap, 4 lanes of EDR"),
    link("200G-HDR", 200e9, kRdmaLatency, "InfiniBand roadmap, 4 lanes of HDR"),
    link("400G-NDR", 400e9, kRdmaLatency, "InfiniBand roadmap, 4 lanes of NDR"),
    link("800G-XDR", 800e9, kRdmaLatency, "InfiniBand roadmap, 4 lanes of XDR"),
    link("PCIe3x16", 8e9 * 16 * 128 / 130, kInsideLatency, "PCI Express 3.0: 8 GT/s, 16 lanes, 128b/130b"),
    link("PCIe4x16", 16e9 * 16 * 128 / 130, kInsideLatency, "PCI Express 4.0: 16 GT/s, 16 lanes, 128b/130b"),
    link("PCIe5x16", 32e9 * 16 * 128 / 130, kInsideLatency, "PCI Express 5.0: 32 GT/s, 16 lanes, 128b/130b"),
    link("NVLink3", 300e9 * 8, kInsideLatency, "NVIDIA A100: 600 GB/s, both directions together"),
    link("NVLink4", 450e9 * 8, kInsideLatency, "NVIDIA H100, H200: 900 GB/s, both directions together"),
    link("NVLink5", 900e9 * 8, kInsideLatency, "NVIDIA B200: 1.8 TB/s, both directions together"),
    // A socket: 8 channels of 8 bytes; 32 cores that add 8 floats in each cycle at 2.5 GHz.
    server("DDR4", 8 * 25.6e9, 32 * 8 * 2.5e9, "JEDEC DDR4-3200, 8 channels; 32 cores with AVX2 at 2.5 GHz"),
    server("DDR5", 8 * 38.4e9, 32 * 8 * 2.5e9, "JEDEC DDR5-4800, 8 channels; 32 cores with AVX2 at 2.5 GHz"),
    // A GPU: additions are half of the floating point operations per second, which count multiplying as well.
    server("A100", 2.039e12, 19.5e12 / 2, "NVIDIA A100 80GB SXM: 2,039 GB/s, 19.5 Tflop/s in float32"),
    server("H100", 3.35e12, 67e12 / 2, "NVIDIA H100 SXM: 3.35 TB/s, 67 Tflop/s in float32"),
    server("H200", 4.8e12, 67e12 / 2, "NVIDIA H200 SXM: 4.8 TB/s, 67 Tflop/s in float32"),
};

/// A number without sign and exponent, and the word behind it, with a space between them or none.
std::optional<std::pair<double, std::string_view>> number_and_unit(std::string_view text) {
  constexpr std::size_t kMostDigits = 15;  // a double holds as many, and so the result is the nearest one
  double digits = 0;
  double scale = 1;
  std::size_t num_digits = 0;
  bool in_fraction = false;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !in_fraction) {
      in_fraction = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    if (++num_digits > kMostDigits) return std::nullopt;
    digits = digits * 10 + (c - '0');
    if (in_fraction) scale *= 10;
  }
  if (num_digits == 0) return std::nullopt;
  if (at < text.size() && text[at] == ' ') ++at;
  return std::pair(digits / scale, text.substr(at));
}

/// The links of one level, or the servers, as far as words say it.
struct LevelWords {
  std::optional<double> beta;
  std::optional<double> latency;
  bool is_own_latency = false;  // said, and not that of a class
  std::optional<ServerParams> server;
};

[[noreturn]] void reject_sense(const std::string& problem) {
  throw InvalidArgument(fmt::format("after '@' it {}", problem));
}
[[noreturn]] void reject_words(const std::string& problem) {
  throw InvalidArgument(fmt::format("after '@'{}; expected {}", problem, accepted_link_words()));
}

std::string in_small_letters(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// ", did you mean 100GbE?": other letters, or a speed without its unit.
std::string suggestion_for(std::string_view word) {
  for (const NetworkClass& c : kClasses) {
    if (in_small_letters(c.name) == in_small_letters(word)) return fmt::format(" (did you mean {}?)", c.name);
  }
  for (const std::string_view unit : {"bit/s", "it/s", "t/s", "/s"}) {
    const std::string longer = std::string(word) + std::string(unit);
    if (bandwidth_of(longer)) return fmt::format(" (did you mean {}?)", longer);
  }
  return "";
}

void add_word(std::string_view word, LevelWords& out) {
  const NetworkClass* known = find_network_class(word);
  if (known != nullptr && !known->is_link) {
    if (out.server) reject_sense("says the memory of the servers twice; expected it once");
    out.server = known->server();
    return;
  }
  const std::optional<double> beta = known != nullptr ? known->beta() : bandwidth_of(word);
  if (beta) {
    if (out.beta)
      reject_sense(
          fmt::format("says the speed of one link twice, the second time with '{:.40}'; expected it once", word));
    out.beta = beta;
    if (known != nullptr && !out.is_own_latency) out.latency = known->latency;
    return;
  }
  const std::optional<double> latency = latency_of(word);
  if (!latency) reject_words(fmt::format(", '{:.40}' is not known{}", word, suggestion_for(word)));
  if (out.is_own_latency) reject_sense("says the latency of one level twice; expected it once");
  out.latency = latency;
  out.is_own_latency = true;
}
LevelWords level_words(std::string_view words) {
  LevelWords out;
  for (std::size_t begin = 0; begin <= words.size();) {
    const std::size_t end = std::min(words.find(',', begin), words.size());
    add_word(words.substr(begin, end - begin), out);
    begin = end + 1;
  }
  if (!out.beta) reject_words(fmt::format(" it gives no link speed in '{:.40}'", words));
  return out;
}

std::vector<LevelWords> read_words(std::string_view words) {
  std::vector<LevelWords> out;
  for (std::size_t begin = 0; begin <= words.size();) {
    const std::size_t end = std::min(words.find('+', begin), words.size());
    out.push_back(level_words(words.substr(begin, end - begin)));
    if (out.size() > static_cast<std::size_t>(kMaxDepth)) reject_sense("says too many levels");
    begin = end + 1;
  }
  for (std::size_t i = 1; i < out.size(); ++i) {
    if (out[i].server) reject_sense("says the memory of servers behind a '+', where switches are; expected before it");
  }
  return out;
}

bool is_near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

}  // namespace

std::optional<double> bandwidth_of(std::string_view text) {
  const auto parsed = number_and_unit(text);
  if (!parsed || parsed->second.empty()) return std::nullopt;
  auto [value, unit] = *parsed;
  constexpr std::string_view kPrefixes = "kMGT";
  if (const std::size_t power = kPrefixes.find(unit.front()); power != std::string_view::npos) {
    for (std::size_t i = 0; i <= power; ++i) value *= 1e3;
    unit.remove_prefix(1);
  }
  if (unit == "B/s") {
    value *= 8;
  } else if (unit != "bit/s" && unit != "b/s" && unit != "bps") {
    return std::nullopt;
  }
  if (value <= 0) return std::nullopt;
  const double beta = 32 / value;
  if (!(beta <= kMaxParameter && beta >= kLeastParameter)) return std::nullopt;
  return beta;
}

std::optional<double> latency_of(std::string_view text) {
  const auto parsed = number_and_unit(text);
  if (!parsed) return std::nullopt;
  const auto& [value, unit] = *parsed;
  const double scale = unit == "s" ? 1 : unit == "ms" ? 1e3 : unit == "us" ? 1e6 : unit == "ns" ? 1e9 : 0;
  if (scale == 0 || value / scale > kMaxParameter) return std::nullopt;
  return value / scale;
}

std::span<const NetworkClass> network_classes() { return kClasses; }

const NetworkClass* find_network_class(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kClasses), std::end(kClasses), [&](const NetworkClass& c) { return c.name == name; });
  return found == std::end(kClasses) ? nullptr : found;
}

bool has_paper_parameters(const Topology& topology) {
  const PaperParams paper;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    const Node& node = topology.node(id);
    if (!node.is_server() || id == topology.root()) continue;
    if (node.server != paper.server || node.alpha != paper.alpha ||
        !is_near(node.uplink.beta, paper.server_link.beta) ||
        !is_near(node.uplink.epsilon, paper.server_link.epsilon)) {
      return false;
    }
  }
  return topology.num_servers() > 1;
}

std::string accepted_link_words() {
  return fmt::format(
      "{}, or a name such as 100GbE (gar topo classes prints them), with the latency of a ping-pong if it is known "
      "(100Gbit/s,2us), and '+' before the same for each level above",
      kAcceptedBandwidth);
}

Topology network_in_words(const std::string& name, std::string_view words,
                          Topology (*make)(const std::vector<std::int64_t>&, const PaperParams&),
                          const std::vector<std::int64_t>& factors) {
  const std::vector<LevelWords> levels = read_words(words);
  // Links of one second per float show how many cables each of them is.
  const LinkParams cable{1, 0, 0};
  const Topology shape = make(factors, {0, cable, cable, cable, 0, {}});
  const int height = shape.height(shape.root());
  if (levels.size() > idx(height)) {
    reject_sense(fmt::format("says the links of {} levels; expected at most {}", levels.size(), height));
  }
  std::vector<double> alpha(idx(height) + 1);  // by height
  alpha[0] = levels.front().latency.value_or(kTypicalLatency) / 2;
  double way = 2 * alpha[0];  // through two servers and the switches between them, but the one where they meet
  double turn = way;          // the same with that one
  for (std::size_t h = 2; h <= idx(height); ++h) {
    const bool is_said = h <= levels.size() && levels[h - 1].is_own_latency;
    const double latency = is_said ? *levels[h - 1].latency : std::max(turn + kTypicalLevelLatency, way);
    if (latency < way * (1 - 1e-9)) {
      reject_sense(
          fmt::format("says that messages through {} levels of links take {}, but those on the way need {} already; a "
                      "latency is that of the whole way, as a ping-pong shows it",
                      h, format_seconds(latency), format_seconds(way)));
    }
    alpha[h] = std::max(latency - way, 0.0);
    turn = way + alpha[h];
    way += 2 * alpha[h];
  }
  const ServerParams server = levels.front().server.value_or(find_network_class(kTypicalServer)->server());
  std::vector<Node> nodes;
  for (NodeId id = 0; id < shape.num_nodes(); ++id) {
    Node node = shape.node(id);
    const int h = shape.height(id);
    const LevelWords& link = levels[std::min(idx(h), levels.size() - 1)];
    node.uplink = link_without_incast(*link.beta * node.uplink.beta);
    node.alpha = alpha[idx(h)];
    if (node.is_server()) node.server = server;
    nodes.push_back(std::move(node));
  }
  return Topology(name, std::move(nodes), shape.root());
}

}  // namespace gar
