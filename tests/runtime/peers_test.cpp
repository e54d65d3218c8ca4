// Ranks that read each other's memory: the program of every rank with where its peers keep their data, and the
// mailboxes that keep streams out of each other's way. Streams are played here, in many orders, on host memory.
#include "runtime/peers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <numeric>
#include <random>

#include "gar/algorithms.hpp"
#include "gar/planner.hpp"
#include "gar/reduction.hpp"
#include "runtime/mailbox_protocol.hpp"
#include "runtime/schedule.hpp"
#include "support/collective_cases.hpp"
#include "support/seed.hpp"

namespace gar {
namespace {

using Vector = std::vector<std::int64_t>;

/// One thing that a stream does.
struct Action {
  enum class Kind { kBox, kReduce, kOverwrite };
  Kind kind = Kind::kBox;
  BoxAction box;
  int step = 0;
};

/// All ranks of one operation after the other on the same mailboxes; every rank's stream is a queue.
class PlayedStreams {
 public:
  PlayedStreams(const Plan& plan, std::int64_t count, bool in_place, unsigned seed)
      : plan_(std::make_shared<const IndexedPlan>(plan)),
        size_(static_cast<int>(plan.num_ranks)),
        count_(count),
        in_place_(in_place),
        random_(static_cast<std::mt19937::result_type>(test::seed(seed))) {
    TransportLimits limits;
    limits.num_slots = 1;
    limits.needs_sources = true;
    for (int rank = 0; rank < size_; ++rank) {
      schedules_.push_back(make_schedule(plan_, rank, count, sizeof(std::int64_t), limits));
      inputs_.emplace_back(static_cast<std::size_t>(count));
      outputs_.emplace_back(static_cast<std::size_t>(count), -1);
      results_.emplace_back();
    }
    streams_.resize(static_cast<std::size_t>(size_));
  }

  /// Puts an operation into all streams. Afterwards the user writes garbage over everything, as soon as the rank's
  /// stream allows it.
  void enqueue() {
    for (int rank = 0; rank < size_; ++rank) {
      std::deque<Action>& stream = streams_[static_cast<std::size_t>(rank)];
      const ChunkProgram& program = schedules_[static_cast<std::size_t>(rank)].last;
      const MailboxProtocol protocol(program, rank);
      const auto add = [&](const std::vector<BoxAction>& boxes) {
        for (const BoxAction& box : boxes) stream.push_back({Action::Kind::kBox, box, 0});
      };
      for (int step = 0; step < static_cast<int>(program.steps.size()); ++step) {
        std::vector<BoxAction> before;
        protocol.send(step, before);
        protocol.receive(step, before);
        add(before);
        stream.push_back({Action::Kind::kReduce, {}, step});
        std::vector<BoxAction> after;
        protocol.consume(step, after);
        add(after);
      }
      std::vector<BoxAction> end;
      protocol.close(end);
      add(end);
      stream.push_back({Action::Kind::kOverwrite, {}, 0});
    }
  }

  /// Runs until all streams are empty; false: they wait for each other.
  bool play() {
    for (int rank = 0; rank < size_; ++rank) fill(rank);
    // Some ranks are much slower than others.
    std::vector<int> weights(static_cast<std::size_t>(size_));
    for (int& weight : weights) weight = 1 << std::uniform_int_distribution<int>(0, 6)(random_);
    while (true) {
      std::vector<int> ready;
      for (int rank = 0; rank < size_; ++rank) {
        if (can_advance(rank))
          ready.insert(ready.end(), static_cast<std::size_t>(weights[static_cast<std::size_t>(rank)]), rank);
      }
      if (ready.empty()) break;
      advance(ready[std::uniform_int_distribution<std::size_t>(0, ready.size() - 1)(random_)]);
    }
    return std::all_of(streams_.begin(), streams_.end(), [](const auto& stream) { return stream.empty(); });
  }

  [[nodiscard]] std::size_t num_results(int rank) const { return results_[static_cast<std::size_t>(rank)].size(); }
  [[nodiscard]] bool is_right(int rank, std::size_t operation) const {
    for (std::int64_t i = 0; i < count_; ++i) {
      std::int64_t sum = 0;
      for (int r = 0; r < size_; ++r) sum += value(r, i, operation);
      if (results_[static_cast<std::size_t>(rank)][operation][static_cast<std::size_t>(i)] != sum) return false;
    }
    return true;
  }
  [[nodiscard]] bool are_boxes_empty() const {
    return std::all_of(boxes_.begin(), boxes_.end(), [](const auto& box) { return box.second == 0; });
  }

 private:
  using Key = std::array<int, 3>;

  static std::int64_t value(int rank, std::int64_t element, std::size_t operation) {
    return (rank + 1) * 1'000'003 + element * 17 + static_cast<std::int64_t>(operation) * 7'919;
  }

  void fill(int rank) {
    const std::size_t operation = num_results(rank);
    Vector& input = in_place_ ? outputs_[static_cast<std::size_t>(rank)] : inputs_[static_cast<std::size_t>(rank)];
    for (std::int64_t i = 0; i < count_; ++i) input[static_cast<std::size_t>(i)] = value(rank, i, operation);
  }

  std::int64_t* memory(int rank, Space space) {
    Vector& vector = space == Space::kInput && !in_place_ ? inputs_[static_cast<std::size_t>(rank)]
                                                          : outputs_[static_cast<std::size_t>(rank)];
    return vector.data();
  }

  bool can_advance(int rank) {
    const std::deque<Action>& stream = streams_[static_cast<std::size_t>(rank)];
    if (stream.empty()) return false;
    const Action& action = stream.front();
    return action.kind != Action::Kind::kBox || !action.box.is_wait || box(action.box.box) >= action.box.value;
  }

  std::uint32_t& box(const Box& b) { return boxes_[{b.owner, static_cast<int>(b.kind), b.writer}]; }

  void advance(int rank) {
    std::deque<Action>& stream = streams_[static_cast<std::size_t>(rank)];
    const Action action = stream.front();
    stream.pop_front();
    if (action.kind == Action::Kind::kReduce) {
      reduce_step(rank, action.step);
    } else if (action.kind == Action::Kind::kOverwrite) {
      results_[static_cast<std::size_t>(rank)].push_back(outputs_[static_cast<std::size_t>(rank)]);
      std::fill_n(memory(rank, Space::kInput), count_, -7);
      std::fill_n(memory(rank, Space::kWork), count_, -7);
      fill(rank);
    } else if (!action.box.is_wait) {
      box(action.box.box) = action.box.value;
    }
  }

  void reduce_step(int rank, int step) {
    const ChunkStep& s = schedules_[static_cast<std::size_t>(rank)].last.steps[static_cast<std::size_t>(step)];
    for (const Reduction& reduction : s.reductions) {
      std::vector<const void*> operands;
      for (const Operand& operand : reduction.operands) {
        const ChunkRecv& recv = s.recvs[static_cast<std::size_t>(operand.recv)];
        EXPECT_LE(operand.offset + reduction.out.count, recv.source.count);
        operands.push_back(memory(recv.peer, recv.source.space) + recv.source.offset + operand.offset);
      }
      std::int64_t* out = memory(rank, Space::kWork) + reduction.out.offset;
      if (reduction.has_own) {
        operands.insert(operands.begin() + reduction.own_position, memory(rank, reduction.own) + reduction.out.offset);
      }
      reduce(DataType::kInt64, ReduceOp::kSum, out, operands, reduction.out.count);
    }
  }

  std::shared_ptr<const IndexedPlan> plan_;
  int size_;
  std::int64_t count_;
  bool in_place_;
  std::mt19937 random_;
  std::vector<Schedule> schedules_;
  std::vector<Vector> inputs_;
  std::vector<Vector> outputs_;
  std::vector<std::vector<Vector>> results_;
  std::vector<std::deque<Action>> streams_;
  std::map<Key, std::uint32_t> boxes_;
};

void expect_right(const Plan& plan, std::int64_t count, bool in_place, unsigned seed) {
  SCOPED_TRACE(plan.algorithm + ", " + std::to_string(plan.num_ranks) + " ranks, " + std::to_string(count) +
               " elements, seed " + std::to_string(seed) + (in_place ? ", in place" : ""));
  PlayedStreams streams(plan, count, in_place, seed);
  constexpr std::size_t kOperations = 3;
  for (std::size_t i = 0; i < kOperations; ++i) streams.enqueue();
  ASSERT_TRUE(streams.play()) << "the streams wait for each other";
  EXPECT_TRUE(streams.are_boxes_empty());
  for (int rank = 0; rank < plan.num_ranks; ++rank) {
    ASSERT_EQ(streams.num_results(rank), kOperations);
    for (std::size_t i = 0; i < kOperations; ++i) EXPECT_TRUE(streams.is_right(rank, i)) << "rank " << rank;
  }
}

void expect_right(const std::string& algorithm, int num_ranks) {
  const Plan plan = build_plan(parse_algorithm(algorithm), num_ranks);
  for (const std::int64_t count : {1, 7, 1000, 20000}) {
    for (unsigned seed = 0; seed < test::scaled(1U, 4U, 4U); ++seed) {
      expect_right(plan, count, false, seed);
      expect_right(plan, count, true, seed + 100);
    }
  }
}

TEST(Peers, AllAlgorithms) {
  for (const char* algorithm : {"ring", "rhd", "cps", "reduce-broadcast", "binomial"}) {
    for (const int num_ranks : {2, 3, 4, 5, 7, 8}) expect_right(algorithm, num_ranks);
  }
  expect_right("hcps:2x2", 4);
  expect_right("hcps:4x2", 8);
  expect_right("hcps:2x2x2", 8);
  expect_right("hcps:3x5", 15);
  expect_right("hcps:~3x2", 5);
  expect_right("hring:2x3", 6);
}

TEST(Peers, TreePlans) {
  for (const char* network : {"tree:2x4", "tree:3x3", "star:6"}) {
    Plan plan = gentree_plus(topology_from_spec(network), 1e6, {.exchanges = false}).plan;
    plan.num_chunks = 1;
    for (unsigned seed = 0; seed < 6; ++seed) expect_right(plan, 5000, seed % 2 == 1, seed);
  }
}

Plan explicit_plan(const std::string& name, int num_ranks) {
  Plan plan;
  plan.algorithm = name;
  plan.num_ranks = num_ranks;
  plan.num_units = 1;
  plan.programs.resize(static_cast<std::size_t>(num_ranks));
  return plan;
}

/// Recursive doubling exchanges whole vectors: no rank may add to its own before its partner has read it.
TEST(Peers, TellsExchanges) {
  Plan plan = explicit_plan("recursive doubling", 2);
  plan.programs[0].steps = {{0, {{1, true, 0, 1}}, {{1, true, 0, 1}}}};
  plan.programs[1].steps = {{0, {{0, true, 0, 1}}, {{0, true, 0, 1}}}};
  const IndexedPlan indexed(plan);
  ChunkProgram program = compile_chunk(indexed.index, 0, 1, 100);
  find_peer_memory(indexed.index, 0, program);
  ASSERT_EQ(program.steps.size(), 1U);
  EXPECT_TRUE(program.steps[0].overwrites_lent);
  const IndexedPlan ring_plan(build_plan(parse_algorithm("ring"), 2));
  ChunkProgram ring = compile_chunk(ring_plan.index, 0, 1, 100);
  find_peer_memory(ring_plan.index, 0, ring);
  ASSERT_FALSE(ring.steps.empty());
  for (const ChunkStep& step : ring.steps) EXPECT_FALSE(step.overwrites_lent);
}

/// Rank 1 hands its vector to rank 2 in step 0, and adds rank 0's to its own in step 1, when rank 2 may not yet have
/// read. Nothing but an acknowledgement tells.
TEST(Peers, WaitsForReadersThatSayNothingElse) {
  Plan plan = explicit_plan("chain", 3);
  const auto add = [&](std::int64_t number, int from, int to, bool accumulate) {
    for (const int rank : {from, to}) {
      RankProgram& program = plan.programs[static_cast<std::size_t>(rank)];
      if (program.steps.empty() || program.steps.back().number != number) program.steps.push_back({number, {}, {}});
    }
    plan.programs[static_cast<std::size_t>(from)].steps.back().sends.push_back({to, accumulate, 0, 1});
    plan.programs[static_cast<std::size_t>(to)].steps.back().recvs.push_back({from, accumulate, 0, 1});
  };
  add(0, 1, 2, true);  // 2 has 1 + 2
  add(1, 0, 1, true);  // 1 has 0 + 1
  add(2, 0, 2, true);  // 2 has all
  add(3, 2, 0, false);
  add(4, 2, 1, false);
  const IndexedPlan indexed(plan);
  ChunkProgram program = compile_chunk(indexed.index, 1, 1, 100);
  find_peer_memory(indexed.index, 1, program);
  ASSERT_EQ(program.steps.size(), 3U);
  ASSERT_EQ(program.steps[1].readers.size(), 1U);
  EXPECT_EQ(program.steps[1].readers[0].peer, 2);
  EXPECT_EQ(program.steps[1].readers[0].step, 0);
  for (unsigned seed = 0; seed < 40; ++seed) expect_right(plan, 100, seed % 2 == 1, seed);
}

}  // namespace
}  // namespace gar
