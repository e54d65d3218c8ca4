// The n-ary reduction: all operands in one pass over memory, and 16-bit numbers rounded once instead of at every step.
#include <cstdio>
#include <string>
#include <vector>

#include "gar/reduction.hpp"

int main() {
  // Eight operands: 1 and seven times 1/512, a quarter of bfloat16's distance between 1 and the next number.
  constexpr std::int64_t kCount = 1000;
  std::vector<std::vector<gar::Bfloat16>> operands(8, std::vector<gar::Bfloat16>(kCount, gar::to_bfloat16(1.0F / 512)));
  operands[0].assign(kCount, gar::to_bfloat16(1));
  std::vector<const void*> pointers;
  for (const auto& operand : operands) {
    pointers.push_back(operand.data());
  }

  std::vector<gar::Bfloat16> at_once(kCount);
  gar::reduce(gar::DataType::kBfloat16, gar::ReduceOp::kSum, at_once.data(), pointers, kCount);

  std::vector<gar::Bfloat16> in_steps = operands[0];
  for (std::size_t i = 1; i < pointers.size(); ++i) {
    const void* pair[] = {in_steps.data(), pointers[i]};
    gar::reduce(gar::DataType::kBfloat16, gar::ReduceOp::kSum, in_steps.data(), pair, kCount);
  }
  std::printf("1 + 7/512 = %g\n", 1 + 7.0 / 512);
  std::printf("bfloat16, eight operands at once: %g\n", gar::to_float(at_once[kCount - 1]));
  std::printf("bfloat16, two at a time:          %g\n", gar::to_float(in_steps[kCount - 1]));

  const std::vector<unsigned> a = {0b0001, 0b0110, 7};
  const std::vector<unsigned> b = {0b0011, 0b0101, 0};
  std::vector<unsigned> out(3);
  const void* both[] = {a.data(), b.data()};
  for (const gar::ReduceOp op : {gar::ReduceOp::kMax, gar::ReduceOp::kBxor, gar::ReduceOp::kLand}) {
    gar::reduce(gar::DataType::kUint32, op, out.data(), both, 3);
    std::printf("%-5s%u %u %u\n", std::string(to_string(op)).c_str(), out[0], out[1], out[2]);
  }
}
