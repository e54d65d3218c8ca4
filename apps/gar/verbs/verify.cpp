// gar verify: proves a plan file, or shows where it fails.
#include "gar/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "apps/gar/cli/plan_args.hpp"
#include "apps/gar/cli/progress.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "gar/documents.hpp"
#include "gar/errors.hpp"
#include "gar/limits.hpp"

namespace gar::cli {
namespace {

const char* collective_name(Collective collective) {
  switch (collective) {
    case Collective::kReduceScatter:
      return "ReduceScatter";
    case Collective::kAllGather:
      return "AllGather";
    case Collective::kAllReduce:
      break;
  }
  return "AllReduce";
}

// A proof looks at every message; a short plan file can stand for more than any machine can do.
void check_effort(const Plan& plan, const std::string& path) {
  constexpr double kNotable = 2e7;
  if (plan.is_explicit() || plan.num_ranks == 1) return;
  const auto ranks = static_cast<double>(plan.num_ranks);
  check_work(kRankLimit, ranks, path);
  check_work(kMessageLimit, digit_messages(plan), path);
  const PlanIndex index(plan);
  double most = 0;
  for (const std::int64_t rank : {std::int64_t{0}, plan.num_ranks / 2, plan.num_ranks - 1}) {
    double messages = 0;
    for (const Step& step : index.program(rank).steps) messages += static_cast<double>(step.sends.size());
    most = std::max(most, messages);
  }
  check_work(kMessageLimit, most * ranks, path);
  if (most * ranks > kNotable) {
    print_progress(fmt::format("about {:.2g} messages to prove, this takes a while", most * ranks));
  }
}

struct VerifyArgs {
  std::string path;
  std::string seed;
  bool is_exact = false;
};

VerifyOptions options_of(const VerifyArgs& args) {
  VerifyOptions options{.num_elements = 2, .seed = std::nullopt};
  if (args.is_exact) options.kind = ProofKind::kExact;
  if (!args.seed.empty()) {
    options.kind = ProofKind::kFingerprints;
    try {
      options.seed = parse_proof_seed(args.seed);
    } catch (const InvalidArgument& error) {
      throw UsageError(fmt::format("--seed: {}", error.what()));
    }
  }
  return options;
}

// "exactly", or how likely it is that a wrong plan is called right.
std::string certainty(const VerifyReport& report) {
  if (report.is_exact)
    return "exact   all contributions and messages were checked one by one, without random numbers\n";
  return fmt::format(
      "chance  a wrong plan passes with a probability below 2^{:.0f} (random numbers with seed {}; --exact leaves "
      "nothing "
      "to chance)\n",
      std::log2(report.error_probability), to_text(report.seed));
}

int verify_file(const VerifyArgs& args, const Context& context) {
  const std::string source = args.path == "-" ? "standard input" : args.path;
  const VerifyOptions options = options_of(args);
  const Plan plan = load_plan(args.path);
  try {
    check_effort(plan, source);
  } catch (const PlanError& error) {
    throw PlanError(source + ": " + error.what());
  }
  const VerifyReport report = verify(plan, options);
  const double buffer = static_cast<double>(report.buffer_units) / static_cast<double>(plan.num_units);
  const double volume = static_cast<double>(report.volume_units) / static_cast<double>(plan.num_units);
  if (context.json) {
    print(verify_document(plan, report, args.path));
    return report.ok ? kExitOk : kExitCheckFailed;
  }
  const bool color = use_color(context.color, stdout);
  say(fmt::format("{}: {} ({}) on {} rank{}, {} steps, {} messages\n", escaped(source), escaped(plan.algorithm),
                  collective_name(plan.collective), plan.num_ranks, plan.num_ranks == 1 ? "" : "s", report.num_steps,
                  report.num_messages));
  if (!report.ok) {
    say(fmt::format("{}  {}\n", paint("WRONG", Paint::kRed, color), escaped(report.problem)));
    return kExitCheckFailed;
  }
  const std::string proved = paint("proved", Paint::kGreen, color);
  const char* result = plan.collective == Collective::kAllReduce
                           ? "every rank ends with every contribution to every element exactly once"
                       : plan.collective == Collective::kReduceScatter
                           ? "every rank ends with every contribution to its own block exactly once"
                           : "every rank ends with every rank's block";
  say(fmt::format("{}  {}\n", proved, result));
  say(fmt::format("{}  every message has its partner in the same step: the plan cannot deadlock\n", proved));
  say(certainty(report));
  const auto ranks = static_cast<double>(plan.num_ranks);
  std::string elements;
  if (plan.count > 0) {
    elements = fmt::format(", {} elements", to_whole(buffer * static_cast<double>(plan.count)));
  }
  say(fmt::format("memory  at most {} of the vector in addition (rank {}{}); {}\n", format_percent(buffer),
                  report.buffer_rank, elements,
                  report.max_fan_in > 1 ? fmt::format("the largest reduction has {} operands", report.max_fan_in)
                                        : "nothing is reduced"));
  const double least = (plan.collective == Collective::kAllReduce ? 2 : 1) * (ranks - 1) / ranks;
  say(fmt::format("sent    {:.4g} times the vector by each rank on average (the least possible is {:.4g})\n",
                  volume / ranks, least));
  return kExitOk;
}

}  // namespace

void add_verify(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("verify", "Prove that a plan is correct, or show where it is not");
  auto args = std::make_shared<VerifyArgs>();
  verb.add_option("plan", args->path, "A plan file, as written by gar plan; - for standard input")
      ->required()
      ->type_name("plan.json");
  CLI::Option* const exact =
      verb.add_flag("--exact", args->is_exact,
                    "Track every contribution itself, 64 ranks per pass, instead of a random number "
                    "for it; the default up to 64 ranks");
  verb.add_option("--seed", args->seed, "Repeat a run with the seed that it printed (default: a new seed)")
      ->type_name("HEX")
      ->excludes(exact);
  add_output_options(verb, context);
  set_examples(verb, {{"make a plan and prove it", "gar plan -t ss24 --count 1e8 -o plan.json && gar verify plan.json"},
                      {"leave nothing to chance", "gar verify --exact plan.json"}});
  on_run(verb, context, [args, &context] { return verify_file(*args, context); });
}

}  // namespace gar::cli
