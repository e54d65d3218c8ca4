// Processes that reduce straight out of each other's device memory.
#include <sys/mman.h>
#include <unistd.h>

#include <numeric>

#include "cuda/device_case.hpp"

namespace gar::test {
namespace {

Communicator make(const DeviceMember& member, const std::string& algorithm = "", double timeout_s = 60) {
  static int number = 0;
  CommunicatorOptions options;
  options.algorithm = algorithm;
  options.timeout_s = timeout_s;
  return cuda_communicator(member.name + "." + std::to_string(number++), member.rank, member.size, options);
}

std::vector<std::string> algorithms_for(int size) {
  std::vector<std::string> out{"", "ring", "rhd", "cps", "reduce-broadcast", "gentree+", "gentree"};
  if (size == 4) out.insert(out.end(), {"hcps:2x2"});
  if (size == 8) out.insert(out.end(), {"hcps:4x2", "hcps:2x4", "hcps:2x2x2"});
  return out;
}

/// Rank + 1 in every element; the result is the same everywhere.
std::vector<float> ones(int rank, std::int64_t count) {
  std::vector<float> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(rank + 1 + static_cast<int>(i % 13));
  return out;
}
float expected(int size, std::size_t i) {
  return static_cast<float>(size * (size + 1) / 2 + size * static_cast<int>(i % 13));
}

void expect_sums(const float* device, int size, std::int64_t count, const std::string& what) {
  std::vector<float> host(static_cast<std::size_t>(count));
  download(host.data(), device, host.size() * 4);
  for (std::size_t i = 0; i < host.size(); ++i) {
    check(host[i] == expected(size, i), what + ": element " + std::to_string(i) + " is " + std::to_string(host[i]) +
                                            " instead of " + std::to_string(expected(size, i)));
  }
}

/// Sums a vector and checks it: does the communicator (still) work?
void expect_works(Communicator& communicator, std::int64_t count = 10'007) {
  const std::vector<float> values = ones(communicator.rank(), count);
  const DeviceMemory memory(values.size() * 4);
  upload(memory.bytes(), values.data(), values.size() * 4);
  communicator.all_reduce(memory.bytes(), memory.bytes(), count, DataType::kFloat32);
  expect_sums(memory.floats(), communicator.size(), count, "a plain sum");
}

void run_all_algorithms(int size, std::size_t cases_each) {
  EXPECT_EQ(failures(run_on_gpus(size,
                                 [&](const DeviceMember& member) {
                                   cudaStream_t stream = nullptr;
                                   check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                                              "cudaStreamCreate");
                                   std::uint64_t salt = 1000 * static_cast<std::uint64_t>(size);
                                   for (const std::string& algorithm : algorithms_for(size)) {
                                     Communicator communicator = make(member, algorithm);
                                     for (const Case& c : device_cases(size, salt, cases_each)) {
                                       ++salt;
                                       run_device_case(communicator, c, salt, salt % 3 == 0 ? stream : nullptr);
                                     }
                                     expect_works(communicator, 1'000'003);
                                   }
                                 })),
            "");
}

TEST(CudaIpc, AllAlgorithmsOf2) {
  GAR_SKIP_WITHOUT_GPU();
  run_all_algorithms(2, 40);
}
TEST(CudaIpc, AllAlgorithmsOf3) {
  GAR_SKIP_WITHOUT_GPU();
  run_all_algorithms(3, 25);
}
TEST(CudaIpc, AllAlgorithmsOf4) {
  GAR_SKIP_WITHOUT_GPU();
  run_all_algorithms(4, 25);
}
TEST(CudaIpc, AllAlgorithmsOf8) {
  GAR_SKIP_WITHOUT_GPU();
  run_all_algorithms(8, 12);
}

TEST(CudaIpc, OneRank) {
  GAR_SKIP_WITHOUT_GPU();
  EXPECT_EQ(failures(run_on_gpus(1,
                                 [](const DeviceMember& member) {
                                   Communicator communicator = make(member);
                                   std::uint64_t salt = 5;
                                   for (const Case& c : device_cases(1, 7, 40))
                                     run_device_case(communicator, c, ++salt, nullptr);
                                   communicator.barrier();
                                 })),
            "");
}

/// The call comes back although the stream is held up, and many operations may be on their way.
TEST(CudaIpc, CallsOnlyEnterTheStream) {
  GAR_SKIP_WITHOUT_GPU();
  EXPECT_EQ(failures(run_on_gpus(
                4,
                [](const DeviceMember& member) {
                  Communicator communicator = make(member);
                  constexpr std::int64_t kCount = 70'001;
                  constexpr int kOperations = 12;
                  cudaStream_t streams[2];
                  for (cudaStream_t& stream : streams) {
                    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
                  }
                  const std::vector<float> values = ones(member.rank, kCount);
                  std::vector<DeviceMemory> memory;
                  for (int i = 0; i < kOperations; ++i) {
                    memory.emplace_back(values.size() * 4);
                    upload(memory.back().bytes(), values.data(), values.size() * 4);
                  }
                  communicator.barrier();
                  std::atomic<bool> is_released{false};
                  if (member.rank % 2 == 0) hold_up(streams[0], is_released);
                  for (int i = 0; i < kOperations; ++i) {
                    float* data = memory[static_cast<std::size_t>(i)].floats();
                    communicator.all_reduce(data, data, kCount, DataType::kFloat32, ReduceOp::kSum,
                                            Stream{streams[i % 2]});
                  }
                  if (member.rank % 2 == 0) {
                    check(cudaStreamQuery(streams[0]) == cudaErrorNotReady, "the calls have waited for the stream");
                  }
                  is_released = true;
                  for (cudaStream_t stream : streams) communicator.synchronize(Stream{stream});
                  for (const DeviceMemory& m : memory) expect_sums(m.floats(), member.size, kCount, "on two streams");
                })),
            "");
}

TEST(CudaIpc, GraphsCanBeLaunchedAgain) {
  GAR_SKIP_WITHOUT_GPU();
  for (const char* algorithm : {"cps", "ring"}) {
    EXPECT_EQ(
        failures(run_on_gpus(4,
                             [&](const DeviceMember& member) {
                               Communicator communicator = make(member, algorithm);
                               constexpr std::int64_t kCount = 50'021;
                               const std::vector<float> values = ones(member.rank, kCount);
                               const DeviceMemory in(values.size() * 4);
                               const DeviceMemory out(values.size() * 4);
                               upload(in.bytes(), values.data(), values.size() * 4);
                               cudaStream_t stream = nullptr;
                               check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
                               check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
                               for (int i = 0; i < 2; ++i) {
                                 communicator.all_reduce(in.bytes(), out.bytes(), kCount, DataType::kFloat32,
                                                         ReduceOp::kSum, Stream{stream});
                               }
                               cudaGraph_t graph = nullptr;
                               check_cuda(cudaStreamEndCapture(stream, &graph), "end of the capture");
                               cudaGraphExec_t executable = nullptr;
                               check_cuda(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
                               for (int i = 0; i < 20; ++i) {
                                 check_cuda(cudaMemsetAsync(out.bytes(), 0xff, values.size() * 4, stream), "memset");
                                 check_cuda(cudaGraphLaunch(executable, stream), "launch");
                                 if (i % 5 == 4) {
                                   communicator.synchronize(Stream{stream});
                                   expect_sums(out.floats(), member.size, kCount, "graph");
                                 }
                               }
                               communicator.synchronize(Stream{stream});
                               // Graphs and calls may take turns.
                               expect_works(communicator);
                             })),
        "")
        << algorithm;
  }
}

TEST(CudaIpc, NoMemoryLeaksIn1000Calls) {
  GAR_SKIP_WITHOUT_GPU();
  EXPECT_EQ(failures(run_on_gpus(
                2,
                [](const DeviceMember& member) {
                  constexpr std::int64_t kCount = 1 << 20;
                  Communicator watch = make(member);
                  {
                    // What libraries and drivers take once.
                    Communicator first = make(member);
                    const DeviceMemory memory(kCount * 4 * 3);
                    first.all_reduce(memory.bytes(), memory.bytes(), kCount, DataType::kFloat32);
                    first.reduce_scatter(memory.bytes(), memory.bytes() + kCount * 4 * 2, kCount, DataType::kFloat32);
                    first.barrier();
                  }
                  const std::size_t before = quiet_free_memory(watch);
                  {
                    Communicator communicator = make(member);
                    const DeviceMemory memory(kCount * 4 * 3);
                    const auto run = [&](int calls) {
                      constexpr std::int64_t kBlock = kCount / 2;
                      std::byte* second = memory.bytes() + kCount * 4;
                      float host = 0;
                      for (int i = 0; i < calls; ++i) {
                        if (i % 5 == 0) communicator.all_reduce(memory.bytes(), second, kCount, DataType::kFloat32);
                        if (i % 5 == 1) communicator.reduce_scatter(memory.bytes(), second, kBlock, DataType::kFloat32);
                        if (i % 5 == 2) communicator.all_gather(memory.bytes(), second, kBlock, DataType::kFloat32);
                        if (i % 5 == 3) {
                          communicator.start_all_reduce(memory.bytes(), second, kCount, DataType::kFloat32).wait();
                        }
                        if (i % 5 == 4) {
                          error_of([&] { communicator.all_reduce(&host, memory.bytes(), 1, DataType::kFloat32); });
                        }
                      }
                    };
                    run(10);
                    const std::size_t early = quiet_free_memory(watch);
                    run(1000);
                    const std::size_t late = quiet_free_memory(watch);
                    check(late == early, "1000 calls took " +
                                             std::to_string(static_cast<double>(early) - static_cast<double>(late)) +
                                             " bytes");
                    for (int i = 0; i < 300; ++i) {
                      const DeviceMemory fresh(static_cast<std::size_t>(kCount * 4 + i * 4096));
                      communicator.all_reduce(fresh.bytes(), fresh.bytes(), kCount, DataType::kFloat32);
                    }
                    // Peers keep some mappings of memory that is free again.
                    const std::size_t renewed = quiet_free_memory(watch);
                    const double taken = static_cast<double>(late) - static_cast<double>(renewed);
                    check(taken <= 2 * 17 * 8e6, "300 calls with new buffers took " + std::to_string(taken) + " bytes");
                  }
                  const std::size_t after = quiet_free_memory(watch);
                  check(after >= before, "communicators have left " +
                                             std::to_string(static_cast<double>(before) - static_cast<double>(after)) +
                                             " bytes");
                })),
            "");
}

TEST(CudaIpc, AllocationFailureLeavesTheCommunicatorUsable) {
  GAR_SKIP_WITHOUT_GPU();
  EXPECT_EQ(failures(run_on_gpus(2,
                                 [](const DeviceMember& member) {
                                   Communicator communicator = make(member);
                                   constexpr std::int64_t kBlock = 16 << 20;
                                   const DeviceMemory in(kBlock * 2 * 4);
                                   const DeviceMemory out(kBlock * 4);
                                   expect_works(communicator);
                                   Hoard hoard;
                                   if (member.rank == 0) hoard.fill();
                                   communicator.barrier();
                                   const std::string error = error_of([&] {
                                     communicator.reduce_scatter(in.bytes(), out.bytes(), kBlock, DataType::kFloat32);
                                   });
                                   check(contains(error, "DeviceError") && contains(error, "out of memory"),
                                         "with a full GPU: " + error);
                                   communicator.barrier();
                                   hoard.release();
                                   communicator.barrier();
                                   expect_works(communicator);
                                   communicator.reduce_scatter(in.bytes(), out.bytes(), kBlock, DataType::kFloat32);
                                 })),
            "");
}

TEST(CudaIpc, RefusesOtherMemory) {
  GAR_SKIP_WITHOUT_GPU();
  EXPECT_EQ(failures(run_on_gpus(
                3,
                [](const DeviceMember& member) {
                  Communicator communicator = make(member);
                  const DeviceMemory device(4096);
                  std::vector<float> host(1024);
                  void* pinned = nullptr;
                  void* managed = nullptr;
                  void* pooled = nullptr;
                  check_cuda(cudaMallocHost(&pinned, 4096), "cudaMallocHost");
                  check_cuda(cudaMallocManaged(&managed, 4096), "cudaMallocManaged");
                  check_cuda(cudaMallocAsync(&pooled, 4096, nullptr), "cudaMallocAsync");
                  check_cuda(cudaDeviceSynchronize(), "cudaMallocAsync");
                  struct Other {
                    void* memory;
                    const char* name;
                  };
                  for (const Other& other : {Other{host.data(), "host memory"}, Other{pinned, "pinned host memory"},
                                             Other{managed, "managed memory"}, Other{pooled, "cudaMallocAsync"}}) {
                    // Only rank 1 is wrong.
                    void* in = member.rank == 1 ? other.memory : device.bytes();
                    const std::string error =
                        error_of([&] { communicator.all_reduce(in, device.bytes(), 1024, DataType::kFloat32); });
                    check(contains(error, other.name), error);
                    check(contains(error, member.rank == 1 ? "InvalidArgument: `in` is"
                                                           : "DeviceError: rank 1 cannot take part"),
                          error);
                    expect_works(communicator);
                  }
                  const std::string bits = error_of([&] {
                    communicator.all_reduce(device.bytes(), device.bytes(), 8, DataType::kInt32, ReduceOp::kBxor);
                  });
                  check(contains(bits, "bxor of int32 on a GPU; expected sum"), bits);
                  const std::string none =
                      error_of([&] { communicator.all_reduce(nullptr, device.bytes(), 8, DataType::kInt32); });
                  check(contains(none, "`in` is null"), none);
                  communicator.barrier();
                  expect_works(communicator);
                  CommunicatorOptions options;
                  options.reproducible = true;
                  const std::string reproducible =
                      error_of([&] { cuda_communicator(member.name + "r", member.rank, member.size, options); });
                  check(contains(reproducible, "reproducible"), reproducible);
                })),
            "");
}

TEST(CudaIpc, OtherCallsOnOtherRanksAreNoticed) {
  GAR_SKIP_WITHOUT_GPU();
  const std::vector<std::string> outcomes = run_on_gpus(3, [](const DeviceMember& member) {
    Communicator communicator = make(member);
    const DeviceMemory memory(8192);
    communicator.all_reduce(memory.bytes(), memory.bytes(), member.rank == 2 ? 100 : 101, DataType::kFloat32);
  });
  for (const std::string& text : outcomes) EXPECT_TRUE(contains(text, "expected the same call on all ranks")) << text;
}

TEST(CudaIpc, PlansThatExchangeElementsAreRefused) {
  GAR_SKIP_WITHOUT_GPU();
  const std::vector<std::string> outcomes = run_on_gpus(2, [](const DeviceMember& member) {
    CommunicatorOptions options;
    Plan plan;
    plan.algorithm = "doubling";
    plan.num_ranks = 2;
    plan.programs.resize(2);
    plan.programs[0].steps = {{0, {{1, true, 0, 1}}, {{1, true, 0, 1}}}};
    plan.programs[1].steps = {{0, {{0, true, 0, 1}}, {{0, true, 0, 1}}}};
    options.plan = plan;
    Communicator communicator = cuda_communicator(member.name, member.rank, member.size, options);
    const DeviceMemory memory(8192);
    communicator.all_reduce(memory.bytes(), memory.bytes(), 100, DataType::kFloat32);
  });
  for (const std::string& text : outcomes) EXPECT_TRUE(contains(text, "overwrites elements that it sends")) << text;
}

/// Rank 1 dies when the others' GPUs already wait for its GPU.
TEST(CudaIpc, DeathInTheMiddleIsNoticed) {
  GAR_SKIP_WITHOUT_GPU();
  const std::vector<std::string> outcomes = run_on_gpus(3, [](const DeviceMember& member) {
    Communicator communicator = make(member);
    const DeviceMemory memory(1 << 20);
    // Memory that is new to the peers would have to be mapped, which may wait for the GPU.
    communicator.all_reduce(memory.bytes(), memory.bytes(), 1 << 18, DataType::kFloat32);
    if (member.rank == 1) {
      cudaStream_t stream = nullptr;
      check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
      check_cuda(cudaLaunchHostFunc(
                     stream, [](void* /*data*/) { sleep(100); }, nullptr),
                 "cudaLaunchHostFunc");
      communicator.all_reduce(memory.bytes(), memory.bytes(), 1 << 18, DataType::kFloat32, ReduceOp::kSum,
                              Stream{stream});
      usleep(300'000);
      kill(getpid(), SIGKILL);
    }
    if (member.rank == 2) {
      cudaStream_t stream = nullptr;
      check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
      communicator.all_reduce(memory.bytes(), memory.bytes(), 1 << 18, DataType::kFloat32, ReduceOp::kSum,
                              Stream{stream});
      communicator.synchronize(Stream{stream});
    } else {
      communicator.all_reduce(memory.bytes(), memory.bytes(), 1 << 18, DataType::kFloat32);
    }
  });
  EXPECT_TRUE(contains(outcomes[0], "rank 1 has died")) << outcomes[0];
  EXPECT_TRUE(contains(outcomes[2], "rank 1 has died")) << outcomes[2];
}

TEST(CudaIpc, StreamsAreForGpus) {
  const std::vector<std::string> outcomes = run_threads(1, [](Member& member) {
    Communicator communicator = member.communicator({});
    float value = 1;
    communicator.all_reduce(&value, &value, 1, DataType::kFloat32, ReduceOp::kSum, Stream{});
  });
  EXPECT_TRUE(contains(outcomes[0], "a stream, but this communicator (threads) works on host memory")) << outcomes[0];
}

TEST(CudaIpc, SaysWhyThereIsNoGpu) {
  if (why_no_gpu().empty()) GTEST_SKIP() << "there is a GPU";
  const std::string error = error_of([] { cuda_communicator("nobody", 0, 1); });
  EXPECT_TRUE(contains(error, "DeviceError: cuda_communicator: no GPU: ")) << error;
}

}  // namespace
}  // namespace gar::test
