// A program that has nothing but the installed package: sums vectors of two threads.
#include <iostream>
#include <span>
#include <thread>
#include <vector>

#include "gar/communicator.hpp"

int main() {
  std::vector<gar::Communicator> ranks = gar::thread_communicators(2);
  std::vector<float> here(1000, 1);
  std::vector<float> there(1000, 2);
  std::thread other([&] { ranks[1].all_reduce(std::span(there)); });
  ranks[0].all_reduce(std::span(here));
  other.join();
  std::cout << here.back() << ' ' << there.back() << '\n';
  return here == there && here == std::vector<float>(1000, 3) ? 0 : 1;
}
