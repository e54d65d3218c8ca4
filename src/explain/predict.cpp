// Where a choice changes, in words.
#include <fmt/format.h>

#include "gar/explain.hpp"

namespace gar {

std::string flip_words(const Flips& flips, const std::string& unit, double scale, const std::string& here) {
  const auto number = [&](double x) { return fmt::format("{:.4g}", x * scale); };
  std::string out;
  if (flips.below) {
    out += fmt::format("{} up to {} {}", flips.below->algorithm, number(flips.below->at), unit);
  }
  if (flips.above) {
    out +=
        fmt::format("{}{} from {} {}", out.empty() ? "" : "; ", flips.above->algorithm, number(flips.above->at), unit);
  }
  if (out.empty()) {
    return fmt::format("{} stays best from {} to {} {}", here, number(flips.searched_from), number(flips.searched_to),
                       unit);
  }
  return out;
}

std::string rank_words(const Topology& topology, const PredictAnswer& answer) {
  if (answer.rank_flips && answer.rank_flips->searched_from < answer.rank_flips->searched_to) {
    return flip_words(*answer.rank_flips, "servers", 1, answer.flat_best.substr(0, answer.flat_best.find(':')));
  }
  if (servers_per_switch(topology) == 0) return "not varied, for the lowest switches differ";
  return answer.rank_flips ? "not varied for so many servers"
                           : "not varied, for the factors fit this number of servers only";
}

}  // namespace gar
