// gar bench: runs collectives for real and measures them in turns.
#include "gar/measure/bench.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>

#include "apps/gar/cli/environment.hpp"
#include "apps/gar/cli/progress.hpp"
#include "apps/gar/verbs/bench_options.hpp"
#include "apps/gar/verbs/ranks.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/bench_report.hpp"
#include "apps/gar/views/page.hpp"
#include "apps/gar/views/plots.hpp"
#include "gar/files.hpp"
#include "gar/measure/mpi_session.hpp"
#include "gar/measure/world.hpp"
#include "gar/report.hpp"

namespace gar::cli {
namespace {

/// What to think of times of ranks that we have started on this host; empty: nothing.
std::string placement_words(const BenchConfig& config, const World& world) {
  const bool is_local = !current_mpi_job() || is_started_by_us();
  if (!is_local || config.device != Device::kCpu) return "";
  if (world.size() > num_cores()) {
    return fmt::format("rough: {} ranks share {} core{}, so times of short vectors depend on the scheduler",
                       world.size(), num_cores(), num_cores() == 1 ? "" : "s");
  }
  return config.has_native() ? "ranks are not bound to cores, so native can look slow by chance; to bind them, start "
                               "mpirun yourself: mpirun --bind-to core -n N gar bench ..."
                             : "";
}

/// Rank 0's voice.
class Printer {
 public:
  Printer(const BenchConfig& config, const std::string& html, const Context& context, World& world)
      : config_(config),
        context_(context),
        layout_(bench_layout(config)),
        html_(html),
        is_json_(context.json),
        is_csv_(context.csv),
        color_(use_color(context.color, stdout)) {
    record_.num_ranks = world.size();
    record_.world = world.words();
    record_.origin = this_machine(world.mpi() == nullptr ? "" : world.mpi()->library_version());
    record_.origin.facts.emplace_back("ranks", record_.world);
    placement_ = placement_words(config, world);
    if (!placement_.empty()) record_.notes.push_back(placement_);
  }

  void begin() const {
    if (is_csv_) {
      write(bench_csv_titles());
    } else if (!is_json_) {
      write(bench_header(config_, record_.world, placement_, layout_));
    }
  }
  BenchWatch watch() {
    BenchWatch out;
    out.on_result = [this](const BenchResult& r) {
      progress_.clear();
      record_.results.push_back(r);
      if (is_csv_) {
        write(bench_csv_line(r));
      } else if (!is_json_) {
        write(bench_line(r, color_, layout_));
      }
    };
    out.on_note = [this](const std::string& note) {
      progress_.clear();
      record_.notes.push_back(note);
      if (!is_json_ && !is_csv_) write(layout_.is_wide ? fmt::format("# {}\n", escaped(note)) : commented(note));
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
    } else if (!is_csv_) {
      write(bench_footer(record_.results, outcome, layout_));
      if (draws(context_) && !record_.results.empty()) {
        print_commented_plot(context_, results_chart(parse_results(document, "gar bench")));
      }
    }
    if (!config_.json_file.empty()) {
      save_file(config_.json_file, [&](std::ostream& file) { file << document; });
    }
    if (!html_.empty() && !record_.results.empty()) save_html(document);
    std::fflush(stdout);
  }

 private:
  void save_html(const std::string& document) const {
    ReportPage page(fmt::format("AllReduce between {} ranks: what was measured", record_.num_ranks));
    if (record_.outcome.num_wrong > 0) {
      page.verdict(Tone::kBad, fmt::format("{} elements are wrong.", record_.outcome.num_wrong));
    }
    if (!record_.outcome.is_complete) page.verdict(Tone::kBad, "The benchmark was ended before it was complete.");
    add_to_report(page, parse_results(document, "gar bench"), config_.profile ? &*config_.profile : nullptr,
                  "gar bench");
    page.list(record_.notes);
    save_page(page, html_, is_json_ || is_csv_);
  }
  static void write(const std::string& text) {
    print(text);
    std::fflush(stdout);
  }
  const BenchConfig& config_;
  const Context& context_;
  BenchLayout layout_;
  std::string html_;
  bool is_json_;
  bool is_csv_;
  bool color_;
  std::string placement_;
  ProgressLine progress_{{.first = std::chrono::seconds(1), .every = std::chrono::milliseconds(200)}};
  BenchRecord record_;
};

int run_rank(World& world, const BenchConfig& config, const std::string& html, const Context& context) {
  std::optional<Printer> printer;
  BenchWatch watch;
  if (world.rank() == 0) {
    printer.emplace(config, html, context, world);
    printer->begin();
    watch = printer->watch();
  }
  const BenchOutcome outcome = run_bench(world, config, watch);
  if (printer) printer->end(outcome);
  if (outcome.num_wrong > 0) return kExitCheckFailed;
  return outcome.is_complete ? kExitOk : kExitRunTime;
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

/// Before any rank is started: better an error now than one after the measurement.
void check_here(const BenchConfig& config, int num_ranks) {
  check_writable("-J", config.json_file);
  check_ranks(config, num_ranks);
  check_memory(config, num_ranks);
}

int run(const BenchArgs& args, const Context& context) {
  return run_once_or_in_job([&](const std::optional<MpiJob>& job) {
    const BenchConfig config = parse_bench(args);
    prepare_ranks(config, job);
    check_environment(is_read_by_ranks);
    RankStart start = rank_start(job, config.local.value_or(std::max(num_cores(), 2)));
    start.needs_mpi = config.has_native() || config.transport == TransportKind::kMpi;
    start.check = [&](int num_ranks) { check_ranks(config, num_ranks); };
    if (is_first_rank(config, job)) check_writable("--html", args.html);
    if (!job && !is_rank_over_tcp(config)) check_here(config, start.num_ranks);
    return run_ranks(config, start, [&](World& world) { return run_rank(world, config, args.html, context); });
  });
}

}  // namespace

void add_bench(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("bench", "Run collectives for real and measure them, beside MPI's own");
  auto args = std::make_shared<BenchArgs>();
  add_bench_options(verb, *args);
  add_output_options(verb, context);
  add_csv_option(verb, context);
  add_plot_option(verb, context);
  set_examples(verb, {{"4 processes of this host, from 4 KiB to 256 MiB",
                       "gar bench --local 4 -b 4KiB -e 256MiB -f 2 -n 20 -w 5"},
                      {"the first command of nccl-tests, as it stands", "gar bench -b 8 -e 128M -f 2 -g 8"},
                      {"our choice, a ring and the MPI library's own AllReduce, measured in turns",
                       "gar bench --local 4 --algo auto,ring,native"},
                      {"4 processes that share the GPUs of this host, against NCCL's own AllReduce",
                       "gar bench --device cuda --local 4 --algo cps,ring,native -b 1MiB -e 256MiB"},
                      {"4 processes over TCP, without MPI and shared memory", "gar bench --local 4 --transport tcp"},
                      {"the ranks of an MPI job", "mpirun -n 8 gar bench --algo gentree+,native -b 1MiB -e 64MiB"},
                      {"every type and operator, checked element by element",
                       "gar bench --local 3 -d all -o all -b 4KB -e 4MB -f 1000 -n 1 -w 0"}});
  on_run(verb, context, [args, &context] { return run(*args, context); });
}

}  // namespace gar::cli
