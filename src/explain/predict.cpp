// Who wins over whom, and where a choice changes, in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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

// "; but rhd at 16, 32, 64 servers (powers of two)"; nothing where there are no exceptions.
std::string exception_words(const std::vector<Flip>& exceptions) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // in the order of the numbers
  for (const Flip& flip : exceptions) {
    const auto known =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == flip.algorithm; });
    auto& group = known == groups.end() ? groups.emplace_back(flip.algorithm, std::vector<std::string>{}) : *known;
    group.second.push_back(fmt::format("{:.0f}", flip.at));
  }
  std::vector<std::string> words;
  for (const auto& [algorithm, numbers] : groups) {
    words.push_back(fmt::format("{} at {}", algorithm, fmt::join(numbers, ", ")));
  }
  if (words.empty()) return "";
  return fmt::format("; but {} servers ({})", fmt::join(words, "; "),
                     exceptions.size() == 1 ? "a power of two" : "powers of two");
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
    const std::string but = exception_words(flips.exceptions);
    if (is_same_everywhere(flips)) {
      return fmt::format("{} for {:.4g} to {:.4g} servers{}", flips.around, flips.searched_from, flips.searched_to,
                         but);
    }
    const std::string ranges =
        choices(flips, flips.around, 1, [](double ranks) { return fmt::format("{:.4g} servers", ranks); });
    return fmt::format("{}{}", ranges, but);
  }
  if (servers_per_switch(topology) == 0) return "not varied, because the lowest switches differ";
  return answer.rank_flips ? "not varied for so many servers"
                           : "not varied, for the factors fit this number of servers only";
}

}  // namespace gar
