// 100 operations on 4 communicators, waited for in another order on every rank: nonblocking_test
// multiple|funneled|single
#include <numeric>

#include "mpi/mpi_test.hpp"

namespace {

using namespace gar;
using namespace gar::test;

constexpr int kNumCommunicators = 4;
constexpr int kNumRequests = 100;

int level_of(const std::string& name) {
  if (name == "multiple") return MPI_THREAD_MULTIPLE;
  if (name == "funneled") return MPI_THREAD_FUNNELED;
  if (name == "single") return MPI_THREAD_SINGLE;
  throw Failure("unknown thread level '" + name + "'; accepted: multiple, funneled, single");
}

void run_all(MpiTest& test, MpiPath path, bool only_tests) {
  std::vector<Communicator> communicators;
  for (int i = 0; i < kNumCommunicators; ++i) communicators.push_back(mpi_communicator(MPI_COMM_WORLD, {}, path));
  CaseDealer dealer(7);
  std::vector<std::unique_ptr<CaseRun>> runs;
  std::vector<Request> requests;
  for (int i = 0; i < kNumRequests; ++i) {
    Case c = i % 10 == 9 ? dealer.deal_large(test.size()) : dealer.deal(test.size());
    c.count = std::min<std::int64_t>(c.count, 300'000);
    runs.push_back(std::make_unique<CaseRun>(c, test.rank(), test.size(), static_cast<std::uint64_t>(i)));
    requests.push_back(runs.back()->start(communicators[static_cast<std::size_t>(i % kNumCommunicators)]));
  }
  std::vector<std::size_t> order(kNumRequests);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(static_cast<unsigned>(test.rank()) + 1);
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t i : order) {
    if (only_tests) {
      while (!requests[i].test()) {
      }
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

}  // namespace

int main(int argc, char** argv) {
  const std::string level = argc > 1 ? argv[1] : "funneled";
  MpiTest test(argc, argv, level_of(level));
  for (const std::string path : {"messages", "hierarchy"}) {
    test.part(path + ", wait, " + level, [&] { run_all(test, parse_path(path), false); });
    test.part(path + ", test, " + level, [&] { run_all(test, parse_path(path), true); });
    test.part(path + ", persistent, " + level, [&] { run_persistent(test, parse_path(path)); });
  }
  return test.finish();
}
