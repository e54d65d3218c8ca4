// The closed forms of the paper's Tables `tab:abcmodel_on_exist` and `tab:genmodel_on_exist`: N servers on one switch.
//
// Notation: S floats, w(f) the incast degree of an exchange among f servers, e(f) = max(w(f) - w_t, 0) * epsilon.
// A step in which f servers exchange pieces of s floats costs
//     alpha + (f - 1) s (beta + e(f)) + 2 (f - 1) mu + (f - 1) s gamma + (f + 1) s delta
// and its mirror image in the AllGather the same without the last two terms. Everything below is a sum of such steps.
// (In Reduce-Broadcast one server handles f - 1 messages and every other one, which makes f mu of them.)
// In an exchange of everything s is all that a server holds, and there is no mirror image.
//
// The table at the end gives them by the name of the algorithm (src/plan/algorithms/registry.cpp).
//
// Deviation: where the printed tables disagree with this derivation we follow the derivation and keep the printed form
// next to it (Reduce-Broadcast is charged incast for its broadcast, which has one sender; RHD's volume for N that is no
// power of two; the indices of HCPS's delta and epsilon terms and the missing factor 2 for its AllGather).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "gar/errors.hpp"
#include "gar/model.hpp"
#include "model/groups_bound.hpp"

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
  t.mu = 2 * steps * 2 * (fan_in - 1) * p.mu;
  return t;
}

// An exchange of everything, s floats each, among f servers: a step without a mirror image.
Terms exchange_of_all(std::int64_t f, double s, const OneSwitch& p) {
  const auto fan_in = static_cast<double>(f);
  Terms t;
  t.alpha = p.alpha;
  t.beta = (fan_in - 1) * s * p.beta;
  t.epsilon = (fan_in - 1) * s * excess(p, f) * p.epsilon;
  t.gamma = (fan_in - 1) * s * p.gamma;
  t.delta = (fan_in + 1) * s * p.delta;
  t.mu = 2 * (fan_in - 1) * p.mu;
  return t;
}

}  // namespace

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
          degree,
          server.server.mu};
}

Terms closed_reduce_broadcast(std::int64_t n, double size_floats, const OneSwitch& p) {
  if (n == 1) return {};
  Terms t = both_halves(n, size_floats, p);
  t.epsilon = static_cast<double>(n - 1) * size_floats * (excess(p, n) + excess(p, 2)) * p.epsilon;
  t.mu = 2 * static_cast<double>(n) * p.mu;
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

Terms closed_gather(std::int64_t n, double size_floats, const OneSwitch& p) {
  return n == 1 ? Terms{} : exchange_of_all(n, size_floats, p);
}

Terms closed_recursive_multiplying(std::int64_t n, const std::vector<std::int64_t>& factors, double size_floats,
                                   const OneSwitch& p) {
  if (n == 1) return {};
  std::int64_t groups = 1;
  Terms t;
  for (const std::int64_t f : factors) {
    groups *= f;
    t += exchange_of_all(f, size_floats, p);
  }
  return t + closed_reduce_broadcast((n + groups - 1) / groups, size_floats, p);  // the fold of the largest groups
}

Terms closed_recursive_doubling(std::int64_t n, double size_floats, const OneSwitch& p) {
  const auto digits = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(n)) - 1);
  return closed_recursive_multiplying(n, std::vector<std::int64_t>(digits, 2), size_floats, p);
}

Terms closed_binomial(std::int64_t n, double size_floats, const OneSwitch& p) {
  if (n == 1) return {};
  return both_halves(2, size_floats, p, std::bit_width(static_cast<std::uint64_t>(n - 1)));
}

Terms printed_reduce_broadcast(std::int64_t n, double size_floats, const OneSwitch& p) {
  Terms t = closed_reduce_broadcast(n, size_floats, p);
  t.epsilon = 2 * static_cast<double>(n - 1) * size_floats * excess(p, n) * p.epsilon;
  t.mu = 0;
  return t;
}

Terms printed_abc_reduce_broadcast(std::int64_t n, double size_floats, const OneSwitch& p) {
  Terms t = closed_reduce_broadcast(n, size_floats, p);
  t.epsilon = 0;
  t.delta = 0;
  t.mu = 0;
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

namespace {

/// What a closed form is asked for.
struct Question {
  const AlgorithmSpec& spec;
  std::int64_t n = 1;
  double size_floats = 0;
  const OneSwitch& p;
};

// A group of uneven HCPS may have one member less than the factors say.
Terms uneven_bound_of_smallest(const Question& q) {
  std::vector<std::int64_t> smaller = q.spec.factors;
  smaller[0] = std::max<std::int64_t>(smaller[0] - 1, 1);
  double volume = 1;
  for (const std::int64_t f : q.spec.factors) volume *= static_cast<double>(f);
  double kept = 1;
  for (const std::int64_t f : smaller) kept *= static_cast<double>(f);
  return closed_hcps(smaller, q.size_floats * kept / volume, q.p);
}

std::int64_t one_step_per_factor(const AlgorithmSpec& spec) { return static_cast<std::int64_t>(spec.factors.size()); }

std::int64_t ring_steps_per_factor(const AlgorithmSpec& spec) {
  std::int64_t steps = 0;
  for (const std::int64_t f : spec.factors) steps += f - 1;
  return steps;
}

struct ClosedForm {
  std::string_view algorithm;
  Terms (*cost)(const Question& q);
  /// Steps of each half that follow from the factors; null: left to the closed form.
  std::int64_t (*num_steps)(const AlgorithmSpec& spec) = nullptr;
  /// For uneven groups the form above is not exact, and this bounds it; null: there are none.
  Terms (*uneven_bound)(const Question& q) = nullptr;
};

constexpr ClosedForm kClosedForms[] = {
    {"reduce-broadcast", [](const Question& q) { return closed_reduce_broadcast(q.n, q.size_floats, q.p); }},
    {"ring", [](const Question& q) { return closed_ring(q.n, q.size_floats, q.p); }},
    {"rhd", [](const Question& q) { return closed_rhd(q.n, q.size_floats, q.p); }},
    {"cps", [](const Question& q) { return closed_cps(q.n, q.size_floats, q.p); }},
    {"hcps", [](const Question& q) { return closed_hcps(q.spec.factors, q.size_floats, q.p); }, one_step_per_factor,
     uneven_bound_of_smallest},
    {"hring", [](const Question& q) { return closed_hierarchical_ring(q.spec.factors, q.size_floats, q.p); },
     ring_steps_per_factor},
    {"recursive-doubling", [](const Question& q) { return closed_recursive_doubling(q.n, q.size_floats, q.p); }},
    {"recursive-multiplying",
     [](const Question& q) { return closed_recursive_multiplying(q.n, q.spec.factors, q.size_floats, q.p); }},
    {"binomial", [](const Question& q) { return closed_binomial(q.n, q.size_floats, q.p); }},
    {"gather", [](const Question& q) { return closed_gather(q.n, q.size_floats, q.p); }},
};

// Null when there is none, or when factors that it needs are missing.
const ClosedForm* form_of(const AlgorithmSpec& spec) {
  if (needs_factors(spec)) return nullptr;
  const auto* found = std::find_if(std::begin(kClosedForms), std::end(kClosedForms),
                                   [&](const ClosedForm& form) { return form.algorithm == spec.name; });
  return found == std::end(kClosedForms) ? nullptr : found;
}

}  // namespace

// So it is where no level has been cut unevenly.
bool holds_intervals(const std::vector<std::int64_t>& factors, std::int64_t m, std::size_t num_levels) {
  for (std::size_t level = num_levels; level-- > 1;) {
    const std::int64_t groups = std::min(factors[level], m);
    if (m % groups != 0) return false;
    m /= groups;
  }
  return true;
}

// A price is the slowest of many ways: the innermost group of some rank, the group of groups around it, and so on.
// Among them is one along which every group is the largest of its siblings, and one along which it is the smallest. A
// stage on that way combines g groups of M servers together, which hold the vector g times, and leaves it there once:
//
//   - Every server owns 1/M of it on average. The one with the most owns at least that, gets it from g - 1 others and
//     adds g operands; so its downlink, and its calculation, are at least those of an exchange among g.
//   - The way back: all servers together lack g - 1 vectors, so one of them gets at least (g - 1)/M. If all own equal
//     shares, it hears from at least g - 1.
//   - Messages: who owns something has heard from g - 1. If everyone does, someone has sent to as many.
//   - A group of m < M/g servers holds the vector once. If all own equal shares, (M - m)/M of it leaves the group, so
//     one of its servers sends (M/m - 1)/M: more than it gets. Nobody takes more than 1/M, so that goes to M/m - 1
//     servers at least, rounded up, and comes back from as many.
//   - Equal shares exist, and are found (acps.cpp), where every child's ranks hold an interval each. Where that is not
//     so, and nobody has looked, the bound leaves out incast on the way back and all but one of the messages sent.
//   - Ranks of the first and the last group meet if everyone owns something; otherwise still the owner and the group
//     that is farther from it, half of the groups away at least.
double uneven_hcps_bound(const std::vector<std::int64_t>& factors, std::int64_t n, double size_floats,
                         const OneSwitch& p, Collective collective,
                         const std::function<double(std::int64_t distance)>& path, bool has_equal_shares) {
  constexpr double kRounding = 1e-12;
  constexpr double kShares = 2e-9;  // equal ones may differ by half of that
  const double scatters = collective == Collective::kAllGather ? 0 : 1;
  const double gathers = collective == Collective::kReduceScatter ? 0 : 1;
  double most = 0;
  for (const bool is_largest : {false, true}) {
    double seconds = 0;
    std::int64_t members = n;
    for (std::size_t level = factors.size(); level-- > 0 && members > 1;) {
      const std::int64_t groups = level == 0 ? members : std::min(factors[level], members);
      const std::int64_t small = members / groups;
      const std::int64_t large = (members + groups - 1) / groups;
      const bool is_even = small == large;
      const bool is_fair = is_even || has_equal_shares ||
                           (holds_intervals(factors, small, level) && holds_intervals(factors, large, level));
      const std::int64_t apart = is_even ? (groups - 1) * small : ((is_fair ? groups - 1 : groups / 2) - 1) * small + 1;
      const double piece = size_floats / static_cast<double>(members);
      const double moved = static_cast<double>(groups - 1) * piece;
      const double incast = moved * excess(p, groups) * p.epsilon;
      const bool has_sender = is_fair && !is_even;  // of a small group, as above
      const double others = static_cast<double>(members - small) / static_cast<double>(small);
      const double sent = has_sender ? (1 - kShares) * others * piece : moved;
      const std::int64_t receivers = has_sender ? (members - 1) / small : groups - 1;
      const double messages = static_cast<double>(is_fair ? groups - 1 + receivers : groups) * p.mu;
      const double scattering = std::max(moved * p.beta + incast, sent * p.beta);
      const double gathering = sent * (p.beta + (is_fair ? excess(p, receivers + 1) * p.epsilon : 0));
      const double calculation = moved * p.gamma + static_cast<double>(groups + 1) * piece * p.delta;
      seconds += scatters * (path(apart) + messages + scattering + calculation) +
                 gathers * (path(apart) + messages + gathering);
      members = is_largest ? large : small;
    }
    most = std::max(most, seconds);
  }
  return (1 - kRounding) * most;
}

std::optional<Terms> closed_form(const AlgorithmSpec& spec, std::int64_t n, double size_floats, const OneSwitch& p) {
  const ClosedForm* form = form_of(spec);
  if (form == nullptr || spec.uneven) return std::nullopt;
  return form->cost({spec, n, size_floats, p});
}

std::optional<ClosedBound> closed_bound(const AlgorithmSpec& spec, std::int64_t n, double size_floats,
                                        const OneSwitch& p) {
  const ClosedForm* form = form_of(spec);
  if (form == nullptr || (spec.uneven && form->uneven_bound == nullptr)) return std::nullopt;
  const Question question{spec, n, size_floats, p};
  const Terms terms = spec.uneven ? form->uneven_bound(question) : form->cost(question);
  return ClosedBound{terms.total(), form->num_steps == nullptr ? 0 : form->num_steps(spec)};
}

}  // namespace gar
