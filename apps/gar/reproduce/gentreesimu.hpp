// What the reproduction of Table `tab:gentreesimu` finds, and what is checked about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gar::cli {

/// One algorithm on one network at one size, in seconds.
struct SimuCell {
  std::string algorithm;  ///< as on the command line, without factors
  std::string plan;       ///< with factors
  std::int64_t chunks = 1;
  std::optional<double> paper;
  std::optional<double> law;
  double simulated = 0;
  double predicted = 0;  ///< by GenModel
  double busiest = 0;    ///< what the busiest link direction or server has to do, without incast and memory access
};

/// One network at one size: a column of the table.
struct SimuColumn {
  std::string network;
  std::int64_t size = 0;
  std::vector<SimuCell> cells;
  /// nullptr when there is no such algorithm.
  [[nodiscard]] const SimuCell* find(std::string_view algorithm) const;
};

/// Error of the law against the paper; the cell has both.
double law_error(const SimuCell& cell);
/// Seconds of a cell over those of GenTree in the same column.
std::optional<double> paper_speedup(const SimuColumn& column, const SimuCell& cell);
double our_speedup(const SimuColumn& column, const SimuCell& cell);
/// "ss24 at 1e7: cps takes 202.6 ms and gentree+ 197.4 ms (predicted ...)".
std::string comparison(const SimuColumn& column, const SimuCell& slow, const SimuCell& fast);

/// Seconds whose ratio is as close to 1 as this are the same.
inline constexpr double kSame = 1e-9;
/// What the laws may err against the table.
inline constexpr double kLawTolerance = 0.005;

/// What we simulate, over what the paper has, for cells of one kind. On one switch the two have to agree. On trees they
/// do not, and the paper does not say why: the limits are those of our own simulation, so that a change of it is
/// noticed.
struct SimulatedGroup {
  std::string what;
  bool must_agree = false;
  double least = 0;
  double most = 0;
  int cells = 0;
  double seen_least = 0;
  double seen_most = 0;
};
std::vector<SimulatedGroup> simulated_groups(const std::vector<SimuColumn>& columns);
/// Cells outside of the limits of their group, in words.
std::vector<std::string> simulated_failures(const std::vector<SimuColumn>& columns);

/// Cells whose law is out of tolerance, in words.
std::vector<std::string> law_failures(const std::vector<SimuColumn>& columns);

/// Columns in which GenTree is not faster than everything else in the table, in words; on SS24 at 1e7 it may tie CPS.
std::vector<std::string> gentree_failures(const std::vector<SimuColumn>& columns);

/// Columns in which GenTree+ takes longer than GenTree, in words.
std::vector<std::string> gentree_plus_failures(const std::vector<SimuColumn>& columns);

/// Cells that are simulated faster than the plan's busiest link or server allows, in words.
std::vector<std::string> impossible_cells(const std::vector<SimuColumn>& columns);

}  // namespace gar::cli
