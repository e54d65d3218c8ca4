// AllReduce between the threads of a program: every thread ends with the mean of all gradients.
#include <cstdio>
#include <thread>
#include <vector>

#include "gar/gar.hpp"

int main() {
  constexpr int kNumRanks = 4;
  std::vector<gar::Communicator> ranks = gar::thread_communicators(kNumRanks);
  std::vector<std::vector<float>> gradients(kNumRanks);

  std::vector<std::thread> threads;
  for (int r = 0; r < kNumRanks; ++r) {
    threads.emplace_back([&, r] {
      std::vector<float>& gradient = gradients[r];
      gradient = {1.0F * r, 10.0F * r, 100.0F * r, 1000.0F * r, 10000.0F * r};
      ranks[r].all_reduce(gradient);  // in place, sum
      for (float& value : gradient) {
        value /= kNumRanks;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  for (int r = 0; r < kNumRanks; ++r) {
    std::printf("rank %d:", r);
    for (const float value : gradients[r]) {
      std::printf(" %g", value);
    }
    std::printf("\n");
  }
}
