// The terms of a cost in tables and lines for people.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/cli/output.hpp"
#include "gar/model.hpp"

namespace gar::cli {

/// A column for every term, called by its name.
void add_term_columns(std::vector<Column>& columns);
/// The cells of these columns; terms that cost nothing are dim.
void add_term_cells(const Terms& terms, std::vector<Cell>& row);
/// "alpha 1.2 ms, beta 30 ms, ...".
std::string term_list(const Terms& terms);

}  // namespace gar::cli
