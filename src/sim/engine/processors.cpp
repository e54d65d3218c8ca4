#include "sim/engine/processors.hpp"

#include <algorithm>

#include "sim/engine/time.hpp"

namespace gar::sim {

namespace {

constexpr auto kEndsLater = [](const auto& a, const auto& b) {
  return a.end != b.end ? a.end > b.end : a.number > b.number;
};

}  // namespace

void Processors::update(Processor& processor, double now) {
  if (!processor.running.empty()) {
    processor.progress += (now - processor.updated_at) / static_cast<double>(processor.running.size());
  }
  processor.updated_at = now;
}

Processors::Next Processors::next(Processor& processor, double now) {
  ++processor.version;
  if (processor.running.empty()) return {.time = kNever, .version = processor.version};
  const double left = std::max(processor.running.front().end - processor.progress, 0.0);
  return {.time = now + left * static_cast<double>(processor.running.size()), .version = processor.version};
}

Processors::Next Processors::add(std::uint32_t rank, std::uint32_t step, double seconds, double now) {
  Processor& processor = processors_[rank];
  update(processor, now);
  if (processor.running.empty()) processor.progress = 0;  // small numbers keep their digits
  processor.running.push_back({.end = processor.progress + seconds, .number = processor.num_begun++, .step = step});
  std::push_heap(processor.running.begin(), processor.running.end(), kEndsLater);
  return next(processor, now);
}

Processors::Next Processors::end(std::uint32_t rank, double now, std::vector<std::uint32_t>& ended) {
  Processor& processor = processors_[rank];
  update(processor, now);
  ended_.clear();
  while (!processor.running.empty() && processor.running.front().end - processor.progress <= now * kDoneTime) {
    std::pop_heap(processor.running.begin(), processor.running.end(), kEndsLater);
    ended_.push_back(processor.running.back());
    processor.running.pop_back();
  }
  std::sort(ended_.begin(), ended_.end(),
            [](const Calculation& a, const Calculation& b) { return a.number < b.number; });
  ended.clear();
  for (const Calculation& calculation : ended_) ended.push_back(calculation.step);
  return next(processor, now);
}

}  // namespace gar::sim
