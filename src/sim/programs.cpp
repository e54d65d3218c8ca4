#include "sim/programs.hpp"

#include <algorithm>

#include "gar/errors.hpp"
#include "model/link_loads.hpp"

namespace gar::sim {

Programs::Programs(const Plan& plan)
    : unit_(1.0 / static_cast<double>(plan.num_units)),
      num_units_(plan.num_units),
      is_mirrored_(plan.collective == Collective::kAllReduce && has_halves(plan)) {}

void Programs::merge(const std::vector<Message>& messages, std::uint32_t& num_runs, std::uint32_t& num_flows) {
  const std::size_t begin = runs_.size();
  for (std::size_t i = 0; i < messages.size();) {
    const std::int32_t peer = messages[i].peer;
    std::int64_t units = 0;
    for (; i < messages.size() && messages[i].peer == peer; ++i) units += messages[i].end - messages[i].begin;
    const double part = static_cast<double>(units) * unit_;
    ++num_flows;
    if (runs_.size() > begin && runs_.back().part == part) {
      PeerRun& last = runs_.back();
      if (last.count == 1) last.stride = peer - last.first;
      if (peer == last.first + last.stride * last.count) {
        ++last.count;
        continue;
      }
    }
    runs_.push_back({peer, 1, 1, part});
  }
  num_runs = static_cast<std::uint32_t>(runs_.size() - begin);
}

void Programs::append(const Step& step, std::int64_t repeat) {
  const std::size_t begin = runs_.size();
  SimStep out;
  out.number = step.number;
  out.repeat = repeat;
  out.sends = static_cast<std::uint32_t>(begin);
  merge(step.sends, out.num_send_runs, out.num_sends);
  merge(step.recvs, out.num_recv_runs, out.num_recvs);
  out.sent = out.num_sends;
  out.received = out.num_recvs;
  if (runs_.size() >= std::uint64_t{1} << 32) throw PlanError("the plan has too many messages to simulate");
  const Calculation c = calculation_of(step.recvs, num_units_);
  out.adds = c.adds;
  out.accesses = c.accesses;
  flows_ += static_cast<double>(out.num_sends) * static_cast<double>(repeat);
  if (steps_.size() > first_.back()) {
    SimStep& last = steps_.back();
    const bool is_same =
        last.number + last.repeat == out.number && last.num_send_runs == out.num_send_runs &&
        last.num_recv_runs == out.num_recv_runs && last.adds == out.adds && last.accesses == out.accesses &&
        std::equal(runs_.begin() + static_cast<std::ptrdiff_t>(begin), runs_.end(), runs_.begin() + last.sends);
    if (is_same) {
      last.repeat += repeat;
      runs_.resize(begin);
      return;
    }
  }
  distinct_flows_ += static_cast<double>(out.num_sends);
  steps_.push_back(out);
}

void Programs::add(const PlanIndex& index, std::int64_t rank, WorkMeter& work) {
  const bool ends_with_stored = is_mirrored_ || index.plan().collective == Collective::kReduceScatter;
  if (!index.plan().is_explicit() && !ends_with_stored) {
    scratch_ = index.program(rank);
    repeats_.assign(scratch_.steps.size(), 1);
  } else {
    index.scatter_outline(rank, scratch_, repeats_);
  }
  const auto by_peer = [](const Message& a, const Message& b) { return a.peer < b.peer; };
  for (std::size_t i = 0; i < scratch_.steps.size(); ++i) {
    Step& step = scratch_.steps[i];
    work.spend(static_cast<double>(step.sends.size()));
    for (std::vector<Message>* messages : {&step.sends, &step.recvs}) {
      if (!std::is_sorted(messages->begin(), messages->end(), by_peer)) {
        std::stable_sort(messages->begin(), messages->end(), by_peer);
      }
    }
    append(step, repeats_[i]);
  }
  std::int64_t length = 0;
  for (std::uint64_t k = first_.back(); k < steps_.size(); ++k) length += steps_[k].repeat;
  length_.push_back(length);
  first_.push_back(steps_.size());
}

}  // namespace gar::sim
