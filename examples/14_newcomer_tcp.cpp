// The training loop of 13_survivors.cpp over TCP, where somebody comes for the process that was lost: the others go on
// without it, and take the newcomer in as soon as it waits.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gar/tcp.hpp"

namespace {

constexpr int kNumRanks = 3;
constexpr int kNumSteps = 8;

/// Who has just come learns from the others how far they are.
void tell_state(gar::Communicator& comm, bool is_new, double& step, double& weight) {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  std::vector<double> state{is_new ? kNothing : step, is_new ? kNothing : weight};
  comm.all_reduce(state, gar::ReduceOp::kMax);
  step = state[0];
  weight = state[1];
}

/// Finds the weight with the least mean squared distance from the ranks' own data.
void train(gar::Communicator comm, bool is_new) {
  const int self = comm.members().ranks[static_cast<std::size_t>(comm.rank())];
  const double own = self * self;  // 0 1 4, and 9 of the newcomer
  double weight = 8;
  double step = 0;
  if (is_new) tell_state(comm, true, step, weight);
  for (; step < kNumSteps; ++step) {
    while (comm.size() < kNumRanks && step > 4) {
      if (comm.grow().num_new > 0) {
        tell_state(comm, false, step, weight);
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    if (self == 1 && step == 3) std::raise(SIGKILL);  // power is lost, a fan stops, ...
    std::vector<double> gradient{weight - own};
    comm.all_reduce(gradient);
    weight -= 0.5 * gradient[0] / comm.size();  // as many as the sum is of
    if (comm.rank() == 0) {
      const gar::Members members = comm.members();
      std::printf("step %d: weight %.3f, generation %d, ranks", static_cast<int>(step), weight,
                  static_cast<int>(members.generation));
      for (const int rank : members.ranks) std::printf(" %d", rank);
      std::printf("\n");
    }
  }
}

/// `rank` -1: somebody who comes later.
void run(const std::string& directory, int rank) {
  const std::unique_ptr<gar::Store> store = gar::directory_store(directory);
  gar::CommunicatorOptions options;
  options.on_failure = gar::OnFailure::kShrinkAndGrow;
  if (rank < 0) {
    train(gar::join_tcp(*store, "training", 60), true);
  } else {
    train(gar::tcp_communicator(*store, "training", rank, kNumRanks, options), false);
  }
}

}  // namespace

int main() {
  std::string directory = std::filesystem::temp_directory_path() / "gar-example-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return 1;
  const auto start = [&](int rank) {
    if (fork() != 0) return;
    run(directory, rank);
    std::exit(0);
  };
  for (int rank = 0; rank < kNumRanks; ++rank) start(rank);
  int num_finished = 0;
  int status = 0;
  while (wait(&status) > 0) {
    if (status == 0) ++num_finished;
    if (WIFSIGNALED(status)) start(-1);  // as a launcher would
  }
  std::printf("%d processes have finished\n", num_finished);
  std::filesystem::remove_all(directory);
  return num_finished == kNumRanks ? 0 : 1;
}
