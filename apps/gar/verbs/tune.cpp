// gar tune: measures which way of running an AllReduce is the fastest for which size, and keeps it for later jobs.
#include "gar/measure/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>

#include "apps/gar/cli/environment.hpp"
#include "apps/gar/cli/network.hpp"
#include "apps/gar/cli/plan_args.hpp"
#include "apps/gar/cli/progress.hpp"
#include "apps/gar/verbs/bench_options.hpp"
#include "apps/gar/verbs/ranks.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/decisions_show.hpp"
#include "gar/environment.hpp"
#include "gar/measure/bench.hpp"

namespace gar::cli {
namespace {

constexpr std::int64_t kLeastBytes = 8;
constexpr std::int64_t kMostBytes = std::int64_t{4} << 20;
constexpr std::int64_t kStepFactor = 4;
constexpr int kMostLocal = 1024;
constexpr std::int64_t kMostCalls = 1'000'000;
constexpr std::int64_t kMostSizes = 64;

struct TuneArgs {
  std::optional<int> local;
  std::string sizes;
  std::string counts;
  std::string transport = "auto";
  std::string mpi;
  std::int64_t calls = 2000;
};

std::vector<std::int64_t> sizes_of(const TuneArgs& args) {
  if (args.sizes.empty() && args.counts.empty()) return bench_sizes(kLeastBytes, kMostBytes, kStepFactor, 0);
  const char* flag = args.counts.empty() ? "--sizes" : "--count";
  std::vector<std::int64_t> out = float_vector_bytes(args.sizes, args.counts);
  for (const std::int64_t bytes : out) {
    if (bytes < 1) {
      throw UsageError(fmt::format("{} {}: expected sizes of at least 1 byte", flag, args.sizes + args.counts));
    }
  }
  if (out.empty() || out.size() > kMostSizes) {
    throw UsageError(fmt::format("{}: expected 1 to {} sizes", flag, kMostSizes));
  }
  std::sort(out.begin(), out.end());
  return out;
}

void check_whole(std::string_view flag, std::int64_t value, std::int64_t most) {
  if (value >= 1 && value <= most) return;
  throw UsageError(fmt::format("{} {}: expected a whole number from 1 to {}", flag, value, format_grouped(most)));
}

TuneConfig config_of(const TuneArgs& args) {
  if (args.local) check_whole("--local", *args.local, kMostLocal);
  check_whole("--calls", args.calls, kMostCalls);
  TuneConfig out;
  out.local = args.local;
  out.most_calls = args.calls;
  out.sizes = sizes_of(args);
  out.transport = parse_transport_kind(args.transport).value_or(TransportKind::kAuto);  // the flag has checked it
  if (!args.mpi.empty()) out.mpi = args.mpi == "mpich" ? MpiLibrary::kMpich : MpiLibrary::kOpenMpi;
  return out;
}

/// Before any rank is started.
void check_here(int num_ranks) {
  if (num_ranks < 2) throw UsageError("one rank has nothing to decide; expected --local 2 or more");
  if (const std::string algorithm = environment::text(environment::kAlgo); !algorithm.empty() && algorithm != "auto") {
    throw UsageError(fmt::format(
        "GAR_ALGO={} in the environment leaves nothing to be decided; unset it, or set it to auto", algorithm));
  }
}

int run_rank(World& world, const TuneConfig& config, const Context& context) {
  const bool is_speaker = world.rank() == 0;
  // The terminal of a rank may be mpirun's, which is none of the user's.
  const bool color =
      context.color == ColorMode::kAlways || (world.mpi() == nullptr && use_color(context.color, stdout));
  ProgressLine progress{{.first = std::chrono::seconds(1), .every = std::chrono::milliseconds(200)}};
  TuneWatch watch;
  const bool is_table = !context.json && !context.csv;
  if (is_speaker && context.csv) print(decisions_csv_titles());
  if (is_speaker && is_table) {
    print(commented(
        fmt::format("AllReduce between {}; candidates take turns until the fastest is known", world.words())));
    print(decisions_titles());
    std::fflush(stdout);
  }
  if (is_speaker) {
    watch.on_decision = [&](const Decision& decision) {
      progress.clear();
      if (context.csv) print(decision_csv(decision));
      if (is_table) print(decision_line(decision, color));
      std::fflush(stdout);
    };
    if (progress.is_visible()) watch.on_progress = [&](const std::string& text) { progress.show(text); };
  }
  const TuneOutcome outcome = run_tune(world, config, watch);
  if (is_speaker) {
    progress.clear();
    const std::string folder = decisions_folder();
    const std::filesystem::path file = std::filesystem::path(folder) / decisions_file_name(outcome.found.place);
    if (context.json) {
      std::ostringstream document;
      write_decisions(outcome.found, document);
      print(document.str());
    } else if (!is_table) {
      // nothing but rows
    } else if (folder.empty()) {
      print(commented("not kept: GAR_DECISIONS=0, or there is no folder for it"));
    } else if (outcome.problem.empty() && !outcome.found.decisions.empty()) {
      print(commented(fmt::format("kept in {}", file.string())));
    }
    if (!outcome.problem.empty()) print_failure(fmt::format("the decisions are not kept: {}", outcome.problem));
    std::fflush(stdout);
  }
  if (outcome.num_wrong > 0) return kExitCheckFailed;
  return outcome.is_complete && outcome.problem.empty() ? kExitOk : kExitRunTime;
}

int run(const TuneArgs& args, const Context& context) {
  return run_once_or_in_job([&](const std::optional<MpiJob>& job) {
    const TuneConfig config = config_of(args);
    prepare_ranks(config, job);
    check_environment(is_read_by_ranks);
    RankStart start = rank_start(job, config.local.value_or(std::max(num_cores(), 2)));
    if (is_tcp(config.transport) && config.mpi) {
      throw UsageError(
          fmt::format("--mpi cannot be combined with --transport {}, which is without MPI", args.transport));
    }
    start.check = [](int num_ranks) { check_here(num_ranks); };
    if (!is_rank_over_tcp(config)) check_here(job ? job->size : start.num_ranks);
    // With MPI, so that its own AllReduce takes part, where there is one.
    start.needs_mpi = config.transport != TransportKind::kThreads && !is_tcp(config.transport) && has_mpi(config.mpi);
    return run_ranks(config, start, [&](World& world) { return run_rank(world, config, context); });
  });
}

}  // namespace

void add_tune(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("tune", "Measure which AllReduce is fastest for which size, and keep it");
  auto args = std::make_shared<TuneArgs>();
  verb.add_option("--local", args->local,
                  "Start this many processes on this host; under an MPI, where there is one, so that its own AllReduce "
                  "takes part (default: as many as cores)")
      ->type_name("N");
  verb.add_option("--size,--sizes", args->sizes, "Vectors to measure (default: 8 B to 4 MiB by factors of 4)")
      ->type_name("SIZE");
  verb.add_option("--count", args->counts, "The same in floats: 1e6, 1e3,1e6 or 1e3..1e6")->type_name("N");
  verb.add_option("--calls", args->calls, "Most calls per size, when candidates are too close to tell apart")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--transport", args->transport,
                  "What connects the ranks; auto: shared memory, MPI between hosts; tcp and shm+tcp: without MPI")
      ->type_name("T")
      ->check(CLI::IsMember({"auto", "threads", "shm", "mpi", "tcp", "shm+tcp"}));
  verb.add_option("--mpi", args->mpi, "Which MPI --local starts (default: the first one installed)")
      ->type_name("M")
      ->check(CLI::IsMember({"openmpi", "mpich"}));
  add_output_options(verb, context);
  add_csv_option(verb, context);
  set_examples(verb, {{"4 processes of this host", "gar tune --local 4"},
                      {"the ranks of an MPI job", "mpirun -n 8 gar tune"},
                      {"4 processes over TCP, without MPI and shared memory", "gar tune --local 4 --transport tcp"},
                      {"three sizes only", "gar tune --local 4 --sizes 1KiB,64KiB,1MiB"}});
  on_run(verb, context, [args, &context] { return run(*args, context); });
}

}  // namespace gar::cli
