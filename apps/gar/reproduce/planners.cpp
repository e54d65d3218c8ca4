// The planners on the paper's six networks: predicted seconds of GenTree (with and without rearrangement) and GenTree+
// against the baselines and the lower bound, at the paper's three sizes.
//
// Checked: GenTree takes no longer than the paper's baselines (Ring, CPS, RHD), of which it ties CPS where it chooses
// CPS itself; GenTree+ takes no longer than anything in the table. The hierarchical ring and flat HCPS, each in its
// best factorisation, are no baselines of the paper's; where one of them beats GenTree the output says so and by which
// terms. GenTree+ aims at 15% above the lower bound at 1e8 floats; where it misses, the gap is split into
//   latency  what the plan pays in alpha beyond one longest path,
//   busiest  what its busiest link or server has to do beyond the strongest cut (or the least calculation),
//   fill     the rest: the way of the first chunk through all stages, in addition to the two above.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/gar/reproduce/json_output.hpp"
#include "apps/gar/reproduce/rearrangement.hpp"
#include "apps/gar/reproduce/reproduce.hpp"
#include "gar/algorithms.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"

namespace gar::cli {
namespace {

constexpr std::array<const char*, 6> kPlannerNetworks{"ss24", "ss32", "sym384", "sym512", "asy384", "cdc384"};
constexpr std::array<std::int64_t, 3> kPlannerSizes{10'000'000, 32'000'000, 100'000'000};
constexpr double kAim = 1.15;  // of GenTree+ over the lower bound, at the largest size
constexpr double kPlannerTie = 1 + 1e-9;

struct Result {
  std::string algorithm;  // with factors
  std::int64_t chunks;
  Terms terms;
  [[nodiscard]] double seconds() const { return terms.total(); }
};

enum Column : std::size_t { kGenTree, kNoRearrange, kPlus, kRing, kHring, kCps, kRhd, kHcps, kNumColumns };
constexpr std::array<const char*, kNumColumns> kTitles{
    "gentree", "gentree-norearrange", "gentree+", "ring", "hring", "cps", "rhd", "hcps"};
constexpr std::array<Column, 3> kBaselineColumns{kRing, kCps, kRhd};

struct Gap {
  double latency = 0, busiest = 0, fill = 0;  // seconds
  std::string resource;                       // the busiest
  double busy = 0;                            // its seconds
  std::int64_t steps = 0;                     // one chunk's way
};

struct PlannerRow {
  std::string network;
  std::int64_t size = 0;
  std::vector<Result> results;  // by Column
  LowerBound bound;
  Gap gap;  // of GenTree+
  [[nodiscard]] double ratio() const { return results[kPlus].seconds() / bound.seconds(); }
  [[nodiscard]] std::string binding() const { return bound.binding(); }
};

Gap gap_of(const PricedPlan& plus, const LowerBound& bound, double size, std::int64_t chunks) {
  Gap g;
  const Terms cost = plus.cost(size);
  g.resource = plus.busiest().name;
  g.busy = (size * plus.busiest().slope).total();
  g.latency = cost.alpha;
  g.busiest = g.busy - bound.seconds();
  if (std::abs(g.busiest) < 1e-9 * g.busy) g.busiest = 0;
  g.fill = cost.total() - bound.seconds() - g.latency - g.busiest;
  for (const StageCost& s : plus.critical_stages(size / static_cast<double>(chunks))) g.steps += s.num_steps;
  return g;
}

/// Prices everything on one network.
class PlannerNetwork {
 public:
  explicit PlannerNetwork(const char* name)
      : topology_(builtin_topology(name)), hcps_(topology_, {parse_algorithm("hcps")}) {
    const std::int64_t n = topology_.num_servers();
    for (const auto& factors : ordered_factorisations(n)) {
      if (factors.size() < 2) continue;
      hring_.push_back({{"hring", factors}, PricedPlan(hierarchical_ring(n, factors), topology_)});
    }
  }

  PlannerRow at(std::int64_t count) {
    const auto size = static_cast<double>(count);
    PlannerRow row{topology_.name(), count, {}, {}, {}};
    row.results.resize(kNumColumns);
    for (const Column c : {kGenTree, kNoRearrange, kPlus, kRing, kCps, kRhd}) {
      const PlanAnswer planned =
          plan({.topology = topology_, .size_floats = size, .algorithms = {parse_algorithm(kTitles[c])}});
      row.results[c] = {kTitles[c], planned.plan.num_chunks, planned.terms};
      row.bound = planned.bound;
      if (c == kPlus) row.gap = gap_of(*planned.priced, planned.bound, size, planned.plan.num_chunks);
    }
    row.results[kHring] =
        result(*std::min_element(hring_.begin(), hring_.end(),
                                 [&](const Flat& a, const Flat& b) { return seconds(a, size) < seconds(b, size); }),
               size);
    const Prediction best = hcps_.at(size).front();
    row.results[kHcps] = {best.algorithm(), 1, best.terms};
    return row;
  }

 private:
  struct Flat {
    AlgorithmSpec spec;
    PricedPlan priced;
  };
  static double seconds(const Flat& f, double size) { return f.priced.cost(size).total(); }
  static Result result(const Flat& f, double size) { return {to_string(f.spec), 1, f.priced.cost(size)}; }

  Topology topology_;
  Predictor hcps_;
  std::vector<Flat> hring_;
};

// What contradicts the statements that are checked.
std::vector<std::string> violations(const std::vector<PlannerRow>& rows) {
  std::vector<std::string> out;
  for (const PlannerRow& row : rows) {
    const auto compare = [&](Column mine, Column other) {
      const Result& a = row.results[mine];
      const Result& b = row.results[other];
      if (a.seconds() <= b.seconds() * kPlannerTie) return;
      out.push_back(fmt::format("{} at {}: {} takes {} longer than {}: {}", row.network, format_count(row.size),
                                a.algorithm, format_seconds(a.seconds() - b.seconds(), 3), b.algorithm,
                                difference_words(b.terms, a.terms)));
    };
    for (const Column c : kBaselineColumns) compare(kGenTree, c);
    for (std::size_t c = 0; c < kNumColumns; ++c) compare(kPlus, static_cast<Column>(c));
  }
  return out;
}

// Plans outside the paper's baselines that beat GenTree.
std::vector<std::string> beaten(const std::vector<PlannerRow>& rows) {
  std::vector<std::string> out;
  for (const PlannerRow& row : rows) {
    const Result& mine = row.results[kGenTree];
    for (const Column c : {kHring, kHcps}) {
      const Result& other = row.results[c];
      if (mine.seconds() <= other.seconds() * kPlannerTie) continue;
      out.push_back(fmt::format("{} at {}: {} saves {}; gentree has {}", row.network, format_count(row.size),
                                other.algorithm, format_percent(1 - other.seconds() / mine.seconds()),
                                difference_words(other.terms, mine.terms)));
    }
  }
  return out;
}

// Baselines that take exactly as long as GenTree.
std::string ties(const std::vector<PlannerRow>& rows) {
  std::string out;
  for (const PlannerRow& row : rows) {
    for (const Column c : kBaselineColumns) {
      if (row.results[c].seconds() > row.results[kGenTree].seconds() * kPlannerTie) continue;
      out += fmt::format("{}{} on {} at {}", out.empty() ? "" : ", ", kTitles[c], row.network, format_count(row.size));
    }
  }
  return out.empty() ? "nothing" : out;
}

std::string gap_words(const PlannerRow& row) {
  const Gap& g = row.gap;
  const Result& plus = row.results[kPlus];
  return fmt::format(
      "{} is {} ({}) above the bound ({}): {} of latency, because {} steps follow each other; {} because {}, the "
      "busiest, has {} to do where the bound has {}; {} beside that for "
      "the "
      "way of the first of {} chunks",
      row.network, format_seconds(plus.seconds() - row.bound.seconds(), 3), format_percent(row.ratio() - 1),
      row.binding(), format_seconds(g.latency, 3), g.steps, format_seconds(g.busiest, 3), g.resource,
      format_seconds(g.busy, 3), format_seconds(row.bound.seconds(), 3), format_seconds(g.fill, 3), plus.chunks);
}

bool is_largest(const PlannerRow& row) { return row.size == kPlannerSizes.back(); }

Json row_json(const PlannerRow& row) {
  Json j;
  j["network"] = row.network;
  j["count"] = row.size;
  j["results"] = Json::array();
  for (const Result& r : row.results) {
    Json one;
    one["algorithm"] = r.algorithm;
    one["chunks"] = r.chunks;
    one["seconds"] = r.seconds();
    one["terms"] = terms_json(r.terms);
    j["results"].push_back(one);
  }
  j["lower_bound"] = {{"seconds", row.bound.seconds()},
                      {"alpha", row.bound.alpha},
                      {"bandwidth", row.bound.bandwidth},
                      {"calculation", row.bound.calculation},
                      {"binding", row.binding()}};
  j["ratio"] = row.ratio();
  j["gap"] = {{"latency", row.gap.latency},
              {"busiest", row.gap.busiest},
              {"fill", row.gap.fill},
              {"resource", row.gap.resource}};
  if (is_largest(row) && row.ratio() > kAim) j["reason"] = gap_words(row);
  return j;
}

std::string seconds_table(const std::vector<PlannerRow>& rows, bool color) {
  std::vector<gar::cli::Column> columns{{"network"}, {"floats", true}};
  for (std::size_t c = 0; c < kNumColumns; ++c) {
    columns.push_back({c == kNoRearrange ? "no rearr." : kTitles[c], true});
    if (c == kPlus) columns.push_back({"chunks", true});
  }
  columns.push_back({"bound", true});
  columns.push_back({"gentree+/bound", true});
  Table table(columns);
  std::string network;
  for (const PlannerRow& row : rows) {
    std::vector<Cell> cells{row.network == network ? "" : row.network, format_count(row.size)};
    for (std::size_t c = 0; c < kNumColumns; ++c) {
      const double s = row.results[c].seconds();
      cells.emplace_back(fmt::format("{:.4f}", s), c == kPlus ? Paint::kGreen : Paint::kPlain);
      if (c == kPlus) cells.emplace_back(fmt::format("{}", row.results[c].chunks));
    }
    cells.emplace_back(fmt::format("{:.4f}", row.bound.seconds()));
    cells.emplace_back(fmt::format("{:.3f}", row.ratio()), !is_largest(row)      ? Paint::kPlain
                                                           : row.ratio() <= kAim ? Paint::kGreen
                                                                                 : Paint::kYellow);
    table.add_row(std::move(cells));
    network = row.network;
  }
  return table.folded(color);
}

std::string gap_table(const std::vector<PlannerRow>& rows, bool color) {
  Table table({{"network"},
               {"bound", true},
               {"binding"},
               {"gentree+", true},
               {"above", true},
               {"latency", true},
               {"busiest", true},
               {"fill", true},
               {"busiest link or server"}});
  for (const PlannerRow& row : rows) {
    if (!is_largest(row)) continue;
    table.add_row({row.network, format_seconds(row.bound.seconds()), row.binding(),
                   format_seconds(row.results[kPlus].seconds()), format_percent(row.ratio() - 1),
                   format_seconds(row.gap.latency, 3), format_seconds(row.gap.busiest, 3),
                   format_seconds(row.gap.fill, 3), row.gap.resource});
  }
  return table.folded(color);
}

void print_list(const char* title, const std::vector<std::string>& lines) {
  say(fmt::format("\n{}:{}\n", title, lines.empty() ? " nowhere" : ""));
  for (const std::string& line : lines) print(list_item(line));
}

}  // namespace

bool reproduce_planners(const Context& context, Json& document) {
  std::vector<PlannerRow> rows;
  for (const char* name : kPlannerNetworks) {
    PlannerNetwork network(name);
    for (const std::int64_t size : kPlannerSizes) rows.push_back(network.at(size));
  }
  const std::vector<std::string> wrong = violations(rows);
  const std::vector<std::string> losses = beaten(rows);
  std::size_t within = 0;
  document["rows"] = Json::array();
  for (const PlannerRow& row : rows) {
    document["rows"].push_back(row_json(row));
    if (is_largest(row) && row.ratio() <= kAim) ++within;
  }
  document["violations"] = wrong;
  document["gentree_beaten"] = losses;
  document["within_aim"] = within;
  const std::string rearrangement = report_rearrangement(context, document);
  if (context.json) return wrong.empty();

  const bool color = use_color(context.color, stdout);
  say("planners: predicted seconds by GenModel; hring and hcps flat, in their best factorisation\n\n");
  say(seconds_table(rows, color));
  say(fmt::format("\nat {} floats, what GenTree+ takes beyond the lower bound:\n\n",
                  format_count(kPlannerSizes.back())));
  say(gap_table(rows, color));
  say(fmt::format("\nwithin {} of the bound: {} of {} networks\n", format_percent(kAim - 1), within,
                  kPlannerNetworks.size()));
  for (const PlannerRow& row : rows) {
    if (is_largest(row) && row.ratio() > kAim) print(list_item(gap_words(row)));
  }
  print_list("where hring or hcps beats GenTree", losses);
  say(rearrangement);
  say(fmt::format(
      "\nGenTree takes no longer than ring, cps and rhd (it ties {}), GenTree+ no longer than anything: {}\n",
      ties(rows), wrong.empty() ? paint("yes", Paint::kGreen, color) : paint("NO", Paint::kRed, color)));
  for (const std::string& line : wrong) print(list_item(line));
  return wrong.empty();
}

}  // namespace gar::cli
