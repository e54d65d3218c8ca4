// gar.h: every argument is checked, every exception becomes a code and a text, and the results are those of the C++
// interface. tests/runtime/c_program_test.c is the same border seen from C.
#include "runtime/c_api.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/gar.h"
#include "gar/plan_io.hpp"
#include "gtest/gtest.h"

namespace {

/// Communicators between threads that free themselves.
struct Ranks {
  explicit Ranks(int size, const gar_options* options = nullptr) : comms(static_cast<std::size_t>(size)) {
    EXPECT_EQ(gar_comm_create_threads(size, options, comms.data()), GAR_OK) << gar_last_error();
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks() { std::for_each(comms.begin(), comms.end(), gar_comm_free); }
  gar_comm* operator[](int rank) const { return comms[static_cast<std::size_t>(rank)]; }

  /// Calls function(communicator, rank) on one thread per rank.
  template <class Function>
  void each(Function function) const {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < static_cast<int>(comms.size()); ++rank) {
      threads.emplace_back([&, rank] { function((*this)[rank], rank); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  std::vector<gar_comm*> comms;
};

gar_options patient() {
  gar_options options = GAR_OPTIONS_INIT;
  options.timeout_s = 3600;
  return options;
}

void expect_refused(gar_status status, const std::string& start, const std::string& part) {
  EXPECT_EQ(status, GAR_ERROR_ARGUMENT);
  const std::string text = gar_last_error();
  EXPECT_EQ(text.rfind(start, 0), 0U) << text;
  EXPECT_NE(text.find(part), std::string::npos) << text;
  const bool says_what_would_do =
      text.find("expected") != std::string::npos || text.find("accepted") != std::string::npos;
  EXPECT_TRUE(says_what_would_do) << text;
}

TEST(CApi, ValuesAreThoseOfCpp) {
  const char* const types[] = {"int8",  "uint8",  "int16",   "uint16",   "int32",   "uint32",
                               "int64", "uint64", "float16", "bfloat16", "float32", "float64"};
  const std::size_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  for (int type = GAR_INT8; type <= GAR_FLOAT64; ++type) {
    EXPECT_EQ(static_cast<int>(gar::parse_data_type(types[type])), type);
    EXPECT_EQ(gar_type_size(type), sizes[type]);
  }
  EXPECT_EQ(gar_type_size(-1), 0U);
  EXPECT_EQ(gar_type_size(12), 0U);
  const char* const ops[] = {"sum", "prod", "min", "max", "band", "bor", "bxor", "land", "lor", "lxor"};
  for (int op = GAR_SUM; op <= GAR_LXOR; ++op) {
    EXPECT_EQ(static_cast<int>(gar::parse_reduce_op(ops[op])), op);
  }
}

TEST(CApi, ExceptionsBecomeCodes) {
  const auto thrown = [](auto error) {
    return gar::c_api::guarded("f", [&](const char*) { throw error; });  // NOLINT
  };
  EXPECT_EQ(gar::c_api::guarded("f", [](const char*) {}), GAR_OK);
  EXPECT_EQ(thrown(gar::InvalidArgument("a")), GAR_ERROR_ARGUMENT);
  EXPECT_STREQ(gar_last_error(), "a");
  EXPECT_EQ(thrown(gar::TransportError("b")), GAR_ERROR_TRANSPORT);
  EXPECT_STREQ(gar_last_error(), "b");
  EXPECT_EQ(thrown(gar::PlanError("c")), GAR_ERROR_PLAN);
  EXPECT_STREQ(gar_last_error(), "c");
  EXPECT_EQ(thrown(gar::ParseError("d")), GAR_ERROR_PARSE);
  EXPECT_STREQ(gar_last_error(), "d");
  EXPECT_EQ(thrown(gar::DeviceError("g")), GAR_ERROR_DEVICE);
  EXPECT_STREQ(gar_last_error(), "g");
  EXPECT_EQ(thrown(std::bad_alloc()), GAR_ERROR_MEMORY);
  EXPECT_STREQ(gar_last_error(), "out of memory");
  EXPECT_EQ(thrown(std::runtime_error("e")), GAR_ERROR_INTERNAL);
  EXPECT_STREQ(gar_last_error(), "e");
  EXPECT_EQ(thrown(42), GAR_ERROR_INTERNAL);
  EXPECT_STREQ(gar_last_error(), "an exception of an unknown type");
  EXPECT_EQ(thrown(gar::InvalidArgument(std::string(5000, 'x'))), GAR_ERROR_ARGUMENT);
  EXPECT_GT(std::strlen(gar_last_error()), 1000U);
}

TEST(CApi, LastErrorBelongsToTheThread) {
  EXPECT_EQ(gar_barrier(nullptr), GAR_ERROR_ARGUMENT);
  EXPECT_STRNE(gar_last_error(), "");
  std::string elsewhere = "?";
  std::thread([&] { elsewhere = gar_last_error(); }).join();
  EXPECT_EQ(elsewhere, "");
}

TEST(CApi, NamesOfCodes) {
  EXPECT_STREQ(gar_status_name(GAR_OK), "GAR_OK");
  EXPECT_STREQ(gar_status_name(GAR_ERROR_INTERNAL), "GAR_ERROR_INTERNAL");
  EXPECT_STREQ(gar_status_name(GAR_ERROR_DEVICE), "GAR_ERROR_DEVICE");
  EXPECT_STREQ(gar_status_name(8), "unknown");
  EXPECT_STREQ(gar_status_name(-1), "unknown");
}

TEST(CApi, ArgumentsOfCommunicators) {
  gar_comm* comm = nullptr;
  expect_refused(gar_comm_create_threads(2, nullptr, nullptr), "gar_comm_create_threads: ", "`comms` is NULL");
  expect_refused(gar_comm_create_threads(0, nullptr, &comm), "gar_comm_create_threads: ", "`num_ranks` is 0");
  expect_refused(gar_comm_create_threads(-3, nullptr, &comm), "gar_comm_create_threads: ", "`num_ranks` is -3");
  expect_refused(gar_comm_create_shm("x", 0, 1, nullptr, nullptr), "gar_comm_create_shm: ", "`comm` is NULL");
  expect_refused(gar_comm_create_shm(nullptr, 0, 1, nullptr, &comm), "gar_comm_create_shm: ", "`name` is NULL");
  for (const auto& [name, rank, size] :
       {std::tuple{"a/b", 0, 1}, {"", 0, 1}, {"x", -1, 1}, {"x", 1, 1}, {"x", 0, 0}, {"x", 0, -5}}) {
    EXPECT_EQ(gar_comm_create_shm(name, rank, size, nullptr, &comm), GAR_ERROR_ARGUMENT) << name << rank << size;
    EXPECT_NE(std::string(gar_last_error()).find("expected"), std::string::npos) << gar_last_error();
  }
  EXPECT_EQ(comm, nullptr) << "nothing is written on failure";
  gar_comm_free(nullptr);
  EXPECT_EQ(gar_comm_rank(nullptr), -1);
  EXPECT_EQ(gar_comm_size(nullptr), -1);
}

TEST(CApi, ArgumentsOfOperations) {
  const Ranks ranks(1);
  gar_comm* const comm = ranks[0];
  float x[4] = {};
  gar_request* request = nullptr;
  const std::string f = "gar_all_reduce: ";
  expect_refused(gar_all_reduce(nullptr, x, x, 4, GAR_FLOAT32, GAR_SUM), f, "`comm` is NULL");
  expect_refused(gar_all_reduce(comm, nullptr, x, 4, GAR_FLOAT32, GAR_SUM), f, "`in` is NULL");
  expect_refused(gar_all_reduce(comm, x, nullptr, 4, GAR_FLOAT32, GAR_SUM), f, "`out` is NULL");
  expect_refused(gar_all_reduce(comm, x, const_cast<void*>(GAR_IN_PLACE), 4, GAR_FLOAT32, GAR_SUM), f, "GAR_IN_PLACE");
  expect_refused(gar_all_reduce(comm, x, x, -1, GAR_FLOAT32, GAR_SUM), f, "`count` is -1");
  expect_refused(gar_all_reduce(comm, x, x, 4, 12, GAR_SUM), f, "`type` is 12");
  expect_refused(gar_all_reduce(comm, x, x, 4, -1, GAR_SUM), f, "`type` is -1");
  expect_refused(gar_all_reduce(comm, x, x, 4, GAR_FLOAT32, 10), f, "`op` is 10");
  expect_refused(gar_all_reduce(comm, x, x, 4, GAR_FLOAT32, -1), f, "`op` is -1");
  expect_refused(gar_all_reduce(comm, x, x, 4, GAR_FLOAT32, GAR_BAND), "", "band");
  expect_refused(gar_all_reduce(comm, x, x, INT64_MAX, GAR_FLOAT64, GAR_SUM), "", "9223372036854775807");
  expect_refused(gar_reduce_scatter(comm, x, x, -2, GAR_FLOAT32, GAR_SUM),
                 "gar_reduce_scatter: ", "`block_count` is -2");
  expect_refused(gar_all_gather(comm, x, x, -2, GAR_FLOAT32), "gar_all_gather: ", "`block_count` is -2");
  expect_refused(gar_all_gather(comm, x, x, 1, 77), "gar_all_gather: ", "`type` is 77");
  expect_refused(gar_barrier(nullptr), "gar_barrier: ", "`comm` is NULL");
  expect_refused(gar_all_reduce_start(comm, x, x, 4, GAR_FLOAT32, GAR_SUM, nullptr),
                 "gar_all_reduce_start: ", "`request` is NULL");
  expect_refused(gar_reduce_scatter_start(comm, x, nullptr, 4, GAR_FLOAT32, GAR_SUM, &request),
                 "gar_reduce_scatter_start: ", "`out` is NULL");
  expect_refused(gar_all_gather_start(comm, nullptr, x, 4, GAR_FLOAT32, &request),
                 "gar_all_gather_start: ", "`in` is NULL");
  expect_refused(gar_all_reduce_prepare(comm, x, x, 4, 99, GAR_SUM, &request),
                 "gar_all_reduce_prepare: ", "`type` is 99");
  expect_refused(gar_reduce_scatter_prepare(nullptr, x, x, 4, GAR_INT8, GAR_SUM, &request),
                 "gar_reduce_scatter_prepare: ", "`comm` is NULL");
  expect_refused(gar_all_gather_prepare(comm, x, x, -4, GAR_INT8, &request),
                 "gar_all_gather_prepare: ", "`block_count` is -4");
  EXPECT_EQ(request, nullptr) << "nothing is written on failure";
  const std::string no_stream = "a stream, but this communicator (threads) works on host memory";
  expect_refused(gar_all_reduce_on_stream(comm, x, x, 4, GAR_FLOAT32, GAR_SUM, nullptr), "all_reduce: ", no_stream);
  expect_refused(gar_reduce_scatter_on_stream(comm, x, x, 4, GAR_FLOAT32, GAR_SUM, nullptr),
                 "reduce_scatter: ", no_stream);
  expect_refused(gar_all_gather_on_stream(comm, x, x, 4, GAR_FLOAT32, nullptr), "all_gather: ", no_stream);
  expect_refused(gar_stream_synchronize(comm, nullptr), "synchronize: ", no_stream);
  expect_refused(gar_all_reduce_on_stream(comm, nullptr, x, 4, GAR_FLOAT32, GAR_SUM, nullptr),
                 "gar_all_reduce_on_stream: ", "`in` is NULL");
  expect_refused(gar_stream_synchronize(nullptr, nullptr), "gar_stream_synchronize: ", "`comm` is NULL");

  EXPECT_EQ(gar_all_reduce(comm, nullptr, nullptr, 0, GAR_FLOAT32, GAR_SUM), GAR_OK) << gar_last_error();
  EXPECT_EQ(gar_all_gather(comm, GAR_IN_PLACE, nullptr, 0, GAR_FLOAT32), GAR_OK) << gar_last_error();
}

// With GAR_IN_PLACE the rank's block is looked for: not before it is known that there can be one.
TEST(CApi, CountsThatNoMemoryHolds) {
  const Ranks ranks(3);
  double x[4] = {};
  gar_request* request = nullptr;
  for (const std::int64_t count : {INT64_MAX, INT64_MAX / 8, std::int64_t{1} << 60}) {
    expect_refused(gar_all_gather(ranks[2], GAR_IN_PLACE, x, count, GAR_FLOAT64), "all_gather: ", "is too large");
    expect_refused(gar_gather(ranks[2], GAR_IN_PLACE, x, count, GAR_FLOAT64, 2), "gather: ", "is too large");
    expect_refused(gar_gather_start(ranks[2], GAR_IN_PLACE, x, count, GAR_FLOAT64, 2, &request),
                   "gather: ", "is too large");
    expect_refused(gar_reduce_to(ranks[2], GAR_IN_PLACE, x, count, GAR_FLOAT64, GAR_SUM, 2),
                   "reduce: ", "is too large");
  }
  EXPECT_EQ(request, nullptr);
}

TEST(CApi, ArgumentsOfRequests) {
  expect_refused(gar_request_start(nullptr), "gar_request_start: ", "`request` is NULL");
  expect_refused(gar_request_wait(nullptr), "gar_request_wait: ", "`request` is NULL");
  int is_complete = 7;
  expect_refused(gar_request_test(nullptr, &is_complete), "gar_request_test: ", "`request` is NULL");
  gar_request_free(nullptr);

  const Ranks ranks(1);
  gar_request* request = nullptr;
  int x = 3;
  ASSERT_EQ(gar_all_reduce_start(ranks[0], GAR_IN_PLACE, &x, 1, GAR_INT32, GAR_SUM, &request), GAR_OK);
  expect_refused(gar_request_test(request, nullptr), "gar_request_test: ", "`is_complete` is NULL");
  EXPECT_EQ(is_complete, 7);
  EXPECT_EQ(gar_request_wait(request), GAR_OK);
  EXPECT_EQ(gar_request_start(request), GAR_ERROR_ARGUMENT) << "it is not persistent";
  gar_request_free(request);
}

TEST(CApi, RequestsMayOutliveTheCommunicator) {
  gar_comm* comm = nullptr;
  ASSERT_EQ(gar_comm_create_threads(1, nullptr, &comm), GAR_OK);
  gar_request* request = nullptr;
  int x = 3;
  ASSERT_EQ(gar_all_reduce_start(comm, GAR_IN_PLACE, &x, 1, GAR_INT32, GAR_SUM, &request), GAR_OK);
  gar_request* persistent = nullptr;
  ASSERT_EQ(gar_all_reduce_prepare(comm, GAR_IN_PLACE, &x, 1, GAR_INT32, GAR_SUM, &persistent), GAR_OK);
  gar_comm_free(comm);
  EXPECT_EQ(gar_request_wait(request), GAR_OK);
  EXPECT_EQ(x, 3);
  EXPECT_EQ(gar_request_start(persistent), GAR_ERROR_ARGUMENT) << "there is nobody to run it";
  gar_request_free(request);
  gar_request_free(persistent);
}

TEST(CApi, ArgumentsOfReduce) {
  float a[2] = {1, 2};
  const void* operands[] = {a, a, nullptr};
  const std::string f = "gar_reduce: ";
  expect_refused(gar_reduce(50, GAR_SUM, a, operands, 2, 2), f, "`type` is 50");
  expect_refused(gar_reduce(GAR_FLOAT32, 50, a, operands, 2, 2), f, "`op` is 50");
  expect_refused(gar_reduce(GAR_FLOAT32, GAR_SUM, a, operands, 2, -2), f, "`count` is -2");
  expect_refused(gar_reduce(GAR_FLOAT32, GAR_SUM, a, operands, 0, 2), f, "`num_operands` is 0");
  expect_refused(gar_reduce(GAR_FLOAT32, GAR_SUM, a, nullptr, 2, 2), f, "`operands` is NULL");
  expect_refused(gar_reduce(GAR_FLOAT32, GAR_SUM, a, operands, 3, 2), f, "one of `operands` is NULL");
  expect_refused(gar_reduce(GAR_FLOAT32, GAR_SUM, nullptr, operands, 2, 2), f, "`out` is NULL");
  expect_refused(gar_reduce(GAR_FLOAT64, GAR_LXOR, a, operands, 2, 2), "", "lxor");
  EXPECT_EQ(gar_reduce(GAR_FLOAT32, GAR_SUM, a, operands, 2, 2), GAR_OK);
  EXPECT_EQ(a[0], 2);
  EXPECT_EQ(a[1], 4);
}

TEST(CApi, OptionsSayTheirSize) {
  gar_comm* comm = nullptr;
  for (const std::size_t size :
       {std::size_t{0}, offsetof(gar_options, on_failure) - 1, sizeof(gar_options) - 1, sizeof(gar_options) + 8}) {
    gar_options options = GAR_OPTIONS_INIT;
    options.size = size;
    expect_refused(gar_comm_create_threads(1, &options, &comm),
                   "gar_comm_create_threads: ", "`options->size` is " + std::to_string(size));
  }
  EXPECT_EQ(comm, nullptr);
  // As of a program that was compiled when there were fewer.
  gar_options fewer = GAR_OPTIONS_INIT;
  fewer.size = offsetof(gar_options, on_failure);
  fewer.on_failure = 77;
  EXPECT_EQ(gar::c_api::communicator_options(&fewer, "f").on_failure, gar::OnFailure::kReport);
}

TEST(CApi, OptionsReachTheCommunicator) {
  gar_options given = GAR_OPTIONS_INIT;
  const gar::CommunicatorOptions defaults;
  const gar::CommunicatorOptions initial = gar::c_api::communicator_options(&given, "f");
  EXPECT_EQ(initial.timeout_s, defaults.timeout_s);
  EXPECT_EQ(initial.staging_bytes, defaults.staging_bytes);
  EXPECT_EQ(initial.latency_bytes, defaults.latency_bytes);
  EXPECT_EQ(initial.reproducible, defaults.reproducible);
  EXPECT_FALSE(initial.plan || initial.topology || initial.log);

  given.algorithm = "ring";
  given.topology = "star:3";
  given.reproducible = 1;
  given.timeout_s = 7;
  given.staging_bytes = 65536;
  given.latency_bytes = 0;
  std::string heard;
  given.log = [](const char* text, void* user) { *static_cast<std::string*>(user) += text; };
  given.log_user = &heard;
  const gar::CommunicatorOptions made = gar::c_api::communicator_options(&given, "f");
  EXPECT_EQ(made.algorithm, "ring");
  EXPECT_EQ(made.topology.value().num_servers(), 3);
  EXPECT_TRUE(made.reproducible);
  EXPECT_EQ(made.timeout_s, 7);
  EXPECT_EQ(made.staging_bytes, 65536);
  EXPECT_EQ(made.latency_bytes, 0);
  made.log("hear, hear");
  EXPECT_EQ(heard, "hear, hear");
}

TEST(CApi, FilesAndPlansThatDoNotFit) {
  gar_comm* comms[2] = {};
  gar_options options = patient();
  options.plan_file = "/nowhere/plan.json";
  EXPECT_EQ(gar_comm_create_threads(2, &options, comms), GAR_ERROR_PARSE);
  EXPECT_NE(std::string(gar_last_error()).find("/nowhere/plan.json"), std::string::npos) << gar_last_error();

  const std::string path = std::filesystem::temp_directory_path() / ("c_api_test." + std::to_string(getpid()));
  {
    std::ofstream file(path);
    gar::write_plan(gar::ring(3), file);
  }
  options.plan_file = path.c_str();
  EXPECT_EQ(gar_comm_create_threads(2, &options, comms), GAR_ERROR_PLAN) << gar_last_error();
  {
    const Ranks ranks(3, &options);
    ranks.each([](gar_comm* comm, int rank) {
      int x = rank;
      EXPECT_EQ(gar_all_reduce(comm, GAR_IN_PLACE, &x, 1, GAR_INT32, GAR_SUM), GAR_OK) << gar_last_error();
      EXPECT_EQ(x, 3);
    });
  }
  std::filesystem::remove(path);

  options.plan_file = nullptr;
  options.topology = "star:x";
  EXPECT_EQ(gar_comm_create_threads(2, &options, comms), GAR_ERROR_ARGUMENT);
  options.topology = nullptr;
  options.algorithm = "rong";
  EXPECT_EQ(gar_comm_create_threads(2, &options, comms), GAR_ERROR_ARGUMENT);
  EXPECT_NE(std::string(gar_last_error()).find("rong"), std::string::npos) << gar_last_error();
  EXPECT_EQ(comms[0], nullptr);
}

TEST(CApi, PeersThatDoNotCome) {
  gar_options options = GAR_OPTIONS_INIT;
  options.timeout_s = 0.3;
  gar_comm* comm = nullptr;
  const std::string name = "c_api_test." + std::to_string(getpid());
  EXPECT_EQ(gar_comm_create_shm(name.c_str(), 0, 2, &options, &comm), GAR_ERROR_TRANSPORT);
  EXPECT_STRNE(gar_last_error(), "");
  EXPECT_EQ(comm, nullptr);
}

TEST(CApi, CallsThatDiffer) {
  const gar_options options = patient();
  const Ranks ranks(2, &options);
  ranks.each([](gar_comm* comm, int rank) {
    float x[3] = {};
    EXPECT_EQ(gar_all_reduce(comm, GAR_IN_PLACE, x, 2 + rank, GAR_FLOAT32, GAR_SUM), GAR_ERROR_TRANSPORT);
    EXPECT_NE(std::string(gar_last_error()).find("rank"), std::string::npos) << gar_last_error();
  });
}

constexpr int kSize = 3;
constexpr std::int64_t kBlock = 1001;

std::vector<std::int64_t> input(int rank) {
  std::vector<std::int64_t> out(kSize * kBlock);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::int64_t>(i) * (rank + 1);
  }
  return out;
}
std::int64_t sum_at(std::int64_t i) { return i * (1 + 2 + 3); }

/// Operands apart from the result, and in its place.
void expect_results(gar_comm* comm, int rank) {
  const std::vector<std::int64_t> in = input(rank);
  for (const bool in_place : {false, true}) {
    std::vector<std::int64_t> all = in_place ? in : std::vector<std::int64_t>(in.size());
    ASSERT_EQ(gar_all_reduce(comm, in_place ? GAR_IN_PLACE : in.data(), all.data(), kSize * kBlock, GAR_INT64, GAR_SUM),
              GAR_OK)
        << gar_last_error();
    for (std::int64_t i = 0; i < kSize * kBlock; ++i) {
      ASSERT_EQ(all[static_cast<std::size_t>(i)], sum_at(i));
    }

    std::vector<std::int64_t> mine = in_place ? in : std::vector<std::int64_t>(kBlock);
    ASSERT_EQ(gar_reduce_scatter(comm, in_place ? GAR_IN_PLACE : in.data(), mine.data(), kBlock, GAR_INT64, GAR_SUM),
              GAR_OK)
        << gar_last_error();
    for (std::int64_t i = 0; i < kBlock; ++i) {
      ASSERT_EQ(mine[static_cast<std::size_t>(i)], sum_at(rank * kBlock + i)) << i;
    }

    std::vector<std::int64_t> gathered(in.size());
    std::copy_n(mine.begin(), kBlock, gathered.begin() + rank * kBlock);
    ASSERT_EQ(gar_all_gather(comm, in_place ? GAR_IN_PLACE : mine.data(), gathered.data(), kBlock, GAR_INT64), GAR_OK)
        << gar_last_error();
    ASSERT_EQ(gathered, all);
  }
}

TEST(CApi, Results) {
  const gar_options options = patient();
  const Ranks ranks(kSize, &options);
  ranks.each([](gar_comm* comm, int rank) {
    EXPECT_EQ(gar_comm_rank(comm), rank);
    EXPECT_EQ(gar_comm_size(comm), kSize);
    expect_results(comm, rank);
    EXPECT_EQ(gar_barrier(comm), GAR_OK);
  });
}

TEST(CApi, RequestsInAnyOrder) {
  const gar_options options = patient();
  const Ranks ranks(kSize, &options);
  ranks.each([](gar_comm* comm, int rank) {
    const std::vector<std::int64_t> in = input(rank);
    std::vector<std::int64_t> all(in.size());
    std::vector<std::int64_t> mine(kBlock);
    std::vector<std::int64_t> gathered(in.size());
    gar_request* requests[3] = {};
    ASSERT_EQ(gar_all_reduce_start(comm, in.data(), all.data(), kSize * kBlock, GAR_INT64, GAR_SUM, &requests[0]),
              GAR_OK);
    ASSERT_EQ(gar_reduce_scatter_start(comm, in.data(), mine.data(), kBlock, GAR_INT64, GAR_SUM, &requests[1]), GAR_OK);
    ASSERT_EQ(gar_all_gather_start(comm, in.data(), gathered.data(), kBlock, GAR_INT64, &requests[2]), GAR_OK);
    ASSERT_EQ(gar_request_wait(requests[2]), GAR_OK) << gar_last_error();
    int is_complete = 0;
    while (is_complete == 0) {
      ASSERT_EQ(gar_request_test(requests[0], &is_complete), GAR_OK) << gar_last_error();
      std::this_thread::yield();
    }
    EXPECT_EQ(is_complete, 1);
    gar_request_free(requests[1]);  // waits
    gar_request_free(requests[2]);
    gar_request_free(requests[0]);
    EXPECT_EQ(all.back(), sum_at(kSize * kBlock - 1));
    EXPECT_EQ(mine.back(), sum_at((rank + 1) * kBlock - 1));
    for (int r = 0; r < kSize; ++r) {
      EXPECT_EQ(gathered[static_cast<std::size_t>((r + 1) * kBlock - 1)], (kBlock - 1) * (r + 1));
    }
  });
}

TEST(CApi, PersistentRequests) {
  const gar_options options = patient();
  const Ranks ranks(kSize, &options);
  ranks.each([](gar_comm* comm, int rank) {
    std::vector<std::int32_t> x(kSize * 5);
    std::vector<std::int32_t> part(5);
    gar_request* sum = nullptr;
    gar_request* scatter = nullptr;
    gar_request* gather = nullptr;
    ASSERT_EQ(gar_all_reduce_prepare(comm, GAR_IN_PLACE, x.data(), kSize * 5, GAR_INT32, GAR_SUM, &sum), GAR_OK);
    ASSERT_EQ(gar_reduce_scatter_prepare(comm, x.data(), part.data(), 5, GAR_INT32, GAR_MAX, &scatter), GAR_OK);
    ASSERT_EQ(gar_all_gather_prepare(comm, part.data(), x.data(), 5, GAR_INT32, &gather), GAR_OK);
    for (int round = 0; round < 10; ++round) {
      std::fill(x.begin(), x.end(), rank + round);  // the sum is 3 + 3 * round
      for (gar_request* request : {sum, scatter, gather}) {
        ASSERT_EQ(gar_request_start(request), GAR_OK) << gar_last_error();
        ASSERT_EQ(gar_request_wait(request), GAR_OK) << gar_last_error();
      }
      EXPECT_EQ(x, std::vector<std::int32_t>(kSize * 5, 3 + 3 * round));
    }
    for (gar_request* request : {gather, sum, scatter}) {
      gar_request_free(request);
    }
  });
}

TEST(CApi, LogSaysWhatRuns) {
  struct Notes {
    std::mutex mutex;
    std::string text;
  } notes;
  gar_options options = patient();
  options.log_user = &notes;
  options.log = [](const char* text, void* user) {
    auto& into = *static_cast<Notes*>(user);
    const std::scoped_lock lock(into.mutex);
    into.text += std::string(text) + '\n';
  };
  options.algorithm = "ring";
  {
    const Ranks ranks(2, &options);
    ranks.each([](gar_comm* comm, int) {
      std::vector<float> x(1000, 1);
      EXPECT_EQ(gar_all_reduce(comm, GAR_IN_PLACE, x.data(), 1000, GAR_FLOAT32, GAR_SUM), GAR_OK);
    });
  }
  EXPECT_NE(notes.text.find("ring"), std::string::npos) << notes.text;
}

}  // namespace
