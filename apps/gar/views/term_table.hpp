// The terms of a cost in tables and lines for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/gar/cli/output.hpp"
#include "gar/model.hpp"

namespace gar::cli {

/// How the terms are called: in plain words, or by their letters (--greek).
enum class TermNames { kPlain, kGreek };
/// "latency", "links", ... or "alpha", "beta", ...
std::string_view term_name(const TermInfo& term, TermNames names);

/// The terms that a table shows: optional ones only where they cost something.
class TermColumns {
 public:
  /// `largest`: for each term at least what any row of the table has (their sum, for example).
  explicit TermColumns(const Terms& largest, TermNames names = TermNames::kPlain);
  /// A column for every term, called by its name.
  void add_columns(std::vector<Column>& columns) const;
  /// The cells of these columns; terms that cost nothing are dim, and the largest one has a colour.
  void add_cells(const Terms& terms, std::vector<Cell>& row) const;

 private:
  std::vector<const TermInfo*> shown_;
  TermNames names_;
};
/// "latency 1.2 ms, links 30 ms, ...".
std::string term_list(const Terms& terms, TermNames names = TermNames::kPlain);

}  // namespace gar::cli
