#include "sim/engine/path_recorder.hpp"

#include <algorithm>

namespace gar::sim {

Terms Hop::terms() const {
  const double transfer = link == kNone ? 0 : received - begin - latency;
  const double calculation = end - received;
  return {latency, transfer - incast, calculation * gamma_share, calculation * (1 - gamma_share), incast};
}

std::vector<Hop> PathRecorder::hops() const {
  std::vector<Hop> out;
  for (std::uint32_t i = last_.hop; i != kNone; i = hops_[i].previous) out.push_back(hops_[i]);
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace gar::sim
