// Networks in the words of people: "100Gbit/s", "2us", "200G-HDR", "DDR5".
//
// A latency in words is what a ping-pong shows: half of the time that a small message takes there and back between two
// servers, all that lies on the way included. The model adds the alpha of every node on a path, so it is divided: each
// of the two servers gets one half, and a switch what a message needs more than the longest one that stays below it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gar/topology.hpp"

namespace gar {

/// "100Gbit/s", "100 Gbit/s", "12.5GB/s", "100Gb/s" or "100Gbps" (k, M, G and T are powers of 1000) as seconds per
/// float of 4 bytes; nothing when the text is no bandwidth above 0.
std::optional<double> bandwidth_of(std::string_view text);
/// "2us", "1.5 ms", "300ns", "0us" in seconds; nothing when the text is no time.
std::optional<double> latency_of(std::string_view text);
/// What the two take, for messages.
inline constexpr std::string_view kAcceptedBandwidth = "a speed of one direction such as 100Gbit/s or 12.5GB/s";
/// What a latency takes, for messages.
inline constexpr std::string_view kAcceptedLatency = "a time such as 2us, 300ns or 1.5ms";

/// A kind of link or of memory with the figures that its standard or its maker gives: upper limits. `gar fit` measures.
struct NetworkClass {
  std::string_view name;    ///< "100GbE", "H200"
  bool is_link = true;      ///< a link with bandwidth and latency; else the memory and adders of a server
  double bandwidth = 0;     ///< of a link: bit/s of one direction; of a server: bytes/s of its memory
  double latency = 0;       ///< of a link: a small message between two servers below one switch, in seconds
  double adds_per_s = 0;    ///< of a server: additions of floats
  std::string_view source;  ///< where the figures are from
  /// Of a link: seconds per float of 4 bytes.
  [[nodiscard]] double beta() const { return 32 / bandwidth; }
  /// Of a server: seconds per float added, and per float read or written.
  [[nodiscard]] ServerParams server() const { return {1 / adds_per_s, 4 / bandwidth, 0}; }
};
/// All of them: links, slowest first, then servers.
std::span<const NetworkClass> network_classes();
/// The class with this name; null when there is none.
const NetworkClass* find_network_class(std::string_view name);

/// What is assumed where nothing is said: two hosts with RDMA, and the memory of the class kTypicalServer.
inline constexpr double kTypicalLatency = 2e-6;
/// What a message needs more for two more switches, which is one more level, in seconds.
inline constexpr double kTypicalLevelLatency = 0.5e-6;
/// The class of servers of which nothing is said.
inline constexpr std::string_view kTypicalServer = "DDR5";
/// A link of which no incast is known.
constexpr LinkParams link_without_incast(double beta) { return {beta, 0, kMaxThreshold, 0}; }

/// Do all servers have the links, latencies and memory of the paper's Table `tab:gtcoe`, as the networks have that are
/// named without speeds?
bool has_paper_parameters(const Topology& topology);

/// The forms of the part behind '@' in a network's name, for messages.
std::string accepted_link_words();
/// `make` gives the network for parameters; the result has the links and servers that `words` says: "100Gbit/s,2us", or
/// "100GbE+400Gbit/s,3us", from the servers up, the last one for all links above. Throws InvalidArgument.
Topology network_in_words(const std::string& name, std::string_view words,
                          Topology (*make)(const std::vector<std::int64_t>&, const PaperParams&),
                          const std::vector<std::int64_t>& factors);

}  // namespace gar
