// Numbers with units, names of types and operators, and labels of results, as people write them: each reader either
// throws InvalidArgument or returns a value within its limits.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/harness.hpp"
#include "gar/data_type.hpp"
#include "gar/errors.hpp"
#include "gar/network_words.hpp"
#include "gar/plan.hpp"
#include "gar/quantity.hpp"
#include "gar/results_io.hpp"
#include "gar/what_if.hpp"

namespace {

using gar::fuzz::attempt;
using gar::fuzz::require;

void check(const gar::VectorSize& vector) {
  require(vector.count >= 0 && vector.bytes >= vector.count && vector.bytes <= gar::kMaxVectorBytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  attempt([&] {
    const std::int64_t bytes = gar::parse_bytes("--size", text);
    require(bytes >= 0 && gar::parse_bytes("--size", std::to_string(bytes)) == bytes);
  });
  attempt([&] {
    const std::int64_t count = gar::parse_count("--count", text);
    require(count >= 0 && gar::parse_count("--count", std::to_string(count)) == count);
  });
  attempt([&] { check(gar::vector_size_of_bytes("--size", text, gar::DataType::kFloat64)); });
  attempt([&] { check(gar::vector_size_of_count("--count", text, gar::DataType::kBfloat16)); });
  attempt([&] {
    const gar::DataType type = gar::parse_dtype("-d", text);
    const bool is_of_c = text == "half" || text == "float" || text == "double";
    require(is_of_c || gar::to_string(type) == text);
  });
  attempt([&] { require(!gar::parse_bytes_list("--size", text).empty()); });
  attempt([&] {
    const std::vector<std::int64_t> counts = gar::parse_count_list("--count", text, 2);
    require(!counts.empty() && std::ssize(counts) <= gar::kMaxSizes);
  });
  attempt([&] { require(gar::parse_size_factor("-f", text) >= 2); });
  attempt([&] { require(gar::to_string(gar::parse_data_type(text)) == text); });
  attempt([&] { require(gar::to_string(gar::parse_reduce_op(text)) == text); });
  attempt([&] { (void)gar::parse_collective(text); });
  attempt([&] {
    const double jitter = gar::parse_jitter("--jitter", text);
    require(std::isfinite(jitter) && jitter >= 0);
  });
  attempt([&] { (void)gar::parse_seed("--seed", text); });
  if (const auto beta = gar::bandwidth_of(text)) require(std::isfinite(*beta) && *beta > 0);
  if (const auto latency = gar::latency_of(text)) require(std::isfinite(*latency) && *latency >= 0);
  const std::string label = to_string(gar::parse_bench_label(text));
  require(to_string(gar::parse_bench_label(label)) == label);
  return 0;
}
