// What the standard library of emscripten 3.1.6 (libc++ 13) lacks of C++20. Included before every file of the web build
// (-include), so that the sources stay plain C++20.
#pragma once

#include <bit>
#include <memory>
#include <type_traits>

// NOLINTBEGIN(cert-dcl58-cpp): they are missing, and have the names that the standard gives them
namespace std {

#ifndef __cpp_lib_bit_cast
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
#endif

#ifndef __cpp_lib_smart_ptr_for_overwrite
template <class T>
enable_if_t<is_unbounded_array_v<T>, unique_ptr<T>> make_unique_for_overwrite(size_t count) {
  return unique_ptr<T>(new remove_extent_t<T>[count]);
}
#endif

}  // namespace std
// NOLINTEND(cert-dcl58-cpp)
