#include "sim/engine/path_recorder.hpp"

#include <algorithm>

namespace gar::sim {

Terms Hop::terms() const {
  const double transfer = link == kNone ? 0 : received - begin - latency;
  const double calculation = end - received;
  return {latency, transfer - incast, calculation * gamma_share, calculation * (1 - gamma_share), incast};
}

PathEnd PathRecorder::add(const Terms& terms, const Hop& hop) {
  if (!keeps_hops_) return {.terms = terms, .hop = kNone};
  hops_.push_back(hop);
  return {.terms = terms, .hop = static_cast<std::uint32_t>(hops_.size() - 1)};
}

void PathRecorder::note_end(const PathEnd& path, double now) {
  if (now < last_time_) return;
  last_time_ = now;
  last_ = path;
}

std::vector<Hop> PathRecorder::hops() const {
  std::vector<Hop> out;
  for (std::uint32_t i = last_.hop; i != kNone; i = hops_[i].previous) out.push_back(hops_[i]);
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace gar::sim
