// Every algorithm x transport x type x operator x place x collective over many counts and numbers of ranks, bit for bit
// against a serial oracle. Normally a seeded part of the cross product, in which every value of every dimension meets
// every algorithm; all of it with GAR_TEST_FULL=1.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "gar/communicator.hpp"
#include "support/collective_cases.hpp"
#include "support/configurations.hpp"
#include "support/rank_groups.hpp"
#include "support/seed.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

using test::Case;
using test::Configuration;
using test::Via;

constexpr int kRanks[] = {1, 2, 3, 4, 5, 7, 8, 12, 16};

// The same on every rank. The cases of a kind of algorithm are dealt out of one deck over all numbers of ranks and
// transports, so that it meets everything.
std::vector<Case> cases_for(const Configuration& configuration, int num_ranks, Via via) {
  if (test::scale() == test::Scale::kFull) return test::all_cases(num_ranks);
  const std::string kind = configuration.name.substr(0, configuration.name.find(':'));
  const auto position = std::find(std::begin(kRanks), std::end(kRanks), num_ranks) - std::begin(kRanks);
  const int per_group = test::scaled(num_ranks > 8 ? 2 : 6, num_ranks > 8 ? 3 : 6, 0);
  test::CaseDealer dealer(test::seed(std::hash<std::string>{}(kind)));
  for (std::ptrdiff_t i = 0; i < (2 * position + (via == Via::kThreads ? 0 : 1)) * per_group; ++i) {
    dealer.deal(num_ranks);
  }
  std::vector<Case> out;
  for (int i = 0; i < per_group; ++i) out.push_back(dealer.deal(num_ranks));
  if (test::scale() != test::Scale::kSmall || num_ranks <= 4) out.push_back(dealer.deal_large(num_ranks));
  return out;
}

void run_configurations(test::Member& member, const std::vector<Configuration>& all, Via via) {
  std::uint64_t salt = 0;
  for (const Configuration& configuration : all) {
    Communicator communicator = member.communicator(configuration.options);
    test::check(communicator.rank() == member.rank && communicator.size() == member.size, "wrong rank or size");
    for (const Case& c : cases_for(configuration, member.size, via)) {
      try {
        test::run_case(communicator, c, ++salt);
      } catch (const std::exception& error) {
        throw test::Failure(configuration.name + ": " + test::to_string(c) + ": " + test::text_of(error));
      }
    }
  }
}

class Matrix : public ::testing::TestWithParam<std::tuple<Via, int>> {};

TEST_P(Matrix, IsRight) {
  const Via via = std::get<0>(GetParam());
  const int num_ranks = std::get<1>(GetParam());
  if (test::scale() == test::Scale::kSmall && (num_ranks == 7 || num_ranks > 8)) GTEST_SKIP() << "GAR_TEST_SMALL";
  if (test::scale() == test::Scale::kSmall && test::kHasThreadSanitizer && num_ranks > 4) {
    GTEST_SKIP() << "GAR_TEST_SMALL: four threads show the races of eight";
  }
  const auto seed = static_cast<std::uint64_t>(num_ranks) * 2 + (via == Via::kThreads ? 0 : 1);
  const std::vector<Configuration> all =
      test::configurations(num_ranks, test::seed(seed), test::scaled<std::size_t>(1, 1, 3));
  const auto body = [&](test::Member& member) { run_configurations(member, all, via); };
  EXPECT_EQ(test::failures(test::run_ranks(via, num_ranks, body, 7200)), "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, Matrix,
                         ::testing::Combine(::testing::Values(Via::kThreads, Via::kProcesses),
                                            ::testing::ValuesIn(kRanks)),
                         [](const auto& test_info) {
                           return std::string(test::to_string(std::get<0>(test_info.param))) + "_" +
                                  std::to_string(std::get<1>(test_info.param));
                         });

}  // namespace
}  // namespace gar
