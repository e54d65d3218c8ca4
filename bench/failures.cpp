// What on_failure = shrink costs: every operation, and when a rank is lost (docs/failures.md).
//
//   bench_failures [RANKS [ROUNDS]]
//
// Processes of this host, over shared memory and over TCP with shared memory switched off. Both kinds of communicators
// exist side by side and take turns, so that what else the machine does disturbs both. Then ranks are killed one after
// the other: from the start of the operation that was interrupted until it is complete between those who are left.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "gar/tcp.hpp"
#include "runtime/transports/tcp/launchers.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Make = std::function<gar::Communicator(const std::string& name, const gar::CommunicatorOptions& options)>;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Of one of `num_calls` that follow each other: a single one after a barrier would hide what it waits for.
double seconds_of(gar::Communicator& communicator, std::vector<float>& in, std::vector<float>& out, int num_calls = 1) {
  const auto begin = Clock::now();
  for (int i = 0; i < num_calls; ++i) communicator.all_reduce(in, out);
  return std::chrono::duration<double>(Clock::now() - begin).count() / num_calls;
}

void measure_calls(const Make& make, const char* over, int rank, int num_rounds) {
  gar::CommunicatorOptions options;
  gar::Communicator plain = make("plain", options);
  options.on_failure = gar::OnFailure::kShrink;
  gar::Communicator shrinking = make("shrinking", options);
  for (const std::size_t bytes : {8, 4096, 65536, 1 << 20, 4 << 20}) {
    std::vector<float> in(bytes / 4);
    std::vector<float> out(in.size());
    std::vector<std::vector<double>> times(3);
    const int num_calls = bytes <= 65536 ? 20 : 3;
    for (int round = 0; round < num_rounds; ++round) {
      plain.barrier();
      times[0].push_back(seconds_of(plain, in, out, num_calls));
      plain.barrier();
      times[1].push_back(seconds_of(shrinking, in, out, num_calls));
      plain.barrier();
      times[2].push_back(seconds_of(shrinking, in, in, num_calls));
    }
    if (rank != 0) continue;
    fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.1f} |\n", over, bytes, 1e6 * median(times[0]), 1e6 * median(times[1]),
               1e6 * median(times[2]));
    std::fflush(stdout);
  }
}

/// The last rank of those that are left dies before every tenth operation, as long as there are three.
void measure_losses(const Make& make, const char* over, int rank, int size) {
  gar::CommunicatorOptions options;
  options.on_failure = gar::OnFailure::kShrink;
  gar::Communicator communicator = make("lossy", options);
  std::vector<float> in(1 << 16);
  std::vector<float> out(in.size());
  std::vector<double> times;
  for (int left = size; left > 2; --left) {
    for (int i = 0; i < 10; ++i) seconds_of(communicator, in, out);
    if (rank == left - 1) std::raise(SIGKILL);
    times.push_back(seconds_of(communicator, in, out));
  }
  if (rank == 0) {
    fmt::print("over {}: {} ranks lost one after the other; median {:.1f} ms, longest {:.1f} ms for the operation\n",
               over, times.size(), 1e3 * median(times), 1e3 * *std::max_element(times.begin(), times.end()));
    std::fflush(stdout);
  }
}

void run_ranks(int size, const std::function<void(int rank)>& body) {
  for (int rank = 0; rank < size; ++rank) {
    if (fork() != 0) continue;
    body(rank);
    std::_Exit(0);
  }
  while (wait(nullptr) > 0) {
  }
}

void run_over(const char* over, int size, int num_rounds, bool loses) {
  const bool is_tcp = std::string(over) == "tcp";
  const std::string secret = is_tcp ? gar::make_secret() : "";
  std::unique_ptr<gar::LoopbackListener> listener;
  if (is_tcp) listener = std::make_unique<gar::LoopbackListener>();
  const std::string job = fmt::format("bench-{}-{}", getpid(), loses);
  run_ranks(size, [&](int rank) {
    std::unique_ptr<gar::StoreServer> server;
    std::unique_ptr<gar::Store> store;
    if (is_tcp && rank == 0) server = std::make_unique<gar::StoreServer>(listener->take(), secret);
    if (is_tcp) store = gar::tcp_store(listener->address(), secret, 30);
    const Make make = [&](const std::string& name, const gar::CommunicatorOptions& options) {
      if (!is_tcp) return gar::shared_memory_communicator(fmt::format("{}-{}", job, name), rank, size, options);
      gar::TcpOptions tcp;
      tcp.path = gar::TcpPath::kMessages;
      return gar::tcp_communicator(*store, name, rank, size, options, tcp);
    };
    if (loses) {
      measure_losses(make, over, rank, size);
    } else {
      measure_calls(make, over, rank, num_rounds);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 4;
  const int num_rounds = argc > 2 ? std::atoi(argv[2]) : 300;
  fmt::print("{} processes of this host, median microseconds of an all_reduce of float32 in {} rounds\n", size,
             num_rounds);
  fmt::print("| over | bytes | report | shrink | shrink, in place |\n|---|---|---|---|---|\n");
  std::fflush(stdout);
  for (const char* over : {"shm", "tcp"}) run_over(over, size, num_rounds, false);
  for (const char* over : {"shm", "tcp"}) run_over(over, 8, num_rounds, true);
  return 0;
}
