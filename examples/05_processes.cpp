// Three processes of one host sum vectors through shared memory: first each one a part, then all of them the whole.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "gar/communicator.hpp"

namespace {

constexpr int kNumRanks = 3;

int work(const std::string& name, int rank) {
  gar::Communicator comm = gar::shared_memory_communicator(name, rank, kNumRanks);

  std::vector<int> values(6);
  std::iota(values.begin(), values.end(), 100 * rank);  // 0 1 2 ..., 100 101 102 ..., 200 201 202 ...
  std::vector<int> part(2);
  comm.reduce_scatter(values, part);

  std::vector<int> whole(6);
  comm.all_gather(part, whole);
  if (rank == 0) {
    std::printf("rank 0 of %d has block 0 of the sums: %d %d\nall blocks:", comm.size(), part[0], part[1]);
    for (const int value : whole) {
      std::printf(" %d", value);
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace

int main() {
  const std::string name = "example-" + std::to_string(getpid());  // all processes agree on a name
  for (int rank = 1; rank < kNumRanks; ++rank) {
    if (fork() == 0) {
      return work(name, rank);
    }
  }
  int failed = work(name, 0);
  int status = 0;
  while (wait(&status) > 0) {
    failed += status;
  }
  return failed == 0 ? 0 : 1;
}
