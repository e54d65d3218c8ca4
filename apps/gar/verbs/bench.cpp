// gar bench: runs collectives for real and measures them beside each other.
#include "gar/measure/bench.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>

#include "apps/gar/cli/interrupt.hpp"
#include "apps/gar/cli/progress.hpp"
#include "apps/gar/verbs/bench_options.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/bench_report.hpp"
#include "gar/files.hpp"
#include "gar/measure/world.hpp"

namespace gar::cli {
namespace {

/// Rank 0's voice.
class Printer {
 public:
  Printer(const BenchConfig& config, const Context& context, const BenchWorld& world)
      : config_(config), is_json_(context.json), color_(use_color(context.color, stdout)) {
    record_.num_ranks = world.size();
    record_.world = world.words();
  }

  void begin() const {
    if (!is_json_) write(bench_header(config_, record_.world));
  }
  BenchWatch watch() {
    BenchWatch out;
    out.on_result = [this](const BenchResult& r) {
      progress_.clear();
      record_.results.push_back(r);
      if (!is_json_) write(bench_line(r, color_));
    };
    out.on_note = [this](const std::string& note) {
      progress_.clear();
      record_.notes.push_back(note);
      if (!is_json_) write(fmt::format("# {}\n", note));
    };
    if (progress_.is_visible()) {
      out.on_progress = [this](const std::string& text) { progress_.show(text + " (Ctrl-C ends it)"); };
    }
    return out;
  }
  void end(const BenchOutcome& outcome) {
    progress_.clear();
    record_.outcome = outcome;
    const std::string document = bench_document(config_, record_);
    if (is_json_) {
      print(document);
    } else {
      write(bench_footer(record_.results, outcome));
    }
    if (!config_.json_file.empty()) {
      save_file(config_.json_file, [&](std::ostream& file) { file << document; });
    }
    std::fflush(stdout);
  }

 private:
  static void write(const std::string& text) {
    print(text);
    std::fflush(stdout);
  }
  const BenchConfig& config_;
  bool is_json_;
  bool color_;
  ProgressLine progress_{{.first = std::chrono::seconds(1), .every = std::chrono::milliseconds(200)}};
  BenchRecord record_;
};

int run_rank(BenchWorld& world, const BenchConfig& config, const Context& context) {
  std::optional<Printer> printer;
  BenchWatch watch;
  if (world.rank() == 0) {
    printer.emplace(config, context, world);
    printer->begin();
    watch = printer->watch();
  }
  const BenchOutcome outcome = run_bench(world, config, watch);
  if (printer) printer->end(outcome);
  if (outcome.num_wrong > 0) return kExitCheckFailed;
  return outcome.is_complete ? kExitOk : kExitRunTime;
}

int run_threads(int size, const BenchConfig& config, const Context& context) {
  const InterruptGuard guard;
  ThreadHall hall(size);
  std::vector<int> codes(static_cast<std::size_t>(size), kExitOk);
  std::vector<std::exception_ptr> errors(codes.size());
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      try {
        codes[static_cast<std::size_t>(r)] = run_rank(*thread_world(hall, r, is_interrupted), config, context);
      } catch (...) {
        errors[static_cast<std::size_t>(r)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<std::string, std::vector<int>> messages;
  int code = *std::max_element(codes.begin(), codes.end());
  for (int r = 0; r < size; ++r) {
    const std::exception_ptr& error = errors[static_cast<std::size_t>(r)];
    if (!error) continue;
    const Failure failure = describe_failure(error);
    messages[failure.message].push_back(r);
    code = std::max(code, failure.code);
  }
  for (const auto& [text, ranks] : messages) {
    print_failure(static_cast<int>(ranks.size()) == size ? text : fmt::format("{}: {}", rank_words(ranks), text));
  }
  return code;
}

// A signal handler reaches nothing else. mpirun turns Ctrl-C into SIGTERM.
volatile std::sig_atomic_t terminated = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
extern "C" void on_terminate(int) { terminated = 1; }

int run_mpi(const BenchConfig& config, const Context& context) {
  std::signal(SIGINT, on_terminate);
  std::signal(SIGTERM, on_terminate);
  const std::unique_ptr<MpiSession> session = start_mpi();
  try {
    check_ranks(config, session->size());
  } catch (...) {
    // What is wrong with the input is wrong on all ranks alike.
    const Failure failure = describe_failure(std::current_exception());
    if (session->rank() == 0) print_failure(failure.message);
    return failure.code;
  }
  try {
    return run_rank(*mpi_world(*session, config.transport, [] { return terminated != 0; }), config, context);
  } catch (...) {
    const Failure failure = describe_failure(std::current_exception());
    print_failure(fmt::format("rank {}: {}", session->rank(), failure.message));
    session->abort(failure.code);
    return failure.code;
  }
}

void check_mpi_usage(const BenchConfig& config, const MpiJob& job) {
  if (config.local && !is_started_by_us()) {
    throw UsageError(
        fmt::format("--local {} does not go with mpirun, which has started {} processes already; leave one of them out",
                    *config.local, job.size));
  }
  if (config.transport == BenchTransport::kThreads) {
    throw UsageError(
        "--transport threads does not go with mpirun; accepted: auto shm mpi, or gar bench without mpirun");
  }
}

int run_in_job(const BenchConfig& config, const Context& context, const MpiJob& job) {
  check_mpi_usage(config, job);
  const MpiLibrary library = config.mpi.value_or(job.library);
  if (built_with() != library) become_program(library);
  return run_mpi(config, context);
}

/// Better an error now than one after the measurement.
void check_json_file(const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string where = folder.empty() ? "." : folder.string();
  const bool is_new = !std::filesystem::exists(path);
  if (access(is_new ? where.c_str() : path.c_str(), W_OK) != 0) {
    throw std::runtime_error(
        fmt::format("-J {}: cannot be written: {}; accepted is a file in a folder that exists and can be written", path,
                    std::strerror(errno)));
  }
}

/// Better an error now than processes that the kernel kills later.
void check_memory(const BenchConfig& config, int num_ranks) {
  const std::int64_t largest = *std::max_element(config.sizes.begin(), config.sizes.end());
  const double needed = 2.0 * static_cast<double>(largest) * num_ranks;
  const double available = available_bytes();
  if (available < 0 || needed <= available) return;
  throw std::runtime_error(
      fmt::format("-e {}: {} ranks with an input and a result each need {}, and {} of memory are available",
                  format_binary_bytes(largest), num_ranks, format_bytes(needed), format_bytes(available)));
}

/// CUDA does not survive a fork: the parent never calls it.
int run_on_gpus(int size, const BenchConfig& config, const Context& context) {
  return run_local_processes(size, config.timeout_s + 10, [&](const LocalRank& rank) {
    const std::unique_ptr<CudaSession> session = start_cuda(rank.rank, rank.size);
    return run_rank(*cuda_world(rank, *session, path_of(config.transport)), config, context);
  });
}

int run_here(const BenchConfig& config, const Context& context) {
  check_json_file(config.json_file);
  const int size = config.local.value_or(std::max(num_cores(), 2));
  check_ranks(config, size);
  check_memory(config, size);
  if (config.device == Device::kCuda) return run_on_gpus(size, config, context);
  if (config.transport == BenchTransport::kThreads) return run_threads(size, config, context);
  if (config.has_native() || config.transport == BenchTransport::kMpi) return run_mpirun(config.mpi, size);
  return run_local_processes(size, config.timeout_s + 10,
                             [&](const LocalRank& rank) { return run_rank(*process_world(rank), config, context); });
}

int run(const BenchArgs& args, const Context& context) {
  // A reader that has gone away is an error of the output, not the death of a rank.
  std::signal(SIGPIPE, SIG_IGN);
  const std::optional<MpiJob> job = mpi_job([](const char* name) { return std::getenv(name); });
  // All ranks of a job read the same command line; one complaint about it is enough.
  try {
    const BenchConfig config = parse_bench(args);
    if (job && config.device == Device::kCuda) throw UsageError(kNoGpusUnderMpirun);
    become_program_of(config.device);
    return job ? run_in_job(config, context, *job) : run_here(config, context);
  } catch (...) {
    if (!job || job->rank == 0) throw;
    return describe_failure(std::current_exception()).code;
  }
}

}  // namespace

void add_bench(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("bench", "Run collectives for real and measure them, beside MPI's own");
  auto args = std::make_shared<BenchArgs>();
  add_bench_options(verb, *args);
  add_output_options(verb, context);
  set_examples(verb, {{"4 processes of this host, from 4 KiB to 256 MiB",
                       "gar bench --local 4 -b 4KiB -e 256MiB -f 2 -n 20 -w 5"},
                      {"our choice, a ring and the MPI library's own AllReduce, measured in turns",
                       "gar bench --local 4 --algo auto,ring,native"},
                      {"4 processes that share the GPUs of this host, against NCCL's own AllReduce",
                       "gar bench --device cuda --local 4 --algo cps,ring,native -b 1MiB -e 256MiB"},
                      {"the ranks of an MPI job", "mpirun -n 8 gar bench --algo gentree+,native -b 1MiB -e 64MiB"},
                      {"every type and operator, checked element by element",
                       "gar bench --local 3 -d all -o all -b 4KB -e 4MB -f 1000 -n 1 -w 0"}});
  on_run(verb, context, [args, &context] { return run(*args, context); });
}

}  // namespace gar::cli
