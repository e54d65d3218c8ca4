// What a store can do that knows no more than set and get.
#include "gar/store.hpp"

#include "gar/errors.hpp"

namespace gar {

namespace {

constexpr double kMomentS = 0.05;

}  // namespace

std::optional<std::string> Store::look(const std::string& key) {
  try {
    return get(key, kMomentS);
  } catch (const std::exception&) {  // stores of callers have errors of their own
    return std::nullopt;
  }
}

bool Store::claim(const std::string& key, const std::string& value) {
  if (look(key)) return false;
  set(key, value);
  return look(key) == value;
}

}  // namespace gar
