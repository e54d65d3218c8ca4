// Every algorithm, type, operator, shape and count against the serial oracle, bit for bit:
// collectives_test messages|hierarchy|shared
// GAR_TEST_FULL=1: the whole cross product.
#include <random>

#include "mpi/mpi_test.hpp"
#include "support/movement_cases.hpp"
#include "support/plans.hpp"

namespace {

using namespace gar;
using namespace gar::test;

std::vector<std::string> algorithms(int size) {
  std::vector<std::string> out{"", "ring", "rhd", "cps", "gentree", "gentree+", "reduce-broadcast", "binomial"};
  // Long vectors of many ranks on few cores take long where everybody sends everything.
  if (size <= 3 || scale() == Scale::kFull) out.insert(out.end(), {"recursive-doubling", "gather"});
  if (size == 3 || scale() == Scale::kFull) out.emplace_back("recursive-multiplying:3");
  for (int a = 2; a * a <= size; ++a) {
    if (size % a == 0) out.push_back("hcps:" + std::to_string(size / a) + "x" + std::to_string(a));
  }
  return out;
}

void run_cases(MpiTest& test, Communicator& communicator, std::uint64_t seed) {
  const int size = test.size();
  CaseDealer dealer(seed);
  std::vector<Case> cases;
  if (scale() == Scale::kFull) {
    cases = all_cases(size);
  } else {
    const int num_cases = size <= 3 ? 60 : 30;
    for (int i = 0; i < scaled(10, num_cases, 0); ++i) cases.push_back(dealer.deal(size));
    cases.push_back(dealer.deal_large(size));
  }
  // Every rank deals the same cards.
  for (std::size_t i = 0; i < cases.size(); ++i) {
    run_case(communicator, cases[i], seed + i);
    test.compared();
  }
}

}  // namespace

int main(int argc, char** argv) {
  MpiTest test(argc, argv);
  const std::string path = test.argument(0, "messages");
  std::uint64_t next_seed = 1;
  for (const std::string& algorithm : algorithms(test.size())) {
    test.part(path + ", " + (algorithm.empty() ? "own choice" : algorithm), [&] {
      CommunicatorOptions options;
      options.algorithm = algorithm;
      Communicator communicator = mpi_communicator(MPI_COMM_WORLD, options, parse_path(path));
      test.expect(communicator.rank() == test.rank() && communicator.size() == test.size(), "ranks are those of MPI");
      run_cases(test, communicator, seed(next_seed++));
    });
  }
  test.part(path + ", movements", [&] {
    Communicator communicator = mpi_communicator(MPI_COMM_WORLD, {}, parse_path(path));
    const std::uint64_t first = seed(next_seed++);
    for (const MoveCase& c : move_cases(test.size(), first)) {
      run_move(communicator, c, first + static_cast<std::uint64_t>(c.count));
      test.compared();
    }
  });
  // Owners of several pieces get several messages from every rank in one step.
  for (std::uint64_t i = 0; i < 6; ++i) {
    std::mt19937_64 random(seed(1000 + i));  // the same plans on all ranks
    Plan plan = i % 2 == 0 ? unequal_shares_plan(random, test.size()) : unequal_groups_plan(random, test.size());
    test.part(path + ", " + plan.algorithm + " " + std::to_string(i), [&] {
      CommunicatorOptions options;
      options.topology = make_tree({test.size()});
      options.plan = std::move(plan);
      Communicator communicator = mpi_communicator(MPI_COMM_WORLD, options, parse_path(path));
      run_cases(test, communicator, seed(next_seed++));
    });
  }
  return test.finish();
}
