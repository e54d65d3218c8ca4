// Simulated plans: which one is fastest, where the time goes, what limits each stage.
#include <fmt/format.h>

#include "gar/explain.hpp"
#include "gar/explain_simulation.hpp"
#include "gar/explain_topology.hpp"
#include "gar/format.hpp"
#include "report/html.hpp"

namespace gar {
namespace {

constexpr std::size_t kMostLinks = 12;

void add_stages(ReportPage& page, const Topology& topology, const SimulatedPlan& plan) {
  std::vector<std::vector<std::string>> rows;
  for (const StageUse& stage : plan.simulation.stages) {
    rows.push_back({stage.label, std::string(phase_word(plan.is_explicit, stage.is_exchange, stage.is_gather)),
                    format_seconds(stage.begin), format_seconds(stage.end),
                    bottleneck_words(topology, stage, plan.num_chunks > 1)});
  }
  page.table({"stage", "phase", "begins", "ends", "limited by"}, rows);
  rows.clear();
  for (const LinkUse& use : plan.simulation.links) {
    if (rows.size() == kMostLinks) break;
    rows.push_back({link_name(topology, use.link), fmt::format("{}", use.count),
                    format_percent(plan.simulation.seconds > 0 ? use.busy_seconds / plan.simulation.seconds : 0),
                    format_seconds(use.incast_seconds), fmt::format("{}", use.max_senders)});
  }
  page.paragraph("The busiest links:");
  page.table({"link", "alike", "busy", "incast", "most senders"}, rows);
}

}  // namespace

Bar terms_bar(const std::string& name, const Terms& terms) {
  Bar out{.name = name, .parts = {}};
  for (const TermInfo& term : kTerms) out.parts.push_back({std::string(term.words), terms.*term.seconds});
  return out;
}

std::vector<Bar> simulation_bars(const std::vector<SimulatedPlan>& plans) {
  std::vector<Bar> out;
  for (const SimulatedPlan& plan : plans) {
    out.push_back(terms_bar(plan.algorithm, plan.simulation.terms));
    out.push_back(terms_bar("by the model", plan.predicted));
  }
  return out;
}

void add_to_report(ReportPage& page, const Scene& scene, const std::vector<SimulatedPlan>& plans) {
  if (plans.empty()) return;
  const SimulatedPlan& best = plans.front();
  page.verdict(Tone::kPlain,
               fmt::format("{} of {} on {}: {} in the simulator, {} by the model; simulated, it takes {}.",
                           best.algorithm, format_bytes(static_cast<double>(scene.size.bytes)), scene.topology.name(),
                           format_seconds(best.simulation.seconds), format_seconds(best.predicted.total()),
                           difference_words(best.simulation.seconds, best.predicted.total())));
  if (!best.simulation.is_complete) page.verdict(Tone::kBad, "The simulation was ended before it was complete.");
  for (const std::string& words : what_if_words(scene.what_if)) page.verdict(Tone::kPlain, "What if: " + words + ".");
  page.section("Simulated: " + scene.topology.name());
  page.paragraph(topology_totals(scene.topology));
  page.bars("Where the time of the critical path goes", simulation_bars(plans));
  for (const SimulatedPlan& plan : plans) {
    page.section(plan.algorithm);
    add_stages(page, scene.topology, plan);
  }
}

}  // namespace gar
