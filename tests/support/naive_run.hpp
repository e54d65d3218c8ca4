// The oracle of the verifier's tests: runs explicit programs on counts of contributions, the plain way.
//
// counts[rank][block][c] says how often the contribution of rank c is in what `rank` holds of `block`. Everything is
// recomputed for every step from a copy of the whole state; nothing is shared with the verifier.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "gar/plan.hpp"

namespace gar::test {

/// Why a plan is right or wrong.
enum class Outcome { kRight, kWrongResult, kUnmatched, kAmbiguous };

class NaiveRun {
 public:
  explicit NaiveRun(const Plan& plan) : plan_(plan) {}

  Outcome run() {
    if (!messages_match()) return Outcome::kUnmatched;
    cut();
    const auto n = static_cast<std::size_t>(plan_.num_ranks);
    Counts start(n, std::vector<std::vector<std::int64_t>>(blocks_.size(), std::vector<std::int64_t>(n, 0)));
    for (std::size_t r = 0; r < n; ++r)
      for (auto& block : start[r]) block[r] = 1;
    counts_ = start;
    std::set<std::int64_t> numbers;
    for (const RankProgram& program : plan_.programs)
      for (const Step& step : program.steps) numbers.insert(step.number);
    for (const std::int64_t number : numbers)
      if (!run_step(number)) return Outcome::kAmbiguous;
    return is_right() ? Outcome::kRight : Outcome::kWrongResult;
  }

 private:
  using Counts = std::vector<std::vector<std::vector<std::int64_t>>>;

  bool messages_match() const {
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>, int> balance;
    for (std::int64_t r = 0; r < plan_.num_ranks; ++r)
      for (const Step& step : plan_.programs[static_cast<std::size_t>(r)].steps) {
        for (const Message& m : step.sends) ++balance[{step.number, r, m.peer, m.begin, m.end}];
        for (const Message& m : step.recvs) --balance[{step.number, m.peer, r, m.begin, m.end}];
      }
    for (const auto& [message, sent_minus_received] : balance)
      if (sent_minus_received != 0) return false;
    return true;
  }

  // The vector, cut wherever a message or a rank's own block begins or ends.
  void cut() {
    std::set<std::int64_t> ends{0, plan_.num_units};
    for (const RankProgram& program : plan_.programs)
      for (const Step& step : program.steps)
        for (const auto* list : {&step.sends, &step.recvs})
          for (const Message& m : *list) ends.insert({m.begin, m.end});
    if (plan_.collective != Collective::kAllReduce)
      for (std::int64_t r = 0; r < plan_.num_ranks; ++r) ends.insert(r * plan_.num_units / plan_.num_ranks);
    for (auto it = ends.begin(); std::next(it) != ends.end(); ++it) blocks_.push_back({*it, *std::next(it)});
  }

  bool run_step(std::int64_t number) {
    const Counts before = counts_;
    for (std::size_t r = 0; r < counts_.size(); ++r) {
      for (const Step& step : plan_.programs[r].steps) {
        if (step.number != number) continue;
        for (std::size_t b = 0; b < blocks_.size(); ++b)
          if (!receive(before, step, r, b)) return false;
      }
    }
    return true;
  }

  bool receive(const Counts& before, const Step& step, std::size_t rank, std::size_t block) {
    int adding = 0;
    int replacing = 0;
    std::vector<std::int64_t> sum(counts_.size(), 0);
    for (const Message& m : step.recvs) {
      if (m.begin > blocks_[block].begin || m.end < blocks_[block].end) continue;
      ++(m.accumulate ? adding : replacing);
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += before[static_cast<std::size_t>(m.peer)][block][c];
    }
    if (adding == 0 && replacing == 0) return true;
    if (adding > 0 && replacing > 0) return false;
    if (adding > 0)
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += before[rank][block][c];
    counts_[rank][block] = sum;
    return true;
  }

  bool is_right() const {
    for (std::size_t r = 0; r < counts_.size(); ++r) {
      for (std::size_t b = 0; b < blocks_.size(); ++b) {
        const std::int64_t owner = blocks_[b].begin * plan_.num_ranks / plan_.num_units;
        if (plan_.collective == Collective::kReduceScatter && owner != static_cast<std::int64_t>(r)) continue;
        for (std::size_t c = 0; c < counts_.size(); ++c) {
          const bool wanted = plan_.collective != Collective::kAllGather || owner == static_cast<std::int64_t>(c);
          if (counts_[r][b][c] != (wanted ? 1 : 0)) return false;
        }
      }
    }
    return true;
  }

  const Plan& plan_;
  std::vector<Interval> blocks_;
  Counts counts_;
};

/// Precondition: an explicit plan whose messages name existing peers and non-empty intervals of the vector, and
/// products of ranks and units that fit into 64 bits.
inline Outcome naive_outcome(const Plan& plan) { return NaiveRun(plan).run(); }

}  // namespace gar::test
