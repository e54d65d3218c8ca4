// Elements and operators on a GPU, with the results of the CPU's kernels (src/runtime/kernels) bit for bit.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace gar::device {

struct Half {
  std::uint16_t bits;
};
struct Bhalf {
  std::uint16_t bits;
};

/// How an element of type T is kept while it is reduced. A NaN that is stored is the canonical quiet one: operations of
/// the GPU give others.
template <class T>
struct Element {
  using Value = T;
  static __device__ Value load(T x) { return x; }
  static __device__ T store(Value x) {
    if constexpr (std::is_same_v<T, float>) {
      return x != x ? __uint_as_float(0x7fc00000U) : x;
    } else if constexpr (std::is_same_v<T, double>) {
      return x != x ? __longlong_as_double(0x7ff8000000000000LL) : x;
    } else {
      return x;
    }
  }
};
template <>
struct Element<Half> {
  using Value = float;
  static __device__ Value load(Half x) { return __half2float(__ushort_as_half(x.bits)); }
  static __device__ Half store(Value x) {
    return {x != x ? std::uint16_t{0x7e00} : __half_as_ushort(__float2half_rn(x))};
  }
};
template <>
struct Element<Bhalf> {
  using Value = float;
  static __device__ Value load(Bhalf x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
  static __device__ Bhalf store(Value x) {
    return {x != x ? std::uint16_t{0x7fc0} : __bfloat16_as_ushort(__float2bfloat16_rn(x))};
  }
};

// Operators. Integers are unsigned in sums and products, so that these wrap around.
struct Sum {
  template <class V>
  static __device__ V fold(V a, V b) {
    return static_cast<V>(a + b);
  }
};
struct Prod {
  template <class V>
  static __device__ V fold(V a, V b) {
    return static_cast<V>(a * b);
  }
};
/// The lesser of two; of floats with -0 below +0, and NaN when either is NaN.
struct Min {
  template <class V>
  static __device__ V fold(V a, V b) {
    if constexpr (std::is_floating_point_v<V>) {
      const V ordered = a < b ? a : (b < a ? b : (signbit(a) ? a : b));
      return a != a || b != b ? a + b : ordered;
    } else {
      return b < a ? b : a;
    }
  }
};
struct Max {
  template <class V>
  static __device__ V fold(V a, V b) {
    if constexpr (std::is_floating_point_v<V>) {
      const V ordered = a < b ? b : (b < a ? a : (signbit(a) ? b : a));
      return a != a || b != b ? a + b : ordered;
    } else {
      return a < b ? b : a;
    }
  }
};

constexpr int kVectorBytes = 16;
template <class T>
constexpr int kPerVector = kVectorBytes / static_cast<int>(sizeof(T));

/// The partial results of one vector of elements.
template <class T, class Op>
struct Accumulator {
  using Value = typename Element<T>::Value;
  Value values[kPerVector<T>];

  __device__ void start(uint4 bits) {
    T elements[kPerVector<T>];
    memcpy(elements, &bits, sizeof(bits));
#pragma unroll
    for (int i = 0; i < kPerVector<T>; ++i) values[i] = Element<T>::load(elements[i]);
  }
  __device__ void fold(uint4 bits) {
    T elements[kPerVector<T>];
    memcpy(elements, &bits, sizeof(bits));
#pragma unroll
    for (int i = 0; i < kPerVector<T>; ++i) values[i] = Op::fold(values[i], Element<T>::load(elements[i]));
  }
  __device__ uint4 result() const {
    T elements[kPerVector<T>];
#pragma unroll
    for (int i = 0; i < kPerVector<T>; ++i) elements[i] = Element<T>::store(values[i]);
    uint4 bits;
    memcpy(&bits, elements, sizeof(bits));
    return bits;
  }
};

}  // namespace gar::device
