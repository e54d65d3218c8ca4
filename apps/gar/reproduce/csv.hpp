// The cells of a reproduction as comma-separated values.
#pragma once

#include <string>

#include "apps/gar/reproduce/json_output.hpp"

namespace gar::cli {

/// A line with the names of all fields, and a line for each cell of the document of one figure or table. A field of a
/// field is "field.inner"; a list is its values with blanks between them; what a cell does not have is empty.
std::string reproduction_csv(const Json& document);

}  // namespace gar::cli
