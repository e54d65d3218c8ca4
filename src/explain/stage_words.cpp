// Where the time of a plan goes, in words.
#include <fmt/format.h>

#include "gar/explain.hpp"

namespace gar {

std::string_view phase_word(bool is_explicit, bool is_exchange, bool is_gather) {
  if (is_explicit) return "step";
  if (is_exchange) return "exchange";
  return is_gather ? "all-gather" : "reduce-scatter";
}

std::string stage_words(const StageCost& stage, double size_floats, bool is_explicit) {
  const Terms t = stage.at(size_floats);
  const double link = t.beta + t.epsilon;
  std::string incast;
  if (t.epsilon > 0) {
    incast = fmt::format("; more than the threshold of {:g}, so incast is {} of that", stage.incast_threshold,
                         format_percent(t.epsilon / link));
  }
  std::string calculation;
  if (t.gamma + t.delta > 0) {
    calculation =
        fmt::format("; then reductions of {} operands, {}", stage.fan_in, format_seconds(t.gamma + t.delta, 3));
  }
  std::string handling;
  if (t.mu > 0) handling = fmt::format("; handling the messages, {}", format_seconds(t.mu, 3));
  const char* half = is_explicit         ? "explicit"
                     : stage.is_exchange ? "no AllGather follows"
                     : stage.is_gather   ? "AllGather"
                                         : "ReduceScatter";
  const std::string steps = stage.num_steps > 1 ? fmt::format(" in each of {} steps", stage.num_steps) : "";
  return fmt::format("{} ({}): {} of latency; the {} carries {} of the vector{} from {} sender{} in {}{}{}{}",
                     stage.label, half, format_seconds(t.alpha, 3), stage.link, format_percent(stage.volume), steps,
                     stage.senders, stage.senders == 1 ? "" : "s", format_seconds(link, 3), incast, calculation,
                     handling);
}

}  // namespace gar
