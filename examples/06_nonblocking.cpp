// Compute while an AllReduce runs; and prepare an AllReduce once that a loop runs many times.
#include <cstdio>
#include <thread>
#include <vector>

#include "gar/communicator.hpp"

namespace {

struct Result {
  double first = 0;  // of the layers' gradients, summed over the ranks
  double last = 0;
  double residual = 0;  // of an iteration that all ranks make together
};

Result work(gar::Communicator& comm) {
  Result result;

  // The gradients of four layers: while one is summed, the next is computed.
  std::vector<std::vector<float>> layers(4);
  std::vector<gar::Request> requests;
  for (int layer = 3; layer >= 0; --layer) {
    layers[layer].assign(100'000, static_cast<float>(layer + comm.rank()));
    requests.push_back(comm.start_all_reduce(layers[layer]));
  }
  for (gar::Request& request : requests) {
    request.wait();  // the buffers are ours again
  }
  result.first = layers.front().front();
  result.last = layers.back().back();

  // The same operation on the same buffer again and again.
  std::vector<double> residual(1);
  gar::Request sum = comm.prepare_all_reduce(residual);
  for (int iteration = 1; iteration <= 10; ++iteration) {
    residual[0] = 1.0 / (1 << iteration);
    sum.start();
    sum.wait();
  }
  result.residual = residual[0];
  return result;
}

}  // namespace

int main() {
  std::vector<gar::Communicator> ranks = gar::thread_communicators(2);
  Result results[2];
  std::thread other([&] { results[1] = work(ranks[1]); });
  results[0] = work(ranks[0]);
  other.join();
  for (const Result& r : results) {
    std::printf("layers sum to %g ... %g; the residual is %g\n", r.first, r.last, r.residual);
  }
}
