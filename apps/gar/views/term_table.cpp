// The terms of a cost in tables and lines for people.
#include "apps/gar/views/term_table.hpp"

#include <fmt/format.h>

namespace gar::cli {

TermColumns::TermColumns(const Terms& largest) {
  for (const TermInfo& term : kTerms) {
    if (!term.is_optional || largest.*term.seconds != 0) shown_.push_back(&term);
  }
}

void TermColumns::add_columns(std::vector<Column>& columns) const {
  for (const TermInfo* term : shown_) columns.push_back({std::string(term->name), true});
}

void TermColumns::add_cells(const Terms& terms, std::vector<Cell>& row) const {
  for (const TermInfo* term : shown_) {
    const double seconds = terms.*term->seconds;
    row.emplace_back(format_seconds(seconds, 3), seconds == 0 ? Paint::kDim : Paint::kPlain);
  }
}

std::string term_list(const Terms& terms) {
  std::string out;
  for (const TermInfo& term : kTerms) {
    if (term.is_optional && terms.*term.seconds == 0) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", term.name, format_seconds(terms.*term.seconds, 3));
  }
  return out;
}

}  // namespace gar::cli
