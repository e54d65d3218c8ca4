// The ordered factorisations of a number, from which hierarchical algorithms take their factors.
#include <algorithm>

#include "gar/algorithms.hpp"

namespace gar {

namespace {

void factorise(std::int64_t n, std::size_t limit, std::vector<std::int64_t>& prefix,
               std::vector<std::vector<std::int64_t>>& out) {
  if (n == 1) {
    out.push_back(prefix);
    return;
  }
  // Large first factors come first: they save memory accesses.
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    if (d > 1) divisors.push_back(d);
    if (n / d != d) divisors.push_back(n / d);
  }
  std::sort(divisors.rbegin(), divisors.rend());
  for (const std::int64_t d : divisors) {
    if (out.size() >= limit) return;
    prefix.push_back(d);
    factorise(n / d, limit, prefix, out);
    prefix.pop_back();
  }
}

}  // namespace

std::vector<std::vector<std::int64_t>> ordered_factorisations(std::int64_t n, std::size_t limit) {
  std::vector<std::vector<std::int64_t>> out;
  std::vector<std::int64_t> prefix;
  if (n > 1) factorise(n, limit, prefix, out);
  return out;
}

}  // namespace gar
