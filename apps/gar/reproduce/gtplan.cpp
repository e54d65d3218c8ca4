// Table `tab:gtplan`: which algorithm GenTree takes at every switch of the six networks, for three sizes.
//
// How the cells are counted. The table has 14 rows (network and kind of switch) and 3 sizes: SS24 and SS32 have one row
// each, SYM384 and SYM512 two (racks, root), ASY384 three (racks of 32, racks of 16, root), CDC384 five (racks and root
// of each data centre, and what joins the two). Switches of one kind are alike, so one row stands for all of them. The
// root of ASY384 and the cross link of CDC384 join unequal children: 2 rows, 6 cells, ACPS without a choice. The other
// 12 rows are 36 cells with a choice between CPS and HCPS (Ring and RHD are candidates too and are never taken).
//
// Two degrees of agreement: the type (CPS or HCPS), and exactly the same factors in the same order. In every network
// the number of servers below tells the kinds of switches apart.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "apps/gar/reproduce/json_output.hpp"
#include "apps/gar/reproduce/reproduce.hpp"
#include "gar/planner.hpp"

namespace gar::cli {
namespace {

constexpr std::array<std::int64_t, 3> kPaperSizes{10'000'000, 32'000'000, 100'000'000};
constexpr int kMinType = 31;  // of kNumChoices
constexpr int kMinExact = 27;
constexpr int kNumChoices = 36;
constexpr int kNumAcps = 6;
constexpr double kSameCost = 1e-9;  // relative

struct PaperRow {
  const char* network;
  const char* name;
  std::int64_t servers;  // below a switch of this kind
  std::array<const char*, kPaperSizes.size()> plans;
};

constexpr PaperRow kPaperRows[] = {
    {"ss24", "Root SW", 24, {"CPS", "8x3", "8x3"}},         {"ss32", "Root SW", 32, {"8x4", "8x4", "8x4"}},
    {"sym384", "Middle SW", 24, {"CPS", "8x3", "8x3"}},     {"sym384", "Root SW", 384, {"CPS", "8x2", "8x2"}},
    {"sym512", "Middle SW", 32, {"CPS", "8x4", "8x4"}},     {"sym512", "Root SW", 512, {"CPS", "8x2", "8x2"}},
    {"asy384", "Middle SW 0-7", 32, {"CPS", "8x4", "8x4"}}, {"asy384", "Middle SW 8-15", 16, {"CPS", "8x2", "8x2"}},
    {"asy384", "Root SW", 384, {"ACPS", "ACPS", "ACPS"}},   {"cdc384", "DC0 Middle SW", 32, {"CPS", "8x4", "8x4"}},
    {"cdc384", "DC0 Root SW", 256, {"CPS", "CPS", "CPS"}},  {"cdc384", "DC1 Middle SW", 16, {"CPS", "8x2", "8x2"}},
    {"cdc384", "DC1 Root SW", 128, {"CPS", "CPS", "CPS"}},  {"cdc384", "Cross DC", 384, {"ACPS", "ACPS", "ACPS"}},
};

// As the table writes it.
std::string table_name(const std::string& algorithm, const std::vector<std::int64_t>& factors) {
  if (algorithm == "hcps") return factor_words(factors);
  if (algorithm == "cps") return "CPS";
  if (algorithm == "acps") return "ACPS";
  return algorithm;
}

// CPS, HCPS, ACPS, ...: the factors left out.
std::string type_of(const std::string& table_name) {
  return table_name.find('x') == std::string::npos ? table_name : "HCPS";
}

enum class Agreement { kExact, kType, kDiffers };

struct PlanEntry {
  const PaperRow* row;
  std::int64_t size;
  std::string paper;
  std::string ours;
  Agreement agreement;
  SwitchChoice choice;
  std::optional<SwitchCandidate> theirs;  // the paper's choice under our model

  [[nodiscard]] bool is_acps() const { return paper == "ACPS"; }
  [[nodiscard]] std::string place() const { return fmt::format("{} {}", row->network, row->name); }
  [[nodiscard]] double loss() const { return theirs->terms.total() - choice.seconds(); }
};

const SwitchCandidate* find(const SwitchChoice& choice, const std::string& name) {
  const auto it = std::find_if(choice.candidates.begin(), choice.candidates.end(),
                               [&](const SwitchCandidate& c) { return table_name(c.algorithm, c.factors) == name; });
  return it == choice.candidates.end() ? nullptr : &*it;
}

std::vector<PlanEntry> compute() {
  std::vector<PlanEntry> entries;
  for (const PaperRow& row : kPaperRows) {
    const Topology topology = builtin_topology(row.network);
    for (std::size_t i = 0; i < kPaperSizes.size(); ++i) {
      const TreePlan tree = gentree(topology, static_cast<double>(kPaperSizes[i]));
      const auto at = std::find_if(tree.switches.begin(), tree.switches.end(),
                                   [&](const SwitchChoice& c) { return topology.num_servers(c.node) == row.servers; });
      PlanEntry e{&row, kPaperSizes[i], row.plans[i], "nothing", Agreement::kDiffers, {}, {}};
      if (at != tree.switches.end()) {
        e.choice = *at;
        e.ours = table_name(at->algorithm, at->factors);
        e.agreement = e.ours == e.paper                     ? Agreement::kExact
                      : type_of(e.ours) == type_of(e.paper) ? Agreement::kType
                                                            : Agreement::kDiffers;
        if (const SwitchCandidate* c = find(e.choice, e.paper)) e.theirs = *c;
      }
      entries.push_back(std::move(e));
    }
  }
  return entries;
}

bool is_same_cost(const Terms& a, const Terms& b) {
  return std::abs(a.total() - b.total()) <= kSameCost * std::max(a.total(), b.total());
}

// A cell of the table where the same two plans cost the same as here, and the paper takes ours.
const PlanEntry* counter_example(const std::vector<PlanEntry>& entries, const PlanEntry& e) {
  for (const PlanEntry& other : entries) {
    if (other.size != e.size || other.paper != e.ours) continue;
    const SwitchCandidate* theirs = find(other.choice, e.paper);
    const SwitchCandidate* ours = find(other.choice, e.ours);
    if (theirs == nullptr || ours == nullptr || !e.theirs) continue;
    if (is_same_cost(theirs->terms, e.theirs->terms) && is_same_cost(ours->terms, e.choice.terms)) return &other;
  }
  return nullptr;
}

// Most servers whose traffic meets on the link down to one child: in a stage of fan-in f, all those of f - 1 others.
std::int64_t most_senders(const PlanEntry& e, const std::vector<std::int64_t>& factors) {
  std::int64_t children = 1;
  for (const std::int64_t f : factors) children *= f;
  return (*std::max_element(factors.begin(), factors.end()) - 1) * (e.row->servers / children);
}

std::string reason(const std::vector<PlanEntry>& entries, const PlanEntry& e) {
  if (!e.theirs) return fmt::format("{} is not among the candidates here", e.paper);
  std::string words = fmt::format("{} takes {} ({}) longer than {}: {}", e.paper, format_seconds(e.loss(), 3),
                                  format_percent(e.loss() / e.choice.seconds()), e.ours,
                                  difference_words(e.choice.terms, e.theirs->terms));
  const std::int64_t theirs = most_senders(e, e.theirs->factors);
  const std::int64_t ours = most_senders(e, e.choice.factors);
  if (!e.choice.is_rearranged && theirs != ours) {
    words += fmt::format("; up to {} senders meet on the link to a child, {} with {}", theirs, ours, e.ours);
  }
  if (const PlanEntry* other = counter_example(entries, e)) {
    words += fmt::format("; the paper takes {} at {}, where both cost the same as here", other->paper, other->place());
  }
  return words;
}

struct Summary {
  int choices = 0, type = 0, exact = 0, acps = 0, acps_agree = 0;
  [[nodiscard]] bool is_complete() const { return choices == kNumChoices && acps == kNumAcps; }
  [[nodiscard]] bool ok() const {
    return is_complete() && type >= kMinType && exact >= kMinExact && acps_agree == acps;
  }
};

Summary summary_of(const std::vector<PlanEntry>& entries) {
  Summary s;
  for (const PlanEntry& e : entries) {
    (e.is_acps() ? s.acps : s.choices) += 1;
    if (e.is_acps()) {
      s.acps_agree += e.agreement == Agreement::kExact ? 1 : 0;
    } else {
      s.exact += e.agreement == Agreement::kExact ? 1 : 0;
      s.type += e.agreement != Agreement::kDiffers ? 1 : 0;
    }
  }
  return s;
}

constexpr const char* kAgreementNames[] = {"exact", "type", "differs"};
constexpr Paint kAgreementPaints[] = {Paint::kGreen, Paint::kYellow, Paint::kRed};

Json entry_json(const std::vector<PlanEntry>& entries, const PlanEntry& e) {
  Json cell;
  cell["network"] = e.row->network;
  cell["switch"] = e.row->name;
  cell["count"] = e.size;
  cell["paper"] = e.paper;
  cell["ours"] = e.ours;
  cell["agreement"] = kAgreementNames[static_cast<int>(e.agreement)];
  cell["rearranged"] = e.choice.is_rearranged;
  cell["ours_seconds"] = e.choice.seconds();
  cell["ours_terms"] = terms_json(e.choice.terms);
  cell["paper_seconds"] = e.theirs ? Json(e.theirs->terms.total()) : Json(nullptr);
  cell["paper_terms"] = e.theirs ? terms_json(e.theirs->terms) : Json(nullptr);
  if (e.agreement != Agreement::kExact) cell["reason"] = reason(entries, e);
  return cell;
}

std::string rows_text(const std::vector<PlanEntry>& entries, bool color) {
  Table table({{"network"},
               {"switch"},
               {"floats", true},
               {"paper"},
               {"ours"},
               {"agreement"},
               {"paper's", true},
               {"ours", true}});
  const char* network = "";
  const PaperRow* row = nullptr;
  for (const PlanEntry& e : entries) {
    const auto mark = static_cast<std::size_t>(e.agreement);
    table.add_row({e.row->network == network ? "" : e.row->network, e.row == row ? "" : e.row->name,
                   format_count(e.size), e.paper, e.ours, Cell(kAgreementNames[mark], kAgreementPaints[mark]),
                   e.theirs ? format_seconds(e.theirs->terms.total()) : "-", format_seconds(e.choice.seconds())});
    network = e.row->network;
    row = e.row;
  }
  return table.folded(color);
}

}  // namespace

bool reproduce_gtplan(const Context& context, Json& document) {
  const std::vector<PlanEntry> entries = compute();
  const Summary s = summary_of(entries);
  document["cells"] = Json::array();
  for (const PlanEntry& e : entries) document["cells"].push_back(entry_json(entries, e));
  document["summary"] = {
      {"choices", s.choices}, {"type", s.type}, {"exact", s.exact}, {"acps", s.acps}, {"acps_agree", s.acps_agree}};
  document["required"] = {{"type", kMinType}, {"exact", kMinExact}, {"acps_agree", kNumAcps}};
  if (context.json) return s.ok();

  const bool color = use_color(context.color, stdout);
  say("table:gtplan: what GenTree takes at every kind of switch; seconds of the switch's own stages under the "
      "model\n\n");
  say(rows_text(entries, color));
  say("\nwhere they differ, and what the model says:\n");
  for (const PlanEntry& e : entries) {
    if (e.agreement == Agreement::kExact) continue;
    print(list_item(fmt::format("{} at {}: {}", e.place(), format_count(e.size), reason(entries, e))));
  }
  say(fmt::format("\ntype agrees in {} of {}, exact factors in {} of {}, ACPS {} of {}\n", s.type, s.choices, s.exact,
                  s.choices, s.acps_agree, s.acps));
  say(fmt::format(
      "tolerance: type in {}, exact in {}, ACPS in {} at least; {}\n", kMinType, kMinExact, kNumAcps,
      s.ok() ? paint("in tolerance", Paint::kGreen, color) : paint("OUT OF TOLERANCE", Paint::kRed, color)));
  return s.ok();
}

}  // namespace gar::cli
