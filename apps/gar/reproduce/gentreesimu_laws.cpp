// The laws of Table `tab:gentreesimu`.
//
// Notation: a, b, e, g, d for alpha to epsilon; index s is the row "Middle SW", r "Root SW", c "Cross DC"; S floats.
//   Ring            2 K L + K/(K+1) S (2 B + g + 3 d). One switch: K = N, L = 3 a, B = b_s. Trees: K is the servers of
//                   a ring in a rack and the racks of a ring between them, as if the two followed each other, with the
//                   latency of the longest path; B is the uplink of a rack with 24 or 32 senders (n b_r) and, across
//                   the data centres, 32 b_c. There is no incast in it.
//   CPS, a switch   6 a + S [2 (N-1)/N (b_s + (N-1-w_t) e_s) + g + (N+1)/N d]
//   HCPS, a switch  12 a + S [2 (N-1)/N b_s + g + (2 + 1/N) d], whatever the two factors (none has incast)
//   RHD, a switch   6 log2(N) a + S (2 b_s + g + 3 d)
//   CPS, racks      10 a + 2 S [B b_r + (N-1-w_t) (B e_r + (N-1)/N e_s)], B = n (N-n)/N for n servers in a rack: what
//                   leaves a rack; no calculation, and the incast of both links is added up
// Each fits its cells better than 0.2%, most of them to the last printed digit.
#include "apps/gar/reproduce/gentreesimu_laws.hpp"

#include <algorithm>
#include <cmath>

#include "gar/topology.hpp"

namespace gar::cli {
namespace {

constexpr PaperParams kParams;

constexpr SimuRow kSimuRows[] = {
    {"ss24", "gentree", {0.203, 0.503, 1.404}},
    {"ss24", "ring", {1.082, 1.376, 2.288}},
    {"ss24", "cps", {0.203, 0.562, 1.673}},
    {"ss32", "gentree", {0.213, 0.507, 1.417}},
    {"ss32", "rhd", {0.337, 0.644, 1.593}},
    {"ss32", "ring", {1.399, 1.697, 2.617}},
    {"ss32", "cps", {0.223, 0.628, 1.879}},
    {"sym384", "gentree", {0.503, 1.287, 3.575}},
    {"sym384", "ring", {2.943, 3.627, 5.742}},
    {"sym384", "cps", {2.274, 7.132, 22.148}},
    {"sym512", "gentree", {0.639, 1.627, 4.638}},
    {"sym512", "rhd", {0.896, 1.853, 4.812}},
    {"sym512", "ring", {3.571, 4.479, 7.285}},
    {"sym512", "cps", {3.479, 10.989, 34.200}},
    {"asy384", "gentree", {0.570, 1.593, 4.670}},
    {"asy384", "ring", {3.043, 3.947, 6.741}},
    {"asy384", "cps", {2.052, 6.421, 19.925}},
    {"cdc384", "gentree", {2.427, 8.299, 25.388}},
    {"cdc384", "gentree-norearrange", {4.484, 13.927, 43.116}},
    {"cdc384", "ring", {8.513, 17.329, 44.580}},
    {"cdc384", "cps", {11.890, 37.799, 117.882}},
};

struct LawNetwork {
  std::string_view name;
  std::int64_t racks;    // 1: a single switch
  std::int64_t servers;  // of each rack; 0 when they differ
  RingLaw ring;
};

constexpr double kSwitchPath = 3 * kParams.alpha;  // server, switch, server
constexpr double kRootPath = 5 * kParams.alpha;
constexpr double kCrossPath = 4 * kParams.alpha + kParams.cross_alpha;

constexpr LawNetwork kLawNetworks[] = {
    {"ss24", 1, 24, {24, kSwitchPath, kParams.server_link.beta}},
    {"ss32", 1, 32, {32, kSwitchPath, kParams.server_link.beta}},
    {"sym384", 16, 24, {24 + 16, kRootPath, 24 * kParams.inner_link.beta}},
    {"sym512", 16, 32, {32 + 16, kRootPath, 32 * kParams.inner_link.beta}},
    {"asy384", 16, 0, {24 + 16, kRootPath, 32 * kParams.inner_link.beta}},
    {"cdc384", 16, 0, {24 + 16, kCrossPath, 32 * kParams.cross_link.beta}},
};

const LawNetwork* find_network(std::string_view name) {
  const auto* const it = std::find_if(std::begin(kLawNetworks), std::end(kLawNetworks),
                                      [&](const LawNetwork& network) { return network.name == name; });
  return it == std::end(kLawNetworks) ? nullptr : it;
}

double excess(std::int64_t senders, const LinkParams& link) {
  return std::max(static_cast<double>(senders) - link.incast_threshold, 0.0);
}

}  // namespace

std::span<const SimuRow> simu_rows() { return kSimuRows; }

std::optional<double> simu_seconds(std::string_view network, std::string_view algorithm, std::int64_t size) {
  for (const SimuRow& row : kSimuRows) {
    if (row.network != network || row.algorithm != algorithm) continue;
    for (std::size_t i = 0; i < kSimuSizes.size(); ++i) {
      if (kSimuSizes[i] == size) return row.seconds[i];
    }
  }
  return std::nullopt;
}

double ring_law_seconds(const RingLaw& law, double size_floats) {
  const auto k = static_cast<double>(law.steps);
  const ServerParams& server = kParams.server;
  return 2 * k * law.latency + k / (k + 1) * size_floats * (2 * law.beta + server.gamma + 3 * server.delta);
}

double switch_cps_seconds(std::int64_t servers, double size_floats) {
  const auto n = static_cast<double>(servers);
  const LinkParams& link = kParams.server_link;
  const double per_float = link.beta + excess(servers - 1, link) * link.epsilon;
  return 2 * kSwitchPath +
         size_floats * (2 * (n - 1) / n * per_float + kParams.server.gamma + (n + 1) / n * kParams.server.delta);
}

double switch_hcps_seconds(std::int64_t servers, double size_floats) {
  const auto n = static_cast<double>(servers);
  const double link = 2 * (n - 1) / n * kParams.server_link.beta;
  return 4 * kSwitchPath + size_floats * (link + kParams.server.gamma + (2 + 1 / n) * kParams.server.delta);
}

double switch_rhd_seconds(std::int64_t servers, double size_floats) {
  const double steps = 2 * std::log2(static_cast<double>(servers));
  return steps * kSwitchPath +
         size_floats * (2 * kParams.server_link.beta + kParams.server.gamma + 3 * kParams.server.delta);
}

double rack_cps_seconds(std::int64_t racks, std::int64_t servers, double size_floats) {
  const std::int64_t all = racks * servers;
  const auto n = static_cast<double>(all);
  const auto in_rack = static_cast<double>(servers);
  const double leaving = in_rack * (n - in_rack) / n;
  const LinkParams& uplink = kParams.inner_link;
  const LinkParams& link = kParams.server_link;
  const double incast = excess(all - 1, link) * (leaving * uplink.epsilon + (n - 1) / n * link.epsilon);
  return 2 * kRootPath + 2 * size_floats * (leaving * uplink.beta + incast);
}

std::optional<SimuLaw> simu_law(std::string_view network, std::string_view algorithm, std::int64_t size) {
  const LawNetwork* const where = find_network(network);
  if (where == nullptr) return std::nullopt;
  if (algorithm == "ring") return SimuLaw::kRing;
  if (where->racks > 1) {
    if (algorithm == "cps" && where->servers > 0) return SimuLaw::kRackCps;
    return std::nullopt;
  }
  if (algorithm == "cps") return SimuLaw::kSwitchCps;
  if (algorithm == "hcps") return SimuLaw::kSwitchHcps;
  if (algorithm == "rhd" && network == "ss32") return SimuLaw::kSwitchRhd;
  // Table `tab:gtplan`: CPS on SS24 at 1e7, otherwise 8x3 and 8x4.
  if (algorithm == "gentree") {
    return network == "ss24" && size == kSimuSizes.front() ? SimuLaw::kSwitchCps : SimuLaw::kSwitchHcps;
  }
  return std::nullopt;
}

std::optional<double> simu_law_seconds(std::string_view network, std::string_view algorithm, std::int64_t size) {
  const std::optional<SimuLaw> law = simu_law(network, algorithm, size);
  if (!law) return std::nullopt;
  const LawNetwork& where = *find_network(network);
  const auto floats = static_cast<double>(size);
  switch (*law) {
    case SimuLaw::kRing:
      return ring_law_seconds(where.ring, floats);
    case SimuLaw::kSwitchCps:
      return switch_cps_seconds(where.servers, floats);
    case SimuLaw::kSwitchHcps:
      return switch_hcps_seconds(where.servers, floats);
    case SimuLaw::kSwitchRhd:
      return switch_rhd_seconds(where.servers, floats);
    case SimuLaw::kRackCps:
      return rack_cps_seconds(where.racks, where.servers, floats);
  }
  return std::nullopt;
}

}  // namespace gar::cli
