// The checks of the reproduction of Table `tab:gentreesimu`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "apps/gar/cli/output.hpp"
#include "apps/gar/reproduce/gentreesimu.hpp"
#include "apps/gar/reproduce/gentreesimu_laws.hpp"

namespace gar::cli {
namespace {

constexpr std::array<const char*, 4> kOthers{"gentree-norearrange", "ring", "cps", "rhd"};  // in the table

struct GroupLimits {
  const char* what;
  std::string_view network;    // how its name begins
  std::string_view algorithm;  // empty: all
  double least;
  double most;
};

// The first one that fits counts. Simulated over paper.
constexpr GroupLimits kGroups[] = {
    {"one switch", "ss", "", 0.96, 1.01},
    {"gentree on sym384 and sym512", "sym", "gentree", 0.35, 0.66},
    {"cps on sym384 and sym512", "sym", "cps", 0.54, 0.64},
    {"ring on sym384 and sym512", "sym", "ring", 2.8, 6.0},
    {"rhd on sym512", "sym", "rhd", 0.39, 0.70},
    {"gentree on asy384", "asy", "gentree", 0.38, 0.55},
    {"cps on asy384", "asy", "cps", 0.72, 0.81},
    {"ring on asy384", "asy", "ring", 2.4, 5.3},
    {"gentree and gentree-norearrange on cdc384", "cdc", "gentree", 0.08, 0.24},
    {"cps on cdc384", "cdc", "cps", 3.0, 3.15},
    {"ring on cdc384", "cdc", "ring", 0.37, 1.9},
};

const GroupLimits* group_of(const SimuColumn& column, const SimuCell& cell) {
  const auto* const it = std::find_if(std::begin(kGroups), std::end(kGroups), [&](const GroupLimits& group) {
    const bool is_variant = group.algorithm == "gentree" && cell.algorithm == "gentree-norearrange";
    return std::string_view(column.network).starts_with(group.network) &&
           (group.algorithm.empty() || group.algorithm == cell.algorithm || is_variant);
  });
  return it == std::end(kGroups) ? nullptr : it;
}

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

std::vector<SimulatedGroup> simulated_groups(const std::vector<SimuColumn>& columns) {
  std::vector<SimulatedGroup> out;
  for (const GroupLimits& limits : kGroups) {
    SimulatedGroup group{limits.what, limits.network == "ss", limits.least, limits.most, 0, 0, 0};
    for (const SimuColumn& column : columns) {
      for (const SimuCell& cell : column.cells) {
        if (!cell.paper || group_of(column, cell) != &limits) continue;
        const double ratio = cell.simulated / *cell.paper;
        group.seen_least = group.cells == 0 ? ratio : std::min(group.seen_least, ratio);
        group.seen_most = std::max(group.seen_most, ratio);
        ++group.cells;
      }
    }
    out.push_back(std::move(group));
  }
  return out;
}

std::vector<std::string> simulated_failures(const std::vector<SimuColumn>& columns) {
  std::vector<std::string> out;
  for (const SimuColumn& column : columns) {
    for (const SimuCell& cell : column.cells) {
      const GroupLimits* const limits = group_of(column, cell);
      if (!cell.paper || limits == nullptr) continue;
      const double ratio = cell.simulated / *cell.paper;
      if (ratio >= limits->least && ratio <= limits->most) continue;
      out.push_back(fmt::format(
          "{}: {} takes {}, which is {:.3f} times the paper's {:.3f} s; expected {:g} to {:g} times", place(column),
          cell.plan, format_seconds(cell.simulated), ratio, *cell.paper, limits->least, limits->most));
    }
  }
  return out;
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
