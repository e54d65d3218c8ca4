// What was decided by measuring, for people.
#pragma once

#include <string>

#include "gar/decisions.hpp"

namespace gar::cli {

/// The lines above the table: where the decisions hold.
std::string decisions_head(const DecisionPlace& place);
/// The titles of the table's columns.
std::string decisions_titles();
/// One line of the table.
std::string decision_line(const Decision& decision, bool color);
/// Everything about a file.
std::string decisions_report(const Decisions& decisions, const std::string& source, bool color);
/// The same for programs: titles, and one line for each candidate of a decision.
std::string decisions_csv_titles();
std::string decision_csv(const Decision& decision);

}  // namespace gar::cli
