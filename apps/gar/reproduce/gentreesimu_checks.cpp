// The checks of the reproduction of Table `tab:gentreesimu`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/gar/cli/output.hpp"
#include "apps/gar/reproduce/gentreesimu.hpp"
#include "apps/gar/reproduce/gentreesimu_laws.hpp"

namespace gar::cli {
namespace {

constexpr std::array<const char*, 4> kOthers{"gentree-norearrange", "ring", "cps", "rhd"};  // in the table

std::string place(const SimuColumn& column) {
  return fmt::format("{} at {}", column.network, format_count(column.size));
}

}  // namespace

const SimuCell* SimuColumn::find(std::string_view algorithm) const {
  const auto it =
      std::find_if(cells.begin(), cells.end(), [&](const SimuCell& cell) { return cell.algorithm == algorithm; });
  return it == cells.end() ? nullptr : &*it;
}

double law_error(const SimuCell& cell) { return *cell.law / *cell.paper - 1; }

std::optional<double> paper_speedup(const SimuColumn& column, const SimuCell& cell) {
  const SimuCell* gentree = column.find("gentree");
  if (gentree == nullptr || !gentree->paper || !cell.paper) return std::nullopt;
  return *cell.paper / *gentree->paper;
}

double our_speedup(const SimuColumn& column, const SimuCell& cell) {
  return cell.simulated / column.find("gentree")->simulated;
}

std::string comparison(const SimuColumn& column, const SimuCell& slow, const SimuCell& fast) {
  return fmt::format("{}: {} takes {} and {} {} (predicted {} and {})", place(column), slow.plan,
                     format_seconds(slow.simulated), fast.plan, format_seconds(fast.simulated),
                     format_seconds(slow.predicted), format_seconds(fast.predicted));
}

std::vector<std::string> law_failures(const std::vector<SimuColumn>& columns) {
  std::vector<std::string> out;
  for (const SimuColumn& column : columns) {
    for (const SimuCell& cell : column.cells) {
      if (!cell.paper || !cell.law || std::abs(law_error(cell)) <= kLawTolerance) continue;
      out.push_back(fmt::format("{}: the law of {} gives {:.4f} s, the paper has {:.3f} s", place(column),
                                cell.algorithm, *cell.law, *cell.paper));
    }
  }
  return out;
}

std::vector<std::string> gentree_failures(const std::vector<SimuColumn>& columns) {
  std::vector<std::string> out;
  for (const SimuColumn& column : columns) {
    const SimuCell& mine = *column.find("gentree");
    for (const char* name : kOthers) {
      const SimuCell* other = column.find(name);
      if (other == nullptr) continue;
      const bool may_tie = column.network == "ss24" && column.size == kSimuSizes.front() && other->algorithm == "cps";
      const double limit = other->simulated * (may_tie ? 1 + kSame : 1 - kSame);
      if (mine.simulated > limit) out.push_back(comparison(column, mine, *other));
    }
  }
  return out;
}

std::vector<std::string> gentree_plus_failures(const std::vector<SimuColumn>& columns) {
  std::vector<std::string> out;
  for (const SimuColumn& column : columns) {
    const SimuCell& gentree = *column.find("gentree");
    const SimuCell* plus = column.find("gentree+");
    if (plus != nullptr && plus->simulated > gentree.simulated * (1 + kSame)) {
      out.push_back(comparison(column, *plus, gentree));
    }
  }
  return out;
}

std::vector<std::string> impossible_cells(const std::vector<SimuColumn>& columns) {
  std::vector<std::string> out;
  for (const SimuColumn& column : columns) {
    for (const SimuCell& cell : column.cells) {
      if (cell.simulated >= cell.busiest * (1 - kSame)) continue;
      out.push_back(fmt::format("{}: {} takes {}, but its busiest link or server needs {}", place(column), cell.plan,
                                format_seconds(cell.simulated), format_seconds(cell.busiest)));
    }
  }
  return out;
}

}  // namespace gar::cli
