// gar diagnose: are these results normal for this network, and if not, what is at fault?
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "apps/gar/verbs/verbs.hpp"
#include "gar/documents.hpp"
#include "gar/errors.hpp"
#include "gar/fit.hpp"
#include "gar/fit_report.hpp"
#include "gar/profile_io.hpp"
#include "gar/results_io.hpp"

namespace gar::cli {
namespace {

struct DiagnoseArgs {
  std::string profile;
  std::string results;  ///< "standard input" where that is read
  std::string ranks;
  bool is_standard_input = false;
};

/// The number of ranks, and where it comes from.
struct RankCount {
  std::int64_t count = 0;
  std::string source;
};

RankCount count_ranks(const DiagnoseArgs& args, const Results& results, const Profile& profile) {
  const std::int64_t known = profile.topology.num_servers();
  RankCount out{known, "the profile"};
  if (!args.ranks.empty()) out = {parse_ranks(args.ranks), "--ranks"};
  if (results.num_ranks > 0) {
    if (!args.ranks.empty() && out.count != results.num_ranks) {
      throw UsageError(
          fmt::format("--ranks {}: {} says {}; leave --ranks out", args.ranks, args.results, results.num_ranks));
    }
    out = {results.num_ranks, args.results};
  }
  if (out.count < 2) {
    throw InvalidArgument(fmt::format("{} rank according to {}: nothing passes any link; expected 2 to {}", out.count,
                                      out.source, known));
  }
  if (out.count > known) {
    throw InvalidArgument(fmt::format(
        "{} ranks according to {}, but {} knows {} servers; expected results of 2 to {} ranks, or a profile of more",
        out.count, out.source, args.profile, known, known));
  }
  return out;
}

/// Everything that is printed.
struct DiagnoseReport {
  const DiagnoseArgs& args;
  const Results& results;
  const std::vector<Observation>& observations;  ///< one per row of the results
  RankCount ranks;
  Diagnosis diagnosis;  ///< with one row per observation
};

Paint paint_of(Verdict verdict) {
  if (verdict == Verdict::kUnknown) return Paint::kYellow;
  return verdict == Verdict::kNormal ? Paint::kGreen : Paint::kRed;
}

void print_diagnosis(const DiagnoseReport& report, bool color) {
  const auto& [args, results, observations, ranks, diagnosis] = report;
  print(fmt::format("{}: {}, {} ranks (as {} says)\n\n", escaped(args.results), results.format, ranks.count,
                    ranks.source == args.results ? "it" : escaped(ranks.source)));
  Table table(
      {{"size", true}, {"algorithm"}, {"measured", true}, {"expected", true}, {"ratio", true}, {"verdict"}, {"of"}});
  bool has_assumed = false;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const Residual& r = diagnosis.rows[i];
    const ResultRow& row = results.rows[i];
    const Verdict verdict = verdict_of(r, diagnosis);
    has_assumed = has_assumed || row.algorithm.empty();
    table.add_row({format_bytes(row.bytes), to_string(observations[i].algorithm) + (row.algorithm.empty() ? "?" : ""),
                   format_seconds(r.measured_s), format_seconds(r.fitted_s),
                   fmt::format("{:.2f}", r.measured_s / r.fitted_s),
                   Cell(std::string(to_string(verdict)), paint_of(verdict)), row.label});
  }
  print(table.to_string(color) + "\n");
  if (has_assumed) {
    print(
        list_item("?: the results do not say which algorithm ran; they are judged against the one that the model "
                  "finds best at that size, the least that can be expected"));
  }
  for (const std::string& line : diagnosis.words) print(list_item(line));
  if (!diagnosis.is_judged) {
    print(paint("\nNOT judged: this profile is too rough\n", Paint::kYellow, color));
  } else if (!diagnosis.is_normal) {
    print(paint("\nNOT normal for this network\n", Paint::kRed, color));
  }
}

int diagnose_results(const DiagnoseArgs& args, const Context& context) {
  const Profile profile = read_profile_file(args.profile);
  const Results results =
      args.is_standard_input ? read_results(std::cin, args.results) : read_results_file(args.results);
  const RankCount ranks = count_ranks(args, results, profile);
  const std::vector<Observation> observations = observations_of(results.rows, profile.topology, ranks.count);
  const DiagnoseReport report{args, results, observations, ranks, diagnose(profile, observations)};
  if (context.json) {
    print(diagnose_document({.profile_file = args.profile,
                             .results_file = args.results,
                             .results = results,
                             .observations = observations,
                             .num_ranks = ranks.count,
                             .diagnosis = report.diagnosis}));
  } else {
    print_diagnosis(report, use_color(context.color, stdout));
  }
  if (!report.diagnosis.is_judged) return kExitBadInput;
  return report.diagnosis.is_normal ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_diagnose(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand(
      "diagnose", "Say whether measured AllReduces are normal for a network, and what is at fault");
  auto args = std::make_shared<DiagnoseArgs>();
  verb.add_option("-p,--profile", args->profile, "What is known about the network: a file that gar fit wrote")
      ->type_name("FILE")
      ->required();
  verb.add_option(
          "--results", args->results,
          "What was measured: the output of gar bench (text or --json), all_reduce_perf or osu_allreduce; - for "
          "standard input")
      ->type_name("FILE")
      ->required();
  verb.add_option("--ranks", args->ranks, "Ranks of the results, where the file does not say (default: the profile's)")
      ->type_name("N");
  add_output_options(verb, context);
  set_examples(
      verb, {{"is today's benchmark normal?",
              "gar bench --local 4 --json > today.json; gar diagnose -p net.json --results today.json"},
             {"the output of nccl-tests or of osu_allreduce", "gar diagnose -p net.json --results osu.txt --ranks 8"},
             {"without a file", "mpirun -n 8 ./osu_allreduce | gar diagnose -p net.json --results -"}});
  on_run(verb, context, [args, &context] {
    DiagnoseArgs all = *args;
    all.is_standard_input = all.results == "-";
    if (all.is_standard_input) all.results = "standard input";
    return diagnose_results(all, context);
  });
}

}  // namespace gar::cli
