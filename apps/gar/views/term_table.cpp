// The terms of a cost in tables and lines for people.
#include "apps/gar/views/term_table.hpp"

#include <fmt/format.h>

namespace gar::cli {

void add_term_columns(std::vector<Column>& columns) {
  for (const TermInfo& term : kTerms) columns.push_back({std::string(term.name), true});
}

void add_term_cells(const Terms& terms, std::vector<Cell>& row) {
  for (const TermInfo& term : kTerms) {
    const double seconds = terms.*term.seconds;
    row.emplace_back(format_seconds(seconds, 3), seconds == 0 ? Paint::kDim : Paint::kPlain);
  }
}

std::string term_list(const Terms& terms) {
  std::string out;
  for (const TermInfo& term : kTerms) {
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", term.name, format_seconds(terms.*term.seconds, 3));
  }
  return out;
}

}  // namespace gar::cli
