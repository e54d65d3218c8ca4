// What ranks threw, for people: equal messages once.
#pragma once

#include <string>
#include <vector>

#include "gar/measure/launch.hpp"

namespace gar::measure {

struct RankFailure {
  int rank = 0;
  std::string message;
};
/// In the order given: one line for every message, with the ranks that it is about unless these are all.
void report_failures(const std::vector<RankFailure>& failures, int num_ranks, const Report& report);

}  // namespace gar::measure
