// The body of highway.cpp; included once for every instruction set.
#if defined(GAR_KERNELS_HIGHWAY_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GAR_KERNELS_HIGHWAY_INL
#undef GAR_KERNELS_HIGHWAY_INL
#else
#define GAR_KERNELS_HIGHWAY_INL
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "runtime/kernels/kernel.hpp"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

HWY_BEFORE_NAMESPACE();
namespace gar {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// How elements of type T are kept in registers: as themselves, or, for 16-bit floats, as floats.
template <class T>
struct Element {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static HWY_INLINE V load(const T* p) { return hn::LoadU(D(), p); }
  template <bool kStreaming>
  static HWY_INLINE void store(V v, T* p) {
    if constexpr (kStreaming) {
      hn::Stream(v, D(), p);
    } else {
      hn::StoreU(v, D(), p);
    }
  }
};

template <class D16, class V16>
HWY_INLINE void store_half(V16 v, D16 d, hn::TFromD<D16>* p, bool is_streaming) {
  if (is_streaming) {
    hn::Stream(v, d, p);
  } else {
    hn::StoreU(v, d, p);
  }
}

template <>
struct Element<Float16> {
  using D = hn::ScalableTag<float>;
  using D16 = hn::Rebind<std::uint16_t, D>;
  using V = hn::Vec<D>;
  static HWY_INLINE V load(const Float16* p) {
    const hn::Rebind<hwy::float16_t, D> half;
    return hn::PromoteTo(D(), hn::BitCast(half, hn::LoadU(D16(), reinterpret_cast<const std::uint16_t*>(p))));
  }
  template <bool kStreaming>
  static HWY_INLINE void store(V v, Float16* p) {
    const hn::Rebind<hwy::float16_t, D> half;
    store_half(hn::BitCast(D16(), hn::DemoteTo(half, v)), D16(), reinterpret_cast<std::uint16_t*>(p), kStreaming);
  }
};

template <>
struct Element<Bfloat16> {
  using D = hn::ScalableTag<float>;
  using D16 = hn::Rebind<std::uint16_t, D>;
  using V = hn::Vec<D>;
  static HWY_INLINE V load(const Bfloat16* p) {
    const hn::RebindToUnsigned<D> bits;
    const auto upper = hn::PromoteTo(bits, hn::LoadU(D16(), reinterpret_cast<const std::uint16_t*>(p)));
    return hn::BitCast(D(), hn::ShiftLeft<16>(upper));
  }
  /// To the nearest, ties to even. `v` has no NaN but the canonical one, which survives the addition.
  template <bool kStreaming>
  static HWY_INLINE void store(V v, Bfloat16* p) {
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(du, 0x7fff)), odd));
    store_half(hn::DemoteTo(D16(), hn::BitCast(di, rounded)), D16(), reinterpret_cast<std::uint16_t*>(p), kStreaming);
  }
};

template <class D>
HWY_INLINE hn::Vec<D> quiet_nan(D d) {
  return hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
}

// An operator: every operand goes through `enter`, results of `fold` through `leave`.
struct Plain {
  template <class D, class V>
  static HWY_INLINE V enter(D /*d*/, V v) {
    return v;
  }
  template <class D, class V>
  static HWY_INLINE V leave(D d, V v) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::IfThenElse(hn::IsNaN(v), quiet_nan(d), v);
    } else {
      return v;
    }
  }
};

struct Sum : Plain {
  template <class D, class V>
  static HWY_INLINE V fold(D /*d*/, V a, V b) {
    return hn::Add(a, b);
  }
};

struct Prod : Plain {
  template <class D, class V>
  static HWY_INLINE V fold(D d, V a, V b) {
    if constexpr (sizeof(hn::TFromD<D>) == 1) {  // there are no 8-bit products: even and odd bytes as 16-bit ones
      const hn::Repartition<std::uint16_t, D> wide;
      const auto x = hn::BitCast(wide, a);
      const auto y = hn::BitCast(wide, b);
      const auto even = hn::And(hn::Mul(x, y), hn::Set(wide, 0xff));
      const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(x), hn::ShiftRight<8>(y)));
      return hn::BitCast(d, hn::Or(even, odd));
    } else {
      return hn::Mul(a, b);
    }
  }
};

/// The lesser of two floats, -0 below +0, NaN when either is NaN.
template <class D, class V>
HWY_INLINE V lesser(D d, V a, V b) {
  // For equal operands the instruction gives one of its two, always the same: both ways give both zeros, and -0 has the
  // only bit that they differ in. Otherwise both ways agree, or (x86) give the two operands when one is NaN.
  const V both = hn::Or(hn::Min(a, b), hn::Min(b, a));
#if HWY_ARCH_X86
  static_cast<void>(d);
  return both;
#else
  return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), quiet_nan(d), both);
#endif
}

struct Min : Plain {
  template <class D, class V>
  static HWY_INLINE V fold(D d, V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return lesser(d, a, b);
    } else {
      return hn::Min(a, b);
    }
  }
};

/// max(a, b) = -min(-a, -b) for floats.
struct Max : Plain {
  template <class D, class V>
  static HWY_INLINE V enter(D /*d*/, V v) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::Neg(v);
    } else {
      return v;
    }
  }
  template <class D, class V>
  static HWY_INLINE V leave(D d, V v) {
    return Plain::leave(d, enter(d, v));
  }
  template <class D, class V>
  static HWY_INLINE V fold(D d, V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return lesser(d, a, b);
    } else {
      return hn::Max(a, b);
    }
  }
};

struct Band : Plain {
  template <class D, class V>
  static HWY_INLINE V fold(D /*d*/, V a, V b) {
    return hn::And(a, b);
  }
};
struct Bor : Plain {
  template <class D, class V>
  static HWY_INLINE V fold(D /*d*/, V a, V b) {
    return hn::Or(a, b);
  }
};
struct Bxor : Plain {
  template <class D, class V>
  static HWY_INLINE V fold(D /*d*/, V a, V b) {
    return hn::Xor(a, b);
  }
};

template <class D, class V>
HWY_INLINE V truth(D d, V v) {
  return hn::IfThenElseZero(hn::Ne(v, hn::Zero(d)), hn::Set(d, 1));
}

/// Of unsigned numbers: the least is zero exactly when one is zero.
struct Land : Plain {
  template <class D, class V>
  static HWY_INLINE V fold(D /*d*/, V a, V b) {
    return hn::Min(a, b);
  }
  template <class D, class V>
  static HWY_INLINE V leave(D d, V v) {
    return truth(d, v);
  }
};
struct Lor : Bor {
  template <class D, class V>
  static HWY_INLINE V leave(D d, V v) {
    return truth(d, v);
  }
};
struct Lxor : Bxor {
  template <class D, class V>
  static HWY_INLINE V enter(D d, V v) {
    return truth(d, v);
  }
};

// Operands that are read at once. More streams than the hardware follows, or vectors that lie at the same offset in
// their pages (as large ones do) and compete for the same sets of the first-level cache, cost a fifth of the bandwidth.
constexpr std::int64_t kMaxAtOnce = 12;
constexpr std::int64_t kGroup = 8;                   // of more operands than that
constexpr std::int64_t kAccumulatorBytes = 1 << 17;  // between groups; stays in the second-level cache
constexpr std::int64_t kFitsCaches = 1 << 18;        // bytes of all operands: no need for groups
constexpr std::int64_t kPrefetchBytes = 192;
constexpr std::int64_t kLineBytes = 64;

template <class Op, class T>
class Sweep {
  using E = Element<T>;
  using D = typename E::D;
  using V = typename E::V;
  using Lane = hn::TFromD<D>;

 public:
  explicit Sweep(const Pass& pass) : pass_(pass), out_(static_cast<T*>(pass.out)) {}

  template <bool kStreaming>
  HWY_INLINE void run() const {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
    std::int64_t begin = 0;
    if constexpr (kStreaming) {
      begin = elements_to_alignment(lanes);
      begin = begin < pass_.count ? begin : pass_.count;
      if (begin > 0) partial(0, begin);
    }
    const std::int64_t end = begin + (pass_.count - begin) / lanes * lanes;
    const std::int64_t bytes = pass_.num_operands * pass_.count * static_cast<std::int64_t>(sizeof(T));
    if (pass_.num_operands <= kMaxAtOnce || bytes <= kFitsCaches) {
      fold<kStreaming>({begin, end, 0, pass_.num_operands, nullptr, nullptr});
    } else {
      fold_groups<kStreaming>(begin, end);
    }
    if (end < pass_.count) partial(end, pass_.count - end);
    if constexpr (kStreaming) hwy::FlushStream();
  }

  [[nodiscard]] bool can_stream() const {
    return pass_.is_streaming && reinterpret_cast<std::uintptr_t>(out_) % sizeof(T) == 0;
  }

 private:
  /// Some operands' elements [begin, end), whole registers of them.
  struct Part {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t first;  ///< operand
    std::int64_t last;   ///< one past it
    const Lane* from;    ///< what earlier operands gave, or null
    Lane* to;            ///< for later operands, or null: the result
  };

  [[nodiscard]] std::int64_t elements_to_alignment(std::int64_t lanes) const {
    const auto bytes = static_cast<std::uintptr_t>(lanes) * sizeof(T);
    const auto past = reinterpret_cast<std::uintptr_t>(out_) % bytes;
    return past == 0 ? 0 : static_cast<std::int64_t>((bytes - past) / sizeof(T));
  }

  [[nodiscard]] HWY_INLINE const T* operand(std::int64_t k) const { return static_cast<const T*>(pass_.operands[k]); }

  static HWY_INLINE V enter(const T* p) { return Op::enter(D(), E::load(p)); }

  template <bool kStreaming>
  HWY_INLINE void fold(const Part& part) const {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
    std::int64_t i = part.begin;
    for (; i + 4 * lanes <= part.end; i += 4 * lanes) four<kStreaming>(part, i, lanes);
    for (; i < part.end; i += lanes) one<kStreaming>(part, i);
  }

  template <bool kStreaming>
  HWY_NOINLINE void fold_groups(std::int64_t begin, std::int64_t end) const {
    constexpr auto kBlock = kAccumulatorBytes / static_cast<std::int64_t>(sizeof(Lane));
    // Not on the stack, which may be small in a thread pool of the caller.
    const auto memory = hwy::AllocateAligned<Lane>(static_cast<std::size_t>(kBlock));
    Lane* const accumulators = memory.get();
    const std::int64_t num_groups = (pass_.num_operands + kGroup - 1) / kGroup;
    for (; begin < end; begin += kBlock) {
      Part part{begin, begin + kBlock < end ? begin + kBlock : end, 0, 0, nullptr, accumulators};
      for (std::int64_t g = 1; g <= num_groups; ++g) {
        part.first = part.last;
        part.last = pass_.num_operands * g / num_groups;
        if (g == num_groups) part.to = nullptr;
        fold<kStreaming>(part);
        part.from = accumulators;
      }
    }
  }

  static HWY_INLINE void prefetch(const T* p, std::int64_t lanes) {
    const auto* bytes = reinterpret_cast<const char*>(p) + kPrefetchBytes;
    const std::int64_t num_bytes = 4 * lanes * static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t b = 0; b < num_bytes; b += kLineBytes) hwy::Prefetch(bytes + b);
  }

  template <bool kStreaming>
  HWY_INLINE void four(const Part& part, std::int64_t i, std::int64_t lanes) const {
    const D d;
    V a0;
    V a1;
    V a2;
    V a3;
    std::int64_t k = part.first;
    if (part.from != nullptr) {
      const Lane* from = part.from + (i - part.begin);
      a0 = hn::Load(d, from);
      a1 = hn::Load(d, from + lanes);
      a2 = hn::Load(d, from + 2 * lanes);
      a3 = hn::Load(d, from + 3 * lanes);
    } else {
      const T* p = operand(k++) + i;
      prefetch(p, lanes);
      a0 = enter(p);
      a1 = enter(p + lanes);
      a2 = enter(p + 2 * lanes);
      a3 = enter(p + 3 * lanes);
    }
    for (; k < part.last; ++k) {
      const T* p = operand(k) + i;
      prefetch(p, lanes);
      a0 = Op::fold(d, a0, enter(p));
      a1 = Op::fold(d, a1, enter(p + lanes));
      a2 = Op::fold(d, a2, enter(p + 2 * lanes));
      a3 = Op::fold(d, a3, enter(p + 3 * lanes));
    }
    if (part.to != nullptr) {
      Lane* to = part.to + (i - part.begin);
      hn::Store(a0, d, to);
      hn::Store(a1, d, to + lanes);
      hn::Store(a2, d, to + 2 * lanes);
      hn::Store(a3, d, to + 3 * lanes);
    } else {
      T* out = out_ + i;
      E::template store<kStreaming>(Op::leave(d, a0), out);
      E::template store<kStreaming>(Op::leave(d, a1), out + lanes);
      E::template store<kStreaming>(Op::leave(d, a2), out + 2 * lanes);
      E::template store<kStreaming>(Op::leave(d, a3), out + 3 * lanes);
    }
  }

  template <bool kStreaming>
  HWY_INLINE void one(const Part& part, std::int64_t i) const {
    std::int64_t k = part.first;
    V a = part.from != nullptr ? hn::Load(D(), part.from + (i - part.begin)) : enter(operand(k++) + i);
    for (; k < part.last; ++k) a = Op::fold(D(), a, enter(operand(k) + i));
    if (part.to != nullptr) {
      hn::Store(a, D(), part.to + (i - part.begin));
    } else {
      E::template store<kStreaming>(Op::leave(D(), a), out_ + i);
    }
  }

  /// Fewer elements than a register holds, of all operands.
  void partial(std::int64_t i, std::int64_t count) const {
    alignas(HWY_MAX_BYTES) T buffer[HWY_MAX_BYTES / sizeof(T)] = {};
    const auto bytes = static_cast<std::size_t>(count) * sizeof(T);
    std::memcpy(buffer, operand(0) + i, bytes);
    V a = enter(buffer);
    for (std::int64_t k = 1; k < pass_.num_operands; ++k) {
      std::memcpy(buffer, operand(k) + i, bytes);
      a = Op::fold(D(), a, enter(buffer));
    }
    E::template store<false>(Op::leave(D(), a), buffer);
    std::memcpy(out_ + i, buffer, bytes);
  }

  Pass pass_;
  T* out_;
};

template <class Op, class T>
HWY_NOINLINE void reduce_pass(const Pass& pass) {
  const Sweep<Op, T> sweep(pass);
  if (sweep.can_stream()) {
    sweep.template run<true>();
  } else {
    sweep.template run<false>();
  }
}

/// Operators that do not tell signed from unsigned.
template <class Op>
Kernel unsigned_kernel(std::int64_t size) {
  return size == 1   ? reduce_pass<Op, std::uint8_t>
         : size == 2 ? reduce_pass<Op, std::uint16_t>
         : size == 4 ? reduce_pass<Op, std::uint32_t>
                     : reduce_pass<Op, std::uint64_t>;
}

template <class Op>
Kernel signed_kernel(std::int64_t size) {
  return size == 1   ? reduce_pass<Op, std::int8_t>
         : size == 2 ? reduce_pass<Op, std::int16_t>
         : size == 4 ? reduce_pass<Op, std::int32_t>
                     : reduce_pass<Op, std::int64_t>;
}

template <class Op>
Kernel arithmetic_kernel(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return reduce_pass<Op, Float16>;
    case DataType::kBfloat16:
      return reduce_pass<Op, Bfloat16>;
    case DataType::kFloat32:
      return reduce_pass<Op, float>;
    case DataType::kFloat64:
      return reduce_pass<Op, double>;
    default:
      return unsigned_kernel<Op>(size_of(type));
  }
}

template <class Op>
Kernel ordered_kernel(DataType type) {
  switch (type) {
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32:
    case DataType::kInt64:
      return signed_kernel<Op>(size_of(type));
    default:
      return arithmetic_kernel<Op>(type);
  }
}

/// Bits are bits, whatever the type: `count` elements of the type are as many times its size in bytes.
template <class Op, std::int64_t kSize>
void reduce_bits(const Pass& pass) {
  Pass bytes = pass;
  bytes.count *= kSize;
  reduce_pass<Op, std::uint8_t>(bytes);
}
template <class Op>
Kernel bit_kernel(std::int64_t size) {
  return size == 1   ? reduce_bits<Op, 1>
         : size == 2 ? reduce_bits<Op, 2>
         : size == 4 ? reduce_bits<Op, 4>
                     : reduce_bits<Op, 8>;
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
      return bit_kernel<Band>(size_of(type));
    case ReduceOp::kBor:
      return bit_kernel<Bor>(size_of(type));
    case ReduceOp::kBxor:
      return bit_kernel<Bxor>(size_of(type));
    case ReduceOp::kLand:
      return unsigned_kernel<Land>(size_of(type));
    case ReduceOp::kLor:
      return unsigned_kernel<Lor>(size_of(type));
    case ReduceOp::kLxor:
      return unsigned_kernel<Lxor>(size_of(type));
  }
  return nullptr;
}

void copy_streaming(void* out, const void* in, std::int64_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto* to = static_cast<std::uint8_t*>(out);
  const auto* from = static_cast<const std::uint8_t*>(in);
  const auto past =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % static_cast<std::uintptr_t>(lanes));
  std::int64_t i = past == 0 ? 0 : lanes - past;
  if (i > bytes) i = bytes;
  std::memcpy(to, from, static_cast<std::size_t>(i));
  for (; i + 4 * lanes <= bytes; i += 4 * lanes) {
    const auto v0 = hn::LoadU(d, from + i);
    const auto v1 = hn::LoadU(d, from + i + lanes);
    const auto v2 = hn::LoadU(d, from + i + 2 * lanes);
    const auto v3 = hn::LoadU(d, from + i + 3 * lanes);
    hn::Stream(v0, d, to + i);
    hn::Stream(v1, d, to + i + lanes);
    hn::Stream(v2, d, to + i + 2 * lanes);
    hn::Stream(v3, d, to + i + 3 * lanes);
  }
  std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
  hwy::FlushStream();
}

}  // namespace

KernelSet kernels() { return {hwy::TargetName(HWY_TARGET), find_kernel, copy_streaming}; }

}  // namespace HWY_NAMESPACE
}  // namespace gar
HWY_AFTER_NAMESPACE();

#endif
#endif
