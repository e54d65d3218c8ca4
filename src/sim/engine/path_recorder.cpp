#include "sim/engine/path_recorder.hpp"

#include <algorithm>

namespace gar::sim {

Terms Hop::terms() const {
  const double transfer = link == kNone ? 0 : received - begin - sending - latency;
  const double handling = (end - received) * handling_share;
  const double calculation = end - received - handling;
  return {.alpha = latency,
          .beta = transfer - incast,
          .gamma = calculation * gamma_share,
          .delta = calculation * (1 - gamma_share),
          .epsilon = incast,
          .mu = sending + handling};
}

std::vector<Hop> PathRecorder::hops() const {
  std::vector<Hop> out;
  for (std::uint32_t i = last_.hop; i != kNone; i = hops_[i].previous) out.push_back(hops_[i]);
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace gar::sim
