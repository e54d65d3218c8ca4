// Algorithms as they are written in files, in GAR_ALGO and on the command line: the reader either throws
// InvalidArgument or returns one that is written as it was read; where it fits a small number of ranks, its plan is
// right.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/harness.hpp"
#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/verify.hpp"

namespace {

using gar::fuzz::require;

constexpr std::int64_t kMostRanks = 64;

/// The ranks that the factors or group sizes are for; 0: too many to build a plan for here.
std::int64_t ranks_of(const gar::AlgorithmSpec& spec) {
  const gar::AlgorithmInfo* info = gar::find_algorithm(spec.name);
  require(info != nullptr);
  if (spec.factors.empty()) return 6;
  const bool adds = info->parameters == gar::AlgorithmParameters::kGroupSizes;
  std::int64_t ranks = adds ? 0 : 1;
  for (const std::int64_t factor : spec.factors) {
    if (factor < 1 || factor > kMostRanks) return 0;
    ranks = adds ? ranks + factor : ranks * factor;
    if (ranks > kMostRanks) return 0;
  }
  return spec.uneven ? ranks + 1 : ranks;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const gar::AlgorithmSpec spec = gar::parse_algorithm(text);
    const std::string written = gar::to_string(spec);
    require(gar::to_string(gar::parse_algorithm(written)) == written);
    const std::int64_t num_ranks = ranks_of(spec);
    if (gar::is_tree_planner(spec) || gar::needs_factors(spec) || num_ranks == 0) return 0;
    require(gar::verify(gar::build_plan(spec, num_ranks)).ok);
  } catch (const gar::InvalidArgument&) {
  }
  return 0;
}
