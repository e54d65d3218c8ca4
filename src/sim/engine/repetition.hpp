// Equal steps that follow each other, as those of a ring: when all ranks have done one of them together, the others
// take just as long and do the same to every link, so they are not simulated.
//
// A *standstill* is a moment at which all ranks stand before a step and nothing is under way. What happens between two
// of them depends only on the steps, so it repeats itself as often as the steps do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/engine/flows.hpp"
#include "sim/engine/job.hpp"
#include "sim/engine/steps.hpp"

namespace gar::sim {

template <class World>
class Repetition {
 public:
  Repetition(const World& world, Timeline& timeline, Steps<World>& steps, Flows<World>& flows)
      : world_(world), timeline_(timeline), steps_(steps), flows_(flows) {}

  /// Skips steps if they repeat what has happened since the last standstill. Requires one chunk and that nothing is
  /// under way.
  void at_standstill();
  /// Steps of ranks that were skipped.
  [[nodiscard]] std::int64_t num_skipped() const { return num_skipped_; }

 private:
  [[nodiscard]] std::int64_t equal_steps_ahead() const;
  [[nodiscard]] bool is_repetition() const;
  void skip(std::int64_t count);
  void remember();

  const World& world_;
  Timeline& timeline_;
  Steps<World>& steps_;
  Flows<World>& flows_;
  std::int64_t num_skipped_ = 0;

  // The last standstill, if it was before one of several equal steps.
  bool is_known_ = false;
  double time_ = 0;
  double num_delivered_ = 0;
  std::vector<Lane> lanes_;
  std::vector<Terms> paths_;
  std::vector<double> calculation_;
  std::vector<LinkSums> sums_;
  std::vector<LinkAccount> accounts_;
};

template <class World>
void Repetition<World>::at_standstill() {
  const std::int64_t ahead = equal_steps_ahead();
  if (ahead < 2 || steps_.ready().size() != world_.num_ranks()) {
    is_known_ = false;
  } else if (is_known_ && is_repetition()) {
    skip(ahead);
    is_known_ = false;
  } else {
    remember();
    is_known_ = true;
  }
}

// The least number of equal steps that a rank has before it.
template <class World>
std::int64_t Repetition<World>::equal_steps_ahead() const {
  std::int64_t ahead = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t rank = 0; rank < world_.num_ranks(); ++rank) {
    const Lane& lane = steps_.lanes()[rank];
    if (lane.num_finished == world_.length(rank)) return 0;
    ahead = std::min(ahead, world_.step(lane.program_step).repeat - lane.repetition);
  }
  return ahead;
}

// Have all ranks done one of several equal steps since the last standstill?
template <class World>
bool Repetition<World>::is_repetition() const {
  for (std::uint32_t rank = 0; rank < world_.num_ranks(); ++rank) {
    const Lane& lane = steps_.lanes()[rank];
    const bool has_done_one = lane.repetition > 0 && lane.program_step == lanes_[rank].program_step &&
                              lane.num_finished == lanes_[rank].num_finished + 1;
    if (!has_done_one) return false;
  }
  return true;
}

template <class World>
void Repetition<World>::skip(std::int64_t count) {
  const auto times = static_cast<double>(count);
  const double elapsed = timeline_.now - time_;
  timeline_.now += times * elapsed;
  flows_.solver().repeat(timeline_.now, times, sums_);
  flows_.ledger().repeat(times, accounts_);
  flows_.add_delivered(times * (flows_.num_delivered() - num_delivered_));
  steps_.skip(count, calculation_, paths_);
  num_skipped_ += count * world_.num_ranks();
}

template <class World>
void Repetition<World>::remember() {
  time_ = timeline_.now;
  num_delivered_ = flows_.num_delivered();
  lanes_ = steps_.lanes();
  paths_.resize(lanes_.size());
  for (const ReadyStep& ready : steps_.ready()) paths_[ready.rank] = ready.path.terms;
  calculation_ = steps_.stage_log().calculation();
  sums_.clear();
  for (LinkIndex link = 0; link < flows_.solver().num_links(); ++link) {
    sums_.push_back(flows_.solver().sums_until_now(link));
  }
  accounts_ = flows_.ledger().accounts();
}

}  // namespace gar::sim
