// All algorithms by name: the one table that parsing, building, errors, completions and tests read.
//
// The classic AllReduce algorithms (the paper's Section 2.1 and Table `tab:genmodel_on_exist`) as plans:
//
//   algorithm          sub-plans                                       steps (ReduceScatter)     fan-in
//   Reduce-Broadcast   one place: rank 0 owns everything               1                         N
//   Ring               one ring digit of radix N                       N - 1                     2
//   RHD                radix-2 digits, nearest partner first           log2 N                    2
//   Co-located PS      one direct digit of radix N                     1                         N
//   HCPS f0 x f1 ...   one direct digit per factor, neighbours first   m                         f_i
//   hierarchical ring  one ring digit per factor                       sum of (f_i - 1)          2
//   Asymmetric CPS     CPS inside groups, then a place between them    2                         group size, groups
//   binomial tree      pairs of pairs, each a place: one rank of two   log2 N, rounded up        2
//
// Those for short vectors, whose exchanges have no mirror image:
//
//   algorithm               sub-plans                                     steps (in all)         fan-in
//   gather                  one exchange of radix N                       1                      N
//   recursive doubling      radix-2 exchanges, nearest partner first      log2 N                 2
//   recursive multiplying   one exchange per factor, neighbours first     m                      f_i
//
// A new algorithm is a file in this folder with its builder, and a row of kAlgorithms. If it has a closed form on one
// switch, a row in src/model/closed_forms.cpp lets the predictor prune it; without one it is always priced.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/topology.hpp"

namespace gar {

using Builder = Plan(const AlgorithmSpec& spec, std::int64_t num_ranks);
Builder build_reduce_broadcast, build_ring, build_rhd, build_cps, build_hcps, build_hring, build_acps;
Builder build_gather, build_recursive_doubling, build_recursive_multiplying, build_binomial;

namespace {

constexpr AlgorithmParameters kFactors = AlgorithmParameters::kFactors;
constexpr AlgorithmParameters kGroupSizes = AlgorithmParameters::kGroupSizes;

// In the order in which people see them. Algorithms without a builder need a network (src/planner).
constexpr AlgorithmInfo kAlgorithms[] = {
    {.name = "reduce-broadcast",
     .words = "one rank reduces everything and sends it back",
     .forms = "reduce-broadcast",
     .comparison_order = 5,
     .build = build_reduce_broadcast},
    {.name = "ring", .words = "a chain through all ranks", .forms = "ring", .comparison_order = 3, .build = build_ring},
    {.name = "rhd",
     .words = "recursive halving and doubling",
     .forms = "rhd",
     .comparison_order = 4,
     .build = build_rhd},
    {.name = "cps", .words = "co-located parameter server", .forms = "cps", .comparison_order = 1, .build = build_cps},
    {.name = "hcps",
     .words = "hierarchical co-located parameter server",
     .forms = "hcps, hcps:8x3 (factors), hcps:~9x11 (uneven groups)",
     .parameters = kFactors,
     .finds_factors = true,
     .takes_uneven = true,
     .comparison_order = 2,
     .build = build_hcps},
    {.name = "hring",
     .words = "multi-dimensional ring",
     .forms = "hring:4x6 (multi-dimensional ring)",
     .parameters = kFactors,
     .finds_factors = true,
     .build = build_hring},
    {.name = "acps",
     .words = "asymmetric co-located parameter server",
     .forms = "acps:4+3 (group sizes)",
     .parameters = kGroupSizes,
     .build = build_acps},
    {.name = "gentree", .words = "the paper's planner for trees", .forms = "gentree"},
    {.name = "gentree-norearrange",
     .words = "the paper's planner without data rearrangement",
     .forms = "gentree-norearrange"},
    {.name = "gentree+", .words = "our planner for trees", .forms = "gentree+"},
    {.name = "recursive-doubling",
     .words = "partners exchange whole vectors",
     .forms = "recursive-doubling",
     .build = build_recursive_doubling},
    {.name = "recursive-multiplying",
     .words = "groups exchange whole vectors",
     .forms = "recursive-multiplying, recursive-multiplying:4x4 (factors)",
     .parameters = kFactors,
     .finds_factors = true,
     .folds = true,
     .build = build_recursive_multiplying},
    {.name = "binomial", .words = "a binomial tree to one rank and back", .forms = "binomial", .build = build_binomial},
    {.name = "gather",
     .words = "every rank gets all vectors and reduces them",
     .forms = "gather",
     .build = build_gather},
};

char separator_of(const AlgorithmInfo& info) { return info.parameters == kGroupSizes ? '+' : 'x'; }

std::string accepted() {
  std::string out = "expected one of ";
  for (const AlgorithmInfo& info : kAlgorithms) {
    out += fmt::format("{}{}", &info == &kAlgorithms[0] ? "" : ", ", info.forms);
  }
  return out;
}

const AlgorithmInfo& known(std::string_view name, std::string_view text) {
  const AlgorithmInfo* info = find_algorithm(name);
  if (info == nullptr) throw InvalidArgument(fmt::format("unknown algorithm '{}'; {}", text, accepted()));
  return *info;
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
                    kMaxServers, separator, accepted()));
  }
  return out;
}

}  // namespace

std::span<const AlgorithmInfo> algorithms() { return kAlgorithms; }

const AlgorithmInfo* find_algorithm(std::string_view name) {
  const auto* found = std::find_if(std::begin(kAlgorithms), std::end(kAlgorithms),
                                   [&](const AlgorithmInfo& info) { return info.name == name; });
  return found == std::end(kAlgorithms) ? nullptr : found;
}

std::string factor_words(const std::vector<std::int64_t>& factors) {
  return fmt::format("{}", fmt::join(factors, "x"));
}

bool is_tree_planner(const AlgorithmSpec& spec) {
  const AlgorithmInfo* info = find_algorithm(spec.name);
  return info != nullptr && info->needs_network();
}

bool needs_factors(const AlgorithmSpec& spec) {
  const AlgorithmInfo* info = find_algorithm(spec.name);
  return info != nullptr && info->finds_factors && spec.factors.empty();
}

AlgorithmSpec parse_algorithm(std::string_view text) {
  AlgorithmSpec spec;
  const std::size_t colon = text.find(':');
  spec.name = std::string(text.substr(0, colon));
  const AlgorithmInfo& info = known(spec.name, text);
  if (colon == std::string_view::npos) return spec;
  if (info.parameters == AlgorithmParameters::kNone) {
    throw InvalidArgument(fmt::format("algorithm '{}' takes no factors; {}", spec.name, accepted()));
  }
  std::string_view rest = text.substr(colon + 1);
  if (info.takes_uneven && rest.starts_with('~')) {
    spec.uneven = true;
    rest.remove_prefix(1);
  }
  spec.factors = parse_numbers(rest, separator_of(info), text);
  return spec;
}

std::string to_string(const AlgorithmSpec& spec) {
  if (spec.factors.empty()) return spec.name;
  const AlgorithmInfo* info = find_algorithm(spec.name);
  const char separator[] = {info == nullptr ? 'x' : separator_of(*info), '\0'};
  return fmt::format("{}:{}{}", spec.name, spec.uneven ? "~" : "", fmt::join(spec.factors, separator));
}

Plan build_plan(const AlgorithmSpec& spec, std::int64_t num_ranks) {
  const AlgorithmInfo& info = known(spec.name, spec.name);
  if (info.needs_network()) {
    throw InvalidArgument(fmt::format("'{}' plans for a network, not for a number of ranks", spec.name));
  }
  if (info.parameters != AlgorithmParameters::kNone && spec.factors.empty()) {
    throw InvalidArgument(fmt::format("algorithm '{}' needs factors here, as in {}:{}", spec.name, spec.name,
                                      info.parameters == kGroupSizes ? "4+3" : "8x3"));
  }
  return info.build(spec, num_ranks);
}

}  // namespace gar
