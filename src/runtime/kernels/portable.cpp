// The n-ary reduction in plain C++, for machines without Google Highway.
//
// The vectors are processed in blocks that fit the registers or the first-level cache: the accumulators of a block are
// a small array, and every operand's part of the block is folded into it by a loop that compilers vectorise. Each
// element is read once and written once. Streaming stores cannot be expressed here; they fall back to ordinary ones.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "runtime/kernels/half.hpp"
#include "runtime/kernels/kernel.hpp"

namespace gar {
namespace {

/// How an element of type T is kept while it is reduced.
template <class T>
struct Element {
  using Value = T;
  static Value load(T x) { return x; }
  static T store(Value x) { return x; }
};
template <>
struct Element<Float16> {
  using Value = float;
  static Value load(Float16 x) { return float_of(x); }
  static Float16 store(Value x) { return float16_of(x); }
};
template <>
struct Element<Bfloat16> {
  using Value = float;
  static Value load(Bfloat16 x) { return float_of(x); }
  static Bfloat16 store(Value x) { return bfloat16_of(x); }
};

/// NaN becomes the canonical quiet one.
template <class V>
V canonical(V x) {
  if constexpr (std::is_same_v<V, float>) {  // on the bits: otherwise compilers make a branch before a conversion
    constexpr auto kNan = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::quiet_NaN());
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return std::bit_cast<float>(select((bits & 0x7fffffff) > 0x7f800000, kNan, bits));
  } else if constexpr (std::is_floating_point_v<V>) {
    return x != x ? std::numeric_limits<V>::quiet_NaN() : x;  // NOLINT(misc-redundant-expression)
  } else {
    return x;
  }
}

// An operator: every operand goes through `enter`, results of `fold` through `leave`.
struct Plain {
  template <class V>
  static V enter(V x) {
    return x;
  }
  template <class V>
  static V leave(V x) {
    return canonical(x);
  }
};
struct Sum : Plain {
  template <class V>
  static V fold(V a, V b) {
    return static_cast<V>(a + b);
  }
};
struct Prod : Plain {
  template <class V>
  static V fold(V a, V b) {
    if constexpr (std::is_integral_v<V> && sizeof(V) < sizeof(std::uint32_t)) {
      return static_cast<V>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
    } else {
      return static_cast<V>(a * b);
    }
  }
};
/// The lesser of two; of floats with -0 below +0, and NaN when either is NaN.
template <class V>
V lesser(V a, V b) {
  if constexpr (std::is_floating_point_v<V>) {
    const V zero = std::signbit(a) ? a : b;  // only used when a == b
    const V ordered = a < b ? a : (b < a ? b : zero);
    return a != a || b != b ? std::numeric_limits<V>::quiet_NaN() : ordered;  // NOLINT(misc-redundant-expression)
  } else {
    return b < a ? b : a;
  }
}
struct Min : Plain {
  template <class V>
  static V fold(V a, V b) {
    return lesser(a, b);
  }
};
struct Max : Plain {
  template <class V>
  static V fold(V a, V b) {
    if constexpr (std::is_floating_point_v<V>) {
      return -lesser(-a, -b);
    } else {
      return a < b ? b : a;
    }
  }
};
struct Band : Plain {
  template <class V>
  static V fold(V a, V b) {
    return static_cast<V>(a & b);
  }
};
struct Bor : Plain {
  template <class V>
  static V fold(V a, V b) {
    return static_cast<V>(a | b);
  }
};
struct Bxor : Plain {
  template <class V>
  static V fold(V a, V b) {
    return static_cast<V>(a ^ b);
  }
};
struct Logical {
  template <class V>
  static V enter(V x) {
    return static_cast<V>(x != 0);
  }
  template <class V>
  static V leave(V x) {
    return x;
  }
};
struct Land : Logical, Band {
  using Logical::enter, Logical::leave;
};
struct Lor : Logical, Bor {
  using Logical::enter, Logical::leave;
};
struct Lxor : Logical, Bxor {
  using Logical::enter, Logical::leave;
};

template <class T>
T element(const void* base, std::int64_t index) {
  T x;  // the user's type need not be ours
  std::memcpy(&x, static_cast<const std::byte*>(base) + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return x;
}

template <class Op, class T>
void fold_block(const Pass& pass, std::int64_t begin, std::int64_t count) {
  using E = Element<T>;
  constexpr std::int64_t kBlock = 512 / sizeof(typename E::Value);
  typename E::Value sums[kBlock];
  const void* first = pass.operands[0];
  for (std::int64_t i = 0; i < count; ++i) sums[i] = Op::enter(E::load(element<T>(first, begin + i)));
  for (std::int64_t k = 1; k < pass.num_operands; ++k) {
    const void* next = pass.operands[k];
    for (std::int64_t i = 0; i < count; ++i) {
      sums[i] = Op::fold(sums[i], Op::enter(E::load(element<T>(next, begin + i))));
    }
  }
  std::byte* out = static_cast<std::byte*>(pass.out) + begin * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < count; ++i) {
    const T x = E::store(Op::leave(sums[i]));
    std::memcpy(out + i * static_cast<std::int64_t>(sizeof(T)), &x, sizeof(T));
  }
}

template <class Op, class T>
void reduce_pass(const Pass& pass) {
  constexpr std::int64_t kBlock = 512 / sizeof(typename Element<T>::Value);
  std::int64_t begin = 0;
  for (; begin + kBlock <= pass.count; begin += kBlock) fold_block<Op, T>(pass, begin, kBlock);
  if (begin < pass.count) fold_block<Op, T>(pass, begin, pass.count - begin);
}

/// Operators that do not tell signed from unsigned.
template <class Op>
Kernel unsigned_kernel(DataType type) {
  switch (size_of(type)) {
    case 1:
      return reduce_pass<Op, std::uint8_t>;
    case 2:
      return reduce_pass<Op, std::uint16_t>;
    case 4:
      return reduce_pass<Op, std::uint32_t>;
    default:
      return reduce_pass<Op, std::uint64_t>;
  }
}

template <class Op>
Kernel float_kernel(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return reduce_pass<Op, Float16>;
    case DataType::kBfloat16:
      return reduce_pass<Op, Bfloat16>;
    case DataType::kFloat32:
      return reduce_pass<Op, float>;
    default:
      return reduce_pass<Op, double>;
  }
}

template <class Op>
Kernel ordered_kernel(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return reduce_pass<Op, std::int8_t>;
    case DataType::kInt16:
      return reduce_pass<Op, std::int16_t>;
    case DataType::kInt32:
      return reduce_pass<Op, std::int32_t>;
    case DataType::kInt64:
      return reduce_pass<Op, std::int64_t>;
    default:
      return is_integer(type) ? unsigned_kernel<Op>(type) : float_kernel<Op>(type);
  }
}

template <class Op>
Kernel arithmetic_kernel(DataType type) {
  return is_integer(type) ? unsigned_kernel<Op>(type) : float_kernel<Op>(type);
}

Kernel find_kernel(DataType type, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return arithmetic_kernel<Sum>(type);
    case ReduceOp::kProd:
      return arithmetic_kernel<Prod>(type);
    case ReduceOp::kMin:
      return ordered_kernel<Min>(type);
    case ReduceOp::kMax:
      return ordered_kernel<Max>(type);
    case ReduceOp::kBand:
      return unsigned_kernel<Band>(type);
    case ReduceOp::kBor:
      return unsigned_kernel<Bor>(type);
    case ReduceOp::kBxor:
      return unsigned_kernel<Bxor>(type);
    case ReduceOp::kLand:
      return unsigned_kernel<Land>(type);
    case ReduceOp::kLor:
      return unsigned_kernel<Lor>(type);
    case ReduceOp::kLxor:
      return unsigned_kernel<Lxor>(type);
  }
  return nullptr;
}

void copy_plainly(void* out, const void* in, std::int64_t bytes) {
  std::memcpy(out, in, static_cast<std::size_t>(bytes));
}

}  // namespace

KernelSet portable_kernels() { return {"portable", find_kernel, copy_plainly}; }

}  // namespace gar
