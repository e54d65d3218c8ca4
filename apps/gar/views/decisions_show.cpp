#include "apps/gar/views/decisions_show.hpp"

#include <fmt/format.h>

#include "apps/gar/cli/output.hpp"

namespace gar::cli {
namespace {

constexpr const char* kDecisionLine = "{:>12} {:>18} {:>12} {:>11} {:>11} {:>8}\n";

std::string in_us(double seconds) {
  const double us = 1e6 * seconds;
  return fmt::format("{:.{}f}", us, us < 10 ? 3 : us < 100 ? 2 : us < 1000 ? 1 : 0);
}

/// How many times as fast the winner is as a candidate; "-" where that was not measured.
std::string gain_over(const Decision& decision, const DecisionCandidate* other) {
  const DecisionCandidate* winner = decision.find(decision.winner);
  if (other == nullptr || other->seconds <= 0 || winner == nullptr || winner->seconds <= 0) return "-";
  return fmt::format("{:.2f}x", other->seconds / winner->seconds);
}

std::string candidate_words(const Decision& decision) {
  std::string out;
  for (const DecisionCandidate& candidate : decision.candidates) {
    if (!out.empty()) out += ", ";
    out += candidate.name + " " + (candidate.seconds > 0 ? in_us(candidate.seconds) : "not tried");
  }
  return out;
}

}  // namespace

std::string decisions_head(const DecisionPlace& place) {
  std::string out = fmt::format("AllReduce between {} ranks over {}, network '{}'", place.num_ranks,
                                escaped(place.transport), escaped(place.network));
  if (!place.library.empty()) out += fmt::format("; native is {}", escaped(place.library));
  return out + "\n\n";
}

std::string decisions_titles() {
  return fmt::format(fmt::runtime(kDecisionLine), "bytes from", "winner", "time (us)", "over native", "over model",
                     "looking") +
         labelled("", "candidates in us, the model's choice first");
}

std::string decision_line(const Decision& decision, bool color) {
  const DecisionCandidate* winner = decision.find(decision.winner);
  const double share = decision.seconds > 0 ? 100 * decision.extra_seconds / decision.seconds : 0;
  const std::string name = fmt::format("{:>18}", escaped(decision.winner));
  return fmt::format(fmt::runtime(kDecisionLine), decision.from_bytes, paint(name, Paint::kBold, color),
                     winner != nullptr && winner->seconds > 0 ? in_us(winner->seconds) : "-",
                     gain_over(decision, decision.find("native")), gain_over(decision, &decision.candidates.front()),
                     fmt::format("{:.1f}%", share)) +
         labelled("", candidate_words(decision) + (decision.is_settled ? "" : " (not settled)"));
}

std::string decisions_csv_titles() {
  return csv_line({"from_bytes", "to_bytes", "candidate", "seconds", "wins", "settled"});
}

std::string decision_csv(const Decision& decision) {
  std::string out;
  for (const DecisionCandidate& candidate : decision.candidates) {
    out += csv_line({fmt::to_string(decision.from_bytes), fmt::to_string(decision.to_bytes), candidate.name,
                     candidate.seconds > 0 ? fmt::to_string(candidate.seconds) : "",
                     candidate.name == decision.winner ? "true" : "false", decision.is_settled ? "true" : "false"});
  }
  return out;
}

std::string decisions_report(const Decisions& decisions, const std::string& source, bool color) {
  std::string out = fitted(fmt::format("{}: {}", escaped(source), decisions_head(decisions.place)));
  if (decisions.decisions.empty()) return out + "no decisions\n";
  out += decisions_titles();
  for (const Decision& decision : decisions.decisions) out += decision_line(decision, color);
  return out;
}

}  // namespace gar::cli
