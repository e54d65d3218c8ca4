// Problem. Given a plan, prove that every rank ends with the sum of every contribution exactly once in every element
// that it must hold, that every message has its partner, and that no execution can get stuck.
//
// Notation. N ranks, U units, M messages. A round is one step number of the whole plan. In a round every rank sends out
// of the state before the round; an element that k receives cover becomes their sum, with the rank's own value when
// they accumulate (fan-in k + 1) and without it otherwise (fan-in k). The AllGather of an AllReduce that is made of
// sub-plans is the mirror image of its ReduceScatter: of T rounds in all, round T - 1 - n sends back what round n
// received. Exchanges, which come between the two, have no mirror image.
//
// No deadlock. Step numbers ascend in every program, and messages match within one number. Take the ranks that have not
// finished, and among them those that wait in the smallest step number n: their partners in n cannot be beyond n (they
// would have finished the exchange) and not before n (n is the smallest), so they are in n as well, all messages of
// n are posted on both sides and n completes. Buffering is nowhere assumed: it holds for synchronous sends too.
//
// Idea. Three things are checked.
//  1. Form, rank by rank: intervals and peers in range, steps ascending, receives of one step that share an element
//     agree on `accumulate`. On the way: volume, fan-in, buffer need.
//  2. Matching: the multisets of (step, from, to, begin, end) over all sends and over all receives are equal. Compared
//     are two sums of keyed 64-bit hashes, or the sorted messages; only when these differ, the culprit is searched for.
//  3. Sums: rank r's contribution becomes a random element x_r of the field of p = 2^61 - 1 elements, the vector is cut
//     at every message end (elementary blocks), and the plan runs on a matrix of ranks x blocks, in batches of columns
//     that bound the memory. A block of an AllReduce must end as the sum of all x_r. The coefficients of a wrong plan
//     have some c_r != 1, and as long as coefficients are below p, the sum of (c_r - 1) x_r is 0 for one in p of all
//     choices of the x_r, whatever else is right or wrong: a second, independent element makes it one in p^2. Where the
//     product of the fan-ins of all rounds does not say that coefficients are small (61 additions in a row could double
//     a value 61 times), exact counts run next to them.
//     ReduceScatter: rank r's own block must end as the sum. AllGather: rank r starts with x_r everywhere, which stands
//     for its block in block r and for rubbish elsewhere; block b must end as x_b on every rank.
//     Exact: instead of x_r a set of one bit in a word of 64, for 64 ranks at a time, and a count. A value with all
//     bits that counts N contributions has each of N ranks exactly once.
//
// Who knows the x_r beforehand can find a wrong plan that passes: of N random numbers some have equal sums. So the
// fingerprints and the keys of the hashes are new in every run (Keys, of a seed of 128 bits). "Random" means spread out
// of the seed by a mixing function, of which nobody can tell without the seed that they are not; it is no cipher. The
// probabilities that are promised, 2^-60 and 2^-120, leave a bit for the rounding of this and for the hashes.
// A wrong block is followed once more on its own, to name the culprit (explain.cpp).
//
// Complexity. O(M) time for 1 and 2; 3 adds one addition per message and elementary block in it. Memory O(N + number
// of blocks) + two bounded buffers (run.cpp); programs are derived rank by rank and not kept.
#include "gar/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "gar/errors.hpp"
#include "plan/verify/internal.hpp"

namespace gar {
namespace verify_detail {

FlatIndex::FlatIndex() { rebuild(6); }

void FlatIndex::rebuild(int bits) {
  slots_.assign(std::size_t{1} << bits, Slot{});
  mask_ = slots_.size() - 1;
  shift_ = 64 - bits;
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    std::size_t i = slot_of(keys_[k]);
    while (slots_[i].index != kEmpty) i = (i + 1) & mask_;
    slots_[i] = {keys_[k], static_cast<std::uint32_t>(k)};
  }
}

void FlatIndex::insert_at(std::size_t slot, std::int64_t key) {
  if (keys_.size() >= kMostKeys) throw PlanError("plan has more than 2^31 - 1 different interval ends or steps");
  slots_[slot] = {key, static_cast<std::uint32_t>(keys_.size())};
  keys_.push_back(key);
  if (4 * keys_.size() > slots_.size()) rebuild(64 - shift_ + 2);
}

void FlatIndex::finish() {
  std::sort(keys_.begin(), keys_.end());
  rebuild(64 - shift_);
}

Programs::Programs(const Plan& plan) : plan_(&plan) {
  if (plan.num_ranks < 1 || plan.num_units < 1 || plan.count < 0)
    throw PlanError(
        fmt::format("plan has {} ranks, {} units and {} elements; expected ranks and units from 1, elements from 0",
                    plan.num_ranks, plan.num_units, plan.count));
  if (plan.collective != Collective::kAllReduce && plan.num_units % plan.num_ranks != 0)
    throw PlanError(fmt::format("{} units cannot be cut into {} equal blocks, one per rank; expected a multiple of {}",
                                plan.num_units, plan.num_ranks, plan.num_ranks));
  if (plan.is_explicit()) {
    if (!plan.subplans.empty()) throw PlanError("plan has both sub-plans and explicit programs; expected one of them");
    if (std::cmp_not_equal(plan.programs.size(), plan.num_ranks))
      throw PlanError(fmt::format("plan has {} ranks but {} programs; expected one program per rank", plan.num_ranks,
                                  plan.programs.size()));
    for (const RankProgram& program : plan.programs)
      for (const Step& step : program.steps) numbers_.insert(step.number);
    numbers_.finish();
    num_rounds_ = numbers_.keys().size();
    const std::int64_t last = numbers_.keys().empty() ? -1 : numbers_.keys().back();
    num_steps_ = last == std::numeric_limits<std::int64_t>::max() ? last : last + 1;
  } else if (!plan.subplans.empty() || plan.num_ranks > 1) {
    index_.emplace(plan);
    num_steps_ = index_->num_steps();
    runs_stored_ = plan.collective != Collective::kAllGather;
    runs_mirror_ = plan.collective != Collective::kReduceScatter;
    num_mirrored_steps_ = index_->num_mirrored_steps();
    num_stored_steps_ = runs_stored_ && runs_mirror_ ? num_steps_ - num_mirrored_steps_ : num_steps_;
    num_rounds_ = static_cast<std::size_t>(num_steps_);
  }
}

std::string Programs::round_name(std::size_t round) const {
  if (!index_) return fmt::format("step {}", numbers_.keys()[round]);
  const bool gathers = !runs_stored_ || static_cast<std::int64_t>(round) >= num_stored_steps_;
  const bool exchanges = !gathers && static_cast<std::int64_t>(round) >= num_mirrored_steps_;
  return fmt::format("step {} ({})", round, gathers ? "AllGather" : exchanges ? "exchange" : "ReduceScatter");
}

namespace {

std::int64_t add_clamped(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

std::int64_t multiply_clamped(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}

/// The first pass: form, matching and the figures of the report.
class Inspector {
 public:
  Inspector(Programs& programs, const Proof& proof, VerifyReport& report)
      : programs_(programs),
        plan_(programs.plan()),
        proof_(proof),
        report_(report),
        sent_(proof.keys),
        received_(proof.keys) {}

  /// False when a problem was found and written to the report.
  bool run(Inspection& out) {
    out.receives_of_round.assign(programs_.num_rounds(), 0);
    fan_in_of_round_.assign(programs_.num_rounds(), 1);
    out.blocks.insert(0);
    out.blocks.insert(plan_.num_units);
    if (plan_.collective != Collective::kAllReduce)
      for (std::int64_t r = 0; r < plan_.num_ranks; ++r) out.blocks.insert(block_of_rank(plan_, r).begin);
    for (rank_ = 0; rank_ < plan_.num_ranks; ++rank_) {
      std::int64_t before = -1;
      for (const Step& step : programs_.stored(rank_).steps) {
        if (!programs_.is_step_number(step.number) || step.number <= before)
          return fail(before < 0
                          ? fmt::format("step number {}; expected from 0", step.number)
                          : fmt::format("step {} comes after step {}; step numbers must ascend", step.number, before));
        before = step.number;
        step_ = step.number;
        if (!inspect_step(step, out)) return false;
      }
    }
    out.blocks.finish();
    // A round multiplies the contributions in a value by its fan-in at most.
    double bits = 0;
    for (const std::int64_t fan_in : fan_in_of_round_) bits += std::log2(static_cast<double>(fan_in));
    out.coefficients_are_small = bits < 60;
    if (proof_.is_exact ? all_matched(programs_, num_stored_) : sent_ == received_) return true;
    report_.problem = explain_unmatched(programs_, proof_.keys);
    return false;
  }

 private:
  bool fail(const std::string& what) {
    report_.problem = fmt::format("rank {}: {}", rank_, what);
    return false;
  }

  bool inspect_step(const Step& step, Inspection& out) {
    if (!check_messages(step.sends, true, out.blocks) || !check_messages(step.recvs, false, out.blocks)) return false;
    if (proof_.is_exact) {
      num_stored_ += std::ssize(step.sends) + std::ssize(step.recvs);
    } else {
      const MessageSet::StepKey key = MessageSet::step_key(proof_.keys, step.number);
      for (const Message& m : step.sends) sent_.add(key, rank_, m.peer, m.begin, m.end);
      for (const Message& m : step.recvs) received_.add(key, m.peer, rank_, m.begin, m.end);
    }
    if (programs_.runs_stored()) {
      round_ = programs_.round_of_stored(step.number);
      out.receives_of_round[round_] += std::ssize(step.recvs);
      if (!measure_receives(step.recvs, false)) return false;
    }
    if (programs_.has_mirror(step.number)) {
      round_ = programs_.round_of_mirror(step.number);
      out.receives_of_round[round_] += std::ssize(step.sends);
      if (!measure_receives(step.sends, true)) return false;
    }
    return true;
  }

  bool check_messages(std::span<const Message> messages, bool is_send, Blocks& blocks) {
    const Message* last = nullptr;
    for (const Message& m : messages) {
      if (m.begin < 0 || m.begin >= m.end || m.end > plan_.num_units || m.peer < 0 || m.peer >= plan_.num_ranks ||
          m.peer == rank_)
        return fail(bad_message(m, is_send));
      if (last != nullptr && (last->peer > m.peer || (last->peer == m.peer && is_after(*last, m))))
        return fail(
            fmt::format("step {}: {} are not sorted by (peer, begin, end)", step_, is_send ? "sends" : "receives"));
      if (last == nullptr || last->end != m.begin) blocks.insert(m.begin);
      if (last == nullptr || last->end != m.end) blocks.insert(m.end);
      last = &m;
    }
    return true;
  }

  static bool is_after(const Message& a, const Message& b) {
    return a.begin > b.begin || (a.begin == b.begin && a.end > b.end);
  }

  std::string bad_message(const Message& m, bool is_send) const {
    const std::string what = fmt::format("step {}: {} rank {}", step_, is_send ? "sends to" : "receives from", m.peer);
    if (m.peer == rank_) return what + ", which is itself";
    if (m.peer < 0 || m.peer >= plan_.num_ranks)
      return fmt::format("{}; there are ranks 0 to {}", what, plan_.num_ranks - 1);
    if (m.begin == m.end) return fmt::format("{} the empty interval of units [{},{})", what, m.begin, m.end);
    return fmt::format("{} units [{},{}); the vector has units [0,{})", what, m.begin, m.end, plan_.num_units);
  }

  /// Fan-in, buffer need and agreement on `accumulate` of the receives of one step.
  bool measure_receives(std::span<const Message> receives, bool is_mirror) {
    if (receives.empty()) return true;
    report_.num_messages += std::ssize(receives);
    bool same = true;
    bool disjoint = true;
    bool any_accumulate = false;
    bool all_accumulate = true;
    std::int64_t volume = 0;
    std::int64_t accumulated = 0;
    for (std::size_t i = 0; i < receives.size(); ++i) {
      const Message& m = receives[i];
      const bool accumulate = m.accumulate && !is_mirror;
      volume = add_clamped(volume, m.end - m.begin);
      if (accumulate) accumulated = add_clamped(accumulated, m.end - m.begin);
      any_accumulate |= accumulate;
      all_accumulate &= accumulate;
      if (i == 0) continue;
      same &= m.begin == receives[0].begin && m.end == receives[0].end;
      disjoint &= m.begin >= receives[i - 1].end;
    }
    report_.volume_units = add_clamped(report_.volume_units, volume);
    if (disjoint) {
      note(any_accumulate ? 2 : 1, accumulated);
    } else if (same && any_accumulate == all_accumulate) {
      note(std::ssize(receives) + (all_accumulate ? 1 : 0), volume);
    } else {
      return sweep_receives(receives, is_mirror);
    }
    return true;
  }

  /// The general case: a sweep over the ends of the intervals.
  bool sweep_receives(std::span<const Message> receives, bool is_mirror) {
    ends_.clear();
    for (const Message& m : receives) {
      const bool accumulate = m.accumulate && !is_mirror;
      ends_.push_back({m.begin, 1, accumulate ? 1 : 0});
      ends_.push_back({m.end, -1, accumulate ? -1 : 0});
    }
    std::sort(ends_.begin(), ends_.end(), [](const End& a, const End& b) { return a.unit < b.unit; });
    std::int64_t cover = 0;
    std::int64_t accumulating = 0;
    std::int64_t buffer = 0;
    std::int64_t fan_in = 0;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      cover += ends_[i].cover;
      accumulating += ends_[i].accumulating;
      if (i + 1 == ends_.size() || ends_[i + 1].unit == ends_[i].unit) continue;
      const Interval segment{ends_[i].unit, ends_[i + 1].unit};
      if (accumulating != 0 && accumulating != cover) return fail(conflict(receives, segment));
      const std::int64_t operands = cover + (accumulating != 0 ? 1 : 0);
      fan_in = std::max(fan_in, operands);
      if (operands > 1) buffer = add_clamped(buffer, multiply_clamped(cover, segment.size()));
    }
    note(fan_in, buffer);
    return true;
  }

  std::string conflict(std::span<const Message> receives, Interval segment) const {
    std::int32_t adds = 0;
    std::int32_t replaces = 0;
    for (const Message& m : receives)
      if (m.begin <= segment.begin && segment.end <= m.end) (m.accumulate ? adds : replaces) = m.peer;
    return fmt::format(
        "step {}: {} from rank {} are added to its own value (accumulate), from rank {} they replace it; receives of "
        "one step that cover the same element must agree",
        step_, describe(plan_, segment), adds, replaces);
  }

  void note(std::int64_t fan_in, std::int64_t buffer) {
    report_.max_fan_in = std::max(report_.max_fan_in, fan_in);
    fan_in_of_round_[round_] = std::max(fan_in_of_round_[round_], fan_in);
    if (buffer > report_.buffer_units) {
      report_.buffer_units = buffer;
      report_.buffer_rank = rank_;
    }
  }

  struct End {
    std::int64_t unit;
    std::int32_t cover;
    std::int32_t accumulating;
  };

  Programs& programs_;
  const Plan& plan_;
  const Proof& proof_;
  VerifyReport& report_;
  std::int64_t num_stored_ = 0;  // sends and receives
  std::int64_t rank_ = 0;
  std::int64_t step_ = 0;
  std::size_t round_ = 0;
  std::vector<std::int64_t> fan_in_of_round_;  // most operands of one reduction
  MessageSet sent_;
  MessageSet received_;
  std::vector<End> ends_;
};

}  // namespace
}  // namespace verify_detail

VerifyReport verify(const Plan& plan, const VerifyOptions& options) {
  if (options.num_elements != 1 && options.num_elements != 2)
    throw InvalidArgument(fmt::format("fingerprints of {} elements; expected 1 or 2", options.num_elements));
  verify_detail::Programs programs(plan);
  VerifyReport report;
  report.num_steps = programs.num_steps();
  report.is_exact =
      options.kind == ProofKind::kExact || (options.kind == ProofKind::kAuto && plan.num_ranks <= kExactRanks);
  const ProofSeed seed = options.seed ? *options.seed : fresh_proof_seed();
  if (!report.is_exact) {
    report.seed = seed;
    report.error_probability = options.num_elements == 1 ? 0x1p-60 : 0x1p-120;
  }
  const verify_detail::Proof proof{verify_detail::Keys(seed), options.num_elements, report.is_exact};
  verify_detail::Inspection inspection;
  if (!verify_detail::Inspector(programs, proof, report).run(inspection)) return report;
  const auto wrong = verify_detail::run_on_contributions(programs, inspection, proof);
  if (wrong) report.problem = verify_detail::explain_wrong_cell(programs, *wrong, proof.keys);
  report.ok = !wrong;
  return report;
}

std::string describe(const Plan& plan, Interval interval) {
  if (plan.count > 0) {
    const std::int64_t begin = element_of_unit(interval.begin, plan.num_units, plan.count);
    const std::int64_t end = element_of_unit(interval.end, plan.num_units, plan.count);
    if (begin < end) return fmt::format("elements [{},{})", begin, end);
  }
  if (interval.begin == 0 && interval.end == plan.num_units) return "the whole vector";
  return fmt::format("units [{},{}) of {}", interval.begin, interval.end, plan.num_units);
}

}  // namespace gar
