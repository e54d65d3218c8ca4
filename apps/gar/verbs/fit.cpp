// gar fit: measures a network and fits the parameters of the model to it.
#include "gar/measure/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "apps/gar/cli/progress.hpp"
#include "apps/gar/verbs/fit_options.hpp"
#include "apps/gar/verbs/ranks.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/fit_report.hpp"
#include "apps/gar/views/page.hpp"
#include "apps/gar/views/plots.hpp"
#include "apps/gar/views/profile_show.hpp"
#include "gar/documents.hpp"
#include "gar/errors.hpp"
#include "gar/files.hpp"
#include "gar/measure/world.hpp"
#include "gar/profile_io.hpp"
#include "gar/report.hpp"

namespace gar::cli {
namespace {

/// What to do with a fit.
struct FitWays {
  const FitConfig& config;
  const std::string& html;  ///< page that is written, too; empty: none
  const Context& context;
};

void save_html(const FitReport& report, const FitWays& ways) {
  ReportPage page(fmt::format("What was measured of {}", report.profile.topology.name()));
  add_to_report(page, report, ways.config.output);
  if (ways.config.from.empty()) add_to_report(page, this_machine());
  save_page(page, ways.html, ways.context.json);
}

/// Fits, writes the profile and prints what was found.
int conclude(const Measurements& measurements, const FitWays& ways) {
  const auto& [config, html, context] = ways;
  FitOptions options;
  options.seed = config.seed;
  FitReport report{fit(measurements, options), measurements, config.is_validated};
  const auto is_held_out = [](const Observation& o) { return !o.is_fitted && !o.is_native && !o.seconds.empty(); };
  if (config.is_validated &&
      std::any_of(measurements.observations.begin(), measurements.observations.end(), is_held_out)) {
    report.profile.validation = validate(report.profile, measurements.observations);
    report.profile.validation_by_size = validate_by_size(report.profile, measurements.observations);
  } else if (config.is_validated) {
    print_note("nothing was held out, so nothing is validated; gar fit --validate measures it");
  }
  if (!config.output.empty()) {
    save_file(config.output, [&](std::ostream& file) { write_profile(report.profile, file); });
  }
  if (context.json) {
    print(fit_document(report));
  } else if (context.csv) {
    print(profile_csv(report.profile));
  } else {
    print(fit_text(report, use_color(context.color, stdout)));
    for (const IncastCharts& charts : incast_charts(report)) print_plot(context, charts.times);
    if (!config.output.empty()) {
      say(fmt::format("\nwritten to {}; use it with: gar predict -p {} --size 4MB\n", escaped(config.output),
                      shell_word(config.output)));
    }
  }
  if (!html.empty()) save_html(report, ways);
  std::fflush(stdout);
  return kExitOk;
}

/// Rank 0's part after the measurement.
int finish(const FitRun& run, const FitWays& ways) {
  const FitConfig& config = ways.config;
  for (const std::string& text : run.notes) print_note(text);
  if (!config.save.empty() && !run.measurements.observations.empty()) {
    save_file(config.save, [&](std::ostream& file) { write_measurements(run.measurements, file); });
  }
  if (!run.is_enough && run.is_stopped) {
    throw std::runtime_error("stopped before enough was measured to fit anything");
  }
  if (!run.is_enough) {
    throw UsageError(fmt::format("--budget {:g}s is too short to measure what a fit needs; about {:g}s would do",
                                 config.budget_s, run.needed_s));
  }
  if (run.is_stopped) {
    print_note("stopped: this is a fit of what was measured until then");
    try {
      conclude(run.measurements, ways);
    } catch (const InvalidArgument& error) {
      print_failure(error.what());
    }
    return kExitRunTime;
  }
  return conclude(run.measurements, ways);
}

int run_rank(World& world, const FitWays& ways) {
  const FitConfig& config = ways.config;
  ProgressLine progress({.every = std::chrono::milliseconds(200)});
  std::function<void(const std::string&)> on_progress;
  if (world.rank() == 0) on_progress = [&](const std::string& text) { progress.show(text + " (Ctrl-C ends it)"); };
  const FitRun run = run_fit(world, config, on_progress);
  progress.clear();
  if (world.rank() != 0) return run.is_stopped ? kExitRunTime : kExitOk;
  try {
    return finish(run, ways);
  } catch (...) {
    // The others have done their part; this is no longer about one rank.
    const Failure failure = describe_failure(std::current_exception());
    print_failure(failure.message);
    return failure.code;
  }
}

/// Before any rank is started.
void check_topology_size(const FitConfig& config, int num_ranks) {
  if (!config.topology || config.topology->num_servers() == num_ranks) return;
  throw InvalidArgument(
      fmt::format("-t {}: the network has {} servers, but {} ranks take part; expected one server per rank, such as "
                  "star:{}",
                  config.topology->name(), config.topology->num_servers(), num_ranks, num_ranks));
}

/// What was measured before is fitted by one process.
int fit_files(const FitWays& ways) {
  const FitConfig& config = ways.config;
  const Measurements measurements = join_measurements(config.from);
  if (!config.save.empty()) {
    save_file(config.save, [&](std::ostream& file) { write_measurements(measurements, file); });
  }
  return conclude(measurements, ways);
}

int measure_and_fit(const FitWays& ways, const std::optional<MpiJob>& job) {
  const FitConfig& config = ways.config;
  if (job && job->size < 2) throw UsageError("gar fit needs at least two ranks, and mpirun has started one");
  const bool is_cuda = config.device == Device::kCuda;
  RankStart start = rank_start(job, config.local.value_or(is_cuda ? 1 : std::max(num_cores(), 2)));
  start.has_common_errors = true;  // a topology that does not fit the hosts
  if (is_rank_over_tcp(config)) {
    start.check = [](int num_ranks) {
      if (num_ranks < 2) throw UsageError("gar fit needs at least two ranks, and this job has one");
    };
  } else if (!job) {
    check_topology_size(config, start.num_ranks);
    start.needs_mpi = config.mpi || config.transport == TransportKind::kMpi ||
                      (!is_cuda && !is_tcp(config.transport) && config.is_validated && has_mpi(std::nullopt));
  }
  Context shown = ways.context;
  // An mpirun may give ranks a terminal of its own, whatever it does with their output.
  if (job && shown.color == ColorMode::kAuto) shown.color = ColorMode::kNever;
  return run_ranks(config, start, [&](World& world) { return run_rank(world, {config, ways.html, shown}); });
}

int run(const FitArgs& args, const Context& context) {
  return run_once_or_in_job([&](const std::optional<MpiJob>& job) {
    const FitConfig config = parse_fit(args);
    prepare_ranks(config, job);
    const bool is_first = is_first_rank(config, job);
    if (is_first) {
      check_writable("-o", config.output);
      check_writable("--save", config.save);
      check_writable("--html", args.html);
    }
    const FitWays ways{config, args.html, context};
    if (config.from.empty()) return measure_and_fit(ways, job);
    return is_first ? fit_files(ways) : kExitOk;
  });
}

}  // namespace

void add_fit(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("fit", "Measure a network and fit the model's parameters to it");
  auto args = std::make_shared<FitArgs>();
  add_fit_options(verb, *args);
  add_output_options(verb, context);
  add_csv_option(verb, context);
  add_plot_option(verb, context);
  set_examples(verb,
               {{"the ranks of a cluster, for five minutes", "mpirun -n 16 gar fit --budget 5min -o profile.json"},
                {"4 processes of this host, and how well what was not fitted is predicted",
                 "gar fit --local 4 --budget 60s --validate -o profile.json"},
                {"the ranks of a job without MPI (RANK, WORLD_SIZE, ...), over TCP",
                 "gar fit --transport tcp --budget 5min -o profile.json"},
                {"a GPU's memory, and how 4 processes that share it reach each other's",
                 "gar fit --device cuda --local 4 -o h200.json"},
                {"keep what was measured, and fit several launches together",
                 "gar fit --from monday.json --from tuesday.json -o profile.json"},
                {"use it", "gar predict -p profile.json --size 4MB"}});
  on_run(verb, context, [args, &context] { return run(*args, context); });
}

}  // namespace gar::cli
