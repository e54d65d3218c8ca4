// The closed forms of the paper's Tables `tab:abcmodel_on_exist` and `tab:genmodel_on_exist`: N servers on one switch.
//
// Notation: S floats, w(f) the incast degree of an exchange among f servers, e(f) = max(w(f) - w_t, 0) * epsilon.
// A step in which f servers exchange pieces of s floats costs
//     alpha + (f - 1) s (beta + e(f)) + (f - 1) s gamma + (f + 1) s delta
// and its mirror image in the AllGather the same without the last two terms. Everything below is a sum of such steps.
//
// Deviation: where the printed tables disagree with this derivation we follow the derivation and keep the printed form
// beside it (Reduce-Broadcast is charged incast for its broadcast, which has one sender; RHD's volume for N that is no
// power of two; the indices of HCPS's delta and epsilon terms and the missing factor 2 for its AllGather).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "gar/errors.hpp"
#include "gar/model.hpp"

namespace gar {

namespace {

double excess(const OneSwitch& p, std::int64_t f) {
  const auto w = static_cast<double>(p.degree == IncastDegree::kParticipants ? f : f - 1);
  return std::max(w - p.incast_threshold, 0.0);
}

// Both halves of a stage of `steps` equal steps among f servers, each of them moving and reducing pieces of s floats.
Terms both_halves(std::int64_t f, double s, const OneSwitch& p, double steps = 1) {
  const auto fan_in = static_cast<double>(f);
  Terms t;
  t.alpha = 2 * steps * p.alpha;
  t.beta = 2 * steps * (fan_in - 1) * s * p.beta;
  t.epsilon = 2 * steps * (fan_in - 1) * s * excess(p, f) * p.epsilon;
  t.gamma = steps * (fan_in - 1) * s * p.gamma;
  t.delta = steps * (fan_in + 1) * s * p.delta;
  return t;
}

}  // namespace

Terms& Terms::operator+=(const Terms& other) {
  alpha += other.alpha;
  beta += other.beta;
  gamma += other.gamma;
  delta += other.delta;
  epsilon += other.epsilon;
  return *this;
}

Terms operator+(Terms a, const Terms& b) { return a += b; }

Terms operator*(double factor, const Terms& t) {
  return {factor * t.alpha, factor * t.beta, factor * t.gamma, factor * t.delta, factor * t.epsilon};
}

OneSwitch one_switch_params(const Topology& topology, IncastDegree degree) {
  const Node& root = topology.node(topology.root());
  const bool is_star = root.children.size() == 1 && topology.node(root.children[0].node).is_server();
  if (!is_star) {
    throw InvalidArgument(fmt::format("topology '{}' is not one switch with equal servers, which the closed forms need",
                                      topology.name()));
  }
  const Node& server = topology.node(root.children[0].node);
  return {root.alpha + 2 * server.alpha,
          server.uplink.beta,
          server.server.gamma,
          server.server.delta,
          server.uplink.epsilon,
          server.uplink.incast_threshold,
          degree};
}

Terms closed_reduce_broadcast(std::int64_t n, double size_floats, const OneSwitch& p) {
  if (n == 1) return {};
  Terms t = both_halves(n, size_floats, p);
  t.epsilon = static_cast<double>(n - 1) * size_floats * (excess(p, n) + excess(p, 2)) * p.epsilon;
  return t;
}

Terms closed_ring(std::int64_t n, double size_floats, const OneSwitch& p) {
  if (n == 1) return {};
  return both_halves(2, size_floats / static_cast<double>(n), p, static_cast<double>(n - 1));
}

Terms closed_rhd(std::int64_t n, double size_floats, const OneSwitch& p) {
  if (n == 1) return {};
  const auto pow2 = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
  Terms t;
  if (pow2 != n) t += both_halves(2, size_floats, p);
  double s = size_floats;
  for (std::int64_t f = pow2; f > 1; f /= 2) {
    s /= 2;
    t += both_halves(2, s, p);
  }
  return t;
}

Terms closed_cps(std::int64_t n, double size_floats, const OneSwitch& p) {
  if (n == 1) return {};
  return both_halves(n, size_floats / static_cast<double>(n), p);
}

Terms closed_hcps(const std::vector<std::int64_t>& factors, double size_floats, const OneSwitch& p) {
  Terms t;
  double s = size_floats;
  for (const std::int64_t f : factors) {
    s /= static_cast<double>(f);
    t += both_halves(f, s, p);
  }
  return t;
}

Terms closed_hierarchical_ring(const std::vector<std::int64_t>& factors, double size_floats, const OneSwitch& p) {
  Terms t;
  double s = size_floats;
  for (const std::int64_t f : factors) {
    s /= static_cast<double>(f);
    t += both_halves(2, s, p, static_cast<double>(f - 1));
  }
  return t;
}

Terms printed_reduce_broadcast(std::int64_t n, double size_floats, const OneSwitch& p) {
  Terms t = closed_reduce_broadcast(n, size_floats, p);
  t.epsilon = 2 * static_cast<double>(n - 1) * size_floats * excess(p, n) * p.epsilon;
  return t;
}

Terms printed_abc_reduce_broadcast(std::int64_t n, double size_floats, const OneSwitch& p) {
  Terms t = closed_reduce_broadcast(n, size_floats, p);
  t.epsilon = 0;
  t.delta = 0;
  t.gamma *= 2;
  return t;
}

Terms printed_rhd(std::int64_t n, double size_floats, const OneSwitch& p) {
  if (n == 1) return {};
  const auto servers = static_cast<double>(n);
  const double chi = std::has_single_bit(static_cast<std::uint64_t>(n)) ? 0 : 1;
  const double share = (servers - 1) / servers;
  Terms t;
  t.alpha = 2 * std::ceil(std::log2(servers)) * p.alpha;
  t.beta = (2 * share + 2 * chi) * size_floats * p.beta;
  t.gamma = (share + chi) * size_floats * p.gamma;
  t.delta = 3 * (share + chi) * size_floats * p.delta;
  return t;
}

Terms printed_hcps(const std::vector<std::int64_t>& factors, double size_floats, const OneSwitch& p) {
  double n = 1;
  for (const std::int64_t f : factors) n *= static_cast<double>(f);
  const std::size_t m = factors.size();
  Terms t;
  t.alpha = 2 * static_cast<double>(m) * p.alpha;
  t.beta = 2 * (n - 1) / n * size_floats * p.beta;
  t.gamma = (n - 1) / n * size_floats * p.gamma;
  double sum = 0;
  double product = 1;
  for (std::size_t i = 1; i < m; ++i) {
    product *= static_cast<double>(factors[i]);
    sum += product;
  }
  t.delta = (2 * sum + n + 1) / n * size_floats * p.delta;
  double rest = n;  // product of f_j for j >= i
  for (std::size_t i = 0; i < m; ++i) {
    const std::int64_t previous = factors[i == 0 ? 0 : i - 1];
    t.epsilon += excess(p, factors[i]) * static_cast<double>(previous - 1) * rest / n * size_floats * p.epsilon;
    rest /= static_cast<double>(factors[i]);
  }
  return t;
}

}  // namespace gar
