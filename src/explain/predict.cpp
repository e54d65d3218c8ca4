// Who wins over whom, and where a choice changes, in words.
#include <fmt/format.h>

#include <algorithm>

#include "gar/explain.hpp"
#include "gar/format.hpp"

namespace gar {

namespace {

// "A up to x, B up to y, C above", where B is what is best where it was asked, and A or C may be missing. What is best
// from y on is not best up to y where there are only whole numbers, a `step` apart.
template <class Show>
std::string choices(const Flips& flips, const std::string& here, double step, const Show& show) {
  std::string out;
  if (flips.below) out += fmt::format("{} up to {}, ", flips.below->algorithm, show(flips.below->at));
  if (flips.above)
    return out + fmt::format("{} up to {}, {} above", here, show(flips.above->at - step), flips.above->algorithm);
  return out + fmt::format("{} above", here);
}

bool is_same_everywhere(const Flips& flips) { return !flips.below && !flips.above; }

}  // namespace

Contestant contestant_of(const PredictRow& row) { return {row.algorithm(), row.best_terms(), row.best_chunks()}; }

const PredictRow* rival_of(const std::vector<PredictRow>& rows) {
  constexpr double kNearlyEqual = 1.002;  // of two algorithms: chunks are counted to a thousandth
  if (rows.empty()) return nullptr;
  const double best = rows.front().best_seconds();
  const auto found = std::find_if(rows.begin() + 1, rows.end(),
                                  [&](const PredictRow& row) { return row.best_seconds() > best * kNearlyEqual; });
  return found == rows.end() ? nullptr : &*found;
}

std::string size_words(const Flips& flips, const std::string& here) {
  if (is_same_everywhere(flips)) {
    return fmt::format("{} at every size from {} to {}", here, format_bytes(4 * flips.searched_from),
                       format_bytes(4 * flips.searched_to));
  }
  return choices(flips, here, 0, [](double floats) { return format_bytes(4 * floats); });
}

std::string rank_words(const Topology& topology, const PredictAnswer& answer) {
  if (answer.rank_flips && answer.rank_flips->searched_from < answer.rank_flips->searched_to) {
    const Flips& flips = *answer.rank_flips;
    const std::string here = answer.flat_best.substr(0, answer.flat_best.find(':'));
    if (is_same_everywhere(flips)) {
      return fmt::format("{} for {:.4g} to {:.4g} servers", here, flips.searched_from, flips.searched_to);
    }
    return choices(flips, here, 1, [](double ranks) { return fmt::format("{:.4g} servers", ranks); });
  }
  if (servers_per_switch(topology) == 0) return "not varied, because the lowest switches differ";
  return answer.rank_flips ? "not varied for so many servers"
                           : "not varied, for the factors fit this number of servers only";
}

}  // namespace gar
