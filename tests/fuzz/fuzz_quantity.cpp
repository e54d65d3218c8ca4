// Numbers with units, names of types and operators, and labels of results, as people write them: each reader either
// throws InvalidArgument or returns a value within its limits.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/harness.hpp"
#include "gar/data_type.hpp"
#include "gar/errors.hpp"
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
  attempt([&] { require(gar::to_string(gar::parse_dtype("--dtype", text)) == text); });
  attempt([&] { require(gar::to_string(gar::parse_data_type(text)) == text); });
  attempt([&] { require(gar::to_string(gar::parse_reduce_op(text)) == text); });
  attempt([&] { (void)gar::parse_collective(text); });
  attempt([&] {
    const double jitter = gar::parse_jitter("--jitter", text);
    require(std::isfinite(jitter) && jitter >= 0);
  });
  attempt([&] { (void)gar::parse_seed("--seed", text); });
  const std::string label = to_string(gar::parse_bench_label(text));
  require(to_string(gar::parse_bench_label(label)) == label);
  return 0;
}
