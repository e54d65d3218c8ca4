#include "runtime/shared_options.hpp"

#include <fmt/format.h>

#include <bit>

#include "base/hash.hpp"
#include "runtime/exploration.hpp"
#include "topology/hash.hpp"

namespace gar {

namespace {

constexpr std::array<const char*, kNumSharedOptions> kOptionNames{
    "path", "number of GAR_FAKE_HOSTS", "topology (GAR_TOPOLOGY)", "reproducible", "algorithm (GAR_ALGO)",
    "plan", "explores (GAR_EXPLORE)",   "overlap (GAR_TOPOLOGY)",  "on_failure"};

}  // namespace

SharedOptions shared_options(const CommunicatorOptions& options, std::uint64_t path, int num_fakes, bool is_default) {
  return {path,
          static_cast<std::uint64_t>(num_fakes),
          options.topology ? hash_of(*options.topology) : 0U,
          options.reproducible ? 1U : 0U,
          mix_in(0, std::string_view(options.algorithm)),
          options.plan ? 1U : 0U,
          is_exploring(options, is_default) ? 1U : 0U,
          std::bit_cast<std::uint64_t>(options.overlap),
          static_cast<std::uint64_t>(options.on_failure)};
}

std::string difference_of(std::span<const SharedOptions> ranks) {
  for (std::size_t peer = 0; peer < ranks.size(); ++peer) {
    for (std::size_t i = 0; i < kNumSharedOptions; ++i) {
      if (ranks[peer][i] == ranks.front()[i]) continue;
      return fmt::format(
          "rank {} has another {} than rank 0; expected the same options and the same GAR_ variables on all ranks",
          peer, kOptionNames[i]);
    }
  }
  return "";
}

}  // namespace gar
