// Small explicit plans, written message by message.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "gar/plan.hpp"

namespace gar::test {

/// A plan in which nobody does anything yet.
inline Plan idle_plan(std::int64_t num_ranks, std::int64_t num_units, std::int64_t count = 0) {
  Plan plan;
  plan.algorithm = "by hand";
  plan.num_ranks = num_ranks;
  plan.num_units = num_units;
  plan.count = count;
  plan.programs.resize(static_cast<std::size_t>(num_ranks));
  return plan;
}

/// The step with this number in a rank's program; made when it is not there.
inline Step& step_of(Plan& plan, std::int64_t rank, std::int64_t number) {
  auto& steps = plan.programs[static_cast<std::size_t>(rank)].steps;
  auto it = std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return s.number >= number; });
  if (it == steps.end() || it->number != number) it = steps.insert(it, Step{number, {}, {}});
  return *it;
}

/// Puts a message at its place in a list.
inline void insert_sorted(std::vector<Message>& list, const Message& message) {
  const auto key = [](const Message& m) { return std::tuple(m.peer, m.begin, m.end); };
  const auto at = std::find_if(list.begin(), list.end(), [&](const Message& m) { return key(message) < key(m); });
  list.insert(at, message);
}

/// A message between two ranks, on both sides.
struct Transfer {
  std::int64_t step = 0;
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool accumulate = false;
};

inline void add_send(Plan& plan, const Transfer& t) {
  insert_sorted(step_of(plan, t.from, t.step).sends, {t.to, false, t.begin, t.end});
}
inline void add_receive(Plan& plan, const Transfer& t) {
  insert_sorted(step_of(plan, t.to, t.step).recvs, {t.from, t.accumulate, t.begin, t.end});
}
inline void add_transfer(Plan& plan, const Transfer& t) {
  add_send(plan, t);
  add_receive(plan, t);
}

/// A plan made of transfers.
inline Plan plan_of(std::int64_t num_ranks, std::int64_t num_units, const std::vector<Transfer>& transfers,
                    std::int64_t count = 0) {
  Plan plan = idle_plan(num_ranks, num_units, count);
  for (const Transfer& t : transfers) add_transfer(plan, t);
  return plan;
}

}  // namespace gar::test
