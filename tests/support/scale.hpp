// How much a test draws: what the environment asks for.
#pragma once

#include <cstdlib>
#include <string>

namespace gar::test {

/// GAR_TEST_FULL=1: everything; GAR_TEST_SMALL=1: what a sanitizer that slows things down has time for.
enum class Scale { kSmall, kNormal, kFull };
inline Scale scale() {
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' && std::string(value) != "0";
  };
  return is_set("GAR_TEST_FULL") ? Scale::kFull : is_set("GAR_TEST_SMALL") ? Scale::kSmall : Scale::kNormal;
}
template <class T>
T scaled(T small, T normal, T full) {
  return scale() == Scale::kSmall ? small : scale() == Scale::kFull ? full : normal;
}

}  // namespace gar::test
