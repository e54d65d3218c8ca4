// `gar plan --counts FROM..TO`: a decision table, as libraries need it.
#include "apps/gar/views/plan_table.hpp"

#include <fmt/format.h>

#include "apps/gar/cli/algorithms.hpp"
#include "apps/gar/cli/progress.hpp"
#include "apps/gar/views/plan_report.hpp"
#include "gar/documents.hpp"

namespace gar::cli {
namespace {

DecisionTableRequest table_request(const PlanTableArgs& args, DataType dtype) {
  const std::size_t dots = args.counts.find("..");
  if (dots == std::string::npos) {
    throw UsageError(fmt::format("--counts '{}': accepted is FROM..TO, such as 1e3..1e9", args.counts));
  }
  const std::int64_t from = parse_count("--counts", args.counts.substr(0, dots));
  const std::int64_t to = parse_count("--counts", args.counts.substr(dots + 2));
  if (from < 1 || to <= from) {
    throw UsageError(fmt::format("--counts '{}': FROM must be at least 1 and TO larger than it", args.counts));
  }
  return {.plan = {.topology = load_network(args.network).topology,
                   .algorithms = args.algorithms,
                   .model = args.model,
                   .policy = args.policy},
          .from = from,
          .to = to,
          .element_bytes = size_of(dtype)};
}

std::vector<DecisionRow> search(DecisionTableRequest request) {
  ProgressLine line;
  request.progress = [&line](std::int64_t num_planned, std::int64_t count) {
    line.show(fmt::format("{} sizes planned, now {:.4g} elements ", num_planned, static_cast<double>(count)));
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
  Table table({{"from", true}, {"to", true}, {"plan"}, {"chunks", true}, {"time at from", true}, {"time at to", true}});
  for (const DecisionRow& row : rows) {
    table.add_row({format_count(row.first.count), format_count(row.last.count), row.first.words(), chunk_range(row),
                   format_seconds(row.first.terms.total()), format_seconds(row.last.terms.total())});
  }
  print(fmt::format("{}: {} servers, the best plan by number of {} elements\n\n", escaped(topology.name()),
                    topology.num_servers(), to_string(dtype)));
  print(table.to_string(use_color(context.color, stdout)));
  return kExitOk;
}

}  // namespace gar::cli
