// Max-min fair rates straight from their definition, slowly: the oracle for the simulator's rates.
//
// Water filling: of all links, the one that gives its open flows the least each is the tightest. Its open flows get
// that rate, what they take is subtracted from the other links that they cross, and so on until all flows have a rate.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace gar::test {

/// A link of a flow's path, and how often the flow crosses it: a flow may stand for several.
struct Crossed {
  std::size_t link = 0;
  double times = 1;
};

/// The rate of every flow. Where nothing limits a flow it is infinite.
inline std::vector<double> water_filling(std::vector<double> capacities,
                                         const std::vector<std::vector<Crossed>>& paths) {
  constexpr double kForever = std::numeric_limits<double>::infinity();
  std::vector<double> rates(paths.size(), kForever);
  std::vector<std::size_t> open(paths.size());
  for (std::size_t f = 0; f < paths.size(); ++f) open[f] = f;
  while (!open.empty()) {
    std::vector<double> crossings(capacities.size(), 0);
    for (const std::size_t f : open) {
      for (const Crossed& c : paths[f]) crossings[c.link] += c.times;
    }
    std::size_t tightest = 0;
    double least = kForever;
    for (std::size_t l = 0; l < capacities.size(); ++l) {
      const double each = crossings[l] > 0 ? capacities[l] / crossings[l] : kForever;
      if (each < least) {
        least = each;
        tightest = l;
      }
    }
    if (least == kForever) break;
    std::erase_if(open, [&](std::size_t f) {
      const bool crosses =
          std::any_of(paths[f].begin(), paths[f].end(), [&](const Crossed& c) { return c.link == tightest; });
      if (!crosses) return false;
      rates[f] = least;
      for (const Crossed& c : paths[f]) capacities[c.link] = std::max(capacities[c.link] - c.times * least, 0.0);
      return true;
    });
  }
  return rates;
}

}  // namespace gar::test
