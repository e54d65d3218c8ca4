// Three processes sum vectors in GPU memory, straight out of each other's buffers. They may share one GPU.
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "gar/cuda.hpp"

namespace {

constexpr int kNumRanks = 3;
constexpr std::int64_t kCount = 1'000'000;
constexpr int kNoGpu = 77;

int work(const std::string& name, int rank) {
  std::string why;
  const int num_gpus = gar::num_cuda_devices(&why);
  if (num_gpus == 0) {
    std::fprintf(stderr, "no GPU: %s\n", why.c_str());
    return kNoGpu;
  }
  cudaSetDevice(rank % num_gpus);
  gar::Communicator comm = gar::cuda_communicator(name, rank, kNumRanks);

  void* gradient = nullptr;
  cudaMalloc(&gradient, kCount * sizeof(float));
  const std::vector<float> ones(kCount, static_cast<float>(rank + 1));
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaMemcpyAsync(gradient, ones.data(), kCount * sizeof(float), cudaMemcpyHostToDevice, stream);

  // Returns when the sum is in the stream, behind the copy.
  comm.all_reduce(gradient, gradient, kCount, gar::DataType::kFloat32, gar::ReduceOp::kSum, gar::Stream{stream});

  float last = 0;
  cudaMemcpyAsync(&last, static_cast<float*>(gradient) + kCount - 1, sizeof last, cudaMemcpyDeviceToHost, stream);
  comm.synchronize(gar::Stream{stream});  // like cudaStreamSynchronize, but notices when another rank dies
  if (rank == 0) std::printf("1 + 2 + 3 = %g on %d ranks\n", last, comm.size());
  cudaFree(gradient);
  return last == 6 ? 0 : 1;
}

}  // namespace

int main() {
  const std::string name = "example-" + std::to_string(getpid());  // all processes agree on a name
  for (int rank = 1; rank < kNumRanks; ++rank) {
    if (fork() == 0) {  // before anything of CUDA is called
      return work(name, rank);
    }
  }
  int result = work(name, 0);
  int status = 0;
  while (wait(&status) > 0) {
    if (WEXITSTATUS(status) != 0) result = WEXITSTATUS(status);
  }
  return result;
}
