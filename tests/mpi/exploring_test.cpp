// Communicators over MPI that measure their own calls, with MPI's own AllReduce among the candidates:
// exploring_test messages|hierarchy|shared multiple|funneled|single
#include <bit>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>

#include "gar/algorithms.hpp"
#include "mpi/mpi_test.hpp"

namespace {

using namespace gar;
using namespace gar::test;

int level_of(const std::string& name) {
  if (name == "multiple") return MPI_THREAD_MULTIPLE;
  if (name == "funneled") return MPI_THREAD_FUNNELED;
  if (name == "single") return MPI_THREAD_SINGLE;
  throw Failure("unknown thread level '" + name + "'; expected multiple, funneled, single");
}

CommunicatorOptions exploring() {
  CommunicatorOptions out;
  out.explores = true;
  out.explore_share = 1;
  out.timeout_s = kNoLimit;
  return out;
}

/// Calls until all ranks know that nothing is left to be measured; every result is compared.
std::int64_t run_until_settled(MpiTest& test, Communicator& communicator, std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < 5000; ++i) {
    std::fill(values.begin(), values.end(), static_cast<double>(test.rank() + i));
    communicator.all_reduce(std::span(values));
    const double sum = static_cast<double>(test.size()) * (0.5 * (test.size() - 1) + static_cast<double>(i));
    test.expect(values.front() == sum && values.back() == sum, "a wrong sum in call " + std::to_string(i));
    if (communicator.is_settled(count, DataType::kFloat64)) return i;
  }
  throw Failure("still not settled");
}

void comes_to_a_verdict(MpiTest& test, MpiPath path) {
  Communicator communicator = mpi_communicator(MPI_COMM_WORLD, exploring(), path);
  for (const std::int64_t count : {1, 100, 4000, 20'000}) {
    const std::int64_t last = run_until_settled(test, communicator, count);
    std::vector<std::int64_t> all(static_cast<std::size_t>(test.size()));
    communicator.all_gather(std::span<const std::int64_t>(&last, 1), std::span(all));
    for (const std::int64_t other : all) test.expect(other == last, "ranks settle at different calls");
  }
  const Decisions decisions = communicator.decisions();
  test.expect(decisions.decisions.size() == (test.rank() == 0 ? 4U : 0U), "decisions on the wrong rank");
  // Not all MPI libraries know the order of unsigned integers, so that MPI's own never runs for their minimum.
  std::vector<std::uint64_t> unsigned_values(100, 7);
  communicator.all_reduce(std::span(unsigned_values), ReduceOp::kMin);
  const std::string way = communicator.report(Collective::kAllReduce, 100, DataType::kUint64, ReduceOp::kMin).algorithm;
  test.expect(way != "native", "the report is about another operator");
  // In shared memory with fewer rights a thread of ours must not call MPI.
  const std::string transport = communicator.report(Collective::kAllGather, 100'000, DataType::kFloat64).transport;
  const bool has_native = test.thread_level() == MPI_THREAD_MULTIPLE || transport != "shm";
  for (const Decision& decision : decisions.decisions) {
    test.expect((decision.find("native") != nullptr) == has_native, "MPI's own AllReduce, over " + transport);
    for (const DecisionCandidate& candidate : decision.candidates) {
      test.expect(candidate.seconds > 0, candidate.name + " was not tried");
    }
  }
}

/// The same number of calls on all ranks, of which some find others under way and some do not: each rank takes the way
/// that is settled, whether it is looked at or not.
void stays_right_when_settled(MpiTest& test, MpiPath path) {
  Communicator communicator = mpi_communicator(MPI_COMM_WORLD, exploring(), path);
  constexpr std::int64_t kCount = 40;
  run_until_settled(test, communicator, kCount);
  std::vector<double> values(kCount);
  std::vector<double> started(kCount);
  std::mt19937_64 random(static_cast<std::uint64_t>(test.rank()) + 3);
  for (int i = 0; i < 3000; ++i) {
    const double mine = static_cast<double>(test.rank() + i);
    const double sum = static_cast<double>(test.size()) * (0.5 * (test.size() - 1) + i);
    std::fill(values.begin(), values.end(), mine);
    std::fill(started.begin(), started.end(), mine);
    Request request;
    if (i % 16 == 3) request = communicator.start_all_reduce(std::span(started));
    // Some ranks see to it that nothing is under way, others do not.
    if (i % 16 == 3 && random() % 2 == 0) request.wait();
    communicator.all_reduce(std::span(values));
    request.wait();
    test.expect(values.front() == sum && values.back() == sum, "a wrong sum in call " + std::to_string(i));
    test.expect(i % 16 != 3 || started.back() == sum, "a wrong sum of a request, " + std::to_string(i));
  }
  const std::vector<Decision> decisions = communicator.decisions().decisions;
  test.expect(test.rank() != 0 || (decisions.size() == 1 && decisions.front().num_calls > 1500),
              "calls that nobody has timed are not counted");
}

/// Where nobody says it, and where runs must be the same.
void explores_where_it_shall(MpiTest& test, MpiPath path) {
  const auto explores = [&](const CommunicatorOptions& options) {
    Communicator communicator = mpi_communicator(MPI_COMM_WORLD, options, path);
    std::vector<float> values(500);
    for (int i = 0; i < 40; ++i) communicator.all_reduce(std::span(values));
    const int found = communicator.decisions().decisions.empty() ? 0 : 1;  // rank 0 knows
    int out = 0;
    MPI_Allreduce(&found, &out, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return out != 0;
  };
  CommunicatorOptions options;
  options.timeout_s = kNoLimit;
  test.expect(explores(options), "it is on by default");
  const auto with = [&](const std::function<void(CommunicatorOptions&)>& change) {
    CommunicatorOptions changed = options;
    change(changed);
    return changed;
  };
  test.expect(!explores(with([](auto& o) { o.explores = false; })), "off by the options");
  test.expect(!explores(with([](auto& o) { o.algorithm = "ring"; })), "off with an algorithm");
  test.expect(!explores(with([](auto& o) { o.reproducible = true; })), "off where bits must be the same");
  test.expect(!explores(with([&](auto& o) { o.plan = build_plan(parse_algorithm("cps"), test.size()); })),
              "off with a plan");
  setenv("GAR_EXPLORE", "0", 1);
  test.expect(!explores(options), "off by GAR_EXPLORE");
  unsetenv("GAR_EXPLORE");
  setenv("GAR_ALGO", "ring", 1);
  test.expect(!explores(options), "off with GAR_ALGO");
  unsetenv("GAR_ALGO");
}

/// All types, operators, collectives and ways of calling, while candidates take turns.
void keeps_results_right(MpiTest& test, MpiPath path) {
  Communicator communicator = mpi_communicator(MPI_COMM_WORLD, exploring(), path);
  CaseDealer dealer(seed(31));
  std::mt19937_64 random(seed(32));
  for (int i = 0; i < scaled(20, 60, 60); ++i) {
    Case c = dealer.deal(test.size());
    c.count = std::min<std::int64_t>(c.count, 20'000);
    const int times = 1 + static_cast<int>(random() % 6);
    for (int k = 0; k < times; ++k) run_case(communicator, c, static_cast<std::uint64_t>(100 * i + k));
    test.compared(times);
  }
}

void gives_all_ranks_the_same_bits(MpiTest& test, MpiPath path) {
  Communicator communicator = mpi_communicator(MPI_COMM_WORLD, exploring(), path);
  std::mt19937_64 random(static_cast<std::uint64_t>(test.rank()) + 1);
  std::normal_distribution<float> normal;
  for (const std::size_t count : {3U, 900U, 20'000U}) {
    std::vector<float> values(count);
    for (int i = 0; i < scaled(20, 60, 60); ++i) {
      for (float& value : values) value = normal(random);
      communicator.all_reduce(std::span(values));
      std::uint64_t hash = 1;
      for (const float value : values) hash = hash * 31 + std::bit_cast<std::uint32_t>(value);
      std::vector<std::uint64_t> all(static_cast<std::size_t>(test.size()));
      communicator.all_gather(std::span<const std::uint64_t>(&hash, 1), std::span(all));
      for (const std::uint64_t other : all) test.expect(other == hash, "bits differ in call " + std::to_string(i));
    }
  }
}

/// Requests on several communicators at once, waited for in another order on every rank, with blocking calls between
/// them: a rank that is inside MPI's own AllReduce must let the others' operations go on.
void lets_others_go_on(MpiTest& test, MpiPath path) {
  std::vector<Communicator> communicators;
  for (int i = 0; i < 3; ++i) communicators.push_back(mpi_communicator(MPI_COMM_WORLD, exploring(), path));
  std::mt19937_64 random(static_cast<std::uint64_t>(test.rank()) + 9);
  for (int round = 0; round < scaled(10, 40, 40); ++round) {
    std::vector<std::unique_ptr<CaseRun>> runs;
    std::vector<Request> requests;
    for (std::size_t i = 0; i < 6; ++i) {
      const Case c{Collective::kAllReduce, i % 2 == 0 ? Form::kInPlace : Form::kOutOfPlace,
                   DataType::kFloat64,     ReduceOp::kSum,
                   i % 2 == 0 ? 50 : 3000, {}};
      runs.push_back(std::make_unique<CaseRun>(c, test.rank(), test.size(), i));
      requests.push_back(runs.back()->start(communicators[i % 2]));
    }
    std::vector<std::size_t> order{0, 1, 2, 3, 4, 5};
    std::shuffle(order.begin(), order.end(), random);
    // The blocking call comes early on one rank and late on another.
    const std::size_t when = static_cast<std::size_t>(test.rank()) % 7;
    for (std::size_t i = 0; i <= order.size(); ++i) {
      if (i == std::min(when, order.size())) {
        run_case(communicators[2],
                 {Collective::kAllReduce, Form::kInPlace, DataType::kFloat64, ReduceOp::kSum, 700, {}},
                 static_cast<std::uint64_t>(round));
      }
      if (i == order.size()) break;
      requests[order[i]].wait();
      runs[order[i]]->verify();
      test.compared();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string level = argc > 2 ? argv[2] : "multiple";
  MpiTest test(argc, argv, level_of(level));
  const MpiPath path = parse_path(test.argument(0, "messages"));
  test.part("verdict", [&] { comes_to_a_verdict(test, path); });
  test.part("settled", [&] { stays_right_when_settled(test, path); });
  test.part("default", [&] { explores_where_it_shall(test, path); });
  test.part("results", [&] { keeps_results_right(test, path); });
  test.part("bits", [&] { gives_all_ranks_the_same_bits(test, path); });
  test.part("requests", [&] { lets_others_go_on(test, path); });
  return test.finish();
}
