// Chunk programs and schedules without any transport: all ranks' programs run side by side in this test, step number by
// step number, with messages carried by hand.
//
// Oracle: element i of rank r starts as 2^r for AllReduce and ReduceScatter, so the sum over n ranks is 2^n - 1 only if
// every contribution is in it exactly once (n <= 20); AllGather starts with r * 1000 + i.
#include "runtime/program.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/planner.hpp"
#include "runtime/schedule.hpp"
#include "support/collective_cases.hpp"
#include "support/plans.hpp"
#include "support/random_topology.hpp"
#include "support/seed.hpp"

namespace gar {
namespace {

using Words = std::vector<std::int64_t>;

struct Rank {
  ChunkProgram program;
  Words input;  // in the layout of blocks that are `stride` apart
  Words work;
  std::size_t next = 0;
};

std::size_t at(const Part& part, std::int64_t stride) {
  return static_cast<std::size_t>(part.block * stride + part.offset);
}

/// What a message carries, read where its parts say.
Words read(const Rank& rank, const ChunkSend& send, std::int64_t stride) {
  Words out;
  for (const Part& part : send.parts) {
    const Words& space = part.space == Space::kInput ? rank.input : rank.work;
    for (std::int64_t i = 0; i < part.count; ++i)
      out.push_back(space.at(at(part, stride) + static_cast<std::size_t>(i)));
  }
  return out;
}

using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

/// Runs one step of one rank on what it has received.
void reduce_step(Rank& rank, std::int64_t self, std::int64_t stride, std::map<Key, Words>& messages) {
  const ChunkStep& step = rank.program.steps[rank.next];
  for (const Reduction& reduction : step.reductions) {
    for (std::int64_t i = 0; i < reduction.out.count; ++i) {
      const std::size_t place = at(reduction.out, stride) + static_cast<std::size_t>(i);
      std::int64_t sum = 0;
      if (reduction.has_own) sum += (reduction.own == Space::kInput ? rank.input : rank.work).at(place);
      for (const Operand& operand : reduction.operands) {
        const ChunkRecv& recv = step.recvs.at(static_cast<std::size_t>(operand.recv));
        const Words& words = messages.at({step.number, recv.peer, self, recv.begin, recv.end});
        sum += words.at(static_cast<std::size_t>(operand.offset + i));
      }
      rank.work.at(place) = sum;
    }
  }
}

std::vector<Rank> start(const PlanIndex& index, std::int64_t blocks, std::int64_t block_count) {
  const bool is_gather = index.plan().collective == Collective::kAllGather;
  std::vector<Rank> ranks;
  for (std::int64_t r = 0; r < index.plan().num_ranks; ++r) {
    Rank rank;
    rank.program = compile_chunk(index, r, blocks, block_count);
    rank.input.assign(static_cast<std::size_t>(blocks * block_count), is_gather ? -1 : std::int64_t{1} << r);
    rank.work.assign(rank.input.size(), -1'000'000);
    for (std::int64_t i = 0; is_gather && i < block_count; ++i) {
      rank.work[static_cast<std::size_t>(r * block_count + i)] = r * 1000 + i;
    }
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

/// Step numbers ascend, and all ranks run a number together: sends first.
void run(std::vector<Rank>& ranks, std::int64_t num_steps, std::int64_t stride) {
  for (std::int64_t number = 0; number < num_steps; ++number) {
    std::map<Key, Words> messages;
    const auto is_due = [&](const Rank& rank) {
      return rank.next < rank.program.steps.size() && rank.program.steps[rank.next].number == number;
    };
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (!is_due(ranks[r])) continue;
      for (const ChunkSend& send : ranks[r].program.steps[ranks[r].next].sends) {
        messages[{number, static_cast<std::int64_t>(r), send.peer, send.begin, send.end}] =
            read(ranks[r], send, stride);
      }
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (!is_due(ranks[r])) continue;
      reduce_step(ranks[r], static_cast<std::int64_t>(r), stride, messages);
      ++ranks[r].next;
    }
  }
}

void expect_result(const PlanIndex& index, const std::vector<Rank>& ranks, std::int64_t block_count) {
  const auto n = static_cast<std::int64_t>(ranks.size());
  const Collective collective = index.plan().collective;
  for (std::int64_t r = 0; r < n; ++r) {
    const Rank& rank = ranks[static_cast<std::size_t>(r)];
    ASSERT_EQ(rank.next, rank.program.steps.size());
    const auto size = static_cast<std::int64_t>(rank.work.size());
    const std::int64_t begin = collective == Collective::kReduceScatter ? r * block_count : 0;
    const std::int64_t end = collective == Collective::kReduceScatter ? begin + block_count : size;
    for (std::int64_t i = begin; i < end && n > 1; ++i) {
      const std::int64_t expected =
          collective == Collective::kAllGather ? i / block_count * 1000 + i % block_count : (std::int64_t{1} << n) - 1;
      ASSERT_EQ(rank.work[static_cast<std::size_t>(i)], expected)
          << index.plan().algorithm << ", " << n << " ranks, block of " << block_count << ": rank " << r << ", element "
          << i;
    }
  }
}

/// Staged intervals of a rank lie apart, and receivers look where senders put them.
void expect_staging(const std::vector<Rank>& ranks) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::map<std::int64_t, std::int64_t> taken;  // begin, end
    const std::vector<ChunkStep>& steps = ranks[r].program.steps;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (const ChunkSend& send : steps[s].sends) {
        const std::int64_t begin = steps[s].staging_begin + send.staged_at;
        const auto [place, is_new] = taken.try_emplace(begin, begin + send.end - send.begin);
        ASSERT_TRUE(is_new || place->second == begin + send.end - send.begin);
        ASSERT_LE(place->second, ranks[r].program.staging_count);
        bool is_met = false;
        for (const ChunkStep& other : ranks[static_cast<std::size_t>(send.peer)].program.steps) {
          for (const ChunkRecv& recv : other.recvs) {
            is_met = is_met || (recv.peer == static_cast<std::int32_t>(r) && other.number == steps[s].number &&
                                recv.begin == send.begin && recv.end == send.end && recv.staged_at == begin &&
                                recv.peer_step == static_cast<std::int32_t>(s));
          }
        }
        ASSERT_TRUE(is_met) << "rank " << r << " step " << s << " to " << send.peer;
      }
    }
    std::int64_t last = 0;
    for (const auto& [begin, end] : taken) {
      ASSERT_GE(begin, last);
      last = end;
    }
  }
}

void expect_works(const Plan& plan, std::int64_t block_count) {
  const PlanIndex index(plan);
  const std::int64_t blocks = plan.collective == Collective::kAllReduce ? 1 : plan.num_ranks;
  std::vector<Rank> ranks = start(index, blocks, block_count);
  std::int64_t staging = 0;
  for (const Rank& rank : ranks) staging = std::max(staging, rank.program.staging_count);
  ASSERT_EQ(staging, largest_staging(index, blocks, block_count));
  expect_staging(ranks);
  run(ranks, index.num_steps(), block_count);
  expect_result(index, ranks, block_count);
}

TEST(ChunkProgram, EveryBuilderAndCollectiveGivesEveryContributionOnce) {
  std::mt19937_64 random(test::seed(5));
  const std::int64_t most = test::scale() == test::Scale::kSmall ? 100 : 1100;
  for (const std::int64_t n : {2, 3, 4, 5, 6, 7, 8, 12, 13}) {
    for (const Plan& plan : test::plans_of_all_builders(random, n, 3)) {
      for (const std::int64_t count : {std::int64_t{1}, n - 1, n, n + 1, std::int64_t{97}, most * n}) {
        expect_works(plan, count);
      }
      for (const std::int64_t block : {1, 3, 70}) {
        if (!has_halves(plan)) break;
        expect_works(as_reduce_scatter(plan), block);
        expect_works(as_all_gather(plan), block);
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST(ChunkProgram, PlansForRandomTreesToo) {
  std::mt19937_64 random(test::seed(6));
  for (int i = 0; i < test::scaled(16, 40, 40); ++i) {
    test::RandomTopologyOptions options;
    options.min_servers = 2;
    options.max_servers = 16;
    const Topology topology = test::random_topology(random, options);
    const Plan plan = i % 2 == 0 ? gentree(topology, 1e6).plan : gentree_plus(topology, 1e6, {.exchanges = false}).plan;
    expect_works(plan, 1 + static_cast<std::int64_t>(random() % 5000));
    expect_works(make_explicit(plan), 1 + static_cast<std::int64_t>(random() % 500));
    expect_works(as_reduce_scatter(plan), 1 + static_cast<std::int64_t>(random() % 50));
    if (HasFatalFailure()) return;
  }
}

// cps on 4 ranks, 4096 elements: what comes back in the gather half ends unchanged in one part of the output.
TEST(ChunkProgram, GatheredMessagesAreDirectAndReducedOnesAreNot) {
  const Plan plan = cps(4);
  const ChunkProgram program = compile_chunk(PlanIndex(plan), 1, 1, 4096);
  ASSERT_EQ(program.steps.size(), 2U);
  for (const ChunkRecv& recv : program.steps[0].recvs) EXPECT_FALSE(recv.is_direct);
  for (const ChunkRecv& recv : program.steps[1].recvs) {
    EXPECT_TRUE(recv.is_direct);
    EXPECT_EQ(recv.target.offset, recv.begin);
    EXPECT_TRUE(recv.is_last_of_peer);
  }
  ASSERT_EQ(program.steps[0].reductions.size(), 1U);
  EXPECT_EQ(program.steps[0].reductions[0].operands.size(), 3U);
  EXPECT_EQ(program.steps[0].reductions[0].own_position, 1);
  EXPECT_FALSE(program.steps[0].overwrites_sent);
  EXPECT_TRUE(program.steps[1].overwrites_sent);
  EXPECT_EQ(program.num_receivers, 3);
}

TEST(Schedule, ChunksCoverTheVectorAndFitTheStaging) {
  std::mt19937_64 random(test::seed(7));
  for (int i = 0; i < 300; ++i) {
    const std::int64_t n = test::uniform(random, 2, 9);
    std::vector<Plan> plans = test::plans_of_all_builders(random, n, 3);
    Plan plan = plans[random() % plans.size()];
    plan.num_chunks = test::uniform(random, 1, 5);
    if (i % 3 == 1 && has_halves(plan)) plan = as_reduce_scatter(plan);
    if (i % 3 == 2 && has_halves(plan)) plan = as_all_gather(plan);
    const std::int64_t count = test::uniform(random, 1, 200'000);
    const std::int64_t size = std::int64_t{1} << test::uniform(random, 0, 3);
    TransportLimits limits;
    limits.staging_bytes = i % 5 == 0 ? 0 : test::uniform(random, 64 << 10, 512 << 10);
    limits.chunk_bytes = i % 4 == 0 ? 32 << 10 : 0;
    const Schedule s = make_schedule(std::make_shared<IndexedPlan>(plan), 0, count, size, limits);
    ASSERT_EQ((s.num_chunks - 1) * s.chunk_block_count + s.last.block_count, count);
    ASSERT_GT(s.last.block_count, 0);
    if (limits.staging_bytes > 0) {
      const PlanIndex& index = s.plan->index;
      for (const std::int64_t block : {s.program(0).block_count, s.last.block_count}) {
        ASSERT_LE(largest_staging(index, s.num_blocks, block) * size, limits.staging_bytes);
      }
    }
    ASSERT_GE(s.num_chunks, std::min(plan.num_chunks, count));
  }
}

TEST(Schedule, SaysWhenThePlanNeedsMoreStaging) {
  TransportLimits limits;
  limits.staging_bytes = 16;
  try {
    make_schedule(std::make_shared<IndexedPlan>(ring(64)), 0, 64, 8, limits);
    FAIL() << "accepted";
  } catch (const PlanError& e) {
    EXPECT_NE(std::string(e.what()).find("GAR_STAGING"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace gar
