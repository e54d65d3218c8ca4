// CDC384: communication seconds (alpha, beta and epsilon) of GenTree with and without data rearrangement, next to what
// the paper's Table `tab:gentreesimu` says for GenTree and GenTree*.
//
// The paper states that rearrangement saves 54-60%; its ratios are 0.54-0.60, so it saves 40-46%. They are of the whole
// simulated time, which on this network is nearly all communication.
//
// The whole plan and the top level are shown: the stages of the root switch, together with the stage that moves a data
// centre's results to its subset, in both halves. Below the top both plans are the same, except that after a
// rearrangement the other data centre may be the slower one.
#include "apps/gar/reproduce/rearrangement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "apps/gar/reproduce/json_output.hpp"
#include "gar/algorithms.hpp"
#include "gar/planner.hpp"

namespace gar::cli {
namespace {

struct PaperSeconds {
  std::int64_t size;
  double with;
  double without;
  [[nodiscard]] double saved() const { return 1 - with / without; }
};

constexpr std::array<PaperSeconds, 3> kPaper{
    {{10'000'000, 2.427, 4.484}, {32'000'000, 8.299, 13.927}, {100'000'000, 25.388, 43.116}}};
constexpr double kStated = 0.40;  // the least that the paper saves

struct Cost {
  Terms whole;
  Terms top;
};

Terms communication(Terms t) {
  t.gamma = 0;
  t.delta = 0;
  return t;
}

// The critical path's stages run up to the root and down again, so the top level is in the middle.
Cost cost_of(const Topology& topology, double size, bool rearrange) {
  const PlanAnswer tree = plan({.topology = topology,
                                .size_floats = size,
                                .algorithms = {parse_algorithm(rearrange ? "gentree" : "gentree-norearrange")}});
  const std::vector<StageCost> stages = tree.priced->critical_stages(size);
  const std::size_t own = tree.plan.subplans[static_cast<std::size_t>(tree.plan.root)].stages.size();
  const std::size_t top = own + (tree.switches.back().is_rearranged ? 1 : 0);
  const std::size_t first = stages.size() / 2 - std::min(stages.size() / 2, top);
  Cost cost{communication(tree.terms), {}};
  for (std::size_t i = first; i < stages.size() - first; ++i) cost.top += communication(stages[i].at(size));
  return cost;
}

struct Entry {
  PaperSeconds paper;
  Cost with;
  Cost without;
  [[nodiscard]] double saved() const { return 1 - with.whole.total() / without.whole.total(); }
  [[nodiscard]] double top_saved() const { return 1 - with.top.total() / without.top.total(); }
};

std::string reason(const Entry& e) {
  const double whole = e.without.whole.total();
  const double below = whole - e.without.top.total();
  return fmt::format(
      "at {}: without rearrangement the communication is {}; {} of it ({}) goes to stages below the top, which both "
      "plans have, and {} of it ({}) to incast on the cross link: a rearrangement that removed all of that for nothing "
      "would save no more. Ours changes the top level by {}",
      format_count(e.paper.size), format_seconds(whole, 3), format_seconds(below, 3), format_percent(below / whole),
      format_seconds(e.without.top.epsilon, 3), format_percent(e.without.top.epsilon / whole),
      difference_words(e.without.top, e.with.top));
}

Json cost_json(const Cost& cost) {
  Json j;
  j["seconds"] = cost.whole.total();
  j["terms"] = terms_json(cost.whole);
  j["top_seconds"] = cost.top.total();
  j["top_terms"] = terms_json(cost.top);
  return j;
}

}  // namespace

std::string report_rearrangement(const Context& context, Json& document) {
  const Topology topology = builtin_topology("cdc384");
  Table table({{"floats", true},
               {"with", true},
               {"without", true},
               {"saved", true},
               {"top with", true},
               {"top without", true},
               {"top saved", true},
               {"paper saved", true}});
  std::string reasons;
  document["rearrangement"] = Json::array();
  for (const PaperSeconds& paper : kPaper) {
    const auto size = static_cast<double>(paper.size);
    const Entry e{paper, cost_of(topology, size, true), cost_of(topology, size, false)};
    table.add_row({format_count(paper.size), format_seconds(e.with.whole.total()),
                   format_seconds(e.without.whole.total()), format_percent(e.saved()),
                   format_seconds(e.with.top.total()), format_seconds(e.without.top.total()),
                   format_percent(e.top_saved()), format_percent(paper.saved())});
    Json j;
    j["network"] = "cdc384";
    j["count"] = paper.size;
    j["gentree"] = cost_json(e.with);
    j["gentree_norearrange"] = cost_json(e.without);
    j["saved"] = e.saved();
    j["top_saved"] = e.top_saved();
    j["paper_saved"] = paper.saved();
    if (e.saved() < kStated) {
      j["reason"] = reason(e);
      reasons += list_item(reason(e));
    }
    document["rearrangement"].push_back(j);
  }
  if (context.json) return {};
  const bool color = use_color(context.color, stdout);
  return fmt::format(
      "\ncdc384, communication (alpha, beta, epsilon) of GenTree with and without rearrangement, whole plan and top "
      "level:\n\n{}\n{}{}",
      table.folded(color),
      reasons.empty() ? "" : fmt::format("why the whole plan saves less than {}:\n", format_percent(kStated)), reasons);
}

}  // namespace gar::cli
