// A program without CUDA.
#include <stdexcept>

#include "gar/measure/cuda_session.hpp"

namespace gar::measure {

bool is_built_with_cuda() { return false; }

bool is_reduced_on_cuda(DataType /*type*/, ReduceOp /*op*/) { return true; }

std::unique_ptr<CudaSession> start_cuda(int /*rank*/, int /*size*/) {
  throw std::runtime_error("this program is built without CUDA");
}

}  // namespace gar::measure
