// Per-rank programs: what one rank sends and receives, derived from the sub-plans on its way to the root.
//
// The way up: at each sub-plan the rank takes part in the stages of that sub-plan, if it is active there. A digit
// stage costs O(radix), a kPlace stage O((pieces that overlap) * log(pieces)). No other rank's program is built.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "plan/plan_index_impl.hpp"

namespace gar {

namespace {

bool by_peer_and_begin(const Message& a, const Message& b) {
  return a.peer != b.peer ? a.peer < b.peer : a.begin < b.begin;
}

// Calls f(piece) for the pieces of a sorted partition that overlap [begin, end), with the overlap.
template <class Pieces, class PieceOf, class F>
void for_overlaps(const Pieces& pieces, PieceOf piece_of, Interval range, F f) {
  auto it = std::upper_bound(pieces.begin(), pieces.end(), range.begin,
                             [&](std::int64_t b, const auto& p) { return b < piece_of(p).end; });
  for (; it != pieces.end() && piece_of(*it).begin < range.end; ++it) {
    const Piece& p = piece_of(*it);
    f(*it, Interval{std::max(p.begin, range.begin), std::min(p.end, range.end)});
  }
}

}  // namespace

void PlanIndex::Impl::add_digit_steps(SubPlanId id, std::int64_t base, std::int64_t rank, RankProgram& out,
                                      std::vector<std::int64_t>* repeats) const {
  const SubPlanIndex& x = at(id);
  const SubPlan& sp = subplan(id);
  if (x.num_digit_stages == 0) return;
  const std::vector<Interval> held = held_before(id, 0, rank);
  if (held.empty()) return;
  const std::int64_t a = count_before(id, rank);
  Interval range{0, total_size(held)};
  std::int64_t number = x.first_step;
  std::vector<Interval> slice;
  for (std::size_t s = 0; s < x.num_digit_stages; ++s) {
    const Stage& st = sp.stages[s];
    const std::int64_t r = st.radix;
    const std::int64_t d = (a / st.stride) % r;
    const std::int64_t group = a - d * st.stride;
    const auto peer = [&](std::int64_t digit) {
      return static_cast<std::int32_t>(base + rank_before(id, group + digit * st.stride));
    };
    const auto part = [&](std::int64_t p) {
      slice.clear();
      const Interval i = part_of(range.size(), p, r);
      append_slice(held, {range.begin + i.begin, range.begin + i.end}, slice);
    };
    const auto append = [&](std::vector<Message>& to, std::int32_t whom, bool accumulate) {
      for (const Interval& i : slice) to.push_back({whom, accumulate, i.begin, i.end});
    };
    if (st.kind == StageKind::kDirect && r > 1) {
      Step& step = out.steps.emplace_back();
      step.number = number;
      step.sends.reserve(static_cast<std::size_t>(r));
      step.recvs.reserve(static_cast<std::size_t>(r));
      for (std::int64_t p = 0; p < r; ++p) {
        if (p == d) continue;
        part(p);
        append(step.sends, peer(p), false);
      }
      part(d);
      for (std::int64_t p = 0; p < r; ++p) {
        if (p != d) append(step.recvs, peer(p), true);
      }
    } else if (is_exchange(st) && r > 1) {
      Step& step = out.steps.emplace_back();
      step.number = number;
      slice.clear();
      append_slice(held, range, slice);
      for (std::int64_t p = 0; p < r; ++p) {
        if (p == d) continue;
        append(step.sends, peer(p), false);
        append(step.recvs, peer(p), true);
      }
    } else if (st.kind == StageKind::kRing) {
      const std::int32_t next = peer((d + 1) % r);
      const std::int32_t previous = peer((d + r - 1) % r);
      // All pieces are equal: the steps are, too, but for the place of the piece.
      const bool is_once = repeats != nullptr && held.size() == 1 && range.size() % r == 0 && r > 1;
      if (is_once) {
        repeats->resize(out.steps.size(), 1);
        repeats->push_back(r - 1);
      }
      for (std::int64_t t = 0; t < (is_once ? 1 : r - 1); ++t) {  // piece d arrives, complete, in the last step
        Step& step = out.steps.emplace_back();
        step.number = number + t;
        part((d + 2 * r - t - 1) % r);
        append(step.sends, next, false);
        part((d + 2 * r - t - 2) % r);
        append(step.recvs, previous, true);
      }
    }
    if (!is_exchange(st)) {
      const Interval mine = part_of(range.size(), d, r);
      range = {range.begin + mine.begin, range.begin + mine.end};
    }
    number += steps_of(st);
  }
}

template <class F>
void PlanIndex::Impl::for_holders(SubPlanId id, std::size_t stage, Interval range, F f) const {
  const SubPlanIndex& x = at(id);
  const SubPlan& sp = subplan(id);
  const auto in_partition = [&](const std::vector<Piece>& partition, std::int64_t first_rank) {
    for_overlaps(
        partition, [](const Piece& p) -> const Piece& { return p; }, range,
        [&](const Piece& p, Interval part) { f(first_rank + p.owner, part); });
  };
  if (stage > x.num_digit_stages) return in_partition(sp.stages[stage - 1].target, 0);
  if (stage > 0) return in_partition(x.digit_placement, 0);
  for (std::size_t run = 0; run < sp.children.size(); ++run) {  // one partition per child
    const SubPlanId child = sp.children[run].subplan;
    for (std::int64_t c = 0; c < sp.children[run].count; ++c) {
      const std::int64_t first = x.run_rank[run] + c * ranks_of(child);
      if (child == kLeaf) {
        f(first, range);
      } else {
        in_partition(at(child).placement, first);
      }
    }
  }
}

void PlanIndex::Impl::add_place_step(SubPlanId id, std::size_t stage, std::int64_t base, std::int64_t rank,
                                     RankProgram& out) const {
  const SubPlanIndex& x = at(id);
  const SubPlan& sp = subplan(id);
  const PlaceIndex& place = x.places[stage - x.num_digit_stages];
  Step step;
  step.number = x.first_step;
  for (std::size_t s = 0; s < stage; ++s) {
    step.number += steps_of(sp.stages[s]);
  }

  for (const Interval& h : held_before(id, stage, rank)) {
    for_overlaps(
        place.pieces, [](const TargetPiece& t) -> const Piece& { return t.piece; }, h,
        [&](const TargetPiece& t, Interval part) {
          if (t.piece.owner == rank) return;
          step.sends.push_back({static_cast<std::int32_t>(base + t.piece.owner), false, part.begin, part.end});
        });
  }

  const auto it = std::lower_bound(place.owners.begin(), place.owners.end(), rank);
  if (it != place.owners.end() && *it == rank) {
    const auto k = static_cast<std::size_t>(it - place.owners.begin());
    for (auto n = place.first_of[k]; n < place.first_of[k + 1]; ++n) {
      const TargetPiece& t = place.pieces[static_cast<std::size_t>(place.by_owner[static_cast<std::size_t>(n)])];
      for_holders(id, stage, {t.piece.begin, t.piece.end}, [&](std::int64_t holder, Interval part) {
        if (holder == rank) return;
        step.recvs.push_back({static_cast<std::int32_t>(base + holder), t.accumulate, part.begin, part.end});
      });
    }
  }
  if (step.sends.empty() && step.recvs.empty()) return;
  for (std::vector<Message>* messages : {&step.sends, &step.recvs}) {
    if (!std::is_sorted(messages->begin(), messages->end(), by_peer_and_begin))
      std::sort(messages->begin(), messages->end(), by_peer_and_begin);
  }
  out.steps.push_back(std::move(step));
}

void PlanIndex::Impl::to_rank_order(RankProgram& program) const {
  const std::vector<Piece>& placement = at(plan->root).placement;
  struct Part {
    Message message;
    std::size_t of = 0;  // the message that it was cut from
  };
  const auto convert = [&](std::vector<Message>& messages) {
    std::vector<Part> parts;
    for (std::size_t n = 0; n < messages.size(); ++n) {
      const Message& m = messages[n];
      for_overlaps(
          placement, [](const Piece& p) -> const Piece& { return p; }, {m.begin, m.end},
          [&](const Piece& p, Interval i) {
            const auto k = static_cast<std::size_t>(&p - placement.data());
            const std::int64_t b = user_begin[k] + (i.begin - p.begin);
            parts.push_back({{m.peer, m.accumulate, b, b + i.size()}, n});
          });
    }
    std::sort(parts.begin(), parts.end(),
              [](const Part& a, const Part& b) { return by_peer_and_begin(a.message, b.message); });
    messages.clear();
    // Only parts of one message are joined: the sender does not know which messages its receiver accumulates.
    std::size_t last = 0;
    for (const Part& part : parts) {
      if (!messages.empty() && last == part.of && messages.back().end == part.message.begin) {
        messages.back().end = part.message.end;
      } else {
        messages.push_back(part.message);
      }
      last = part.of;
    }
  };
  for (Step& step : program.steps) {
    convert(step.sends);
    convert(step.recvs);
  }
}

void PlanIndex::Impl::scatter_program(std::int64_t rank, Interval steps, RankProgram& out,
                                      std::vector<std::int64_t>* repeats) const {
  out.steps.clear();
  if (plan->is_explicit()) {
    out = plan->programs[static_cast<std::size_t>(rank)];
    return;
  }
  // The way from the root to the rank, then its stages from the rank to the root.
  std::vector<std::pair<SubPlanId, std::int64_t>> way;
  std::int64_t base = 0;
  for (SubPlanId id = plan->root; id != kLeaf;) {
    way.emplace_back(id, base);
    const Child c = child_of_rank(id, rank - base);
    base += c.first_rank;
    id = c.id;
  }
  for (auto it = way.rbegin(); it != way.rend(); ++it) {
    const auto& [id, first] = *it;
    if (at(id).end_step <= steps.begin || at(id).first_step >= steps.end) continue;
    add_digit_steps(id, first, rank - first, out, repeats);
    for (std::size_t s = at(id).num_digit_stages; s < subplan(id).stages.size(); ++s) {
      add_place_step(id, s, first, rank - first, out);
    }
  }
  if (reorders) to_rank_order(out);
}

RankProgram mirrored(const RankProgram& scatter, std::int64_t num_steps) {
  RankProgram out;
  out.steps.reserve(scatter.steps.size());
  for (auto it = scatter.steps.rbegin(); it != scatter.steps.rend(); ++it) {
    Step step{num_steps - 1 - it->number, it->recvs, it->sends};
    for (Message& m : step.sends) m.accumulate = false;
    out.steps.push_back(std::move(step));
  }
  return out;
}

RankProgram PlanIndex::program(std::int64_t rank) const {
  RankProgram scatter;
  scatter_program(rank, scatter);
  if (plan().is_explicit() || plan().collective == Collective::kReduceScatter) return scatter;
  const auto exchanges = std::find_if(scatter.steps.begin(), scatter.steps.end(),
                                      [&](const Step& step) { return step.number >= num_mirrored_steps(); });
  const std::vector<Step> once(std::make_move_iterator(exchanges), std::make_move_iterator(scatter.steps.end()));
  scatter.steps.erase(exchanges, scatter.steps.end());
  RankProgram gather = mirrored(scatter, num_steps());
  if (plan().collective == Collective::kAllGather) return gather;
  scatter.steps.insert(scatter.steps.end(), once.begin(), once.end());
  scatter.steps.insert(scatter.steps.end(), std::make_move_iterator(gather.steps.begin()),
                       std::make_move_iterator(gather.steps.end()));
  return scatter;
}

double digit_messages(const Plan& plan) {
  std::vector<double> of_subplan;  // of one rank, on its way to the top of the sub-plan
  double most = 0;
  for (const SubPlan& sp : plan.subplans) {
    double messages = 0;
    for (const SubPlanRun& run : sp.children) {
      if (run.subplan >= 0 && std::cmp_less(run.subplan, of_subplan.size()))
        messages = std::max(messages, of_subplan[static_cast<std::size_t>(run.subplan)]);
    }
    for (const Stage& stage : sp.stages) {
      messages += static_cast<double>(steps_of(stage)) * static_cast<double>(messages_per_step(stage));
    }
    of_subplan.push_back(messages);
    most = std::max(most, messages);
  }
  return most * static_cast<double>(plan.num_ranks);
}

Plan make_explicit(const Plan& plan) {
  check_work(kExplicitLimit, digit_messages(plan), "the plan");
  const PlanIndex index(plan);
  Plan out = plan;
  if (plan.is_explicit() || plan.num_ranks == 1) return out;
  out.subplans.clear();
  out.root = kLeaf;
  out.programs.reserve(static_cast<std::size_t>(plan.num_ranks));
  for (std::int64_t r = 0; r < plan.num_ranks; ++r) out.programs.push_back(index.program(r));
  return out;
}

}  // namespace gar
