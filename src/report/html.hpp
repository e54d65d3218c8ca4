// Text on pages.
#pragma once

#include <string>
#include <string_view>

#include "gar/report.hpp"

namespace gar::report {

/// Text of unknown origin as it can stand between tags and in quoted attributes.
std::string html(std::string_view text);

/// A chart or stacked bars as SVG, with their legend and their numbers as a table.
std::string chart_html(const Chart& chart);
std::string bars_html(const std::string& title, const std::vector<Bar>& bars);
/// A table that scrolls by itself where the window is narrow.
std::string table_html(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows);

/// Where the numbers of a section come from, within it.
void add_origin(ReportPage& page, const Origin& origin);

/// "12.3 ms", "4 MB", "12", "15%".
std::string tick(ChartUnit unit, double value);

}  // namespace gar::report
