// gar predict: what each algorithm costs on a network, which one is best, why, and where that changes.
#include "gar/predict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/gar/cli/algorithms.hpp"
#include "apps/gar/cli/network.hpp"
#include "apps/gar/cli/plan_args.hpp"
#include "apps/gar/verbs/simulate_options.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/cheap_simulator.hpp"
#include "apps/gar/views/plots.hpp"
#include "apps/gar/views/term_table.hpp"
#include "gar/documents.hpp"
#include "gar/explain.hpp"
#include "gar/planner.hpp"

namespace gar::cli {
namespace {

struct PredictArgs {
  NetworkArgs network;
  SizeArgs size;
  std::string algo = "all";
  std::string collective = "allreduce";
  ModelArgs model;
  SimulationArgs conditions;
};

// ", reduce-scatter"; an AllReduce needs no word.
std::string collective_words(const ModelOptions& options) {
  return options.collective == Collective::kAllReduce ? "" : fmt::format(", {}", to_string(options.collective));
}

// "1.53x", "1324x".
std::string times_words(double ratio) {
  constexpr double kManyTimes = 100;
  return ratio < kManyTimes ? fmt::format("{:.2f}x", ratio) : fmt::format("{:.0f}x", ratio);
}

/// How an answer is printed.
struct AnswerStyle {
  bool color = false;
  TermNames names = TermNames::kPlain;
  bool hides_variants = false;  ///< planners that found the same plan as another one
};

// The paper's planner without rearrangement is of interest where it differs from the planner.
std::vector<const PredictRow*> shown_rows(const PredictAnswer& answer, bool hides_variants) {
  std::vector<const PredictRow*> out;
  const auto gentree = std::find_if(answer.results.begin(), answer.results.end(),
                                    [](const PredictRow& row) { return row.spec.name == "gentree"; });
  for (const PredictRow& row : answer.results) {
    const bool is_same =
        gentree != answer.results.end() && row.spec.name == "gentree-norearrange" && row.terms == gentree->terms;
    if (!hides_variants || !is_same) out.push_back(&row);
  }
  return out;
}

void print_correction(const SizeCorrection& correction) {
  print(
      labelled("correction",
               fmt::format("measured AllReduces of {} to {} take {:.3f} times what the model says ({:.3f} to {:.3f}); "
                           "the terms are without it",
                           format_bytes(correction.from_bytes), format_bytes(correction.to_bytes),
                           correction.factor.value, correction.factor.low, correction.factor.high)));
}

void print_table(const PredictAnswer& a, const std::vector<const PredictRow*>& rows,
                 const std::optional<SizeCorrection>& correction, const AnswerStyle& style) {
  const bool has_chunks =
      std::any_of(rows.begin(), rows.end(), [](const PredictRow* row) { return row->num_chunks > 1; });
  std::vector<Column> columns{{"algorithm"}, {has_chunks ? "whole" : "time", true}};
  if (has_chunks) columns.insert(columns.end(), {{"in chunks", true}, {"chunks", true}});
  if (correction) columns.push_back({"corrected", true});
  columns.push_back({"vs best", true});
  const std::size_t num_times = columns.size();
  Terms sum;
  for (const PredictRow& p : a.results) sum += p.best_terms();
  const TermColumns terms(sum, style.names);
  terms.add_columns(columns);
  columns[num_times].begins = true;
  Table table(std::move(columns));
  const double best = a.results.front().best_seconds();
  for (const PredictRow* row_of : rows) {
    const PredictRow& p = *row_of;
    const bool is_best = &p == &a.results.front();
    const bool is_whole = p.best_chunks() == 1;
    std::vector<Cell> row{Cell(p.algorithm(), is_best ? Paint::kGreen : Paint::kPlain),
                          Cell(format_seconds(p.whole.total()), is_whole ? Paint::kBold : Paint::kPlain)};
    if (has_chunks && is_whole) row.insert(row.end(), {Cell(p.is_chunked ? "-" : "?"), Cell("")});
    if (has_chunks && !is_whole) {
      row.emplace_back(format_seconds(p.chunked.total()), Paint::kBold);
      row.emplace_back(fmt::to_string(p.num_chunks));
    }
    if (correction) row.emplace_back(format_seconds(p.best_seconds() * correction->factor.value));
    row.emplace_back(best > 0 ? times_words(p.best_seconds() / best) : "-");
    terms.add_cells(p.best_terms(), row);
    table.add_row(std::move(row));
  }
  print(table.folded(style.color));
}

// Who wins, and over whom: those that take the same time are no rivals.
void print_best(const PredictAnswer& a, const std::vector<const PredictRow*>& rows, const AnswerStyle& style) {
  const PredictRow& winner = *rows.front();
  const PredictRow* other = rival_of(a.results);
  std::vector<std::string> equals;
  for (const PredictRow* row : rows) {
    if (row == &winner) continue;
    if (other != nullptr && row->best_seconds() >= other->best_seconds()) break;
    equals.push_back(row->algorithm());
  }
  std::string words;
  if (other != nullptr) {
    words = winner_words(contestant_of(winner), contestant_of(*other), style.names == TermNames::kGreek);
  }
  if (!equals.empty()) {
    words += fmt::format("{}as fast as {}: {}", words.empty() ? "" : "; ", winner.algorithm(), fmt::join(equals, ", "));
  }
  if (!words.empty()) print(labelled("best", words));
}

void print_plans(const PredictAnswer& a) {
  bool has_chunks = false;
  bool has_unpriced = false;
  for (const PredictRow& p : a.results) {
    if (p.spec.name == "gentree+") print(labelled(p.spec.name, "our planner: " + p.sentence));
    if (p.spec.name == "gentree") print(labelled(p.spec.name, "the paper's planner: " + p.sentence));
    if (p.num_considered > 1) {
      print(labelled(
          p.spec.name,
          fmt::format("best of {} factorisations and groupings{}", p.num_considered,
                      p.is_complete ? "" : fmt::format(" ({} settled; name factors to try others)", p.num_priced))));
    }
    has_chunks = has_chunks || p.best_chunks() > 1;
    has_unpriced = has_unpriced || !p.is_chunked;
  }
  if (has_chunks) {
    print(labelled("chunks",
                   fmt::format("the vector is cut into parts that follow each other, as many as help; costs are along "
                               "the critical path of the faster way{}",
                               has_unpriced ? " (?: not looked at for so many servers)" : "")));
  }
}

void print_bound(const PredictAnswer& a) {
  const double best = a.results.front().best_seconds();
  if (best <= 0 || a.bound.seconds() <= 0) return;
  print(labelled("lower limit", fmt::format("{} ({}); the best is {:.2f}x that. Without chunks: {}",
                                            format_seconds(a.bound.seconds()), a.bound.binding(),
                                            best / a.bound.seconds(), format_seconds(a.bound.sequential_seconds()))));
}

// Where the model is far from the simulator.
void print_doubts(const Topology& topology, const VectorSize& size, const ModelOptions& options,
                  const std::vector<const PredictRow*>& rows) {
  std::vector<std::string> words;
  CheapSimulator simulator(topology, size.floats(), options);
  for (const PredictRow* row : rows) {
    const std::string doubt = simulator.doubt_words(*row->plan, row->seconds());
    const std::string way = row->plan->num_chunks > 1 ? fmt::format("in {} chunks", row->plan->num_chunks) : "whole";
    if (!doubt.empty()) words.push_back(fmt::format("{}, {}: {}", row->algorithm(), way, doubt));
  }
  if (words.empty()) return;
  print(labelled("simulated", fmt::format("{} (gar compare says why)", fmt::join(words, "; "))));
}

void print_answer(const Topology& topology, const VectorSize& size, const ModelOptions& options, const PredictAnswer& a,
                  const std::optional<SizeCorrection>& correction, const AnswerStyle& style) {
  const std::vector<const PredictRow*> rows = shown_rows(a, style.hides_variants);
  say(fmt::format("{}: {} server{}, {} x {} ({}), {}{}\n", escaped(topology.name()), topology.num_servers(),
                  topology.num_servers() == 1 ? "" : "s", format_count(size.count), to_string(size.dtype),
                  format_bytes(static_cast<double>(size.bytes)), model_name(options), collective_words(options)));
  say(parameter_line(topology) + "\n");
  print_table(a, rows, correction, style);
  print("\n");
  if (rows.size() > 1 && a.results.front().best_seconds() > 0) print_best(a, rows, style);
  print_plans(a);
  if (correction) print_correction(*correction);
  print_bound(a);
  if (topology.num_servers() == 1) {
    print("one server has nothing to exchange\n");
    return;
  }
  print_doubts(topology, size, options, rows);
  if (!a.flat_best.empty()) {
    print(labelled("by size", "of the classic algorithms in one piece: " + size_words(a.size_flips, a.flat_best)));
    print(labelled("by servers", "of the classic algorithms in one piece: " + rank_words(topology, a)));
  } else if (a.results.size() > 1) {
    print(labelled("by size", "not searched: name at least two of cps hcps ring rhd reduce-broadcast"));
  }
}

// Of several sizes: the best and the second best of each.
void print_sizes(const Topology& topology, const std::vector<VectorSize>& sizes,
                 const std::vector<PredictAnswer>& answers, const ModelOptions& options, bool color) {
  say(fmt::format("{}: {} server{}, {}, {}{}\n", escaped(topology.name()), topology.num_servers(),
                  topology.num_servers() == 1 ? "" : "s", to_string(sizes.front().dtype), model_name(options),
                  collective_words(options)));
  say(parameter_line(topology) + "\n");
  Table table(
      {{"size", true}, {"elements", true}, {"best"}, {"time", true}, {"second"}, {"time", true}, {"vs best", true}});
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::vector<PredictRow>& rows = answers[i].results;
    const double best = rows.front().best_seconds();
    std::vector<Cell> cells{format_bytes(static_cast<double>(sizes[i].bytes)), format_count(sizes[i].count),
                            Cell(rows.front().algorithm(), Paint::kGreen), Cell(format_seconds(best), Paint::kBold)};
    // What takes exactly as long is the same plan under another name, and no second best.
    constexpr double kSame = 1 + 1e-9;
    const auto second = std::find_if(rows.begin() + 1, rows.end(),
                                     [&](const PredictRow& row) { return row.best_seconds() > kSame * best; });
    if (second != rows.end()) {
      cells.insert(cells.end(), {Cell(second->algorithm()), Cell(format_seconds(second->best_seconds())),
                                 Cell(best > 0 ? times_words(second->best_seconds() / best) : "-")});
    }
    table.add_row(std::move(cells));
  }
  print(table.folded(color));
}

void print_csv(const std::vector<VectorSize>& sizes, const std::vector<PredictAnswer>& answers) {
  std::vector<std::string> titles{"bytes", "count", "dtype", "algorithm", "seconds"};
  for (const TermInfo& term : kTerms) titles.emplace_back(term.name);
  titles.insert(titles.end(), {"whole_seconds", "chunks", "chunked_seconds"});
  print(csv_line(titles));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (const PredictRow& row : answers[i].results) {
      std::vector<std::string> cells{fmt::to_string(sizes[i].bytes), fmt::to_string(sizes[i].count),
                                     std::string(to_string(sizes[i].dtype)), row.algorithm(),
                                     fmt::to_string(row.seconds())};
      for (const TermInfo& term : kTerms) cells.push_back(fmt::to_string(row.terms.*term.seconds));
      cells.push_back(fmt::to_string(row.whole.total()));
      cells.push_back(row.is_chunked ? fmt::to_string(row.num_chunks) : "");
      cells.push_back(row.is_chunked ? fmt::to_string(row.chunked.total()) : "");
      print(csv_line(cells));
    }
  }
}

int run(const PredictArgs& args, const Context& context) {
  const std::vector<VectorSize> sizes = vector_sizes(args.size);
  const std::vector<AlgorithmSpec> algorithms = parse_algorithms(args.algo);
  ModelOptions options = model_options(args.model);
  options.collective = collective_of(args.collective);
  Network network = load_network(args.network);
  network.topology = with_conditions(network.topology, parse_what_if(args.conditions));
  const bool shows_flips = context.json || (sizes.size() == 1 && !context.csv);
  std::vector<PredictAnswer> answers;
  for (const VectorSize& size : sizes) {
    answers.push_back(predict({network.topology, size.floats(), algorithms, options, shows_flips}));
  }
  // Corrections are relative to GenModel.
  const auto correction_at = [&](const VectorSize& size) -> std::optional<SizeCorrection> {
    if (!network.profile || options.kind != ModelKind::kGenModel) return std::nullopt;
    const SizeCorrection* known = correction_of(*network.profile, static_cast<double>(size.bytes));
    return known == nullptr ? std::nullopt : std::optional(*known);
  };
  if (context.csv) {
    print_csv(sizes, answers);
  } else if (context.json) {
    std::vector<std::string> documents;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      documents.push_back(predict_document(network.topology, sizes[i], options, answers[i], correction_at(sizes[i])));
    }
    print(documents.size() == 1 ? documents.front() : list_document(documents));
  } else if (sizes.size() == 1) {
    print_answer(
        network.topology, sizes.front(), options, answers.front(), correction_at(sizes.front()),
        {use_color(context.color, stdout), context.greek ? TermNames::kGreek : TermNames::kPlain, args.algo == "all"});
    print_plot(context, "where the time goes", predict_bars(shown_rows(answers.front(), args.algo == "all")));
  } else {
    print_sizes(network.topology, sizes, answers, options, use_color(context.color, stdout));
    print_plot(context, predict_chart(sizes, answers));
  }
  return kExitOk;
}

}  // namespace

void add_predict(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("predict", "Say what each algorithm costs on a network, and why");
  auto args = std::make_shared<PredictArgs>();
  add_network_options(verb, args->network);
  add_size_options(verb, args->size);
  add_algo_option(verb, args->algo, "Algorithms to compare; hcps without factors is its best factorisation");
  add_collective_option(verb, args->collective, "What the algorithms compute");
  add_condition_options(verb, args->conditions);
  add_model_options(verb, args->model);
  add_output_options(verb, context);
  add_csv_option(verb, context);
  add_plot_option(verb, context);
  add_greek_option(verb, context);
  set_examples(
      verb,
      {{"all algorithms on 16 racks of 24 servers", "gar predict -t tree:16x24 --count 1e8"},
       {"two of them, 64 MiB of doubles, as JSON",
        "gar predict -t ss24 --size 64MiB --dtype float64 --algo ring,hcps:8x3 --json"},
       {"a network that gar fit has measured", "gar predict -p profile.json --size 1MB"},
       {"which algorithm for which size, on 12 servers at 100 Gbit/s",
        "gar predict -t star:12@100Gbit/s,2us --size 1kB..1GB -f 10"},
       {"the same as a picture in the terminal", "gar predict -t star:12@100Gbit/s,2us --size 1kB..1GB --plot"},
       {"a ReduceScatter, with a server that adds half as fast as the others",
        "gar predict -t star:12@100GbE --size 64MiB --collective reduce-scatter --slow server3=2"},
       {"what a model without incast and memory access would say", "gar predict -t ss24 --count 1e8 --model abc"}});
  on_run(verb, context, [args, &context] { return run(*args, context); });
}

}  // namespace gar::cli
