// Wrong plans that were made to pass: whoever knows the fingerprints of one run finds a plan that passes in it, but not
// in another one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gar/errors.hpp"
#include "gar/verify.hpp"
#include "plan/verify/internal.hpp"

namespace gar {
namespace {

constexpr std::int64_t kRanks = 4096;

// A difference of two sums of fingerprints, with equally many ranks in each.
struct Difference {
  std::uint64_t value = 0;
  std::vector<std::int64_t> more;
  std::vector<std::int64_t> less;
};

Difference operator-(const Difference& a, const Difference& b) {
  Difference out{a.value - b.value, a.more, a.less};
  out.more.insert(out.more.end(), b.less.begin(), b.less.end());
  out.less.insert(out.less.end(), b.more.begin(), b.more.end());
  return out;
}

// Two sets of ranks with equal sums: numbers that are close to each other are subtracted, which leaves half as many
// numbers that are much smaller, and so on (Karmarkar and Karp), until one of them is zero.
Difference equal_sums(const ProofSeed& seed) {
  const verify_detail::Keys keys(seed);
  std::vector<Difference> all;
  for (std::int64_t r = 0; r < kRanks; ++r) all.push_back({verify_detail::contribution(keys, r), {r}, {}});
  while (all.size() > 1) {
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
    std::vector<Difference> next;
    for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
      next.push_back(all[i + 1] - all[i]);
      if (next.back().value == 0) return next.back();
    }
    all = std::move(next);
  }
  return {};
}

// Rank 0 adds up what the others send and gives the sum back. The ranks of `more` send twice, those of `less` do not
// send.
Plan forged(const Difference& difference) {
  std::vector<int> times(kRanks, 1);
  for (const std::int64_t r : difference.more) times[static_cast<std::size_t>(r)] = 2;
  for (const std::int64_t r : difference.less) times[static_cast<std::size_t>(r)] = 0;
  Plan plan;
  plan.algorithm = "forged";
  plan.num_ranks = kRanks;
  plan.num_units = 1;
  plan.programs.resize(kRanks);
  auto& root = plan.programs[0].steps;
  root = {{0, {}, {}}, {1, {}, {}}, {2, {}, {}}};
  for (std::int32_t r = 1; r < kRanks; ++r) {
    auto& steps = plan.programs[static_cast<std::size_t>(r)].steps;
    for (int k = 0; k < times[static_cast<std::size_t>(r)]; ++k) {
      steps.push_back({k, {{0, false, 0, 1}}, {}});
      root[static_cast<std::size_t>(k)].recvs.push_back({r, true, 0, 1});
    }
    steps.push_back({2, {}, {{0, false, 0, 1}}});
    root[2].sends.push_back({r, false, 0, 1});
  }
  return plan;
}

// A forgery in which rank 0 itself, which always counts once, plays no part.
std::pair<ProofSeed, Plan> forgery() {
  for (std::uint64_t low = 1;; ++low) {
    const Difference difference = equal_sums({0, low});
    if (difference.more.empty()) continue;
    const auto has_root = [](const std::vector<std::int64_t>& ranks) {
      return std::count(ranks.begin(), ranks.end(), 0) > 0;
    };
    if (!has_root(difference.more) && !has_root(difference.less)) return {{0, low}, forged(difference)};
  }
}

TEST(ForgedPlans, KnowingTheSeedIsEnoughToForge) {
  const auto [seed, plan] = forgery();
  EXPECT_TRUE(verify(plan, {.num_elements = 1, .seed = seed}).ok);
}

TEST(ForgedPlans, KnowingAnotherSeedIsNot) {
  const Plan plan = forgery().second;
  int num_caught = 0;
  for (int i = 0; i < 1000; ++i) {
    const VerifyReport report = verify(plan, {.num_elements = 1 + i % 2, .seed = std::nullopt});
    num_caught += report.ok ? 0 : 1;
    EXPECT_FALSE(report.is_exact);
  }
  EXPECT_EQ(num_caught, 1000);
}

TEST(ForgedPlans, ASecondElementOfTheSameSeedIsNotFooled) {
  const auto [seed, plan] = forgery();
  EXPECT_FALSE(verify(plan, {.num_elements = 2, .seed = seed}).ok);
}

TEST(ForgedPlans, SetsAreNotFooled) {
  const auto [seed, plan] = forgery();
  const VerifyReport report = verify(plan, {.kind = ProofKind::kExact, .seed = seed});
  EXPECT_FALSE(report.ok);
  EXPECT_TRUE(report.is_exact);
  EXPECT_NE(report.problem.find("contribution of rank"), std::string::npos) << report.problem;
}

// The ends of intervals were added up as begin + 0xd6e8feb86659fd93 end (modulo 2^64), so that other ends had the same
// sum, whatever the seed.
TEST(ForgedPlans, OtherIntervalsAreOtherMessages) {
  constexpr std::int64_t kShift = static_cast<std::int64_t>(0 - 0xd6e8feb86659fd93ULL);
  constexpr std::int64_t kUnits = std::int64_t{1} << 62;
  Plan plan;
  plan.algorithm = "forged";
  plan.num_ranks = 2;
  plan.num_units = kUnits;
  plan.programs.resize(2);
  plan.programs[0].steps = {{0, {{1, false, 0, kUnits}}, {{1, true, kShift, kUnits}}}};
  plan.programs[1].steps = {{0, {{0, false, 0, kUnits - 1}}, {{0, true, 0, kUnits}}}};
  for (const ProofKind kind : {ProofKind::kExact, ProofKind::kFingerprints}) {
    const VerifyReport report = verify(plan, {.kind = kind, .seed = std::nullopt});
    EXPECT_FALSE(report.ok);
    EXPECT_NE(report.problem.find("rank 0 waits for"), std::string::npos) << report.problem;
  }
}

TEST(ForgedPlans, SeedsAreReadAndWritten) {
  EXPECT_EQ(to_text(parse_proof_seed("00ff")), "ff");
  EXPECT_EQ(to_text(parse_proof_seed("123456789abcdef0123456789ABCDEF0")), "123456789abcdef0123456789abcdef0");
  for (const char* const wrong : {"", "0x12", "12 ", "123456789abcdef0123456789abcdef01"}) {
    EXPECT_THROW(static_cast<void>(parse_proof_seed(wrong)), InvalidArgument) << wrong;
  }
  const ProofSeed seed = fresh_proof_seed();
  EXPECT_EQ(parse_proof_seed(to_text(seed)), seed);
  EXPECT_NE(fresh_proof_seed(), seed);
}

}  // namespace
}  // namespace gar
