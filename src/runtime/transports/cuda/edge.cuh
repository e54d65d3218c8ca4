// Heads and tails: one element per thread.
#pragma once

#include "runtime/transports/cuda/table.cuh"

namespace gar::device {

template <class T, class Op>
__device__ void reduce_edge(const Job& job, const char* const* operands, int num_operands) {
  make_edge<T>(job, [&](std::int64_t i) {
    auto value = Element<T>::load(reinterpret_cast<const T*>(operands[0])[i]);
#pragma unroll 1
    for (int k = 1; k < num_operands; ++k) {
      value = Op::fold(value, Element<T>::load(reinterpret_cast<const T*>(operands[k])[i]));
    }
    reinterpret_cast<T*>(job.out)[i] = Element<T>::store(value);
  });
}

}  // namespace gar::device
