// Processes that come and go in unusual ways: children of a rank, and ranks that end without saying good-bye.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "support/sleeping.hpp"

namespace gar {
namespace {

/// Runs body(rank) in processes of its own; returns what each printed as its failure ("" when all is well).
std::vector<std::string> run_processes(int size, const std::function<void(int)>& body) {
  std::vector<int> pipes;
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe(static_cast<int*>(ends)), 0);
    const pid_t child = fork();
    if (child == 0) {
      alarm(300);  // ends what hangs
      try {
        body(rank);
      } catch (const std::exception& e) {
        const std::string text = e.what();
        if (write(ends[1], text.data(), text.size()) < 0) _exit(2);
        _exit(1);
      }
      _exit(0);
    }
    close(ends[1]);
    pipes.push_back(ends[0]);
    children.push_back(child);
  }
  std::vector<std::string> out;
  for (std::size_t i = 0; i < children.size(); ++i) {
    std::string text;
    char buffer[512];
    for (ssize_t n = 0; (n = read(pipes[i], static_cast<char*>(buffer), sizeof(buffer))) > 0;) {
      text.append(static_cast<const char*>(buffer), static_cast<std::size_t>(n));
    }
    close(pipes[i]);
    int status = 0;
    waitpid(children[i], &status, 0);
    if (text.empty() && status != 0) text = "status " + std::to_string(status);
    out.push_back(text);
  }
  return out;
}

std::string unique_name(const char* what) { return std::string(what) + "-" + std::to_string(getpid()); }

/// Silence is never the reason of an error.
CommunicatorOptions patient(const std::string& algorithm = "") {
  CommunicatorOptions options;
  options.timeout_s = 3600;
  options.algorithm = algorithm;
  return options;
}

TEST(Leaving, AForkedChildThatDestroysItsCopyDoesNotEndTheRank) {
  const std::string name = unique_name("fork");
  const std::vector<std::string> failures = run_processes(2, [&](int rank) {
    auto comm = std::make_unique<Communicator>(shared_memory_communicator(name, rank, 2, patient()));
    std::vector<float> values(1000, 1.0F);
    comm->start_all_reduce(std::span(values)).wait();  // there is a worker thread now
    if (rank == 1) {
      test::wait_until_others_sleep();
      const pid_t child = fork();
      if (child == 0) {
        comm.reset();
        _exit(0);
      }
      int status = -1;
      waitpid(child, &status, 0);
      if (status != 0) throw std::runtime_error("the child did not end well");
    }
    for (int i = 0; i < 20; ++i) {
      values.assign(values.size(), 1.0F);
      comm->all_reduce(std::span(values));
      if (values[999] != 2.0F) throw std::runtime_error("wrong sum");
      if (rank == 1) usleep(5000);
    }
  });
  EXPECT_EQ(failures, (std::vector<std::string>{"", ""}));
}

// In a ring of three, rank 0 may be done while rank 2 still has to hand something to rank 1.
TEST(Leaving, ARankThatHasDoneItsPartMayExitWithoutDestroyingItsCommunicator) {
  for (int repetition = 0; repetition < 8; ++repetition) {
    const std::string name = unique_name("exit") + std::to_string(repetition);
    const std::vector<std::string> failures = run_processes(3, [&](int rank) {
      auto* comm = new Communicator(shared_memory_communicator(name, rank, 3, patient("ring")));
      const std::vector<float> in(100, static_cast<float>(rank));
      std::vector<float> out(300);
      if (rank == 2) usleep(30'000);
      comm->all_gather(std::span<const float>(in), std::span(out));
      if (out[0] != 0 || out[150] != 1 || out[299] != 2) throw std::runtime_error("wrong data");
      _exit(0);
    });
    EXPECT_EQ(failures, (std::vector<std::string>{"", "", ""}));
  }
}

TEST(Reproducible, MismatchesAreFoundAlthoughTheModeIsMadeOfOtherCalls) {
  struct Case {
    std::int64_t count;
    DataType type;
    ReduceOp op;
  };
  const Case ours{1000, DataType::kFloat32, ReduceOp::kSum};
  const std::vector<Case> others{
      {1000, DataType::kBfloat16, ReduceOp::kSum}, {1000, DataType::kFloat32, ReduceOp::kProd},
      {1001, DataType::kFloat32, ReduceOp::kSum},  {0, DataType::kFloat32, ReduceOp::kSum},
      {1000, DataType::kInt32, ReduceOp::kSum},    {2000, DataType::kFloat32, ReduceOp::kSum}};
  for (std::size_t i = 0; i < others.size(); ++i) {
    const std::string name = unique_name("repro") + std::to_string(i);
    const std::vector<std::string> failures = run_processes(2, [&](int rank) {
      CommunicatorOptions options = patient();
      options.reproducible = true;
      Communicator comm = shared_memory_communicator(name, rank, 2, options);
      std::vector<float> values(4000, 1.0F);
      const Case& c = rank == 0 ? ours : others[i];
      comm.all_reduce(values.data(), values.data(), c.count, c.type, c.op);
    });
    for (const std::string& failure : failures) {
      EXPECT_NE(failure.find("all_reduce of 1000 float32, sum"), std::string::npos) << i << ": " << failure;
      EXPECT_NE(failure.find("but rank"), std::string::npos) << i << ": " << failure;
    }
  }
}

}  // namespace
}  // namespace gar
