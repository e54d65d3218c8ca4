// Plans over NCCL, and NCCL's own collectives, between processes that share the GPUs of this machine.
#include "gar/nccl.hpp"

#include <nccl.h>
#include <unistd.h>

#include "cuda/device_case.hpp"
#include "gar/gar_cuda.h"
#include "support/shared_array.hpp"

namespace gar::test {
namespace {

constexpr double kLimitS = 400;

struct Choice {
  std::string algorithm;
  NcclPath path = NcclPath::kPlans;
};

Communicator make(const DeviceMember& member, const Choice& choice = {}) {
  static int number = 0;
  CommunicatorOptions options;
  options.algorithm = choice.algorithm;
  options.timeout_s = 120;
  return nccl_communicator(member.name + "." + std::to_string(number++), member.rank, member.size, options,
                           choice.path);
}

std::vector<Choice> choices_for(int size) {
  if (size == 1) return {{}, {"", NcclPath::kNative}};
  std::vector<Choice> out{
      {"ring"}, {"cps"}, {"rhd"}, {"reduce-broadcast"}, {"gentree+"}, {""}, {"", NcclPath::kNative}};
  if (size == 4) out.push_back({"hcps:2x2"});
  return out;
}

/// Every shape with every length; AllReduce with some types, too.
std::vector<Case> cases_for(int size) {
  std::vector<Case> out;
  for (const Shape& shape : shapes()) {
    for (const std::int64_t count : {1, 3, 1000, 100'003, 1 << 20}) {
      for (const DataType type : {DataType::kFloat32, DataType::kBfloat16, DataType::kInt32}) {
        if (shape.collective != Collective::kAllReduce && type != DataType::kFloat32) continue;
        const std::int64_t part = case_count(shape.collective, count, size);
        const auto call = static_cast<Call>(out.size() % 3);
        out.push_back({shape.collective, shape.form, type, ReduceOp::kSum, part, call});
      }
    }
  }
  return out;
}

Case plain_sum(std::int64_t count) {
  return {Collective::kAllReduce, Form::kInPlace, DataType::kFloat32, ReduceOp::kSum, count, Call::kBlocking};
}

/// Does the communicator (still) work?
void expect_works(Communicator& communicator) { run_device_case(communicator, plain_sum(10'007), 3, nullptr); }

/// The function must throw an error whose text has all the parts.
template <class Function>
void expect_error(Function function, const std::vector<std::string>& parts) {
  std::string text = "no error";
  try {
    function();
  } catch (const std::exception& e) {
    text = text_of(e);
  }
  for (const std::string& part : parts) {
    check(text.find(part) != std::string::npos, "'" + text + "' does not have '" + part + "'");
  }
}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return stream;
}

void expect_all(int size, const std::function<void(const DeviceMember&)>& body) {
  EXPECT_EQ(failures(run_on_gpus(size, body, kLimitS)), "");
}

void run_choices(const DeviceMember& member) {
  cudaStream_t stream = new_stream();
  std::uint64_t salt = 1000 * static_cast<std::uint64_t>(member.size);
  for (const Choice& choice : choices_for(member.size)) {
    Communicator communicator = make(member, choice);
    std::vector<Case> cases = cases_for(member.size);
    for (const Case& c : device_cases(member.size, salt, 12)) cases.push_back(c);
    for (const Case& c : cases) {
      ++salt;
      try {
        run_device_case(communicator, c, salt, salt % 3 == 0 ? stream : nullptr);
      } catch (const std::exception& e) {
        throw Failure("'" + choice.algorithm + "': " + text_of(e));
      }
    }
    const PlanReport report = communicator.report(Collective::kAllReduce, 1000, DataType::kFloat32);
    check(report.transport == "nccl", "the transport is " + report.transport);
    const bool is_native = choice.path == NcclPath::kNative && member.size > 1;
    check((report.algorithm == "native") == is_native, "the algorithm is " + report.algorithm);
    if (is_native) check(report.reason == "NCCL " + nccl_version() + "'s own", "the reason is " + report.reason);
    communicator.barrier();
  }
}

TEST(Nccl, AllAlgorithmsOf2) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(2, run_choices);
}
TEST(Nccl, AllAlgorithmsOf4) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(4, run_choices);
}
TEST(Nccl, OneRank) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(1, run_choices);
}

/// 3 ranks: no plan divides anything evenly. All types of the native path.
TEST(Nccl, NativeHasAllTypesAndOperators) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(3, [](const DeviceMember& member) {
    Communicator communicator = make(member, {"", NcclPath::kNative});
    std::uint64_t salt = 77;
    for (const TypedOp& typed : typed_ops()) {
      if (!is_supported_on_cuda(typed.type, typed.op)) continue;
      Case c = plain_sum(4099);
      c.type = typed.type;
      c.op = typed.op;
      run_device_case(communicator, c, ++salt, nullptr);
    }
  });
}

/// Two ranks that send each other the same elements and add what they get: only a copy can wait for that.
TEST(Nccl, PlansMayExchangeElements) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(2, [](const DeviceMember& member) {
    CommunicatorOptions options;
    options.plan.emplace();
    options.plan->algorithm = "doubling";
    options.plan->num_ranks = 2;
    options.plan->programs.resize(2);
    options.plan->programs[0].steps = {{0, {{1, true, 0, 1}}, {{1, true, 0, 1}}}};
    options.plan->programs[1].steps = {{0, {{0, true, 0, 1}}, {{0, true, 0, 1}}}};
    Communicator communicator = nccl_communicator(member.name, member.rank, member.size, options);
    expect_works(communicator);
  });
}

/// Calls come back before the stream gets to them, and may be in several streams.
TEST(Nccl, ManyCallsOnStreams) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(4, [](const DeviceMember& member) {
    for (const Choice& choice : {Choice{"cps"}, Choice{"ring"}, Choice{"", NcclPath::kNative}}) {
      Communicator communicator = make(member, choice);
      expect_works(communicator);
      cudaStream_t streams[] = {new_stream(), new_stream()};
      std::vector<std::unique_ptr<DeviceCaseRun>> runs;
      for (std::uint64_t i = 0; i < 12; ++i) {
        Case c = plain_sum(70'001);
        c.form = i % 4 < 2 ? Form::kInPlace : Form::kOutOfPlace;
        runs.push_back(std::make_unique<DeviceCaseRun>(c, member.rank, member.size, i));
        runs.back()->to_device();
      }
      communicator.barrier();
      std::atomic<bool> is_released{false};
      hold_up(streams[0], is_released);
      for (std::size_t i = 0; i < runs.size(); ++i) runs[i]->run_on(communicator, Stream{streams[i % 2]});
      check(cudaStreamQuery(streams[0]) == cudaErrorNotReady, "the calls have waited for the stream");
      is_released = true;
      for (cudaStream_t stream : streams) communicator.synchronize(Stream{stream});
      for (const auto& run : runs) {
        run->to_host();
        run->verify();
      }
    }
  });
}

TEST(Nccl, GraphsCanBeLaunchedAgain) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(2, [](const DeviceMember& member) {
    for (const Choice& choice : {Choice{"cps"}, Choice{"", NcclPath::kNative}}) {
      Communicator communicator = make(member, choice);
      expect_works(communicator);
      cudaStream_t stream = new_stream();
      Case c = plain_sum(50'021);
      c.form = Form::kOutOfPlace;
      DeviceCaseRun run(c, member.rank, member.size, 9);
      run.to_device();
      check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
      run.run_on(communicator, Stream{stream});
      cudaGraph_t graph = nullptr;
      check_cuda(cudaStreamEndCapture(stream, &graph), "end of the capture");
      cudaGraphExec_t executable = nullptr;
      check_cuda(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
      for (int i = 0; i < 10; ++i) check_cuda(cudaGraphLaunch(executable, stream), "launch");
      communicator.synchronize(Stream{stream});
      run.to_host();
      run.verify();
      // NCCL's communicators wait for the graphs that they are in.
      check_cuda(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
      check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
      expect_works(communicator);
    }
  });
}

TEST(Nccl, RefusesHostMemoryOnAllRanks) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(3, [](const DeviceMember& member) {
    for (const NcclPath path : {NcclPath::kPlans, NcclPath::kNative}) {
      Communicator communicator = make(member, {"", path});
      const DeviceMemory device(4096);
      std::vector<float> host(1024);
      void* in = member.rank == 1 ? static_cast<void*>(host.data()) : device.bytes();
      const std::string kind =
          member.rank == 1 ? "InvalidArgument: `in` is host memory" : "DeviceError: rank 1 cannot take part";
      expect_error([&] { communicator.all_reduce(in, device.bytes(), 1024, DataType::kFloat32); },
                   {kind, "expected memory of device"});
      expect_works(communicator);
    }
  });
}

TEST(Nccl, OtherCallsOnOtherRanksAreNoticed) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(3, [](const DeviceMember& member) {
    Communicator communicator = make(member);
    const DeviceMemory memory(8192);
    const std::int64_t count = member.rank == 2 ? 100 : 101;
    expect_error([&] { communicator.all_reduce(memory.bytes(), memory.bytes(), count, DataType::kFloat32); },
                 {"TransportError", "expected the same call on all ranks"});
  });
}

TEST(Nccl, SaysWhatRanksOnOneGpuNeed) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(2, [](const DeviceMember& member) {
    unsetenv("NCCL_HOSTID");
    check_cuda(cudaSetDevice(0), "cudaSetDevice");
    expect_error([&] { make(member); }, {"DeviceError", "expected a GPU for each rank, or a different NCCL_HOSTID"});
  });
}

/// Rank 1 dies when the others' GPUs already wait for its GPU.
TEST(Nccl, DeathInTheMiddleIsNoticed) {
  GAR_SKIP_WITHOUT_GPU();
  const std::vector<std::string> outcomes = run_on_gpus(3, [](const DeviceMember& member) {
    Communicator communicator = make(member, {"cps"});
    const DeviceMemory memory(1 << 20);
    // What is larger than anything before needs more memory, and that may wait for the GPU.
    communicator.all_reduce(memory.bytes(), memory.bytes(), 1 << 18, DataType::kFloat32);
    cudaStream_t stream = new_stream();
    if (member.rank == 1) {
      const auto hold = [](void* /*data*/) { sleep(100); };
      check_cuda(cudaLaunchHostFunc(stream, hold, nullptr), "cudaLaunchHostFunc");
    }
    communicator.all_reduce(memory.bytes(), memory.bytes(), 1 << 18, DataType::kFloat32, ReduceOp::kSum,
                            Stream{stream});
    if (member.rank == 1) {
      usleep(300'000);
      kill(getpid(), SIGKILL);
    }
    communicator.synchronize(Stream{stream});
  });
  for (const std::size_t rank : {0, 2}) {
    EXPECT_TRUE(outcomes[rank].starts_with("TransportError: ")) << outcomes[rank];
  }
}

TEST(Nccl, NoMemoryLeaksIn1000Calls) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(2, [](const DeviceMember& member) {
    Communicator communicator = make(member, {"cps"});
    constexpr std::int64_t kCount = 10'000;
    const DeviceMemory memory(kCount * 4 * 4);
    const auto run = [&](int calls) {
      for (int i = 0; i < calls; ++i) {
        std::byte* out = memory.bytes() + kCount * 4 * 2;
        if (i % 3 == 0) communicator.all_reduce(memory.bytes(), out, kCount, DataType::kFloat32);
        if (i % 3 == 1) communicator.reduce_scatter(memory.bytes(), out, kCount, DataType::kFloat32);
        if (i % 3 == 2) communicator.all_gather(memory.bytes(), out, kCount, DataType::kFloat32);
      }
    };
    run(30);
    const std::size_t before = quiet_free_memory(communicator);
    run(1000);
    const std::size_t after = quiet_free_memory(communicator);
    check(after == before, std::to_string(before) + " bytes were free, and " + std::to_string(after) + " are");
  });
}

TEST(Nccl, AllocationFailureLeavesTheCommunicatorUsable) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(2, [](const DeviceMember& member) {
    Communicator communicator = make(member, {"cps"});
    constexpr std::int64_t kCount = 64 << 20;
    const DeviceMemory memory(kCount * 4);
    expect_works(communicator);
    Hoard hoard;
    if (member.rank == 0) hoard.fill();
    communicator.barrier();
    const std::string error =
        error_of([&] { communicator.all_reduce(memory.bytes(), memory.bytes(), kCount, DataType::kFloat32); });
    check(contains(error, "DeviceError") && contains(error, "out of memory"), "with a full GPU: " + error);
    communicator.barrier();
    hoard.release();
    communicator.barrier();
    expect_works(communicator);
  });
}

/// A communicator of NCCL that the caller has made.
ncclComm_t join_by_hand(const DeviceMember& member, Communicator& way) {
  ncclUniqueId id{};
  if (member.rank == 0) check(ncclGetUniqueId(&id) == ncclSuccess, "ncclGetUniqueId");
  const DeviceMemory memory(sizeof id * static_cast<std::size_t>(member.size));
  std::byte* own = memory.bytes() + static_cast<std::size_t>(member.rank) * sizeof id;
  upload(own, &id, sizeof id);
  way.all_gather(own, memory.bytes(), sizeof id, DataType::kUint8);
  download(&id, memory.bytes(), sizeof id);
  ncclComm_t comm = nullptr;
  check(ncclCommInitRank(&comm, member.size, id, member.rank) == ncclSuccess, "ncclCommInitRank");
  return comm;
}

TEST(Nccl, WorksOnCommunicatorsOfTheCaller) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(2, [](const DeviceMember& member) {
    Communicator way = make(member, {"", NcclPath::kNative});
    ncclComm_t comm = join_by_hand(member, way);
    {
      Communicator communicator = nccl_communicator(comm);
      check(communicator.rank() == member.rank && communicator.size() == member.size, "rank and size");
      std::uint64_t salt = 31;
      for (const Case& c : device_cases(member.size, 5, 30)) run_device_case(communicator, c, ++salt, nullptr);
      communicator.barrier();
    }
    {
      gar_comm* c_comm = nullptr;
      check(gar_comm_create_nccl_on(comm, nullptr, &c_comm) == GAR_OK, gar_last_error());
      check(gar_barrier(c_comm) == GAR_OK, gar_last_error());
      gar_comm_free(c_comm);
    }
    check(ncclCommDestroy(comm) == ncclSuccess, "ncclCommDestroy");
    expect_error([] { nccl_communicator(static_cast<ncclComm*>(nullptr)); }, {"InvalidArgument", "`comm` is null"});
  });
}

/// A barrier is one, too, where the ranks have nothing but NCCL.
TEST(Nccl, BarrierOnCommunicatorsOfTheCaller) {
  GAR_SKIP_WITHOUT_GPU();
  SharedArray has_come(1);
  expect_all(2, [&](const DeviceMember& member) {
    Communicator way = make(member, {"", NcclPath::kNative});
    ncclComm_t comm = join_by_hand(member, way);
    {
      Communicator communicator = nccl_communicator(comm, {}, NcclPath::kNative);
      communicator.barrier();
      if (member.rank == 0) {
        usleep(500'000);  // so that a barrier that is none has time to show it
        has_come[0] = 1;
      }
      communicator.barrier();
      check(has_come[0] == 1, "rank " + std::to_string(member.rank) + " did not wait for the other");
    }
    check(ncclCommDestroy(comm) == ncclSuccess, "ncclCommDestroy");
  });
}

/// As the paper does it: NCCL's own collectives inside a machine (here a pair of ranks), a plan between the machines;
/// all three operations in one stream.
TEST(Nccl, OwnCollectivesInsideMachinesAndPlansBetween) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(4, [](const DeviceMember& member) {
    const int machine = member.rank / 2;
    const int place = member.rank % 2;
    Communicator inside =
        nccl_communicator(member.name + ".m" + std::to_string(machine), place, 2, {}, NcclPath::kNative);
    Communicator between = nccl_communicator(member.name + ".p" + std::to_string(place), machine, 2);
    constexpr std::int64_t kBlock = 50'021;
    std::vector<float> values(2 * kBlock);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(member.rank + 1 + i % 13);
    const DeviceMemory memory(values.size() * 4);
    upload(memory.bytes(), values.data(), values.size() * 4);
    const Stream stream{new_stream()};
    float* all = memory.floats();
    float* own = all + place * kBlock;
    inside.reduce_scatter(all, own, kBlock, DataType::kFloat32, ReduceOp::kSum, stream);
    between.all_reduce(own, own, kBlock, DataType::kFloat32, ReduceOp::kSum, stream);
    inside.all_gather(own, all, kBlock, DataType::kFloat32, stream);
    inside.synchronize(stream);
    download(values.data(), all, values.size() * 4);
    for (std::size_t i = 0; i < values.size(); ++i) {
      check(values[i] == static_cast<float>(10 + 4 * (i % 13)), "element " + std::to_string(i));
    }
  });
}

using Create = gar_status(const char*, int, int, const gar_options*, gar_comm**);

/// 1, 2, 3, ... on all ranks; summed up on a stream, then by one kernel with what it was.
void run_c_program(const DeviceMember& member, Create* create, const std::string& name) {
  gar_comm* comm = nullptr;
  check(create(name.c_str(), member.rank, member.size, nullptr, &comm) == GAR_OK, gar_last_error());
  constexpr std::size_t kCount = 1000;
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i + 1);
  const DeviceMemory in(kCount * 4);
  const DeviceMemory out(kCount * 4);
  upload(in.bytes(), values.data(), kCount * 4);
  cudaStream_t stream = new_stream();
  check(gar_all_reduce_on_stream(comm, in.bytes(), out.bytes(), kCount, GAR_FLOAT32, GAR_SUM, stream) == GAR_OK,
        gar_last_error());
  const void* operands[] = {in.bytes(), out.bytes()};
  check(gar_cuda_reduce(GAR_FLOAT32, GAR_SUM, out.bytes(), operands, 2, kCount, stream) == GAR_OK, gar_last_error());
  check(gar_stream_synchronize(comm, stream) == GAR_OK, gar_last_error());
  std::vector<float> result(kCount);
  download(result.data(), out.bytes(), kCount * 4);
  for (std::size_t i = 0; i < kCount; ++i) {
    check(result[i] == values[i] * static_cast<float>(member.size + 1), "element " + std::to_string(i));
  }
  const auto block = static_cast<std::int64_t>(kCount) / member.size;
  check(gar_reduce_scatter_on_stream(comm, in.bytes(), out.bytes(), block, GAR_FLOAT32, GAR_MAX, stream) == GAR_OK,
        gar_last_error());
  check(gar_all_gather_on_stream(comm, out.bytes(), in.bytes(), block, GAR_FLOAT32, stream) == GAR_OK,
        gar_last_error());
  check(gar_stream_synchronize(comm, stream) == GAR_OK, gar_last_error());
  download(result.data(), in.bytes(), kCount * 4);
  check(result == values, "reduce_scatter and all_gather of what is the same everywhere");
  check(gar_all_reduce(comm, values.data(), result.data(), kCount, GAR_FLOAT32, GAR_SUM) == GAR_ERROR_ARGUMENT,
        "host memory was taken");
  gar_comm_free(comm);
}

TEST(Nccl, CInterface) {
  GAR_SKIP_WITHOUT_GPU();
  expect_all(2, [](const DeviceMember& member) {
    run_c_program(member, gar_comm_create_nccl, member.name + ".n");
    run_c_program(member, gar_comm_create_cuda, member.name + ".i");
  });
}

TEST(Nccl, CInterfaceChecksArguments) {
  gar_comm* comm = nullptr;
  EXPECT_EQ(gar_comm_create_nccl(nullptr, 0, 1, nullptr, &comm), GAR_ERROR_ARGUMENT);
  EXPECT_EQ(gar_comm_create_nccl("name", 0, 1, nullptr, nullptr), GAR_ERROR_ARGUMENT);
  EXPECT_EQ(gar_comm_create_nccl_on(nullptr, nullptr, &comm), GAR_ERROR_ARGUMENT);
  EXPECT_EQ(gar_comm_create_cuda(nullptr, 0, 1, nullptr, &comm), GAR_ERROR_ARGUMENT);
  EXPECT_EQ(gar_cuda_reduce(GAR_FLOAT32, GAR_SUM, nullptr, nullptr, 2, 0, nullptr), GAR_ERROR_ARGUMENT);
  if (why_no_gpu().empty()) return;
  EXPECT_EQ(gar_comm_create_nccl("nobody", 0, 1, nullptr, &comm), GAR_ERROR_DEVICE);
  EXPECT_NE(std::string(gar_last_error()).find("nccl_communicator: no GPU: "), std::string::npos) << gar_last_error();
  EXPECT_EQ(gar_comm_create_cuda("nobody", 0, 1, nullptr, &comm), GAR_ERROR_DEVICE);
}

TEST(Nccl, HasAVersion) { EXPECT_TRUE(nccl_version().starts_with("2.")) << nccl_version(); }

}  // namespace
}  // namespace gar::test
