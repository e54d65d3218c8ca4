// The parts of `--device cuda` that need no GPU: flags, the bound, and what runs on a device, with memory of the host
// in its place.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "apps/gar/reproduce/calc.hpp"
#include "apps/gar/verbs/bench_options.hpp"
#include "apps/gar/verbs/fit_options.hpp"
#include "apps/gar/views/bench_report.hpp"
#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/measure/bench.hpp"
#include "gar/measure/fit.hpp"
#include "gar/measure/world.hpp"
#include "gar/profile_io.hpp"
#include "measure/bench/bound.hpp"
#include "measure/bench/buffers.hpp"

namespace gar::cli {
namespace {

/// A device whose memory is the host's: what is uploaded is there, what is not is not.
class FakeCuda : public CudaSession {
 public:
  explicit FakeCuda(int num_devices = 1) : num_devices_(num_devices) {}
  ~FakeCuda() override { EXPECT_TRUE(blocks_.empty()) << "memory was not released"; }
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  [[nodiscard]] std::string words() const override { return "a pretended GPU"; }
  [[nodiscard]] int num_devices() const override { return num_devices_; }
  [[nodiscard]] std::int64_t free_bytes() const override { return std::int64_t{64} << 20; }
  [[nodiscard]] std::string nccl_version() const override { return "0.0.0"; }
  DeviceMemory allocate(std::int64_t bytes) override {
    auto* memory = static_cast<std::byte*>(std::malloc(static_cast<std::size_t>(bytes)));
    std::memset(memory, 0x77, static_cast<std::size_t>(bytes));
    blocks_.insert(memory);
    return DeviceMemory(memory, DeviceRelease{this});
  }
  void release(std::byte* memory) noexcept override {
    EXPECT_EQ(blocks_.erase(memory), 1U);
    std::free(memory);
  }
  void upload(void* device, const void* host, std::int64_t bytes) override { copy(device, host, bytes); }
  void download(void* host, const void* device, std::int64_t bytes) override { copy(host, device, bytes); }
  [[nodiscard]] Stream stream() const override { return {}; }
  void copy(void* out, const void* in, std::int64_t bytes) override {
    std::memcpy(out, in, static_cast<std::size_t>(bytes));
  }
  void reduce(DataType type, ReduceOp op, void* out, std::span<const void* const> operands,
              std::int64_t count) override {
    gar::reduce(type, op, out, operands, count);
  }
  void synchronize() override {}
  double time(const std::function<void()>& enqueue, std::int64_t repetitions) override {
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < repetitions; ++i) enqueue();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    return seconds.count() / static_cast<double>(repetitions);
  }
  Communicator communicator(const CudaPlace& place, const CommunicatorOptions& options,
                            TransportKind /*transport*/) override {
    return shared_memory_communicator(place.name, place.rank, place.size, options);
  }
  Communicator native_communicator(const CudaPlace& place, const CommunicatorOptions& options) override {
    return shared_memory_communicator(place.name, place.rank, place.size, options);
  }

 private:
  int num_devices_;
  std::set<std::byte*> blocks_;
};

BenchArgs cuda_args() {
  BenchArgs args;
  args.device = "cuda";
  args.local = "4";
  return args;
}

template <class F>
std::string usage_error_of(F parse) {
  try {
    (void)parse();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

// S bytes on N ranks of one memory, Equation by algorithm:
//   cps   every rank reduces N operands of S/N: N * (N + 1) S/N; every rank copies N - 1 blocks: N * 2 (N - 1) S/N
//   ring  N - 1 steps in which every rank adds two blocks, and N - 1 in which it copies one
TEST(MemoryTraffic, OfCpsAndRing) {
  constexpr double kBytes = 1e6;
  for (const std::int64_t n : {2, 3, 4, 8, 13}) {
    const auto ranks = static_cast<double>(n);
    EXPECT_NEAR(memory_traffic(cps(n), kBytes), (ranks + 1 + 2 * (ranks - 1)) * kBytes, 1) << n;
    EXPECT_NEAR(memory_traffic(build_plan({"ring", {}, false}, n), kBytes), 5 * (ranks - 1) * kBytes, 1) << n;
  }
}

// 2 x 2: both steps reduce two operands, of S/2 on all 4 ranks and then of S/4 (3 * 4 * (1/2 + 1/4) = 9), and copy as
// much back (2 * 4 * (1/4 + 1/2) = 6).
TEST(MemoryTraffic, OfStages) { EXPECT_NEAR(memory_traffic(hcps(4, {2, 2}), 1e6), 15e6, 1); }

TEST(MemoryTraffic, OfHalves) {
  EXPECT_NEAR(*memory_traffic_of("cps", Collective::kReduceScatter, 4, 1e6), 5e6, 1);
  EXPECT_NEAR(*memory_traffic_of("cps", Collective::kAllGather, 4, 1e6), 6e6, 1);
  EXPECT_NEAR(*memory_traffic_of("ring", Collective::kReduceScatter, 4, 1e6), 9e6, 1);
  EXPECT_NEAR(*memory_traffic_of("ring", Collective::kAllGather, 4, 1e6), 6e6, 1);
}

// An explicit plan, whose programs are as they are.
TEST(MemoryTraffic, OfExplicitPlans) {
  EXPECT_NEAR(memory_traffic(make_explicit(cps(5)), 1e6), memory_traffic(cps(5), 1e6), 1);
}

TEST(MemoryTraffic, OfWords) {
  EXPECT_NEAR(*memory_traffic_of("hcps:2x2", Collective::kAllReduce, 4, 1e6), 15e6, 1);
  EXPECT_NEAR(*memory_traffic_of("gather", Collective::kAllReduce, 4, 1e3), 20e3, 1);
  EXPECT_FALSE(memory_traffic_of("gentree", Collective::kAllReduce, 4, 1e6));
  EXPECT_FALSE(memory_traffic_of("hcps", Collective::kAllReduce, 4, 1e6));
  EXPECT_FALSE(memory_traffic_of("three levels, of which one is a ring", Collective::kAllReduce, 4, 1e6));
}

TEST(CudaOptions, OfBench) {
  const BenchConfig config = parse_bench(cuda_args());
  EXPECT_EQ(config.device, Device::kCuda);
  EXPECT_EQ(config.transport, TransportKind::kCudaIpc);
  BenchArgs nccl = cuda_args();
  nccl.transport = "nccl";
  nccl.algo = "cps,native";
  EXPECT_EQ(parse_bench(nccl).transport, TransportKind::kNccl);
  EXPECT_TRUE(parse_bench(nccl).has_native());
}

TEST(CudaOptions, RefusedByBench) {
  const auto error = [](const std::function<void(BenchArgs&)>& change) {
    BenchArgs args = cuda_args();
    change(args);
    return usage_error_of([&] { return parse_bench(args); });
  };
  EXPECT_EQ(error([](BenchArgs&) {}), "accepted");
  for (const char* transport : {"threads", "shm", "mpi"}) {
    expect_part(error([&](BenchArgs& args) { args.transport = transport; }), "expected auto cuda-ipc nccl");
  }
  for (const char* transport : {"cuda-ipc", "nccl"}) {
    expect_part(error([&](BenchArgs& args) {
                  args.device = "cpu";
                  args.transport = transport;
                }),
                "is for --device cuda");
  }
  expect_part(error([](BenchArgs& args) { args.local.clear(); }), "--device cuda needs --local N");
  expect_part(error([](BenchArgs& args) { args.reproducible = true; }), "--reproducible cannot be combined with");
  expect_part(error([](BenchArgs& args) { args.mpi = "mpich"; }), "--mpi cannot be combined with");
}

TEST(CudaOptions, OfFit) {
  FitArgs args;
  args.device = "cuda";
  EXPECT_EQ(parse_fit(args).transport, TransportKind::kCudaIpc);
  args.transport = "mpi";
  expect_part(usage_error_of([&] { return parse_fit(args); }), "expected auto cuda-ipc nccl");
  args.transport = "auto";
  args.from = {"measured.json"};
  expect_part(usage_error_of([&] { return parse_fit(args); }), "--from cannot be combined with --device");
}

TEST(CudaSession, IsNotInThisProgram) {
  EXPECT_FALSE(is_built_with_cuda());
  EXPECT_THROW((void)start_cuda(0, 1), std::runtime_error);
}

TEST(CudaWorld, RanksShareGpus) {
  const FakeCuda one;
  const FakeCuda four(4);
  EXPECT_EQ(ranks_per_gpu(one, 8), 8);
  EXPECT_EQ(ranks_per_gpu(four, 8), 2);
  EXPECT_EQ(ranks_per_gpu(four, 3), 1);
}

/// Runs an operation of one rank on the device's memory: the result is the input.
std::int64_t wrong_after(bool in_place, const std::function<void(const CollectiveCall&)>& damage) {
  FakeCuda cuda;
  BenchBuffers buffers(4000, in_place ? 8000 : 0, &cuda);
  BenchBuffers::Shape shape;
  shape.size = {1000, 1000, 4000};
  shape.in_place = in_place;
  shape.batch = in_place ? 2 : 1;
  buffers.set_shape(shape);
  const BenchData data({DataType::kFloat32, ReduceOp::kSum, 1, 7});
  buffers.fill(data);
  const CollectiveCall call = buffers.call(0, false);
  if (!in_place) std::memcpy(call.out, call.in, 4000);
  damage(call);
  return buffers.num_wrong(data, false);
}

TEST(DeviceBuffers, AreCheckedOnTheDevice) {
  for (const bool in_place : {false, true}) {
    const std::int64_t guard = in_place ? 8000 : 4000;
    EXPECT_EQ(wrong_after(in_place, [](const CollectiveCall&) {}), 0);
    EXPECT_EQ(wrong_after(in_place, [](const CollectiveCall& call) { static_cast<float*>(call.out)[999] += 1; }), 1);
    EXPECT_EQ(wrong_after(in_place, [&](const CollectiveCall& call) { static_cast<char*>(call.out)[guard] = 0; }), 1);
  }
  // Nobody wrote a result: the garbage of before is still there.
  FakeCuda cuda;
  BenchBuffers buffers(4000, 0, &cuda);
  BenchBuffers::Shape shape;
  shape.size = {1000, 1000, 4000};
  buffers.set_shape(shape);
  const BenchData data({DataType::kFloat32, ReduceOp::kSum, 1, 7});
  buffers.fill(data);
  EXPECT_EQ(buffers.num_wrong(data, false), 1000);
}

TEST(DeviceReport, HasTheBound) {
  BenchConfig config = parse_bench(cuda_args());
  BenchResult result;
  result.entry.name = result.plan = "cps";
  result.transport = "cuda-ipc";
  result.size = {1000, 1000, 4000};
  result.seconds = spread_of({2e-3});
  result.is_on_gpu = true;
  result.bound_seconds = 1e-3;
  expect_part(bench_header(config, "a GPU"), "bound");
  expect_part(bench_line(result, false), "        1000    2.00  cps");
  BenchOutcome outcome;
  outcome.copy_bytes_per_s = 4.2e12;
  expect_part(bench_footer({result}, outcome), "at the 4.20 TB/s of a copy in GPU memory");
  const auto document = nlohmann::json::parse(bench_document(config, {4, "a GPU", {result}, {}, outcome}));
  EXPECT_EQ(document["device"], "cuda");
  EXPECT_EQ(document["copy_bytes_per_s"], 4.2e12);
  EXPECT_EQ(document["results"][0]["bound_seconds"], 1e-3);
  EXPECT_EQ(document["results"][0]["times_bound"], 2.0);
  result.bound_seconds = -1;  // NCCL
  expect_part(bench_line(result, false), "           -       -  cps");
  config.device = Device::kCpu;
  EXPECT_EQ(bench_header(config, "hosts").find("bound"), std::string::npos);
}

/// What `gar bench --device cuda --local 2` measures by blocking calls, as its first rank sees it.
int measure_bench(int num_gpus, const std::function<void(const BenchOutcome&, const std::vector<BenchResult>&,
                                                         const std::vector<std::string>&)>& check) {
  BenchArgs args = cuda_args();
  args.algo = "cps,native";
  args.sizes = "4096,1MiB";
  args.check = "0";
  args.batch = "1";
  args.iterations = "2";
  const BenchConfig config = parse_bench(args);
  return run_local_processes({2, 10, print_failure}, [&](const LocalRank& rank) {
    FakeCuda cuda(num_gpus);
    std::vector<BenchResult> results;
    std::vector<std::string> notes;
    BenchWatch watch;
    watch.on_result = [&](const BenchResult& result) { results.push_back(result); };
    watch.on_note = [&](const std::string& note) { notes.push_back(note); };
    const BenchOutcome outcome = run_bench(*cuda_world(rank, cuda, TransportKind::kCudaIpc), config, watch);
    check(outcome, results, notes);
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
}

TEST(DeviceBench, MeasuresPlansAndNccl) {
  const int code = measure_bench(1, [](const auto& outcome, const auto& results, const auto& notes) {
    EXPECT_TRUE(outcome.is_complete);
    EXPECT_GT(outcome.copy_bytes_per_s, 0);
    ASSERT_EQ(results.size(), 4U);
    EXPECT_EQ(results[0].plan, "cps");
    EXPECT_EQ(results[1].plan, "NCCL 0.0.0");
    EXPECT_EQ(results[1].transport, "nccl");
    EXPECT_EQ(results[1].bound_seconds, -1);
    for (const BenchResult& result : results) {
      EXPECT_TRUE(result.is_on_gpu);
      EXPECT_GT(result.seconds.median, 0);
    }
    ASSERT_EQ(notes.size(), 1U);
    expect_part(notes[0], "NCCL goes over sockets between ranks that share a GPU");
  });
  EXPECT_EQ(code, 0);
}

TEST(DeviceBench, SaysNothingOfSocketsWhereGpusAreNotShared) {
  const int code = measure_bench(2, [](const auto&, const auto&, const auto& notes) { EXPECT_TRUE(notes.empty()); });
  EXPECT_EQ(code, 0);
}

/// What `gar fit --device cuda` measures, on `size` processes; the first one checks it. How much a machine measures in
/// a time depends on what else it does, so a budget that was too short is doubled.
int measure_fit(int size, const std::function<void(const FitRun&)>& check) {
  constexpr int kTooShort = 3;
  constexpr double kLongest = 600;
  int code = kTooShort;
  for (double budget_s = 4; code == kTooShort && budget_s < kLongest; budget_s *= 2) {
    code = run_local_processes({size, 10, print_failure}, [&](const LocalRank& rank) {
      FakeCuda cuda;
      FitConfig config;
      config.device = Device::kCuda;
      config.transport = TransportKind::kCudaIpc;
      config.budget_s = budget_s;
      const FitRun run = run_fit(*cuda_world(rank, cuda, TransportKind::kCudaIpc), config, {});
      if (!run.is_enough) return kTooShort;
      if (rank.rank == 0) check(run);
      return ::testing::Test::HasFailure() ? 1 : 0;
    });
  }
  return code;
}

TEST(DeviceFit, OfOneProcessHasReductionsAlone) {
  const int code = measure_fit(1, [](const FitRun& run) {
    EXPECT_EQ(run.measurements.provenance.device, "a pretended GPU");
    EXPECT_EQ(run.measurements.provenance.transport, "");
    EXPECT_EQ(run.measurements.cores, 0);
    EXPECT_GE(run.measurements.observations.size(), 7U);
    for (const Observation& one : run.measurements.observations) {
      EXPECT_EQ(one.kind, ObservationKind::kReduction);
      EXPECT_EQ(one.servers, std::vector<std::int64_t>{0});
    }
  });
  EXPECT_EQ(code, 0);
}

TEST(DeviceFit, OfTwoProcessesHasTheTransportToo) {
  const int code = measure_fit(2, [](const FitRun& run) {
    EXPECT_EQ(run.measurements.provenance.transport, "cuda-ipc");
    EXPECT_EQ(run.measurements.access, OperandAccess::kDirect);
    EXPECT_EQ(run.measurements.cores, 1) << "two ranks share the one GPU";
    EXPECT_TRUE(run.measurements.is_memory);
    std::set<ObservationKind> kinds;
    for (const Observation& one : run.measurements.observations) {
      kinds.insert(one.kind);
      if (one.kind == ObservationKind::kReduction) {
        EXPECT_EQ(one.servers, std::vector<std::int64_t>{0});
      }
    }
    EXPECT_EQ(kinds, (std::set<ObservationKind>{ObservationKind::kCollective, ObservationKind::kReduction}));
    std::ostringstream file;
    write_measurements(run.measurements, file);
    expect_part(file.str(), "\"device\": \"a pretended GPU\"");
  });
  EXPECT_EQ(code, 0);
}

// T = (x + 1) S delta + (x - 1) S gamma comes back.
TEST(CalcFit, FindsDeltaAndGamma) {
  constexpr double kCount = 1e8;
  CalcSeries series;
  for (int x = 2; x <= kMaxCalcFanIn; ++x) {
    series.seconds[static_cast<std::size_t>(x)] = kCount * ((x + 1) * 9e-13 + (x - 1) * 2e-13);
  }
  const CalcFit fit = fit_calc(series, kCount);
  EXPECT_NEAR(fit.delta, 9e-13, 1e-18);
  EXPECT_NEAR(fit.gamma, 2e-13, 1e-18);
  EXPECT_NEAR(fit.r2, 1, 1e-12);
  const CalcProfile profile{gar::fit(calc_measurements(series, kCount))};
  EXPECT_NEAR(profile.profile.delta.value, 9e-13, 9e-15);
  EXPECT_NEAR(series_of(paper_measurements("calc-gpu")).per_add(2), 8e-3, 1e-12);
}

}  // namespace
}  // namespace gar::cli
