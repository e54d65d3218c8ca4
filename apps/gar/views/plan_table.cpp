// `gar plan --counts FROM..TO`: a decision table, as libraries need it.
//
// The plan is a step function of the size. An interval whose ends have the same plan, and which is not longer than a
// factor of kTrusted, is taken to have it throughout; any other is halved (in the logarithm) until the crossover is
// known to one element or one part in ten thousand.
#include "apps/gar/views/plan_table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "apps/gar/cli/algorithms.hpp"
#include "apps/gar/cli/progress.hpp"
#include "apps/gar/planning.hpp"
#include "gar/documents.hpp"

namespace gar::cli {
namespace {

constexpr double kTrusted = 8;
constexpr double kResolution = 1e-4;

class TableSearch {
 public:
  TableSearch(const Topology& topology, std::vector<AlgorithmSpec> algorithms, DataType dtype,
              const ModelOptions& options)
      : topology_(topology), algorithms_(std::move(algorithms)), dtype_(dtype), options_(options) {}

  struct Entry {
    Planned planned;
    std::string words;
  };

  const Entry& at(std::int64_t count) {
    const auto it = known_.find(count);
    if (it != known_.end()) return it->second;
    const double floats = static_cast<double>(count) * static_cast<double>(size_of(dtype_)) / 4;
    Entry best;
    for (const AlgorithmSpec& spec : algorithms_) {
      Planned p = plan_with(spec, topology_, floats, options_);
      if (best.words.empty() || p.terms.total() < best.planned.terms.total()) {
        best.words = to_string(p.spec) + ": " + plan_words(p.tree);
        best.planned = std::move(p);
      }
    }
    progress_.show(
        fmt::format("{} sizes planned, now {:.4g} elements ", known_.size() + 1, static_cast<double>(count)));
    return known_.emplace(count, std::move(best)).first->second;
  }

  /// Sizes at which a new plan begins.
  std::vector<std::int64_t> starts(std::int64_t from, std::int64_t to) {
    std::vector<std::int64_t> out{from};
    split(from, to, out);
    progress_.clear();
    return out;
  }

 private:
  void split(std::int64_t low, std::int64_t high, std::vector<std::int64_t>& out) {
    const bool same = at(low).words == at(high).words;
    const double ratio = static_cast<double>(high) / static_cast<double>(std::max<std::int64_t>(low, 1));
    if (same && ratio <= kTrusted) return;
    const bool fine = high - low <= 1 || static_cast<double>(high - low) <= kResolution * static_cast<double>(low);
    if (fine) {
      if (!same) out.push_back(high);
      return;
    }
    const double middle = std::sqrt(static_cast<double>(std::max<std::int64_t>(low, 1)) * static_cast<double>(high));
    const std::int64_t m = std::clamp<std::int64_t>(std::llround(middle), low + 1, high - 1);
    split(low, m, out);
    split(m, high, out);
  }

  const Topology& topology_;
  std::vector<AlgorithmSpec> algorithms_;
  DataType dtype_;
  ModelOptions options_;
  std::map<std::int64_t, Entry> known_;
  ProgressLine progress_;
};

}  // namespace

int print_plan_table(const PlanTableArgs& args, const Context& context) {
  const std::size_t dots = args.counts.find("..");
  if (dots == std::string::npos) {
    throw UsageError(fmt::format("--counts '{}': accepted is FROM..TO, such as 1e3..1e9", args.counts));
  }
  const std::int64_t from = parse_count("--counts", args.counts.substr(0, dots));
  const std::int64_t to = parse_count("--counts", args.counts.substr(dots + 2));
  if (from < 1 || to <= from) {
    throw UsageError(fmt::format("--counts '{}': FROM must be at least 1 and TO larger than it", args.counts));
  }
  const DataType dtype = parse_dtype("--dtype", args.dtype);
  const Topology topology = load_network(args.network).topology;
  TableSearch search(topology, parse_algorithms(args.algo), dtype, args.options);
  const std::vector<std::int64_t> starts = search.starts(from, to);

  std::vector<PlanTableRow> rows;
  Table table({{"from", true}, {"to", true}, {"plan"}, {"chunks", true}, {"time at from", true}, {"time at to", true}});
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t last = i + 1 < starts.size() ? starts[i + 1] - 1 : to;
    const TableSearch::Entry& a = search.at(starts[i]);
    const TableSearch::Entry& b = search.at(last);
    rows.push_back({.from_count = starts[i],
                    .to_count = last,
                    .algorithm = to_string(a.planned.spec),
                    .switches = a.planned.tree.switches,
                    .chunks_from = a.planned.tree.plan.num_chunks,
                    .chunks_to = b.planned.tree.plan.num_chunks,
                    .seconds_from = a.planned.terms.total(),
                    .seconds_to = b.planned.terms.total()});
    const PlanTableRow& row = rows.back();
    table.add_row({format_count(row.from_count), format_count(row.to_count), a.words,
                   row.chunks_from == row.chunks_to ? fmt::format("{}", row.chunks_from)
                                                    : fmt::format("{}-{}", row.chunks_from, row.chunks_to),
                   format_seconds(row.seconds_from), format_seconds(row.seconds_to)});
  }
  if (context.json) {
    print(plan_table_document(topology, dtype, rows));
  } else {
    print(fmt::format("{}: {} servers, the best plan by number of {} elements\n\n", topology.name(),
                      topology.num_servers(), to_string(dtype)));
    print(table.to_string(use_color(context.color, stdout)));
  }
  return kExitOk;
}

}  // namespace gar::cli
