// The reader of benchmark results on arbitrary bytes: it either throws ParseError or returns rows that can be judged.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/harness.hpp"
#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/results_io.hpp"

namespace {

using gar::fuzz::require;

void check(const gar::Results& results) {
  require(!results.rows.empty() && !results.format.empty());
  require(results.num_ranks >= 0);
  for (const gar::ResultRow& row : results.rows) {
    require(std::isfinite(row.bytes) && row.bytes > 0);
    require(std::isfinite(row.seconds) && row.seconds > 0);
    if (!row.algorithm.empty()) require(!gar::is_tree_planner(gar::parse_algorithm(row.algorithm)));
    for (const char c : row.label) require(c >= 0x20 && c < 0x7f);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    check(gar::parse_results(text, "fuzz.txt"));
  } catch (const gar::ParseError&) {
  }
  return 0;
}
