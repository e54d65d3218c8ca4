#include "sim/engine/processors.hpp"

#include <algorithm>

#include "sim/engine/time.hpp"

namespace gar::sim {

void Processors::update(Processor& processor, double now) {
  if (processor.count > 0) {
    const double each = (now - processor.updated_at) / processor.count;
    for (std::uint32_t i = processor.newest; i != kNone; i = calculations_[i].older) {
      calculations_[i].seconds_left -= each;
    }
  }
  processor.updated_at = now;
}

Processors::Next Processors::next(Processor& processor, double now) {
  ++processor.version;
  if (processor.count == 0) return {.time = kNever, .version = processor.version};
  double least = kNever;
  for (std::uint32_t i = processor.newest; i != kNone; i = calculations_[i].older) {
    least = std::min(least, calculations_[i].seconds_left);
  }
  return {.time = now + std::max(least, 0.0) * processor.count, .version = processor.version};
}

Processors::Next Processors::add(std::uint32_t rank, std::uint32_t step, double seconds, double now) {
  Processor& processor = processors_[rank];
  update(processor, now);
  if (step >= calculations_.size()) calculations_.resize(step + 1);
  calculations_[step] = {.seconds_left = seconds, .older = processor.newest};
  processor.newest = step;
  ++processor.count;
  return next(processor, now);
}

Processors::Next Processors::end(std::uint32_t rank, double now, std::vector<std::uint32_t>& ended) {
  Processor& processor = processors_[rank];
  update(processor, now);
  ended.clear();
  for (std::uint32_t* at = &processor.newest; *at != kNone;) {
    Calculation& calculation = calculations_[*at];
    if (calculation.seconds_left > now * kDoneTime) {
      at = &calculation.older;
      continue;
    }
    ended.push_back(*at);
    *at = calculation.older;
    --processor.count;
  }
  std::reverse(ended.begin(), ended.end());
  return next(processor, now);
}

}  // namespace gar::sim
