// What the MPI tests share: a program runs named parts on all ranks, and fails when a rank throws in one of them, or
// when a part has compared nothing.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "gar/mpi.hpp"
#include "support/collective_cases.hpp"
#include "support/seed.hpp"

namespace gar::test {

inline MpiPath parse_path(const std::string& text) {
  if (text == "messages") return MpiPath::kMessages;
  if (text == "hierarchy") return MpiPath::kHierarchy;
  if (text == "shared") return MpiPath::kShared;
  throw Failure("unknown path '" + text + "'; expected messages, hierarchy, shared");
}

class MpiTest {
 public:
  MpiTest(int argc, char** argv, int thread_level = MPI_THREAD_FUNNELED) : arguments_(argv + 1, argv + argc) {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, thread_level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    thread_level_ = provided;
  }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int thread_level() const { return thread_level_; }
  [[nodiscard]] std::string argument(std::size_t i, const std::string& otherwise) const {
    return i < arguments_.size() ? arguments_[i] : otherwise;
  }

  /// Something was compared with what is expected.
  void compared(std::int64_t times = 1) { num_compared_ += times; }
  void expect(bool condition, const std::string& text) {
    check(condition, text);
    compared();
  }

  /// Gives the core away while it waits: blocking calls of some MPIs do not, and ranks may be more than cores.
  static void barrier() {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    int is_done = 0;
    while (MPI_Test(&request, &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS && is_done == 0) sched_yield();
  }

  /// Runs a part; everybody stops when it fails on some rank.
  void part(const std::string& name, const std::function<void()>& body) {
    const std::int64_t before = num_compared_;
    std::string text;
    try {
      body();
      check(num_compared_ > before, "nothing was compared");
    } catch (const std::exception& error) {
      text = text_of(error);
    }
    if (!text.empty()) std::fprintf(stderr, "%s: rank %d of %d: %s\n", name.c_str(), rank_, size_, text.c_str());
    int failed = text.empty() ? 0 : 1;
    // A rank that failed may have left others inside a collective: they are ended with it.
    if (failed != 0) {
      std::fflush(stderr);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    barrier();
    if (rank_ == 0) {
      std::printf("ok %s (%lld comparisons on rank 0)\n", name.c_str(), static_cast<long long>(num_compared_ - before));
      std::fflush(stdout);
    }
  }

  int finish() {
    MPI_Finalize();
    if (num_compared_ == 0) std::fprintf(stderr, "nothing was compared\n");
    return num_compared_ > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }

 private:
  std::vector<std::string> arguments_;
  int rank_ = 0;
  int size_ = 1;
  int thread_level_ = 0;
  std::int64_t num_compared_ = 0;
};

/// What a call throws as TransportError; "" when it returns.
inline std::string transport_error_of(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const TransportError& error) {
    return *error.what() == '\0' ? "(no text)" : error.what();
  }
}

}  // namespace gar::test
