// How much a test draws in builds that are many times slower: debug builds and the sanitizers, which look for errors of
// memory in the same code. The release build looks at the results.
#pragma once

#include "support/scale.hpp"

namespace gar::test {

#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSlowBuild = true;
#else
inline constexpr bool kIsSlowBuild = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kHasThreadSanitizer = true;
#else
inline constexpr bool kHasThreadSanitizer = false;
#endif

template <class T>
constexpr T in_slow_build(T few, T otherwise) {
  return kIsSlowBuild ? few : otherwise;
}

/// Random cases of which more show hardly more: `usual` in make test, `full` with GAR_TEST_FULL=1 (make test-full).
template <class T>
T drawn(T slow_build, T usual, T full) {
  return in_slow_build(slow_build, scale() == Scale::kFull ? full : usual);
}

}  // namespace gar::test
