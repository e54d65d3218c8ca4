// A training loop of four processes that loses one of them and goes on: the others agree who is left, and the step
// under way runs again between them.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "gar/communicator.hpp"

namespace {

constexpr int kNumRanks = 4;
constexpr int kNumSteps = 8;

/// Finds the weight with the least mean squared distance from the ranks' own data.
void train(const std::string& name, int first_rank) {
  gar::CommunicatorOptions options;
  options.on_failure = gar::OnFailure::kShrink;
  gar::Communicator comm = gar::shared_memory_communicator(name, first_rank, kNumRanks, options);
  const double own = first_rank * first_rank;  // 0 1 4 9
  double weight = 8;
  for (int step = 0; step < kNumSteps; ++step) {
    if (first_rank == 2 && step == 3) std::raise(SIGKILL);  // power is lost, a fan stops, ...
    std::vector<double> gradient{weight - own};
    comm.all_reduce(gradient);
    weight -= 0.5 * gradient[0] / comm.size();  // as many as the sum is of
    if (comm.rank() == 0) {
      const gar::Members members = comm.members();
      std::printf("step %d: weight %.3f, generation %d, ranks", step, weight, static_cast<int>(members.generation));
      for (const int rank : members.ranks) std::printf(" %d", rank);
      std::printf("\n");
    }
  }
}

}  // namespace

int main() {
  const std::string name = "example-" + std::to_string(getpid());
  for (int rank = 0; rank < kNumRanks; ++rank) {
    if (fork() == 0) {
      train(name, rank);
      return 0;
    }
  }
  int num_finished = 0;
  int status = 0;
  while (wait(&status) > 0) num_finished += status == 0 ? 1 : 0;
  std::printf("%d of %d processes have finished\n", num_finished, kNumRanks);
  return num_finished == kNumRanks - 1 ? 0 : 1;
}
