// Costs as JSON.
#include "apps/gar/views/terms.hpp"

namespace gar::cli {

Json terms_json(const Terms& terms) {
  Json j;
  j["alpha"] = terms.alpha;
  j["beta"] = terms.beta;
  j["gamma"] = terms.gamma;
  j["delta"] = terms.delta;
  j["epsilon"] = terms.epsilon;
  return j;
}

Json stage_json(const StageCost& stage, double size_floats) {
  const Terms t = stage.at(size_floats);
  Json j;
  j["half"] = stage.is_gather ? "all_gather" : "reduce_scatter";
  j["what"] = stage.label;
  j["steps"] = stage.num_steps;
  j["seconds"] = t.total();
  j["terms"] = terms_json(t);
  j["fan_in"] = stage.fan_in;
  j["busiest_link"] = stage.link;
  j["senders"] = stage.senders;
  j["incast_threshold"] = stage.incast_threshold;
  j["volume_fraction"] = stage.volume;
  return j;
}

}  // namespace gar::cli
