#include "apps/gar/reproduce/summary.hpp"

#include <fmt/format.h>

#include <utility>

#include "apps/gar/cli/output.hpp"

namespace gar::cli {
namespace {

struct CellCount {
  int all = 0;
  int within = 0;
};

CellCount count_cells(const Json& document) {
  CellCount out;
  if (!document.contains("cells")) return out;
  for (const Json& cell : document["cells"]) {
    if (!cell.contains("in_tolerance")) continue;
    ++out.all;
    out.within += cell["in_tolerance"].get<bool>() ? 1 : 0;
  }
  return out;
}

// "3 of 36 exact factors", or nothing where there is nothing to say.
std::string all_but(int within, int all, const char* what) {
  return within == all ? "" : fmt::format("{} of {} {}", all - within, all, what);
}

void summarise_cells(const Json& document, const char* what, ReproductionSummary& out) {
  const CellCount cells = count_cells(document);
  out.agrees = fmt::format("{} of {} {}, within {}", cells.within, cells.all, what,
                           format_percent(document.value("tolerance", 0.0)));
  out.differs = all_but(cells.within, cells.all, what);
}

void summarise_gtplan(const Json& document, ReproductionSummary& out) {
  const Json& s = document["summary"];
  const int choices = s["choices"].get<int>();
  const int type = s["type"].get<int>();
  const int exact = s["exact"].get<int>();
  out.agrees = fmt::format("type of {} of {} choices, factors of {}; ACPS {} of {}", type, choices, exact,
                           s["acps_agree"].get<int>(), s["acps"].get<int>());
  out.differs = fmt::format("type of {}, factors of {}", choices - type, choices - exact);
  out.basis = "the planner, with the paper's parameters";
}

void summarise_gentreesimu(const Json& document, ReproductionSummary& out) {
  int laws = 0;
  for (const Json& law : document["laws"]) laws += law["count"].get<int>();
  const Json& one_switch = document["simulated_groups"][0];
  int trees = 0;
  for (std::size_t i = 1; i < document["simulated_groups"].size(); ++i) {
    trees += document["simulated_groups"][i]["count"].get<int>();
  }
  out.agrees = fmt::format("{} cells with laws; {} on one switch when simulated, within {}; gentree is the fastest",
                           laws, one_switch["count"].get<int>(), format_percent(1 - one_switch["least"].get<double>()));
  out.differs = fmt::format("{} on trees when simulated, {} of them without a law", trees,
                            document["num_not_derived"].get<int>());
  out.basis = "laws: found from these cells; simulation: the paper's parameters";
}

void summarise_planners(const Json& document, ReproductionSummary& out) {
  const std::size_t wrong = document["violations"].size();
  out.agrees = wrong == 0 ? "gentree is no slower than ring, cps and rhd" : "";
  if (wrong > 0) out.differs = fmt::format("{} statements", wrong);
  out.basis = "the model, with the paper's parameters";
}

}  // namespace

ReproductionSummary summary_of(const std::string& target, const Json& document, bool in_tolerance) {
  ReproductionSummary out{.target = target, .agrees = {}, .differs = {}, .basis = {}, .in_tolerance = in_tolerance};
  if (target == "fig:costmodel") {
    summarise_cells(document, "predicted bars", out);
    out.basis = "parameters: found from these bars";
  } else if (target == "fig:model_five") {
    summarise_cells(document, "shares", out);
    out.basis = "parameters: of fig:costmodel";
  } else if (target == "fig:incast") {
    summarise_cells(document, "points", out);
    out.basis = "parameters: fitted to these points";
  } else if (target == "table:gentreereal") {
    summarise_cells(document, "measured cells", out);
    out.basis = "parameters: of fig:costmodel, other measurements";
  } else if (target == "table:gtplan") {
    summarise_gtplan(document, out);
  } else if (target == "table:gentreesimu") {
    summarise_gentreesimu(document, out);
  } else if (target == "planners") {
    summarise_planners(document, out);
  } else if (target == "fig:hcps") {
    out.agrees = in_tolerance ? "every switch reduces every block once" : "";
    out.basis = "Algorithm 1; the figure's drawings are not in its source";
  } else {
    out.basis = "measured here";
  }
  return out;
}

Json to_json(const ReproductionSummary& summary) {
  return {{"target", summary.target},
          {"agrees", summary.agrees},
          {"differs", summary.differs},
          {"basis", summary.basis},
          {"in_tolerance", summary.in_tolerance}};
}

namespace {

// Where the table would fall apart: a target with its answers below each other.
std::string summary_blocks(const std::vector<ReproductionSummary>& summaries, bool color) {
  std::string out;
  const auto add = [&](const char* label, const std::string& text) {
    constexpr std::size_t kIndent = 14;
    out += wrapped(fmt::format("  {:<{}}", label, kIndent - 2), kIndent, text, terminal_columns());
  };
  for (const ReproductionSummary& s : summaries) {
    out += fmt::format(
        "{}{}: {}\n", out.empty() ? "" : "\n", paint(s.target, Paint::kBold, color),
        s.in_tolerance ? paint("in tolerance", Paint::kGreen, color) : paint("NOT in tolerance", Paint::kRed, color));
    if (!s.agrees.empty()) add("agrees", s.agrees);
    if (!s.differs.empty()) add("does not", s.differs);
    add("basis", s.basis);
  }
  return out;
}

}  // namespace

std::string summary_csv(const std::vector<ReproductionSummary>& summaries) {
  std::string out = csv_line({"target", "in_tolerance", "agrees", "differs", "basis"});
  for (const ReproductionSummary& s : summaries) {
    out += csv_line({s.target, s.in_tolerance ? "true" : "false", s.agrees, s.differs, s.basis});
  }
  return out;
}

std::string summary_table(const std::vector<ReproductionSummary>& summaries, bool color) {
  Table table({{"target"}, {"in tolerance"}, {"agrees with the paper"}, {"does not"}, {"our values come from"}});
  for (const ReproductionSummary& s : summaries) {
    table.add_row({s.target, Cell(s.in_tolerance ? "yes" : "NO", s.in_tolerance ? Paint::kGreen : Paint::kRed),
                   s.agrees.empty() ? "-" : s.agrees, s.differs.empty() ? "-" : s.differs, s.basis});
  }
  const std::string whole = table.to_string(false);
  for (std::size_t begin = 0; begin < whole.size();) {
    const std::size_t end = whole.find('\n', begin);
    const auto line = std::string_view(whole).substr(begin, end - begin);
    if (display_width(line) > terminal_columns()) return summary_blocks(summaries, color);
    begin = end + 1;
  }
  return table.to_string(color);
}

}  // namespace gar::cli
