// gar diagnose: are these results normal for this network, and if not, what is at fault?
#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <memory>

#include "apps/gar/cli/network.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/diagnose_report.hpp"
#include "apps/gar/views/plots.hpp"
#include "gar/documents.hpp"
#include "gar/errors.hpp"
#include "gar/explain_nccl.hpp"
#include "gar/fit.hpp"
#include "gar/link_limit.hpp"
#include "gar/profile_io.hpp"
#include "gar/results_io.hpp"
#include "gar/topology_io.hpp"

namespace gar::cli {
namespace {

struct DiagnoseArgs {
  NetworkArgs network;
  std::string results;
  std::string file;  ///< the same, as a word by itself
  std::string ranks;
  std::string share;
};

/// What is judged, and what by.
struct Case {
  std::string network;  ///< as typed
  std::string network_words;
  std::int64_t num_servers = 0;
  std::string file;
  Results results;
};

struct RankCount {
  std::int64_t count = 0;
  std::string source;
};

RankCount count_ranks(const DiagnoseArgs& args, const Case& found) {
  RankCount out{found.num_servers, found.network_words};
  if (!args.ranks.empty()) out = {parse_ranks(args.ranks), "--ranks"};
  if (found.results.num_ranks > 0) {
    if (!args.ranks.empty() && out.count != found.results.num_ranks) {
      throw UsageError(
          fmt::format("--ranks {}: {} says {}; leave --ranks out", args.ranks, found.file, found.results.num_ranks));
    }
    out = {found.results.num_ranks, found.file};
  }
  if (out.count < 2) {
    throw InvalidArgument(fmt::format("{} rank according to {}: nothing passes any link; expected 2 to {}", out.count,
                                      out.source, found.num_servers));
  }
  if (out.count > found.num_servers) {
    throw InvalidArgument(
        fmt::format("{} ranks according to {}, but {} has {} servers; expected results of 2 to {} "
                    "ranks, or a larger network",
                    out.count, out.source, found.network, found.num_servers, found.num_servers));
  }
  return out;
}

Results read(const std::string& file) {
  return file == "-" ? read_results(std::cin, "standard input") : read_results_file(file);
}

DiagnosedResults described(const Case& found, const RankCount& ranks) {
  return {found.results, found.file, ranks.count, ranks.source};
}

int exit_code(bool is_judged, bool is_normal) {
  if (!is_judged) return kExitBadInput;
  return is_normal ? kExitOk : kExitCheckFailed;
}

int judge_by_profile(const Profile& profile, const Case& found, const RankCount& ranks, const Context& context) {
  const std::vector<Observation> observations = observations_of(found.results.rows, profile.topology, ranks.count);
  Diagnosis diagnosis = diagnose(profile, observations);
  add_loss(found.results.rows, diagnosis);
  if (found.results.nccl) add_log_words(*found.results.nccl, diagnosis.words);
  if (context.json) {
    print(diagnose_document({.profile_file = found.network,
                             .results_file = found.file,
                             .results = found.results,
                             .observations = observations,
                             .num_ranks = ranks.count,
                             .diagnosis = diagnosis}));
  } else if (context.csv) {
    print(diagnose_csv(described(found, ranks), observations, diagnosis));
  } else {
    print(diagnose_text(described(found, ranks), observations, diagnosis, use_color(context.color, stdout)));
    print_plot(context, diagnose_chart(found.results, observations, diagnosis));
  }
  return exit_code(diagnosis.is_judged, diagnosis.is_normal);
}

int judge_by_links(const Topology& topology, double share, const Case& found, const RankCount& ranks,
                   const Context& context) {
  LimitDiagnosis diagnosis = diagnose_by_links(topology, found.results.rows, ranks.count, share);
  if (const std::string loss = words_of_loss(found.results.rows); !diagnosis.is_normal && !loss.empty()) {
    diagnosis.words.push_back(loss);
  }
  if (found.results.nccl) add_log_words(*found.results.nccl, diagnosis.words);
  if (context.json) {
    print(diagnose_limit_document({.topology = found.network,
                                   .results_file = found.file,
                                   .results = found.results,
                                   .num_ranks = ranks.count,
                                   .diagnosis = diagnosis}));
  } else if (context.csv) {
    print(diagnose_csv(described(found, ranks), diagnosis));
  } else {
    print(diagnose_text(described(found, ranks), diagnosis, use_color(context.color, stdout)));
    print_plot(context, diagnose_chart(found.results, diagnosis));
  }
  return exit_code(diagnosis.is_judged, diagnosis.is_normal);
}

/// "70%" or "0.7".
double parse_share(const std::string& text) {
  if (text.empty()) return kUsualShare;
  const std::optional<double> value = share_of(text);
  if (!value || *value <= 0 || *value > 1) {
    throw UsageError(fmt::format("--at-least '{}': expected a share such as 70% or 0.7", text));
  }
  return *value;
}

int run(const DiagnoseArgs& args, const Context& context) {
  const auto& [topology, profile] = args.network;
  if (topology.empty() == profile.empty()) {
    throw UsageError(fmt::format(
        "{} -p or -t: a profile that gar fit wrote when the network was healthy, or a network as it should be, such as "
        "star:12@100Gbit/s,2us",
        topology.empty() ? "expected" : "expected only one of"));
  }
  if (args.results.empty() == args.file.empty()) {
    throw UsageError(args.file.empty() ? "expected the results of a benchmark: a file, or - for standard input"
                                       : "expected one file of results: leave --results out");
  }
  const std::string& file = args.file.empty() ? args.results : args.file;
  const double share = parse_share(args.share);
  if (!args.share.empty() && topology.empty()) {
    throw UsageError("--at-least is for -t; a profile knows by itself what is normal");
  }
  const std::string source = file == "-" ? "standard input" : file;
  if (!profile.empty()) {
    const Profile known = read_profile_file(profile);
    const Case found{profile, "the profile", known.topology.num_servers(), source, read(file)};
    return judge_by_profile(known, found, count_ranks(args, found), context);
  }
  const Topology known = load_topology(topology);
  const Case found{topology, "-t", known.num_servers(), source, read(file)};
  return judge_by_links(known, share, found, count_ranks(args, found), context);
}

}  // namespace

void add_diagnose(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand(
      "diagnose", "Say whether measured AllReduces are normal for a network, and what is at fault");
  auto args = std::make_shared<DiagnoseArgs>();
  verb.add_option("-p,--profile", args->network.profile, "A profile that gar fit wrote when the network was healthy")
      ->type_name("FILE");
  verb.add_option("-t,--topology", args->network.topology,
                  "Without a profile: the network as it should be, such as star:12@100Gbit/s,2us")
      ->type_name("T");
  verb.add_option("FILE", args->file,
                  "What was measured: the output of gar bench (text or --json), all_reduce_perf, osu_allreduce or "
                  "IMB-MPI1; - for standard input")
      ->type_name("");
  verb.add_option("--results", args->results, "The same as FILE")->type_name("FILE");
  verb.add_option("--ranks", args->ranks, "Ranks of the results, where the file does not say (default: the network's)")
      ->type_name("N");
  verb.add_option(
          "--at-least", args->share,
          fmt::format("With -t: the share of the links' speed that is normal (default {:.0f}%)", 100 * kUsualShare))
      ->type_name("SHARE");
  add_output_options(verb, context);
  add_csv_option(verb, context);
  add_plot_option(verb, context);
  set_examples(verb, {{"is today's benchmark normal?",
                       "gar bench --local 4 --json > today.json; gar diagnose -p net.json today.json"},
                      {"12 hosts with 100 Gbit/s, and nobody has measured them before",
                       "gar diagnose -t star:12@100Gbit/s,2us nccl.txt"},
                      {"the output of nccl-tests or of osu_allreduce", "gar diagnose -p net.json osu.txt --ranks 8"},
                      {"without a file", "mpirun -n 8 ./osu_allreduce | gar diagnose -p net.json -"}});
  on_run(verb, context, [args, &context] { return run(*args, context); });
}

}  // namespace gar::cli
