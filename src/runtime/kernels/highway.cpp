// The n-ary reduction with Google Highway: compiled once for every instruction set, chosen when the program runs.
//
// A pass keeps four registers of accumulators, folds the matching 4 registers' worth of every operand into them and
// writes them out. Each element is read once and written once, and the operands' order is that of the arguments for
// every element. What does not fill a register at the end (and, for streaming stores, at the beginning, up to the first
// aligned address) goes through a buffer and the same instructions, so that results do not depend on where in the
// vector an element lies.
//
// Floats: a NaN result is always the canonical quiet NaN, because which operand's NaN survives an addition depends on
// the order that the compiler gives its operands. min and max order -0 below +0.
#include "runtime/kernels/kernel.hpp"

#ifndef GAR_HAS_HWY

namespace gar {
std::vector<KernelSet> simd_kernels() { return {}; }
}  // namespace gar

#else

// SSE4 gains little over the portable loops, which compilers turn into SSE2; SVE has not been tried.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/highway.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
// clang-format off
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>
#include "runtime/kernels/highway-inl.hpp"
// clang-format on

#if HWY_ONCE
namespace gar {

std::vector<KernelSet> simd_kernels() {
  std::vector<KernelSet> sets;
  const auto supported = hwy::SupportedTargets();
#if HWY_TARGETS & HWY_AVX3
  if ((supported & HWY_AVX3) != 0) sets.push_back(N_AVX3::kernels());
#endif
#if HWY_TARGETS & HWY_AVX2
  if ((supported & HWY_AVX2) != 0) sets.push_back(N_AVX2::kernels());
#endif
#if HWY_TARGETS & HWY_NEON
  if ((supported & HWY_NEON) != 0) sets.push_back(N_NEON::kernels());
#endif
  static_cast<void>(supported);
  return sets;
}

}  // namespace gar
#endif
#endif
