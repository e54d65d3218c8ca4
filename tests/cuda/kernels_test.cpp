// The GPU's reductions and copies against gar::reduce on the host, bit for bit.
#include "runtime/transports/cuda/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "cuda/device_arena.hpp"
#include "gar/cuda.hpp"
#include "gar/errors.hpp"
#include "runtime/transports/cuda/cuda_call.hpp"
#include "support/collective_cases.hpp"

namespace gar {
namespace {

constexpr std::array kTypes = {DataType::kInt8,    DataType::kUint8,  DataType::kInt32,   DataType::kUint32,
                               DataType::kInt64,   DataType::kUint64, DataType::kFloat16, DataType::kBfloat16,
                               DataType::kFloat32, DataType::kFloat64};
constexpr std::array kOps = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax};
constexpr std::int64_t kArenaBytes = 64 << 20;

bool is_small() { return test::scale() == test::Scale::kSmall; }

using Random = std::mt19937_64;

// ---- inputs, as bits

/// Of a floating point type.
struct Format {
  int mantissa_bits;
  int exponent_bits;
};
Format format_of(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return {10, 5};
    case DataType::kBfloat16:
      return {7, 8};
    case DataType::kFloat32:
      return {23, 8};
    default:
      return {52, 11};
  }
}

std::uint64_t special_float(const Format& f, Random& random) {
  const std::uint64_t sign = (random() & 1) << (f.mantissa_bits + f.exponent_bits);
  const std::uint64_t infinity = ((std::uint64_t{1} << f.exponent_bits) - 1) << f.mantissa_bits;
  const std::uint64_t mantissa = random() & ((std::uint64_t{1} << f.mantissa_bits) - 1);
  switch (random() % 6) {
    case 0:
      return sign;
    case 1:
      return sign | infinity;
    case 2:
      return sign | infinity | mantissa;  // NaN with a payload, quiet or not
    case 3:
      return sign | (infinity - 1);  // the largest finite number
    case 4:
      return sign | mantissa;  // denormal
    default:
      return random();
  }
}

/// Numbers near 1 whose sums need rounding.
std::uint64_t ordinary_float(const Format& f, Random& random) {
  const std::uint64_t one = ((std::uint64_t{1} << (f.exponent_bits - 1)) - 1);
  const std::uint64_t exponent = one - 3 + random() % 7;
  const std::uint64_t mantissa = random() & ((std::uint64_t{1} << f.mantissa_bits) - 1);
  const std::uint64_t sign = (random() & 1) << (f.mantissa_bits + f.exponent_bits);
  return sign | exponent << f.mantissa_bits | mantissa;
}

/// 0 to 3: results of few operands are exact.
std::uint64_t exact_float(const Format& f, Random& random) {
  const std::uint64_t one = ((std::uint64_t{1} << (f.exponent_bits - 1)) - 1);
  const std::uint64_t half = std::uint64_t{1} << (f.mantissa_bits - 1);
  const std::array<std::uint64_t, 4> values = {0, one << f.mantissa_bits, (one + 1) << f.mantissa_bits,
                                               (one + 1) << f.mantissa_bits | half};
  return values[random() % 4];
}

/// An element in a column of all operands. Columns have kinds, because a single NaN hides everything else.
std::uint64_t draw(DataType type, Random& random, std::int64_t column) {
  if (is_integer(type)) {
    return column % 3 == 0 ? random() % 4 : column % 3 == 1 ? random() : ~std::uint64_t{0} << (random() % 64);
  }
  const Format f = format_of(type);
  switch (column % 5) {
    case 0:
      return exact_float(f, random);
    case 1:
      return random() % 16 == 0 ? special_float(f, random) : ordinary_float(f, random);
    case 2:
      return (random() & 1) << (f.mantissa_bits + f.exponent_bits);  // zeros
    case 3:
      return (random() % 2 == 0 ? 0 : random() % 1024) | (random() & 1) << (f.mantissa_bits + f.exponent_bits);
    default:
      return ordinary_float(f, random);
  }
}

// ---- cases

enum class Alignment { kAlike, kAny };

/// Reductions in an arena; offsets instead of pointers, which are the host's or the GPU's.
struct Planned {
  std::int64_t out = 0;
  std::vector<std::int64_t> operands;
  std::int64_t count = 0;
};

struct Shape {
  int fan_in = 2;
  std::int64_t count = 0;
  int in_place = -1;  ///< the operand that is the result, too
};

class Kernels : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (num_cuda_devices(&why) == 0) GTEST_SKIP() << why;
    arena_ = std::make_unique<test::DeviceArena>(kArenaBytes);
  }

  void start(DataType type, ReduceOp op, std::uint64_t seed) {
    type_ = type;
    op_ = op;
    seed_ = seed;
    random_.seed(seed);
    jobs_.clear();
    arena_->clear();
  }

  std::int64_t element_bytes() const { return size_of(type_); }

  /// `past` elements after a multiple of 16 bytes; filled.
  std::int64_t place_operand(std::int64_t count, std::int64_t past) {
    const std::int64_t offset = arena_->place(count * element_bytes(), past * element_bytes());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t bits = draw(type_, random_, i);
      std::memcpy(arena_->host(offset + i * element_bytes()), &bits, static_cast<std::size_t>(element_bytes()));
    }
    return offset;
  }

  void add_at(const Shape& shape, std::int64_t past_out, const std::vector<std::int64_t>& past_operands) {
    Planned job{.out = 0, .operands = {}, .count = shape.count};
    for (int k = 0; k < shape.fan_in; ++k) {
      job.operands.push_back(place_operand(shape.count, past_operands[static_cast<std::size_t>(k)]));
    }
    job.out = shape.in_place >= 0 ? job.operands[static_cast<std::size_t>(shape.in_place)]
                                  : arena_->place(shape.count * element_bytes(), past_out * element_bytes());
    jobs_.push_back(job);
  }

  void add(const Shape& shape, Alignment alignment) {
    const auto common = static_cast<std::int64_t>(random_() % 17);
    std::vector<std::int64_t> past(static_cast<std::size_t>(shape.fan_in), common);
    if (alignment == Alignment::kAny) {
      for (std::int64_t& p : past) p = static_cast<std::int64_t>(random_() % 17);
    }
    add_at(shape, alignment == Alignment::kAny ? static_cast<std::int64_t>(random_() % 17) : common, past);
  }

  std::vector<DeviceReduction> device_jobs() const {
    std::vector<DeviceReduction> jobs;
    for (const Planned& planned : jobs_) {
      DeviceReduction job{.out = arena_->device(planned.out),
                          .num_operands = static_cast<int>(planned.operands.size()),
                          .count = planned.count};
      for (std::size_t k = 0; k < planned.operands.size(); ++k) {
        job.operands[k] = arena_->device(planned.operands[k]);
      }
      jobs.push_back(job);
    }
    return jobs;
  }

  /// What the GPU should do, on the host's image.
  void reduce_on_host() {
    for (const Planned& job : jobs_) {
      std::vector<const void*> operands;
      for (const std::int64_t offset : job.operands) operands.push_back(arena_->host(offset));
      reduce(type_, op_, arena_->host(job.out), operands, job.count);
    }
  }

  void check() {
    arena_->upload();
    launch_reductions(type_, op_, device_jobs(), nullptr);
    reduce_on_host();
    expect_same(nullptr);
  }

  void expect_same(cudaStream_t stream) {
    const std::string difference = arena_->difference(stream);
    if (difference.empty()) return;
    FAIL() << to_string(op_) << " of " << to_string(type_) << ", " << jobs_.size() << " jobs, the first with "
           << jobs_.front().operands.size() << " operands of " << jobs_.front().count << " elements, seed " << seed_
           << ": " << difference;
  }

  std::unique_ptr<test::DeviceArena> arena_;
  DataType type_ = DataType::kFloat32;
  ReduceOp op_ = ReduceOp::kSum;
  std::uint64_t seed_ = 0;
  Random random_;
  std::vector<Planned> jobs_;
};

std::vector<int> fan_ins() {
  if (is_small()) return {2, 5, 16, 17, 64};
  std::vector<int> all(15);
  std::iota(all.begin(), all.end(), 2);
  all.insert(all.end(), {17, 33, 64});
  return all;
}

std::vector<std::int64_t> counts() {
  if (is_small()) return {3, 301};
  return {0, 1, 3, 7, 15, 17, 255, 1023, 4097};
}

TEST_F(Kernels, EveryTypeOperatorFanInAndCount) {
  std::uint64_t seed = 1;
  for (const DataType type : kTypes) {
    for (const ReduceOp op : kOps) {
      for (const int fan_in : fan_ins()) {
        for (const std::int64_t count : counts()) {
          for (const Alignment alignment : {Alignment::kAlike, Alignment::kAny}) {
            start(type, op, seed++);
            add({.fan_in = fan_in, .count = count}, alignment);
            ASSERT_NO_FATAL_FAILURE(check());
          }
        }
      }
    }
  }
}

TEST_F(Kernels, LargerVectorsTakeManyBlocks) {
  std::uint64_t seed = 100'000;
  for (const DataType type : kTypes) {
    for (const ReduceOp op : kOps) {
      for (const Alignment alignment : {Alignment::kAlike, Alignment::kAny}) {
        start(type, op, seed++);
        const int fan_in = is_small() ? 2 : static_cast<int>(2 + random_() % 16);
        add({.fan_in = fan_in, .count = is_small() ? 10'003 : 100'003}, alignment);
        ASSERT_NO_FATAL_FAILURE(check());
      }
    }
  }
}

TEST_F(Kernels, EveryPairOfAlignments) {
  std::uint64_t seed = 200'000;
  for (const DataType type : kTypes) {
    for (std::int64_t past_out = 0; past_out <= 16; past_out += is_small() ? 5 : 1) {
      for (std::int64_t past = 0; past <= 16; past += is_small() ? 3 : 1) {
        start(type, ReduceOp::kSum, seed++);
        const auto count = static_cast<std::int64_t>(40 + random_() % 500);
        add_at({.fan_in = 3, .count = count}, past_out, {past, past_out, static_cast<std::int64_t>(random_() % 17)});
        ASSERT_NO_FATAL_FAILURE(check());
      }
    }
  }
}

/// Lengths at which the head, the vectors and the tail come and go.
TEST_F(Kernels, EveryShortCount) {
  std::uint64_t seed = 300'000;
  for (const DataType type : {DataType::kUint8, DataType::kBfloat16, DataType::kFloat32, DataType::kFloat64}) {
    for (std::int64_t count = 0; count <= 80; count += is_small() ? 9 : 1) {
      for (const Alignment alignment : {Alignment::kAlike, Alignment::kAny}) {
        for (int repeat = 0; repeat < (is_small() ? 1 : 5); ++repeat) {
          start(type, ReduceOp::kSum, seed++);
          add({.fan_in = 2, .count = count}, alignment);
          ASSERT_NO_FATAL_FAILURE(check());
        }
      }
    }
  }
}

TEST_F(Kernels, TheResultMayBeAnyOperand) {
  std::uint64_t seed = 400'000;
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16, DataType::kInt64}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {
      for (const int fan_in : fan_ins()) {
        for (int position = 0; position < fan_in; position += is_small() ? 7 : 1) {
          for (const Alignment alignment : {Alignment::kAlike, Alignment::kAny}) {
            start(type, op, seed++);
            add({.fan_in = fan_in, .count = is_small() ? 155 : 1555, .in_place = position}, alignment);
            ASSERT_NO_FATAL_FAILURE(check());
          }
        }
      }
    }
  }
}

TEST_F(Kernels, ManyJobsInOneCall) {
  std::uint64_t seed = 500'000;
  for (const DataType type : {DataType::kFloat32, DataType::kBfloat16, DataType::kInt32}) {
    for (const int num_jobs : {1, 2, 7, 15, 40}) {
      for (int repeat = 0; repeat < (is_small() ? 2 : 20); ++repeat) {
        start(type, repeat % 2 == 0 ? ReduceOp::kSum : ReduceOp::kProd, seed++);
        const auto same_fan_in = static_cast<int>(2 + random_() % 6);
        for (int j = 0; j < num_jobs; ++j) {
          const bool is_mixed = repeat % 4 >= 2;
          const int fan_in = is_mixed ? static_cast<int>(2 + random_() % 63) : same_fan_in;
          const auto count = static_cast<std::int64_t>(random_() % 4 == 0 ? 0 : random_() % (is_small() ? 99 : 9999));
          add({.fan_in = fan_in, .count = count}, is_mixed && j % 2 == 0 ? Alignment::kAny : Alignment::kAlike);
        }
        ASSERT_NO_FATAL_FAILURE(check());
      }
    }
  }
}

/// Every vector ends with its allocation, so that compute-sanitizer sees what is read or written past it.
TEST_F(Kernels, TouchNothingPastTheirVectors) {
  Random random(550'000);
  for (const DataType type : {DataType::kUint8, DataType::kFloat16, DataType::kFloat32, DataType::kFloat64}) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      const std::int64_t size = size_of(type);
      const auto count = static_cast<std::int64_t>(1 + random() % 300);
      DeviceReduction job{.out = nullptr, .num_operands = 3, .count = count};
      std::vector<void*> allocations;
      const auto allocate = [&] {
        const auto past = static_cast<std::int64_t>(random() % 16) / size * size;
        void* memory = nullptr;
        check_cuda(cudaMalloc(&memory, static_cast<std::size_t>(past + count * size)), "cudaMalloc");
        check_cuda(cudaMemset(memory, 1, static_cast<std::size_t>(past + count * size)), "cudaMemset");
        allocations.push_back(memory);
        return static_cast<std::byte*>(memory) + past;
      };
      job.out = allocate();
      for (std::size_t k = 0; k < 3; ++k) job.operands[k] = allocate();
      launch_reductions(type, ReduceOp::kSum, std::span(&job, 1), nullptr);
      const DeviceCopy copy{job.out, job.operands[1], count * size};
      launch_copies(std::span(&copy, 1), nullptr);
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      for (void* memory : allocations) cudaFree(memory);
    }
  }
}

TEST_F(Kernels, CanBeLoadedBeforeTheyAreNeeded) {
  load_kernels();
  start(DataType::kFloat32, ReduceOp::kSum, 560'000);
  add({.fan_in = 4, .count = 100}, Alignment::kAlike);
  check();
}

TEST_F(Kernels, NoJobsAreNothing) {
  launch_reductions(DataType::kFloat32, ReduceOp::kSum, {}, nullptr);
  launch_copies({}, nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(Kernels, CopiesOfAnyLengthAndAlignment) {
  std::uint64_t seed = 600'000;
  for (const int num_jobs : {1, 2, 15, 70}) {
    for (int repeat = 0; repeat < (is_small() ? 4 : 200); ++repeat) {
      start(DataType::kUint8, ReduceOp::kSum, seed++);
      std::vector<DeviceCopy> copies;
      const auto same_bytes = static_cast<std::int64_t>(random_() % 20'000);
      for (int j = 0; j < num_jobs; ++j) {
        const std::int64_t bytes =
            repeat % 2 == 0 ? same_bytes : static_cast<std::int64_t>(random_() % (is_small() ? 300 : 30'000));
        const std::int64_t in = place_operand(bytes, static_cast<std::int64_t>(random_() % 16));
        const std::int64_t out = arena_->place(bytes, static_cast<std::int64_t>(random_() % 16));
        jobs_.push_back({out, {in}, bytes});
        copies.push_back({arena_->device(out), arena_->device(in), bytes});
      }
      copies.push_back({copies[0].out, copies[0].out, copies[0].bytes});  // onto itself
      if (num_jobs == 1 && repeat % 2 == 0) copies.pop_back();
      arena_->upload();
      launch_copies(copies, nullptr);
      reduce_on_host();
      ASSERT_NO_FATAL_FAILURE(expect_same(nullptr)) << "copies";
    }
  }
}

/// Both calls in a captured graph, which is replayed with other inputs.
TEST_F(Kernels, AreCapturedInGraphs) {
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  start(DataType::kFloat32, ReduceOp::kSum, 700'000);
  add({.fan_in = 5, .count = 1001}, Alignment::kAlike);
  add({.fan_in = 3, .count = 77}, Alignment::kAny);
  const std::int64_t copied = arena_->place(1001 * 4, 4);
  const std::array copies = {DeviceCopy{arena_->device(copied), arena_->device(jobs_[0].out), 1001 * 4}};
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  launch_reductions(type_, op_, device_jobs(), stream);
  launch_copies(copies, stream);
  check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
  check_cuda(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  for (int replay = 0; replay < 3; ++replay) {
    std::memset(arena_->host(jobs_[0].operands[0]), replay, 1001 * 4);
    arena_->upload(stream);
    check_cuda(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
    reduce_on_host();
    std::memcpy(arena_->host(copied), arena_->host(jobs_[0].out), 1001 * 4);
    expect_same(stream);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

// ---- the public call

class CudaReduce : public Kernels {
 protected:
  /// Of the only job.
  void check_call() {
    arena_->upload();
    std::vector<const void*> operands;
    for (const std::int64_t offset : jobs_[0].operands) operands.push_back(arena_->device(offset));
    cuda_reduce(type_, op_, arena_->device(jobs_[0].out), operands, jobs_[0].count, Stream{});
    reduce_on_host();
    expect_same(nullptr);
  }
};

TEST_F(CudaReduce, OneOperandIsACopy) {
  for (const DataType type : kTypes) {
    start(type, ReduceOp::kMax, 800'000);
    add({.fan_in = 1, .count = 1003}, Alignment::kAny);
    check_call();
  }
}

TEST_F(CudaReduce, MoreOperandsThanAPassTakes) {
  std::uint64_t seed = 810'000;
  for (const DataType type : kTypes) {
    for (const ReduceOp op : kOps) {
      for (const int fan_in : {65, 127, 200}) {
        const bool rounds = size_of(type) == 2 && (op == ReduceOp::kSum || op == ReduceOp::kProd);
        if (rounds) continue;
        start(type, op, seed++);
        add({.fan_in = fan_in, .count = is_small() ? 33 : 555, .in_place = fan_in == 127 ? 63 : -1}, Alignment::kAny);
        check_call();
      }
    }
  }
}

/// An error that CUDA reports must not turn up again in the next call.
TEST_F(CudaReduce, WorksAfterAFailedAllocation) {
  void* memory = nullptr;
  EXPECT_THROW(check_cuda(cudaMalloc(&memory, std::size_t{1} << 50), "cudaMalloc of 1126 TB"), DeviceError);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  start(DataType::kFloat32, ReduceOp::kSum, 820'000);
  add({.fan_in = 2, .count = 100}, Alignment::kAlike);
  check_call();
}

// ---- what needs no GPU

template <class Exception, class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.what();
  }
  return "no error of the expected type";
}

TEST(CudaWithoutGpu, SupportedTypesAndOperators) {
  int num_supported = 0;
  for (int t = 0; t < kNumDataTypes; ++t) {
    for (int o = 0; o < kNumReduceOps; ++o) {
      num_supported += is_supported_on_cuda(static_cast<DataType>(t), static_cast<ReduceOp>(o)) ? 1 : 0;
    }
  }
  EXPECT_EQ(num_supported, 40);
  for (const DataType type : kTypes) {
    for (const ReduceOp op : kOps) EXPECT_TRUE(is_supported_on_cuda(type, op)) << to_string(type) << to_string(op);
  }
  EXPECT_FALSE(is_supported_on_cuda(DataType::kInt16, ReduceOp::kSum));
  EXPECT_FALSE(is_supported_on_cuda(DataType::kInt32, ReduceOp::kBand));
  EXPECT_THROW(is_supported_on_cuda(static_cast<DataType>(99), ReduceOp::kSum), InvalidArgument);
}

TEST(CudaWithoutGpu, BadArgumentsAreNamed) {
  alignas(16) std::array<float, 8> memory{};
  const auto call = [&](DataType type, ReduceOp op, void* out, std::vector<const void*> operands, std::int64_t count) {
    return message_of<InvalidArgument>([&] { cuda_reduce(type, op, out, operands, count, Stream{}); });
  };
  const void* in = memory.data();
  const auto sum = ReduceOp::kSum;
  EXPECT_EQ(call(DataType::kFloat32, ReduceOp::kBxor, memory.data(), {in, in}, 1),
            "bxor of float32 is not supported on GPUs; expected sum prod min max of int8 uint8 int32 uint32 int64 "
            "uint64 float16 bfloat16 float32 float64");
  EXPECT_EQ(call(DataType::kFloat32, sum, memory.data(), {}, 1), "a reduction needs at least one operand");
  EXPECT_EQ(call(DataType::kFloat32, sum, memory.data(), {in, in}, -5),
            "a reduction of -5 elements; expected 0 and more");
  EXPECT_EQ(call(DataType::kFloat32, sum, nullptr, {in, in}, 1), "the result of a reduction is a null pointer");
  EXPECT_EQ(call(DataType::kFloat32, sum, memory.data(), {in, nullptr}, 1),
            "operand 1 of a reduction is a null pointer");
  const void* odd = reinterpret_cast<const std::byte*>(memory.data()) + 2;
  EXPECT_NE(call(DataType::kFloat32, sum, memory.data(), {odd, in}, 1).find("is not aligned to the 4 bytes of float32"),
            std::string::npos);
  EXPECT_EQ(call(DataType::kFloat16, sum, memory.data(), std::vector<const void*>(65, in), 1),
            "sum of 65 float16 operands on a GPU; expected up to 64, because more would be rounded twice");
  std::vector<const void*> many(70, static_cast<const void*>(&memory[4]));
  many[66] = memory.data();
  EXPECT_EQ(call(DataType::kFloat32, sum, memory.data(), many, 1),
            "the result of a reduction of 70 operands on a GPU is operand 66; expected one of the first 64, or none");
}

TEST(CudaWithoutGpu, PassesCheckTheirOperands) {
  DeviceReduction job{.num_operands = 1, .count = 1};
  const auto call = [&](DataType type) {
    return message_of<InvalidArgument>([&] { launch_reductions(type, ReduceOp::kSum, std::span(&job, 1), nullptr); });
  };
  EXPECT_EQ(call(DataType::kFloat32), "number of operands of a pass on a GPU: 1; expected 2 to 64");
  job.num_operands = 65;
  EXPECT_EQ(call(DataType::kFloat32), "number of operands of a pass on a GPU: 65; expected 2 to 64");
  job = {.num_operands = 2, .count = -1};
  EXPECT_EQ(call(DataType::kFloat32), "a reduction of -1 elements; expected 0 and more");
  EXPECT_NE(call(DataType::kUint16).find("sum of uint16 is not supported on GPUs"), std::string::npos);
  const DeviceCopy copy{nullptr, nullptr, -1};
  EXPECT_EQ(message_of<InvalidArgument>([&] { launch_copies(std::span(&copy, 1), nullptr); }),
            "a copy of -1 bytes; expected 0 and more");
}

TEST(CudaWithoutGpu, NoElementsNeedNoGpu) {
  const std::vector<const void*> operands = {nullptr, nullptr};
  EXPECT_NO_THROW(cuda_reduce(DataType::kFloat32, ReduceOp::kSum, nullptr, operands, 0, Stream{}));
}

TEST(CudaWithoutGpu, SaysWhyThereIsNone) {
  std::string why;
  if (num_cuda_devices(&why) > 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_FALSE(why.empty());
  EXPECT_EQ(num_cuda_devices(), 0);
  std::array<float, 4> memory{};
  const std::vector<const void*> operands = {memory.data(), memory.data()};
  const std::string message = message_of<DeviceError>(
      [&] { cuda_reduce(DataType::kFloat32, ReduceOp::kSum, memory.data(), operands, 4, Stream{}); });
  EXPECT_TRUE(message.starts_with("launch of sum of float32, 4 elements in all: ")) << message;
}

TEST(CudaWithoutGpu, ErrorsInWords) {
  EXPECT_EQ(message_of<DeviceError>(
                [] { check_cuda(cudaErrorMemoryAllocation, "cudaMalloc of " + bytes_text(1.5e9) + " on device 0"); }),
            "cudaMalloc of 1.5 GB on device 0: out of memory (cudaErrorMemoryAllocation)");
  EXPECT_EQ(bytes_text(64), "64 bytes");
  EXPECT_EQ(bytes_text(4096), "4.1 kB");
  EXPECT_NO_THROW(check_cuda(cudaSuccess, "nothing"));
}

}  // namespace
}  // namespace gar
