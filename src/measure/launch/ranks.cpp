// One launcher for everything that measures: the ranks of a command as threads, processes, an MPI job, or on GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <initializer_list>
#include <memory>
#include <thread>
#include <vector>

#include "base/index.hpp"
#include "gar/environment.hpp"
#include "gar/errors.hpp"
#include "gar/measure/launch.hpp"
#include "gar/measure/world.hpp"
#include "gar/tcp.hpp"
#include "measure/launch/failures.hpp"
#include "measure/launch/launcher.hpp"
#include "runtime/transports/tcp/launchers.hpp"

namespace gar::measure {
namespace {

using RankBody = std::function<int(World&)>;

constexpr double kGraceAfterTimeout = 10;  ///< seconds in which a rank that has noticed a failure can end

// A signal handler reaches nothing else.
volatile std::sig_atomic_t is_stop_requested = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
extern "C" void request_stop(int) { is_stop_requested = 1; }

/// While it lives, signals ask this process to stop instead of ending it.
class StopSignals {
 public:
  /// Of a terminal: the first Ctrl-C asks, a second one ends the program; a job in the background ignores both.
  static StopSignals of_terminal() { return StopSignals({SIGINT}, static_cast<int>(SA_RESETHAND), true); }
  /// Of an mpirun, which turns Ctrl-C into SIGTERM.
  static StopSignals of_job() { return StopSignals({SIGINT, SIGTERM}, SA_RESTART, false); }
  ~StopSignals() {
    for (const Before& one : before_) sigaction(one.signal, &one.action, nullptr);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool is_requested() { return is_stop_requested != 0; }

 private:
  struct Before {
    int signal = 0;
    struct sigaction action = {};
  };

  StopSignals(std::initializer_list<int> signals, int flags, bool keeps_ignored) {
    is_stop_requested = 0;
    for (const int signal : signals) {
      struct sigaction action = {};
      action.sa_handler = request_stop;
      action.sa_flags = flags;
      sigemptyset(&action.sa_mask);
      Before before{signal, {}};
      sigaction(signal, &action, &before.action);
      if (keeps_ignored && before.action.sa_handler == SIG_IGN) sigaction(signal, &before.action, nullptr);
      before_.push_back(before);
    }
  }

  std::vector<Before> before_;
};

int run_threads(const RankStart& start, const RankBody& body) {
  const StopSignals signals = StopSignals::of_terminal();
  ThreadCommunicators communicators(start.num_ranks);
  std::vector<int> codes(idx(start.num_ranks), kExitOk);
  std::vector<std::exception_ptr> errors(codes.size());
  std::vector<std::thread> threads;
  for (int r = 0; r < start.num_ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        codes[idx(r)] = body(*thread_world(communicators, r, StopSignals::is_requested));
      } catch (...) {
        errors[idx(r)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<RankFailure> failures;
  for (int r = 0; r < start.num_ranks; ++r) {
    if (!errors[idx(r)]) continue;
    Failure failure = describe_failure(errors[idx(r)]);
    codes[idx(r)] = failure.code;
    failures.push_back({r, std::move(failure.message)});
  }
  report_failures(failures, start.num_ranks, start.report);
  return *std::max_element(codes.begin(), codes.end());
}

/// What all ranks of a job threw alike.
int report_once(const MpiSession& session, const RankStart& start) {
  const Failure failure = describe_failure(std::current_exception());
  if (session.rank() == 0) start.report(failure.message);
  return failure.code;
}

/// What this rank threw, while others may wait for it.
int abort_job(MpiSession& session, const RankStart& start) {
  const Failure failure = describe_failure(std::current_exception());
  start.report(fmt::format("rank {}: {}", session.rank(), failure.message));
  session.abort(failure.code);
  return failure.code;
}

int run_in_job(const RankOptions& options, const RankStart& start, const RankBody& body) {
  const MpiLibrary library = options.mpi.value_or(start.job->library);
  if (built_with() != library) become_program(library);
  const LauncherWatch watch(environment::text(environment::kStarted), start.report);
  // Also inside MPI_Init: a rank that ends while it holds a lock of PMIx leaves Open MPI's mpirun waiting for it.
  const StopSignals signals = StopSignals::of_job();
  const std::unique_ptr<MpiSession> session = start_mpi();
  try {
    if (start.check) start.check(session->size());
  } catch (...) {
    return report_once(*session, start);
  }
  try {
    return body(*mpi_world(*session, options.transport, StopSignals::is_requested));
  } catch (const InvalidArgument&) {
    return start.has_common_errors ? report_once(*session, start) : abort_job(*session, start);
  } catch (...) {
    return abort_job(*session, start);
  }
}

/// Ranks that this process starts: rank 0 has the store's server, on a port of the loopback that was taken before.
int run_local_tcp(const LocalProcesses& processes, const RankOptions& options, const RankBody& body) {
  const std::string secret = make_secret();
  LoopbackListener listener;
  return run_local_processes(processes, [&](const LocalRank& rank) {
    std::unique_ptr<StoreServer> server;
    if (rank.rank == 0) server = std::make_unique<StoreServer>(listener.take(), secret);
    std::unique_ptr<Store> store = tcp_store(listener.address(), secret, options.timeout_s);
    return body(*tcp_world(rank, std::move(store), options.transport, options.timeout_s));
  });
}

/// This process is a rank of a job that something else has started.
int run_tcp_rank(const EnvironmentJob& job, const RankOptions& options, const RankStart& start, const RankBody& body) {
  const StopSignals signals = StopSignals::of_job();
  const auto failed = [&] {
    const Failure failure = describe_failure(std::current_exception());
    start.report(fmt::format("rank {}: {}", job.rank, failure.message));
    return failure.code;
  };
  try {
    if (start.check) start.check(job.size);
  } catch (...) {  // the same on all ranks
    const Failure failure = describe_failure(std::current_exception());
    if (job.rank == 0) start.report(failure.message);
    return failure.code;
  }
  try {
    EnvironmentStore store = open_environment_store(job, {}, options.timeout_s);
    const LocalRank rank{job.rank, job.size, "bench", StopSignals::is_requested};
    return body(*tcp_world(rank, std::move(store.store), options.transport, options.timeout_s));
  } catch (const InvalidArgument&) {
    if (!start.has_common_errors || job.rank == 0) return failed();
    return describe_failure(std::current_exception()).code;
  } catch (...) {
    return failed();
  }
}

}  // namespace

int run_ranks(const RankOptions& options, const RankStart& start, const std::function<int(World&)>& body) {
  const bool is_over_tcp = is_tcp(options.transport);
  if (is_over_tcp && !options.local) {
    if (const std::optional<EnvironmentJob> job = environment_job()) return run_tcp_rank(*job, options, start, body);
  }
  if (start.job) return run_in_job(options, start, body);
  const LocalProcesses processes{start.num_ranks, options.timeout_s + kGraceAfterTimeout, start.report};
  if (is_over_tcp) return run_local_tcp(processes, options, body);
  if (options.device == Device::kCuda) {
    // CUDA does not survive a fork: the parent never calls it.
    return run_local_processes(processes, [&](const LocalRank& rank) {
      const std::unique_ptr<CudaSession> session = start_cuda(rank.rank, rank.size);
      return body(*cuda_world(rank, *session, options.transport));
    });
  }
  if (options.transport == TransportKind::kThreads) return run_threads(start, body);
  if (start.needs_mpi) return run_mpirun(options.mpi, start.num_ranks, start.report);
  return run_local_processes(processes, [&](const LocalRank& rank) { return body(*process_world(rank)); });
}

}  // namespace gar::measure
