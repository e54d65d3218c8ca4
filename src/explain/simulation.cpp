// Simulations in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "gar/explain_simulation.hpp"
#include "gar/format.hpp"

namespace gar {
namespace {

// "the link of rack3", "the uplink of rack3", "the link of rank 5"
std::string link_words(const Condition& c) {
  const bool is_rank = c.name.find_first_not_of("0123456789") == std::string::npos;
  return fmt::format("the {} of {}{}",
                     c.up && c.down ? "link"
                     : c.up         ? "uplink"
                                    : "downlink",
                     is_rank ? "rank " : "", c.name);
}

std::string condition_words(const Condition& c) {
  switch (c.kind) {
    case Condition::Kind::kSlow: {
      const bool is_rank = c.name.find_first_not_of("0123456789") == std::string::npos;
      return fmt::format("calculation of {}{} takes {:g} times as long", is_rank ? "rank " : "", c.name, c.value);
    }
    case Condition::Kind::kDegrade:
      return fmt::format("{} has {:.4g}% of its capacity", link_words(c), 100 * c.value);
    case Condition::Kind::kFail:
      return fmt::format("{} has failed", link_words(c));
    case Condition::Kind::kBackground:
      break;
  }
  return fmt::format("other traffic takes {:.4g}% of {}", 100 * c.value, link_words(c));
}

}  // namespace

std::string difference_words(double simulated_s, double predicted_s) {
  if (predicted_s == 0) return simulated_s == 0 ? "as long" : "longer than nothing";
  const double relative = simulated_s / predicted_s - 1;
  if (std::abs(relative) < 5e-4) return "as long";
  return fmt::format("{} {}", format_percent(std::abs(relative)), relative > 0 ? "longer" : "less");
}

std::string bottleneck_words(const Topology& topology, const StageUse& stage, bool has_chunks) {
  const double time = stage.end - stage.begin;
  if (time <= 0) return "";
  const double busy = stage.busy_seconds / time;
  const double calculation = stage.calculation_seconds / time;
  std::string link;
  if (stage.busy_seconds > 0) {
    link = fmt::format("{}, {:.0f}% {}", link_name(topology, stage.busiest), 100 * busy,
                       has_chunks ? "of the stage" : "busy");
    const double incast = stage.incast_seconds / stage.busy_seconds;
    if (incast >= 0.005) link += fmt::format(", incast {:.0f}% of it", 100 * incast);
  }
  std::vector<std::string> words;
  if (std::max(busy, calculation) < 0.5 && !has_chunks) words.emplace_back("latency and waiting");
  if (calculation > busy) words.push_back(fmt::format("calculation, {:.0f}%", 100 * calculation));
  if (!link.empty()) words.push_back(link);
  return fmt::format("{}", fmt::join(words, "; "));
}

std::string waiting_words(const Topology& topology, const PathPart& part) {
  std::vector<std::pair<double, std::string>> list;
  const Terms& t = part.terms;
  const double link = t.beta + t.epsilon;
  const double calculation = t.gamma + t.delta;
  if (link > 0) {
    std::string words = fmt::format("{} on ", format_seconds(link, 3));
    words += part.has_message ? "the " + link_name(topology, part.link) : "links";
    if (part.num_links > 1) {
      words += fmt::format(" and {} other{}", part.num_links - 1, part.num_links == 2 ? "" : "s");
    }
    if (t.epsilon >= 0.005 * link) words += fmt::format(", {:.0f}% of it incast", 100 * t.epsilon / link);
    list.emplace_back(link, words);
  }
  if (t.alpha > 0) list.emplace_back(t.alpha, fmt::format("{} of latency", format_seconds(t.alpha, 3)));
  if (calculation > 0) list.emplace_back(calculation, fmt::format("{} reducing", format_seconds(calculation, 3)));
  if (t.mu > 0) list.emplace_back(t.mu, fmt::format("{} handling messages", format_seconds(t.mu, 3)));
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (const auto& [seconds, words] : list) {
    if (seconds < 0.005 * t.total()) continue;
    out += out.empty() ? "" : "; ";
    out += words;
  }
  return out;
}

std::vector<std::string> what_if_words(const WhatIf& what_if) {
  std::vector<std::string> out;
  for (const Condition& c : what_if.conditions) out.push_back(condition_words(c));
  if (what_if.jitter > 0) out.push_back(fmt::format("jitter of {:.4g}%, seed {}", 100 * what_if.jitter, what_if.seed));
  return out;
}

}  // namespace gar
