// `gar plan --counts FROM..TO`: a decision table, as libraries need it.
#include "apps/gar/views/plan_table.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <iterator>
#include <set>
#include <string>

#include "apps/gar/cli/algorithms.hpp"
#include "apps/gar/cli/progress.hpp"
#include "apps/gar/views/plan_report.hpp"
#include "gar/documents.hpp"

namespace gar::cli {
namespace {

DecisionTableRequest table_request(const PlanTableArgs& args, DataType dtype) {
  const bool is_bytes = args.counts.empty();
  const std::string flag = is_bytes ? "--size" : "--counts";
  const std::string& text = is_bytes ? args.sizes : args.counts;
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    throw UsageError(
        fmt::format("{} '{}': expected FROM..TO, such as {}", flag, text, is_bytes ? "1kB..1GB" : "1e3..1e9"));
  }
  const auto elements = [&](const std::string& part) {
    return is_bytes ? parse_bytes(flag, part) / size_of(dtype) : parse_count(flag, part);
  };
  const std::int64_t from = elements(text.substr(0, dots));
  const std::int64_t to = elements(text.substr(dots + 2));
  if (from < 1 || to <= from) {
    throw UsageError(fmt::format("{} '{}': FROM must be at least 1 {} and TO larger than it", flag, text,
                                 is_bytes ? "element" : ""));
  }
  const Network& network = args.network;
  return {.plan = {.topology = network.topology,
                   .algorithms = args.algorithms,
                   .model = args.model,
                   .policy = args.policy,
                   .quick_gather = message_gather(network.topology.num_servers()),
                   .overlap = network.profile ? overlap_of(*network.profile) : 1},
          .from = from,
          .to = to,
          .element_bytes = size_of(dtype),
          .merge = args.merge};
}

/// How much is left. The search halves ranges and takes the smaller half first, so when it looks at a size, everything
/// up to the one before it is settled; every factor between sizes counts the same.
class TableProgress {
 public:
  TableProgress(std::int64_t from, std::int64_t to) : from_(from), to_(to), seen_{from, to} {}

  /// ", about 12 s left"; nothing as long as that would be a guess.
  [[nodiscard]] std::string left(std::int64_t count) {
    const auto place = seen_.insert(count).first;
    const double settled = place == seen_.begin() || count == to_ ? 0 : log_of(*std::prev(place));
    return time_left(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count(),
                     settled / log_of(to_));
  }

 private:
  [[nodiscard]] double log_of(std::int64_t count) const {
    return std::log(static_cast<double>(count) / static_cast<double>(from_));
  }
  std::int64_t from_;
  std::int64_t to_;
  std::set<std::int64_t> seen_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

std::vector<DecisionRow> search(DecisionTableRequest request) {
  ProgressLine line;
  TableProgress progress(request.from, request.to);
  request.progress = [&](std::int64_t num_planned, std::int64_t count) {
    line.show(fmt::format("{} size{} planned, now {}{} (Ctrl-C ends it)", num_planned, num_planned == 1 ? "" : "s",
                          format_bytes(static_cast<double>(count * request.element_bytes)), progress.left(count)));
  };
  return decision_table(request);
}

std::string chunk_range(const DecisionRow& row) {
  const std::int64_t from = row.first.num_chunks;
  const std::int64_t to = row.last.num_chunks;
  return from == to ? fmt::format("{}", from) : fmt::format("{}-{}", from, to);
}

}  // namespace

int print_plan_table(const PlanTableArgs& args, const Context& context) {
  const DataType dtype = parse_dtype("--dtype", args.dtype);
  const DecisionTableRequest request = table_request(args, dtype);
  const Topology& topology = request.plan.topology;
  const std::vector<DecisionRow> rows = search(request);
  if (context.json) {
    print(plan_table_document(topology, dtype, rows));
    return kExitOk;
  }
  if (context.csv) {
    print(csv_line({"from_count", "to_count", "from_bytes", "to_bytes", "dtype", "plan", "chunks_at_from",
                    "chunks_at_to", "seconds_at_from", "seconds_at_to"}));
    for (const DecisionRow& row : rows) {
      const auto bytes = [&](const DecisionPoint& point) { return fmt::to_string(point.count * size_of(dtype)); };
      print(csv_line({fmt::to_string(row.first.count), fmt::to_string(row.last.count), bytes(row.first),
                      bytes(row.last), std::string(to_string(dtype)), row.first.words(),
                      fmt::to_string(row.first.num_chunks), fmt::to_string(row.last.num_chunks),
                      fmt::to_string(row.first.terms.total()), fmt::to_string(row.last.terms.total())}));
    }
    return kExitOk;
  }
  // In the unit that was asked for. Sizes in bytes are rounded for people; --json and --csv have all digits.
  const bool is_bytes = args.counts.empty();
  const auto size_of_row = [&](const DecisionPoint& point) {
    return is_bytes ? format_bytes(static_cast<double>(point.count * size_of(dtype))) : format_count(point.count);
  };
  Table table({{"from", true}, {"to", true}, {"chunks", true}, {"time at from", true}, {"time at to", true}, {"plan"}});
  for (const DecisionRow& row : rows) {
    table.add_row({size_of_row(row.first), size_of_row(row.last), chunk_range(row),
                   format_seconds(row.first.terms.total()), format_seconds(row.last.terms.total()), row.first.words()});
  }
  say(fmt::format("{}: {} servers, the best plan by {}{}\n", escaped(topology.name()), topology.num_servers(),
                  is_bytes ? "size" : fmt::format("number of {} elements", to_string(dtype)),
                  args.merge > 0 ? fmt::format(", within {}", format_percent(args.merge)) : ""));
  say(parameter_line(topology) + "\n");
  print(table.folded(use_color(context.color, stdout)));
  return kExitOk;
}

void print_plan_sizes(const Topology& topology, const std::vector<PlanTableSize>& rows, const Context& context) {
  if (context.json) {
    std::vector<std::string> documents;
    for (const PlanTableSize& row : rows) documents.push_back(row.document);
    print(list_document(documents));
    return;
  }
  if (context.csv) {
    print(csv_line({"bytes", "count", "dtype", "algorithm", "plan", "chunks", "seconds"}));
    for (const PlanTableSize& row : rows) {
      print(csv_line({fmt::to_string(row.size.bytes), fmt::to_string(row.size.count),
                      std::string(to_string(row.size.dtype)), row.algorithm, row.words, fmt::to_string(row.num_chunks),
                      fmt::to_string(row.seconds)}));
    }
    return;
  }
  Table table({{"size", true}, {"elements", true}, {"time", true}, {"chunks", true}, {"plan"}});
  for (const PlanTableSize& row : rows) {
    table.add_row({format_bytes(static_cast<double>(row.size.bytes)), format_count(row.size.count),
                   Cell(format_seconds(row.seconds), Paint::kBold), fmt::to_string(row.num_chunks), row.words});
  }
  say(fmt::format("{}: {} servers, {}\n", escaped(topology.name()), topology.num_servers(),
                  to_string(rows.front().size.dtype)));
  say(parameter_line(topology) + "\n");
  print(table.folded(use_color(context.color, stdout)));
}

}  // namespace gar::cli
