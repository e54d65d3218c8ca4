// Random single mutations of explicit plans. Messages stay well formed (peers exist, intervals are not empty, lists are
// sorted), so that what a mutation breaks is the result or the matching, and not the form.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gar/plan.hpp"
#include "support/explicit_plan.hpp"

namespace gar::test {

struct Mutation {
  Plan plan;
  std::string what;
};

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  /// Changes one message of the plan, on one side or on both. Precondition: there is a message.
  Mutation mutate(const Plan& plan) {
    while (true) {
      Mutation out{plan, ""};
      const std::vector<Transfer> all = transfers(plan);
      const Transfer t = all[static_cast<std::size_t>(below(static_cast<std::int64_t>(all.size())))];
      const char* kinds[] = {"drop", "duplicate", "redirect", "shift", "shrink", "flip", "delay"};
      const std::string kind = kinds[below(7)];
      const bool both = kind == "flip" || below(4) != 0;
      const std::optional<Transfer> changed = change(plan, t, kind);
      if (!changed) continue;
      const bool keeps = kind == "duplicate";
      const bool adds = kind != "drop";
      const bool at_sender = both || below(2) == 0;
      const bool at_receiver = both || !at_sender;
      if (at_sender && !keeps) remove(step_of(out.plan, t.from, t.step).sends, {t.to, false, t.begin, t.end});
      if (at_receiver && !keeps) remove(step_of(out.plan, t.to, t.step).recvs, {t.from, t.accumulate, t.begin, t.end});
      if (at_sender && adds) add_send(out.plan, *changed);
      if (at_receiver && adds) add_receive(out.plan, *changed);
      out.what = fmt::format("{} ({}): {} became {}", kind,
                             both        ? "both sides"
                             : at_sender ? "sender"
                                         : "receiver",
                             words(t), adds ? words(*changed) : "nothing");
      return out;
    }
  }

 private:
  std::int64_t below(std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_); }

  static std::vector<Transfer> transfers(const Plan& plan) {
    std::vector<Transfer> out;
    for (std::size_t r = 0; r < plan.programs.size(); ++r)
      for (const Step& step : plan.programs[r].steps)
        for (const Message& m : step.recvs)
          out.push_back({step.number, m.peer, static_cast<std::int32_t>(r), m.begin, m.end, m.accumulate});
    return out;
  }

  std::optional<Transfer> change(const Plan& plan, Transfer t, const std::string& kind) {
    const Transfer old = t;
    if (kind == "flip") t.accumulate = !t.accumulate;
    if (kind == "redirect") (below(2) == 0 ? t.from : t.to) = static_cast<std::int32_t>(below(plan.num_ranks));
    if (kind == "delay") t.step += below(2) == 0 ? 1 : -1;
    if (kind == "shift") {
      const std::int64_t by = (below(2) == 0 ? 1 : -1) * (1 + below(t.end - t.begin));
      t.begin += by;
      t.end += by;
    }
    if (kind == "shrink") {
      if (t.end - t.begin == 1) return std::nullopt;
      const std::int64_t by = 1 + below(t.end - t.begin - 1);
      if (below(2) == 0) {
        t.begin += by;
      } else {
        t.end -= by;
      }
    }
    if (t.from == t.to || t.step < 0 || t.begin < 0 || t.end > plan.num_units) return std::nullopt;
    const bool is_same = t.from == old.from && t.to == old.to && t.step == old.step && t.begin == old.begin &&
                         t.end == old.end && t.accumulate == old.accumulate;
    if (is_same && kind != "drop" && kind != "duplicate") return std::nullopt;
    return t;
  }

  static void remove(std::vector<Message>& list, const Message& message) {
    const auto it = std::find(list.begin(), list.end(), message);
    if (it != list.end()) list.erase(it);
  }

  static std::string words(const Transfer& t) {
    return fmt::format("step {} {}->{} [{},{}){}", t.step, t.from, t.to, t.begin, t.end, t.accumulate ? " +" : "");
  }

  std::mt19937_64 random_;
};

}  // namespace gar::test
