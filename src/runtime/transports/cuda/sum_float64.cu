// Sums of float64 with numbers of operands that the compiler knows.
#include "runtime/transports/cuda/fixed_sum.cuh"

namespace gar::device {

template cudaError_t launch_fixed_sums<double>(DataType, std::span<const DeviceReduction>, CudaStream);
template cudaError_t load_fixed_sums<double>();

}  // namespace gar::device
