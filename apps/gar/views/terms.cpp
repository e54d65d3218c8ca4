// Costs as JSON.
#include "apps/gar/views/terms.hpp"

namespace gar::cli {

Json terms_json(const Terms& terms) {
  Json j;
  for (const TermInfo& term : kTerms) j[std::string(term.name)] = terms.*term.seconds;
  return j;
}

Json stage_json(const StageCost& stage, double size_floats) {
  const Terms t = stage.at(size_floats);
  Json j;
  j["half"] = to_string(stage.is_gather ? Collective::kAllGather : Collective::kReduceScatter);
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
