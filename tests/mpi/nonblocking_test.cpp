// Many operations on 4 communicators, waited for in another order on every rank: nonblocking_test
// multiple|funneled|single
#include <atomic>
#include <numeric>

#include "mpi/mpi_test.hpp"

namespace {

using namespace gar;
using namespace gar::test;

constexpr int kNumCommunicators = 4;
int num_requests() { return scaled(40, 100, 100); }

int level_of(const std::string& name) {
  if (name == "multiple") return MPI_THREAD_MULTIPLE;
  if (name == "funneled") return MPI_THREAD_FUNNELED;
  if (name == "single") return MPI_THREAD_SINGLE;
  throw Failure("unknown thread level '" + name + "'; expected multiple, funneled, single");
}

void run_all(MpiTest& test, MpiPath path, bool only_tests) {
  std::vector<Communicator> communicators;
  for (int i = 0; i < kNumCommunicators; ++i) communicators.push_back(mpi_communicator(MPI_COMM_WORLD, {}, path));
  CaseDealer dealer(seed(7));
  std::vector<std::unique_ptr<CaseRun>> runs;
  std::vector<Request> requests;
  for (int i = 0; i < num_requests(); ++i) {
    Case c = i % 10 == 9 ? dealer.deal_large(test.size()) : dealer.deal(test.size());
    c.count = std::min<std::int64_t>(c.count, 300'000);
    runs.push_back(std::make_unique<CaseRun>(c, test.rank(), test.size(), static_cast<std::uint64_t>(i)));
    requests.push_back(runs.back()->start(communicators[static_cast<std::size_t>(i % kNumCommunicators)]));
  }
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(static_cast<unsigned>(seed(static_cast<std::uint64_t>(test.rank()) + 1)));
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t i : order) {
    if (only_tests) {
      while (!requests[i].test()) sched_yield();
    } else {
      requests[i].wait();
    }
    runs[i]->verify();
    test.compared();
  }
}

/// Repeated starts of persistent operations on all communicators at once.
void run_persistent(MpiTest& test, MpiPath path) {
  std::vector<Communicator> communicators;
  for (int i = 0; i < kNumCommunicators; ++i) communicators.push_back(mpi_communicator(MPI_COMM_WORLD, {}, path));
  std::vector<std::unique_ptr<CaseRun>> runs;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < communicators.size(); ++i) {
    const Case c{Collective::kAllReduce, Form::kOutOfPlace, DataType::kFloat32, ReduceOp::kSum, 40'000, Call::kStart};
    runs.push_back(std::make_unique<CaseRun>(c, test.rank(), test.size(), i));
    requests.push_back(runs.back()->prepare(communicators[i]));
  }
  for (std::size_t round = 0; round < 5; ++round) {
    for (Request& request : requests) request.start();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::size_t turn = (i + static_cast<std::size_t>(test.rank()) + round) % requests.size();
      requests[turn].wait();
      runs[turn]->verify();
      test.compared();
    }
  }
}

/// Completions that start the next operation and wait for one of another communicator; nothing of the library is locked
/// when they run, with a thread or without.
void run_completions(MpiTest& test, MpiPath path) {
  constexpr int kRounds = 20;
  std::vector<Communicator> communicators;
  for (int i = 0; i < 2; ++i) communicators.push_back(mpi_communicator(MPI_COMM_WORLD, {}, path));
  std::vector<float> values(3000, 1.0F);
  float other = 0;
  std::atomic<int> num_rounds = 0;
  std::atomic<int> num_wrong = 0;
  Completion go_on;
  const auto start_next = [&] {
    communicators[0].start({.in = values.data(), .out = values.data(), .count = 3000}, go_on).detach();
  };
  go_on = [&](const std::exception_ptr& error) {
    const auto sum = static_cast<float>(test.size());
    if (error != nullptr || values.front() != sum || values.back() != sum) ++num_wrong;
    other = 2;
    communicators[1].start({.in = &other, .out = &other, .count = 1}).wait();
    if (other != 2 * sum) ++num_wrong;
    std::fill(values.begin(), values.end(), 1.0F);
    if (num_rounds + 1 < kRounds) start_next();
    ++num_rounds;
  };
  // Without a thread, progress is made inside calls, of whatever communicator.
  Communicator third = mpi_communicator(MPI_COMM_WORLD, {}, path);
  start_next();
  for (int is_over = 0; is_over == 0;) {
    is_over = num_rounds == kRounds ? 1 : 0;
    third.run({.in = &is_over, .out = &is_over, .count = 1, .type = DataType::kInt32, .op = ReduceOp::kMin});
  }
  test.expect(num_rounds == kRounds && num_wrong == 0, "the chain of completions");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string level = argc > 1 ? argv[1] : "funneled";
  MpiTest test(argc, argv, level_of(level));
  for (const std::string path : {"messages", "hierarchy"}) {
    test.part(path + ", wait, " + level, [&] { run_all(test, parse_path(path), false); });
    test.part(path + ", test, " + level, [&] { run_all(test, parse_path(path), true); });
    test.part(path + ", persistent, " + level, [&] { run_persistent(test, parse_path(path)); });
    test.part(path + ", completions, " + level, [&] { run_completions(test, parse_path(path)); });
  }
  return test.finish();
}
