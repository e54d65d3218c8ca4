// Communicators on parts of MPI_COMM_WORLD, several at once, with ranks in another order.
#include "mpi/mpi_test.hpp"

namespace {

using namespace gar;
using namespace gar::test;

MPI_Comm split(int color, int key) {
  MPI_Comm out = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, color, key, &out);
  return out;
}

void run_some(MpiTest& test, Communicator& communicator, std::uint64_t seed) {
  CaseDealer dealer(gar::test::seed(seed));
  for (int i = 0; i < 10; ++i) {
    run_case(communicator, dealer.deal(communicator.size()), seed + static_cast<std::uint64_t>(i));
    test.compared();
  }
}

void run(MpiTest& test, MpiPath path) {
  MPI_Comm reversed = split(0, -test.rank());
  MPI_Comm halves = split(test.rank() % 2, test.rank());
  MPI_Comm upper = split(test.rank() < test.size() / 2 ? MPI_UNDEFINED : 1, -test.rank());
  {
    Communicator all = mpi_communicator(reversed, {}, path);
    test.expect(all.rank() == test.size() - 1 - test.rank(), "ranks are those of the communicator");
    Communicator half = mpi_communicator(halves, {}, path);
    test.expect(half.rank() == test.rank() / 2, "ranks are those of the communicator");
    std::optional<Communicator> few;
    if (upper != MPI_COMM_NULL) few.emplace(mpi_communicator(upper, {}, path));
    for (std::uint64_t round = 0; round < scaled<std::uint64_t>(1, 3, 3); ++round) {
      run_some(test, half, 100 + round);
      run_some(test, all, 200 + round);
      if (few) run_some(test, *few, 300 + round);
    }
  }
  MPI_Comm_free(&reversed);
  MPI_Comm_free(&halves);
  if (upper != MPI_COMM_NULL) MPI_Comm_free(&upper);
}

}  // namespace

int main(int argc, char** argv) {
  MpiTest test(argc, argv);
  for (const std::string path : {"messages", "hierarchy"}) {
    test.part(path, [&] { run(test, parse_path(path)); });
  }
  return test.finish();
}
