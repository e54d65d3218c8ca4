// Comparing seconds per term.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "gar/model.hpp"

namespace gar {

inline void PrintTo(const Terms& t, std::ostream* out) {
  const char* before = "{";
  for (const TermInfo& term : kTerms) {
    *out << before << term.name << " " << t.*term.seconds;
    before = ", ";
  }
  *out << "}";
}

}  // namespace gar

namespace gar::test {

inline bool is_close(double a, double b, double relative) {
  return std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b));
}

/// Every term equal up to the relative error.
inline ::testing::AssertionResult terms_close(const Terms& a, const Terms& b, double relative = 1e-9) {
  const bool close = std::all_of(kTerms.begin(), kTerms.end(), [&](const TermInfo& term) {
    return is_close(a.*term.seconds, b.*term.seconds, relative);
  });
  if (close) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << ::testing::PrintToString(a) << " is not " << ::testing::PrintToString(b);
}

/// Latency, handling, communication and calculation equal: links that are equally busy may split beta and epsilon
/// differently.
inline ::testing::AssertionResult sums_close(const Terms& a, const Terms& b, double relative = 1e-9) {
  const bool close = is_close(a.alpha, b.alpha, relative) && is_close(a.mu, b.mu, relative) &&
                     is_close(a.beta + a.epsilon, b.beta + b.epsilon, relative) &&
                     is_close(a.gamma + a.delta, b.gamma + b.delta, relative);
  if (close) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << ::testing::PrintToString(a) << " is not " << ::testing::PrintToString(b);
}

}  // namespace gar::test
