// Algorithms by name, factorisations, and the two halves of an AllReduce as plans of their own.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/topology.hpp"

namespace gar {

namespace {

constexpr const char* kAccepted =
    "accepted are reduce-broadcast, ring, rhd, cps, hcps, hcps:8x3 (factors), hcps:~9x11 (uneven groups), "
    "hring:4x6 (multi-dimensional ring), acps:4+3 (group sizes), gentree, gentree-norearrange, gentree+";

void factorise(std::int64_t n, std::size_t limit, std::vector<std::int64_t>& prefix,
               std::vector<std::vector<std::int64_t>>& out) {
  if (n == 1) {
    out.push_back(prefix);
    return;
  }
  // Large first factors first: they save memory accesses.
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    if (d > 1) divisors.push_back(d);
    if (n / d != d) divisors.push_back(n / d);
  }
  std::sort(divisors.rbegin(), divisors.rend());
  for (const std::int64_t d : divisors) {
    if (out.size() >= limit) return;
    prefix.push_back(d);
    factorise(n / d, limit, prefix, out);
    prefix.pop_back();
  }
}

std::vector<std::int64_t> parse_numbers(std::string_view text, char separator, std::string_view whole) {
  std::vector<std::int64_t> out;
  std::int64_t value = -1;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : separator;
    if (c >= '0' && c <= '9') {
      value = (value < 0 ? 0 : value) * 10 + (c - '0');
      if (value <= kMaxServers) continue;
    } else if (c == separator && value > 0) {
      out.push_back(value);
      value = -1;
      continue;
    }
    throw InvalidArgument(
        fmt::format("algorithm '{}': '{}' is not a list of numbers from 1 to {} separated by '{}'; {}", whole, text,
                    kMaxServers, separator, kAccepted));
  }
  return out;
}

}  // namespace

std::vector<std::vector<std::int64_t>> ordered_factorisations(std::int64_t n, std::size_t limit) {
  std::vector<std::vector<std::int64_t>> out;
  std::vector<std::int64_t> prefix;
  if (n > 1) factorise(n, limit, prefix, out);
  return out;
}

bool is_tree_planner(const AlgorithmSpec& spec) {
  return spec.name == "gentree" || spec.name == "gentree-norearrange" || spec.name == "gentree+";
}

AlgorithmSpec parse_algorithm(std::string_view text) {
  AlgorithmSpec spec;
  const std::size_t colon = text.find(':');
  spec.name = std::string(text.substr(0, colon));
  const bool has_factors = colon != std::string_view::npos;
  const bool takes_factors = spec.name == "hcps" || spec.name == "hring" || spec.name == "acps";
  const bool known = takes_factors || is_tree_planner(spec) || spec.name == "reduce-broadcast" || spec.name == "ring" ||
                     spec.name == "rhd" || spec.name == "cps";
  if (!known) throw InvalidArgument(fmt::format("unknown algorithm '{}'; {}", text, kAccepted));
  if (!has_factors) return spec;
  if (!takes_factors) throw InvalidArgument(fmt::format("algorithm '{}' takes no factors; {}", spec.name, kAccepted));
  std::string_view rest = text.substr(colon + 1);
  if (spec.name == "hcps" && rest.starts_with('~')) {
    spec.uneven = true;
    rest.remove_prefix(1);
  }
  spec.factors = parse_numbers(rest, spec.name == "acps" ? '+' : 'x', text);
  return spec;
}

std::string to_string(const AlgorithmSpec& spec) {
  if (spec.factors.empty()) return spec.name;
  return fmt::format("{}:{}{}", spec.name, spec.uneven ? "~" : "",
                     fmt::join(spec.factors, spec.name == "acps" ? "+" : "x"));
}

Plan build_plan(const AlgorithmSpec& spec, std::int64_t num_ranks) {
  if (spec.name == "reduce-broadcast") return reduce_broadcast(num_ranks);
  if (spec.name == "ring") return ring(num_ranks);
  if (spec.name == "rhd") return rhd(num_ranks);
  if (spec.name == "cps") return cps(num_ranks);
  if (is_tree_planner(spec)) {
    throw InvalidArgument(fmt::format("'{}' plans for a network, not for a number of ranks", spec.name));
  }
  if (spec.factors.empty()) {
    throw InvalidArgument(fmt::format("algorithm '{}' needs factors here, as in {}", spec.name,
                                      spec.name == "acps" ? "acps:4+3" : spec.name + ":8x3"));
  }
  if (spec.name == "acps") {
    std::int64_t sum = 0;
    for (const std::int64_t g : spec.factors) sum += g;
    if (sum != num_ranks) {
      throw InvalidArgument(
          fmt::format("{}: the group sizes add up to {}, not to {} servers", to_string(spec), sum, num_ranks));
    }
    return acps(spec.factors);
  }
  if (spec.name == "hring") return hierarchical_ring(num_ranks, spec.factors);
  if (spec.name == "hcps") return spec.uneven ? uneven_hcps(num_ranks, spec.factors) : hcps(num_ranks, spec.factors);
  throw InvalidArgument(fmt::format("unknown algorithm '{}'; {}", spec.name, kAccepted));
}

namespace {

Plan half(const Plan& allreduce, Collective collective) {
  if (allreduce.is_explicit()) {
    throw InvalidArgument("an explicit plan has no separate ReduceScatter; build it from an algorithm");
  }
  Plan plan = allreduce;
  plan.collective = collective;
  if (plan.num_ranks == 1) return plan;
  const std::int64_t n = plan.num_ranks;
  const std::int64_t scale = n / std::gcd(n, plan.num_units);
  if (plan.num_units > std::numeric_limits<std::int64_t>::max() / scale) {
    throw InvalidArgument(fmt::format("{} units cannot be cut into blocks for {} ranks; a multiple of {} is accepted",
                                      plan.num_units, n, n));
  }
  plan.num_units *= scale;
  for (SubPlan& sp : plan.subplans) {
    for (Stage& stage : sp.stages) {
      for (Piece& p : stage.target) {
        p.begin *= scale;
        p.end *= scale;
      }
    }
  }
  const std::int64_t block = plan.num_units / n;
  Plan check = plan;
  check.collective = Collective::kAllReduce;
  std::vector<std::int64_t> held(static_cast<std::size_t>(n), 0);
  const PlanIndex index(check);
  for (const Piece& p : index.placement_after(plan.root)) held[static_cast<std::size_t>(p.owner)] += p.end - p.begin;
  if (std::all_of(held.begin(), held.end(), [&](std::int64_t h) { return h == block; })) return plan;
  Stage home{StageKind::kPlace, 1, 1, {}};
  for (std::int64_t r = 0; r < n; ++r)
    home.target.push_back({r * block, (r + 1) * block, static_cast<std::int32_t>(r)});
  plan.subplans[static_cast<std::size_t>(plan.root)].stages.push_back(std::move(home));
  return plan;
}

}  // namespace

Plan as_reduce_scatter(const Plan& allreduce) { return half(allreduce, Collective::kReduceScatter); }
Plan as_all_gather(const Plan& allreduce) { return half(allreduce, Collective::kAllGather); }

}  // namespace gar
