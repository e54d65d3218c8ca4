// The terms of a cost in tables and lines for people.
#include "apps/gar/views/term_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gar::cli {

std::string_view term_name(const TermInfo& term, TermNames names) {
  if (names == TermNames::kGreek) return term.name;
  struct PlainName {
    double Terms::*term;
    std::string_view name;
  };
  constexpr PlainName kNames[] = {{&Terms::alpha, "latency"}, {&Terms::beta, "links"},     {&Terms::gamma, "adding"},
                                  {&Terms::delta, "memory"},  {&Terms::epsilon, "incast"}, {&Terms::mu, "messages"}};
  for (const PlainName& known : kNames) {
    if (known.term == term.seconds) return known.name;
  }
  return term.words;
}

TermColumns::TermColumns(const Terms& largest, TermNames names) : names_(names) {
  for (const TermInfo& term : kTerms) {
    if (!term.is_optional || largest.*term.seconds != 0) shown_.push_back(&term);
  }
}

void TermColumns::add_columns(std::vector<Column>& columns) const {
  for (const TermInfo* term : shown_) columns.push_back({std::string(term_name(*term, names_)), true});
}

void TermColumns::add_cells(const Terms& terms, std::vector<Cell>& row) const {
  double largest = 0;
  for (const TermInfo* term : shown_) largest = std::max(largest, terms.*term->seconds);
  for (const TermInfo* term : shown_) {
    const double seconds = terms.*term->seconds;
    row.emplace_back(format_seconds(seconds, 3), seconds == 0         ? Paint::kDim
                                                 : seconds == largest ? Paint::kCyan
                                                                      : Paint::kPlain);
  }
}

std::string term_list(const Terms& terms, TermNames names) {
  std::string out;
  for (const TermInfo& term : kTerms) {
    if (term.is_optional && terms.*term.seconds == 0) continue;
    out +=
        fmt::format("{}{} {}", out.empty() ? "" : ", ", term_name(term, names), format_seconds(terms.*term.seconds, 3));
  }
  return out;
}

}  // namespace gar::cli
