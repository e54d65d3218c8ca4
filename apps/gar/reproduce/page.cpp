#include "apps/gar/reproduce/page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/gar/views/page.hpp"

namespace gar::cli {
namespace {

std::string cell_text(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return value.dump();
}

bool is_table(const Json& list) {
  return list.is_array() && !list.empty() &&
         std::all_of(list.begin(), list.end(), [](const Json& row) { return row.is_object(); });
}

/// Objects of one list as rows; what is a list or an object itself is left out.
void add_table(ReportPage& page, const std::string& name, const Json& list) {
  std::vector<std::string> titles;
  for (const Json& row : list) {
    for (const auto& [key, value] : row.items()) {
      if (!value.is_structured() && std::find(titles.begin(), titles.end(), key) == titles.end()) titles.push_back(key);
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (const Json& row : list) {
    std::vector<std::string> cells;
    for (const std::string& title : titles) cells.push_back(row.contains(title) ? cell_text(row[title]) : "");
    rows.push_back(std::move(cells));
  }
  if (titles.empty()) return;
  page.paragraph(name + ":");
  page.table(titles, rows);
}

}  // namespace

ReportPage reproduction_page(const std::vector<ReproductionSummary>& summaries, const Json& document) {
  ReportPage page("The paper's figures and tables, reproduced");
  std::vector<std::vector<std::string>> rows;
  for (const ReproductionSummary& s : summaries) {
    page.verdict(
        s.in_tolerance ? Tone::kGood : Tone::kBad,
        fmt::format("{}: {}", s.target, s.in_tolerance ? "within its tolerances" : "not within its tolerances"));
    rows.push_back({s.target, s.agrees, s.differs, s.basis});
  }
  page.section("What agrees");
  page.table({"", "agrees", "differs", "what our values were found from"}, rows);
  for (const Json& one : document["reproductions"]) {
    page.section(cell_text(one["name"]));
    for (const auto& [name, value] : one.items()) {
      if (is_table(value)) add_table(page, name, value);
    }
  }
  add_own_command(page);
  return page;
}

}  // namespace gar::cli
