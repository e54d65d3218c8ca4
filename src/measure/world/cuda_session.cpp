// What holds for GPUs whether or not this program is built with CUDA.
#include "gar/measure/cuda_session.hpp"

#include <algorithm>

namespace gar::measure {

double copy_bytes_per_s(CudaSession& session, std::int64_t bytes) {
  constexpr int kWarmUp = 3;
  constexpr int kRounds = 7;
  constexpr int kCopies = 5;
  const DeviceMemory in = session.allocate(bytes);
  const DeviceMemory out = session.allocate(bytes);
  const auto copy = [&] { session.copy(out.get(), in.get(), bytes); };
  (void)session.time(copy, kWarmUp);
  double seconds = session.time(copy, kCopies);
  for (int round = 1; round < kRounds; ++round) seconds = std::min(seconds, session.time(copy, kCopies));
  return 2 * static_cast<double>(bytes) / seconds;
}

}  // namespace gar::measure
