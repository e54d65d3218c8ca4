// Pictures for terminals: the charts and bars of a report in letters, for where there is no browser.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gar/report.hpp"

namespace gar {

/// What the terminal is like.
struct TextPlot {
  std::size_t columns = 80;  ///< no line is wider; fewer than 30 count as 30
  std::size_t lines = 16;    ///< height of a chart without its title, axis and legend; 4 to 100
  bool color = false;        ///< whether lines and parts have colours
  bool is_utf8 = true;       ///< false: nothing but ASCII
};

/// Lines over their axes. Each line has a letter, which stands at its end and in the legend; dashed lines of the same
/// colour as another one share its letter. Points that the axes cannot show leave a gap. Empty when nothing is shown.
std::string chart_text(const Chart& chart, const TextPlot& plot);
/// Stacked bars with their sums. Empty when nothing takes time.
std::string bars_text(const std::string& title, const std::vector<Bar>& bars, const TextPlot& plot);

}  // namespace gar
