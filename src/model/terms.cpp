// The terms of a cost in the order of their size.
#include <algorithm>
#include <cmath>

#include "gar/model.hpp"

namespace gar {

std::array<TermSeconds, kTerms.size()> largest_first(const Terms& terms) {
  std::array<TermSeconds, kTerms.size()> out;
  for (std::size_t i = 0; i < kTerms.size(); ++i) out[i] = {&kTerms[i], terms.*kTerms[i].seconds};
  std::stable_sort(out.begin(), out.end(), [](const TermSeconds& a, const TermSeconds& b) {
    return std::abs(a.seconds) > std::abs(b.seconds);
  });
  return out;
}

}  // namespace gar
