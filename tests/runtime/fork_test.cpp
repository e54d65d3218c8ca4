// A child that a rank has forked has copies of its communicators and requests. None of them may pass for the rank's:
// what the child calls is an error, and the rank and its peers do not notice.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gar/communicator.hpp"
#include "runtime/process.hpp"
#include "support/sleeping.hpp"

namespace gar {
namespace {

constexpr const char* kRefusal = "which has forked this one";

/// The error of the call when it is the right one, otherwise a word that says what happened.
std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InvalidArgument& e) {
    return std::string(e.what()).find(kRefusal) != std::string::npos ? "" : std::string("InvalidArgument: ") + e.what();
  } catch (const std::exception& e) {
    return std::string("another error: ") + e.what();
  }
  return "no error";
}

/// A forked child, made as fork() does or by the bare system call, and the pipe through which it says what is wrong.
class Child {
 public:
  Child(bool is_bare, const std::function<std::string()>& body) {
    test::wait_until_others_sleep();
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe(static_cast<int*>(ends)), 0);
    pid_ = is_bare ? static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) : fork();
    if (pid_ == 0) {
      alarm(300);  // ends what hangs
      const std::string text = body();
      _exit(write(ends[1], text.data(), text.size()) < 0 ? 2 : 0);
    }
    close(ends[1]);
    end_ = ends[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child(Child&&) = delete;
  Child& operator=(Child&&) = delete;
  ~Child() { close(end_); }

  /// Waits for its end: its words, "" when all is well.
  [[nodiscard]] std::string words() const {
    std::string text;
    char buffer[512];
    for (ssize_t n = 0; (n = read(end_, static_cast<char*>(buffer), sizeof(buffer))) > 0;) {
      text.append(static_cast<const char*>(buffer), static_cast<std::size_t>(n));
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    return text.empty() && status != 0 ? "status " + std::to_string(status) : text;
  }

 private:
  pid_t pid_ = -1;
  int end_ = -1;
};

std::string in_child(bool is_bare, const std::function<std::string()>& body) { return Child(is_bare, body).words(); }

CommunicatorOptions patient() {
  CommunicatorOptions options;
  options.timeout_s = 3600;  // silence is never the reason of an error
  return options;
}

/// Every entry of a communicator and of its requests, in a child: "" when each refuses.
std::string try_everything(Communicator& comm, Request& persistent, bool is_bare) {
  return in_child(is_bare, [&]() -> std::string {
    std::vector<float> values(5000, 1.0F);
    const std::vector<std::pair<std::string, std::function<void()>>> calls{
        {"all_reduce", [&] { comm.all_reduce(std::span(values)); }},
        {"a short all_reduce", [&] { comm.all_reduce(std::span(values).first(2)); }},
        {"all_gather", [&] { comm.all_gather(values.data(), values.data() + 100, 10, DataType::kFloat32); }},
        {"barrier", [&] { comm.barrier(); }},
        {"start", [&] { comm.start_all_reduce(std::span(values)).wait(); }},
        {"prepare", [&] { static_cast<void>(comm.prepare_all_reduce(std::span(values))); }},
        {"report", [&] { static_cast<void>(comm.report(Collective::kAllReduce, 100, DataType::kFloat32)); }},
        {"Request::start", [&] { persistent.start(); }},
        {"Request::test", [&] { persistent.test(); }},
        {"Request::wait", [&] { persistent.wait(); }},
    };
    std::string out;
    for (const auto& [name, call] : calls) {
      const std::string wrong = refusal_of(call);
      if (!wrong.empty()) out += name + ": " + wrong + "; ";
    }
    if (values != std::vector<float>(5000, 1.0F)) out += "the values have changed";
    return out;
  });
}

TEST(Fork, TheNumberOfAProcessIsItsOwn) {
  const std::uint64_t ours = process_number();
  EXPECT_EQ(process_number(), ours);
  for (const bool is_bare : {false, true}) {
    EXPECT_EQ(in_child(is_bare,
                       [&]() -> std::string {
                         const std::uint64_t theirs = process_number();
                         if (theirs == ours) return "the child has its parent's number";
                         return in_child(is_bare, [&]() -> std::string {
                           const bool is_new = process_number() != ours && process_number() != theirs;
                           return is_new ? "" : "the grandchild has the number of an ancestor";
                         });
                       }),
              "");
  }
  EXPECT_EQ(process_number(), ours);
}

TEST(Fork, AChildHasNoPartInThreadCommunicators) {
  std::vector<Communicator> ranks = thread_communicators(2, patient());
  std::vector<float> persistent_values(10, 1.0F);
  Request persistent = ranks[0].prepare_all_reduce(std::span(persistent_values));
  const auto add = [&] {
    std::vector<float> sums(2);
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < 2; ++r) {
      threads.emplace_back([&, r] {
        std::vector<float> values(5000, static_cast<float>(r + 1));
        ranks[r].start_all_reduce(std::span(values)).wait();  // there is a worker thread now
        ranks[r].all_reduce(std::span(values));
        sums[r] = values[4999];
      });
    }
    for (std::thread& thread : threads) thread.join();
    return sums;
  };
  EXPECT_EQ(add(), (std::vector<float>{6, 6}));
  EXPECT_EQ(try_everything(ranks[0], persistent, false), "");
  EXPECT_EQ(try_everything(ranks[0], persistent, true), "");
  EXPECT_EQ(add(), (std::vector<float>{6, 6}));
  // A child may make its own.
  EXPECT_EQ(in_child(false,
                     []() -> std::string {
                       std::vector<Communicator> own = thread_communicators(1, patient());
                       std::vector<float> values(10, 1.0F);
                       own[0].all_reduce(std::span(values));
                       return values[9] == 1.0F ? "" : "wrong";
                     }),
            "");
}

TEST(Fork, AChildHasNoPartInSharedMemory) {
  const std::string name = "fork-" + std::to_string(getpid());
  const auto rank_of = [&](int rank) -> std::string {
    Communicator comm = shared_memory_communicator(name, rank, 2, patient());
    std::vector<float> values(5000, 1.0F);
    std::vector<float> persistent_values(10, 1.0F);
    comm.start_all_reduce(std::span(values)).wait();
    Request persistent = comm.prepare_all_reduce(std::span(persistent_values));
    std::string wrong;
    if (rank == 1) wrong = try_everything(comm, persistent, false) + try_everything(comm, persistent, true);
    values.assign(values.size(), static_cast<float>(rank + 1));
    comm.all_reduce(std::span(values));
    if (values[4999] != 3.0F) wrong += "wrong sum";
    return wrong;
  };
  const Child other(false, [&] { return rank_of(1); });  // before this process has other threads
  EXPECT_EQ(rank_of(0), "");
  EXPECT_EQ(other.words(), "");
}

}  // namespace
}  // namespace gar
