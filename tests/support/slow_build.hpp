// How much a test draws in builds that are many times slower: debug builds and the sanitizers, which look for errors of
// memory in the same code. The release build looks at the results.
#pragma once

namespace gar::test {

#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSlowBuild = true;
#else
inline constexpr bool kIsSlowBuild = false;
#endif

template <class T>
constexpr T in_slow_build(T few, T otherwise) {
  return kIsSlowBuild ? few : otherwise;
}

}  // namespace gar::test
