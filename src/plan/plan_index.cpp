// Derived facts about a plan of sub-plans: counts, active ranks, step numbers, placements; and the validation of all
// that the rest of the library relies on.
//
// Notation: U = num_units. A sub-plan's active ranks a = child * k + j, where every child leaves k active ranks. After
// its digit stages the rank holds the slice of the child's holding that its digits select, so a look-up needs only the
// way from the root to the rank: O(depth * log(runs)).
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/topology.hpp"
#include "plan/plan_index_impl.hpp"

namespace gar {

namespace {

constexpr std::int64_t kMaxUnits = std::int64_t{1} << 60;

void check_program(const Plan& plan, std::size_t rank) {
  std::int64_t last = -1;
  for (const Step& step : plan.programs[rank].steps) {
    if (step.number <= last || step.number > kMaxUnits) {
      throw PlanError(fmt::format("rank {}: step {} after step {}; step numbers must ascend from 0 to at most {}", rank,
                                  step.number, last, kMaxUnits));
    }
    last = step.number;
    for (const std::vector<Message>* messages : {&step.sends, &step.recvs}) {
      for (const Message& m : *messages) {
        if (m.peer < 0 || m.peer >= plan.num_ranks) {
          throw PlanError(fmt::format("rank {}, step {}: peer {} is not a rank (0..{})", rank, step.number, m.peer,
                                      plan.num_ranks - 1));
        }
        if (m.begin < 0 || m.end <= m.begin || m.end > plan.num_units) {
          throw PlanError(fmt::format("rank {}, step {}: [{},{}) is not an interval inside [0,{})", rank, step.number,
                                      m.begin, m.end, plan.num_units));
        }
      }
    }
  }
}

// The numbers 0..n-1, sorted by what owner_of says about them; owners are below num_owners.
template <class OwnerOf>
std::vector<std::int32_t> sorted_by_owner(std::size_t n, std::int64_t num_owners, OwnerOf owner_of) {
  constexpr std::size_t kFew = 8;  // owners for each number: counting them takes no longer than sorting
  std::vector<std::int32_t> order(n);
  if (std::cmp_greater(num_owners, kFew * n)) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return owner_of(static_cast<std::size_t>(a)) < owner_of(static_cast<std::size_t>(b));
    });
    return order;
  }
  std::vector<std::size_t> next(static_cast<std::size_t>(num_owners) + 1, 0);
  for (std::size_t i = 0; i < n; ++i) ++next[static_cast<std::size_t>(owner_of(i)) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (std::size_t i = 0; i < n; ++i)
    order[next[static_cast<std::size_t>(owner_of(i))]++] = static_cast<std::int32_t>(i);
  return order;
}

// Cuts a piece where its owner's holding begins or ends; the owner's own value takes part only where it holds one.
void append_cut(const Piece& p, const std::vector<Interval>& held, std::vector<TargetPiece>& out) {
  std::int64_t reached = p.begin;
  for (const Interval& h : held) {
    const std::int64_t begin = std::max(h.begin, reached);
    const std::int64_t end = std::min(h.end, p.end);
    if (begin >= end) continue;
    if (begin > reached) out.push_back({{reached, begin, p.owner}, false});
    out.push_back({{begin, end, p.owner}, true});
    reached = end;
  }
  if (reached < p.end) out.push_back({{reached, p.end, p.owner}, false});
}

}  // namespace

std::int64_t element_of_unit(std::int64_t unit, std::int64_t num_units, std::int64_t count) {
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>((static_cast<Wide>(unit) * count * 2 + num_units) /
                                   (static_cast<Wide>(num_units) * 2));
}

void append_slice(const std::vector<Interval>& held, Interval range, std::vector<Interval>& out) {
  std::int64_t offset = 0;
  for (const Interval& h : held) {
    const std::int64_t b = std::max(range.begin - offset, std::int64_t{0});
    const std::int64_t e = std::min(range.end - offset, h.size());
    if (b < e) out.push_back({h.begin + b, h.begin + e});
    offset += h.size();
    if (offset >= range.end) break;
  }
}

std::int64_t total_size(const std::vector<Interval>& held) {
  std::int64_t sum = 0;
  for (const Interval& h : held) sum += h.size();
  return sum;
}

PlanIndex::Impl::Child PlanIndex::Impl::child_of_rank(SubPlanId id, std::int64_t rank) const {
  const SubPlanIndex& x = at(id);
  const auto it = std::upper_bound(x.run_rank.begin(), x.run_rank.end() - 1, rank) - 1;
  const auto run = static_cast<std::size_t>(it - x.run_rank.begin());
  const SubPlanId child = subplan(id).children[run].subplan;
  const std::int64_t nth = (rank - *it) / ranks_of(child);
  return {child, *it + nth * ranks_of(child), x.run_active[run] + nth * active_after_of(child)};
}

std::int64_t PlanIndex::Impl::count_after(SubPlanId id, std::int64_t rank) const {
  if (id == kLeaf) return rank;
  const SubPlanIndex& x = at(id);
  if (!x.has_place()) return count_before(id, rank);
  const auto& owners = x.places.back().owners;
  return std::lower_bound(owners.begin(), owners.end(), rank) - owners.begin();
}

std::int64_t PlanIndex::Impl::count_before(SubPlanId id, std::int64_t rank) const {
  const SubPlanIndex& x = at(id);
  if (x.active_before == x.num_ranks) return rank;  // all are active
  if (rank >= x.num_ranks) return x.active_before;
  const Child c = child_of_rank(id, rank);
  return c.first_active + count_after(c.id, rank - c.first_rank);
}

std::int64_t PlanIndex::Impl::rank_after(SubPlanId id, std::int64_t k) const {
  if (id == kLeaf) return 0;
  const SubPlanIndex& x = at(id);
  return x.has_place() ? x.places.back().owners[static_cast<std::size_t>(k)] : rank_before(id, k);
}

std::int64_t PlanIndex::Impl::rank_before(SubPlanId id, std::int64_t k) const {
  const SubPlanIndex& x = at(id);
  if (x.active_before == x.num_ranks) return k;  // all are active
  const auto it = std::upper_bound(x.run_active.begin(), x.run_active.end() - 1, k) - 1;
  const auto run = static_cast<std::size_t>(it - x.run_active.begin());
  const SubPlanId child = subplan(id).children[run].subplan;
  const std::int64_t per_child = active_after_of(child);
  const std::int64_t nth = (k - *it) / per_child;
  return x.run_rank[run] + nth * ranks_of(child) + rank_after(child, (k - *it) % per_child);
}

std::vector<Interval> PlanIndex::Impl::held_before(SubPlanId id, std::size_t stage, std::int64_t rank) const {
  const SubPlanIndex& x = at(id);
  const SubPlan& sp = subplan(id);
  if (stage > x.num_digit_stages) {  // after a kPlace stage
    const PlaceIndex& p = x.places[stage - x.num_digit_stages - 1];
    const auto it = std::lower_bound(p.owners.begin(), p.owners.end(), rank);
    if (it == p.owners.end() || *it != rank) return {};
    const auto k = static_cast<std::size_t>(it - p.owners.begin());
    return {p.raw.begin() + p.raw_first[k], p.raw.begin() + p.raw_first[k + 1]};
  }
  const Child c = child_of_rank(id, rank);
  std::vector<Interval> held = held_after(c.id, rank - c.first_rank);
  if (stage == 0 || held.empty()) return held;
  const std::int64_t a = count_before(id, rank);
  Interval range{0, total_size(held)};
  for (std::size_t s = 0; s < stage; ++s) {
    const Stage& st = sp.stages[s];
    if (st.kind == StageKind::kExchange) break;  // nothing is cut any more
    const Interval part = part_of(range.size(), (a / st.stride) % st.radix, st.radix);
    range = {range.begin + part.begin, range.begin + part.end};
  }
  std::vector<Interval> out;
  append_slice(held, range, out);
  return out;
}

std::vector<Interval> PlanIndex::Impl::held_after(SubPlanId id, std::int64_t rank) const {
  if (id == kLeaf) return {{0, plan->num_units}};
  return held_before(id, subplan(id).stages.size(), rank);
}

/// What single ranks hold before a stage. Those in the same place of equal children hold the same.
class PlanIndex::Impl::Holdings {
 public:
  Holdings(const Impl& index, SubPlanId id, std::size_t stage) : index_(index), id_(id), stage_(stage) {}
  const std::vector<Interval>& of(std::int64_t rank) {
    if (stage_ > 0) return last_ = index_.held_before(id_, stage_, rank);
    const Child c = index_.child_of_rank(id_, rank);
    const auto [it, is_new] = known_.try_emplace({c.id, rank - c.first_rank});
    if (is_new) it->second = index_.held_after(c.id, rank - c.first_rank);
    return it->second;
  }

 private:
  const Impl& index_;
  SubPlanId id_;
  std::size_t stage_;
  std::map<std::pair<SubPlanId, std::int64_t>, std::vector<Interval>> known_;
  std::vector<Interval> last_;
};

// The partition of the vector that the ranks hold before stage `stage` (which must not be the first of several
// children).
std::vector<Piece> PlanIndex::Impl::compute_placement(SubPlanId id, std::size_t stage) const {
  std::vector<Piece> out;
  if (stage > at(id).num_digit_stages) return subplan(id).stages[stage - 1].target;
  for (std::int64_t k = 0; k < at(id).active_before; ++k) {
    const std::int64_t rank = rank_before(id, k);
    for (const Interval& h : held_before(id, stage, rank))
      out.push_back({h.begin, h.end, static_cast<std::int32_t>(rank)});
  }
  std::sort(out.begin(), out.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  return out;
}

const std::vector<Piece>& PlanIndex::Impl::placement_after(SubPlanId id) {
  if (id == kLeaf) throw PlanError("a single rank has no placement table");
  SubPlanIndex& x = index[static_cast<std::size_t>(id)];
  if (!x.has_placement) {
    x.placement = compute_placement(id, subplan(id).stages.size());
    x.has_placement = true;
  }
  return x.placement;
}

void PlanIndex::Impl::derive_children(SubPlanId id) {
  SubPlanIndex& x = index[static_cast<std::size_t>(id)];
  const SubPlan& sp = subplan(id);
  if (sp.children.empty()) throw PlanError(fmt::format("sub-plan {}: has no children; at least one is needed", id));
  for (const SubPlanRun& run : sp.children) {
    if (run.subplan < kLeaf || run.subplan >= id) {
      throw PlanError(fmt::format("sub-plan {}: child {} is not a rank (-1) or an earlier sub-plan (0..{})", id,
                                  run.subplan, id - 1));
    }
    if (run.count < 1 || run.count > kMaxServers) {
      throw PlanError(fmt::format("sub-plan {}: a child count of {} is not in 1..{}", id, run.count, kMaxServers));
    }
    x.run_rank.push_back(x.num_ranks);
    x.run_active.push_back(x.active_before);
    if (ranks_of(run.subplan) > kMaxServers / run.count) {
      throw PlanError(fmt::format("sub-plan {}: more than {} ranks", id, kMaxServers));
    }
    x.num_children += run.count;
    x.num_ranks += run.count * ranks_of(run.subplan);
    x.active_before += run.count * active_after_of(run.subplan);
    if (x.num_ranks > kMaxServers) throw PlanError(fmt::format("sub-plan {}: more than {} ranks", id, kMaxServers));
    if (run.subplan != kLeaf) {
      x.first_step = std::max(x.first_step, at(run.subplan).end_step);
      x.depth = std::max(x.depth, at(run.subplan).depth + 1);
    }
  }
  if (x.depth > kMaxDepth) throw PlanError(fmt::format("sub-plan {}: nested deeper than {} levels", id, kMaxDepth));
  x.run_rank.push_back(x.num_ranks);
  x.run_active.push_back(x.active_before);
}

// Digit stages need children that hold the same intervals, and digits that together number the children.
void PlanIndex::Impl::derive_digits(SubPlanId id) {
  SubPlanIndex& x = index[static_cast<std::size_t>(id)];
  const SubPlan& sp = subplan(id);
  while (x.num_digit_stages < sp.stages.size() && is_digit(sp.stages[x.num_digit_stages])) ++x.num_digit_stages;
  const SubPlanId first = sp.children.front().subplan;
  const std::int64_t per_child = active_after_of(first);
  if (x.num_digit_stages == 0) {
    if (x.num_children > 1 && sp.stages.empty()) {
      throw PlanError(fmt::format("sub-plan {}: {} children but no stage that combines them", id, x.num_children));
    }
    return;
  }
  for (const SubPlanRun& run : sp.children) {
    if (run.subplan == first) continue;
    bool same = active_after_of(run.subplan) == per_child;
    for (std::int64_t k = 0; same && k < per_child; ++k) {
      same = held_after(first, rank_after(first, k)) == held_after(run.subplan, rank_after(run.subplan, k));
    }
    if (!same) {
      throw PlanError(fmt::format(
          "sub-plan {}: its children hold different intervals; only a 'place' stage can combine such children", id));
    }
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> digits;
  for (std::size_t s = 0; s < x.num_digit_stages; ++s) {
    if (sp.stages[s].radix < 1 || sp.stages[s].stride < 1) {
      throw PlanError(fmt::format("sub-plan {}, stage {}: stride {} and radix {} must be at least 1", id, s,
                                  sp.stages[s].stride, sp.stages[s].radix));
    }
    if (sp.stages[s].radix > 1) digits.emplace_back(sp.stages[s].stride, sp.stages[s].radix);
  }
  std::sort(digits.begin(), digits.end());
  std::int64_t expected = per_child;
  for (const auto& [stride, radix] : digits) {
    if (stride != expected || radix > x.active_before / stride) {
      throw PlanError(fmt::format("sub-plan {}: a digit of stride {} and radix {} does not fit; expected stride {}", id,
                                  stride, radix, expected));
    }
    expected = stride * radix;
  }
  if (expected != x.active_before) {
    throw PlanError(fmt::format("sub-plan {}: its digits number {} of {} active ranks", id, expected, x.active_before));
  }
}

// Only what no later stage needs in one place may end in copies: the last stages of the whole plan.
void PlanIndex::Impl::check_exchanges(SubPlanId id) const {
  const std::vector<Stage>& stages = subplan(id).stages;
  const auto first = std::find_if(stages.begin(), stages.end(), is_exchange);
  if (first == stages.end()) return;
  const std::string where = fmt::format("sub-plan {}, stage {}", id, first - stages.begin());
  if (id != plan->root) {
    throw PlanError(fmt::format("{}: an exchange; accepted only in the root, which is sub-plan {}", where, plan->root));
  }
  if (plan->collective != Collective::kAllReduce) {
    throw PlanError(fmt::format("{}: an exchange in a plan for {}; accepted only for {}", where,
                                to_string(plan->collective), to_string(Collective::kAllReduce)));
  }
  if (!std::all_of(first, stages.end(), is_exchange)) {
    throw PlanError(fmt::format("{}: an exchange, which only other exchanges may follow", where));
  }
}

// The target of a kPlace stage must cover the vector in order, with owners out of the sub-plan.
void PlanIndex::Impl::check_target(SubPlanId id, std::size_t stage) const {
  const std::int64_t num_ranks = at(id).num_ranks;
  std::int64_t reached = 0;
  for (const Piece& p : subplan(id).stages[stage].target) {
    if (p.begin != reached || p.end <= p.begin || p.end > plan->num_units) {
      throw PlanError(fmt::format(
          "sub-plan {}, stage {}: target piece [{},{}) does not continue at {}; pieces must cover [0,{}) in order", id,
          stage, p.begin, p.end, reached, plan->num_units));
    }
    if (p.owner < 0 || p.owner >= num_ranks) {
      throw PlanError(fmt::format("sub-plan {}, stage {}: owner {} is not a rank of it (0..{})", id, stage, p.owner,
                                  num_ranks - 1));
    }
    reached = p.end;
  }
  if (reached != plan->num_units) {
    throw PlanError(
        fmt::format("sub-plan {}, stage {}: target ends at {} of {} units", id, stage, reached, plan->num_units));
  }
}

void PlanIndex::Impl::derive_place(SubPlanId id, std::size_t stage) {
  check_target(id, stage);
  const std::vector<Piece>& target = subplan(id).stages[stage].target;
  PlaceIndex place;
  Holdings holdings(*this, id, stage);
  for (const Piece& p : target) append_cut(p, holdings.of(p.owner), place.pieces);
  const std::int64_t num_ranks = at(id).num_ranks;
  const auto target_owner = [&](std::size_t piece) { return target[piece].owner; };
  for (const std::int32_t i : sorted_by_owner(target.size(), num_ranks, target_owner)) {
    const Piece& p = target[static_cast<std::size_t>(i)];
    if (place.owners.empty() || place.owners.back() != p.owner) {
      place.owners.push_back(p.owner);
      place.raw_first.push_back(static_cast<std::int32_t>(place.raw.size()));
    }
    place.raw.push_back({p.begin, p.end});
  }
  place.raw_first.push_back(static_cast<std::int32_t>(place.raw.size()));
  const auto owner_of = [&](std::size_t piece) { return place.pieces[piece].piece.owner; };
  place.by_owner = sorted_by_owner(place.pieces.size(), num_ranks, owner_of);
  for (std::size_t i = 0; i < place.by_owner.size(); ++i) {
    const std::int32_t owner = owner_of(static_cast<std::size_t>(place.by_owner[i]));
    const std::size_t num_begun = place.first_of.size();
    if (num_begun == 0 || place.owners[num_begun - 1] != owner) place.first_of.push_back(static_cast<std::int32_t>(i));
  }
  place.first_of.push_back(static_cast<std::int32_t>(place.by_owner.size()));
  index[static_cast<std::size_t>(id)].places.push_back(std::move(place));
}

void PlanIndex::Impl::derive(SubPlanId id) {
  check_exchanges(id);
  derive_children(id);
  derive_digits(id);
  SubPlanIndex& x = index[static_cast<std::size_t>(id)];
  const SubPlan& sp = subplan(id);
  x.end_step = x.first_step;
  for (std::size_t s = 0; s < sp.stages.size(); ++s) {
    if (s >= x.num_digit_stages) {
      if (is_digit(sp.stages[s])) {
        throw PlanError(fmt::format("sub-plan {}, stage {}: a digit stage cannot follow a 'place' stage", id, s));
      }
      if (s == 0) {
        for (const SubPlanRun& run : sp.children) {
          if (run.subplan != kLeaf) (void)placement_after(run.subplan);
        }
      } else if (s == x.num_digit_stages) {
        x.digit_placement = compute_placement(id, s);
      }
      derive_place(id, s);
    }
    x.end_step += steps_of(sp.stages[s]);
  }
  x.active_after = x.has_place() ? static_cast<std::int64_t>(x.places.back().owners.size()) : x.active_before;
}

// ReduceScatter and AllGather: rank r's block is block r, wherever the plan has put it.
void PlanIndex::Impl::derive_order() {
  if (plan->collective == Collective::kAllReduce || plan->num_ranks == 1) return;
  if (plan->num_units % plan->num_ranks != 0) {
    throw PlanError(fmt::format("a ReduceScatter or AllGather plan needs num_units ({}) divisible by num_ranks ({})",
                                plan->num_units, plan->num_ranks));
  }
  if (plan->is_explicit()) return;
  const std::int64_t block = plan->num_units / plan->num_ranks;
  const std::vector<Piece>& placement = placement_after(plan->root);
  std::vector<std::int64_t> filled(static_cast<std::size_t>(plan->num_ranks), 0);
  for (const Piece& p : placement) {
    std::int64_t& f = filled[static_cast<std::size_t>(p.owner)];
    user_begin.push_back(p.owner * block + f);
    reorders = reorders || user_begin.back() != p.begin;
    f += p.end - p.begin;
  }
  for (std::size_t r = 0; r < filled.size(); ++r) {
    if (filled[r] != block) {
      throw PlanError(
          fmt::format("rank {} ends with {} of {} units; a ReduceScatter or AllGather plan gives every rank {}", r,
                      filled[r], plan->num_units, block));
    }
  }
}

PlanIndex::PlanIndex(const Plan& plan) : impl_(new Impl) {
  try {
    impl_->plan = &plan;
    if (plan.num_ranks < 1 || plan.num_ranks > kMaxServers) {
      throw PlanError(fmt::format("num_ranks is {}; expected 1..{}", plan.num_ranks, kMaxServers));
    }
    check_work(kRankLimit, static_cast<double>(plan.num_ranks), "the plan");
    if (plan.num_units < 1 || plan.num_units > kMaxUnits) {
      throw PlanError(fmt::format("num_units is {}; expected 1..{}", plan.num_units, kMaxUnits));
    }
    if (plan.num_chunks < 1) throw PlanError(fmt::format("num_chunks is {}; expected 1 and more", plan.num_chunks));
    if (plan.is_explicit()) {
      if (static_cast<std::int64_t>(plan.programs.size()) != plan.num_ranks) {
        throw PlanError(
            fmt::format("{} programs for {} ranks; one per rank is needed", plan.programs.size(), plan.num_ranks));
      }
      if (!plan.subplans.empty()) throw PlanError("both sub-plans and explicit programs; one of them is needed");
      for (std::size_t r = 0; r < plan.programs.size(); ++r) {
        check_program(plan, r);
        const RankProgram& p = plan.programs[r];
        if (!p.steps.empty()) impl_->num_steps = std::max(impl_->num_steps, p.steps.back().number + 1);
      }
      impl_->derive_order();
      return;
    }
    impl_->index.resize(plan.subplans.size());
    for (std::size_t i = 0; i < plan.subplans.size(); ++i) impl_->derive(static_cast<SubPlanId>(i));
    if (plan.root < kLeaf || plan.root >= static_cast<SubPlanId>(plan.subplans.size())) {
      throw PlanError(fmt::format("root {} is not a rank (-1) or a sub-plan (0..{})", plan.root,
                                  static_cast<std::int64_t>(plan.subplans.size()) - 1));
    }
    if (impl_->ranks_of(plan.root) != plan.num_ranks) {
      throw PlanError(fmt::format("num_ranks is {}, but the root sub-plan has {} ranks", plan.num_ranks,
                                  impl_->ranks_of(plan.root)));
    }
    if (plan.root != kLeaf) {
      const std::vector<Stage>& stages = impl_->subplan(plan.root).stages;
      const std::int64_t end = impl_->at(plan.root).end_step;
      impl_->num_mirrored_steps = end - std::count_if(stages.begin(), stages.end(), is_exchange);
      impl_->num_steps = end + (plan.collective == Collective::kAllReduce ? impl_->num_mirrored_steps : 0);
    }
    impl_->derive_order();
  } catch (...) {
    delete impl_;
    throw;
  }
}

PlanIndex::~PlanIndex() { delete impl_; }
PlanIndex::PlanIndex(PlanIndex&& other) noexcept : impl_(other.impl_) { other.impl_ = nullptr; }

const Plan& PlanIndex::plan() const { return *impl_->plan; }
std::int64_t PlanIndex::num_steps() const { return impl_->num_steps; }
std::int64_t PlanIndex::num_mirrored_steps() const { return impl_->num_mirrored_steps; }
std::int64_t PlanIndex::num_ranks(SubPlanId id) const { return impl_->ranks_of(id); }
std::int64_t PlanIndex::num_active_before(SubPlanId id) const { return id == kLeaf ? 1 : impl_->at(id).active_before; }
std::int64_t PlanIndex::num_active_after(SubPlanId id) const { return impl_->active_after_of(id); }
std::int64_t PlanIndex::active_before_rank(SubPlanId id, std::int64_t local_rank) const {
  return id == kLeaf ? local_rank : impl_->count_before(id, local_rank);
}
std::int64_t PlanIndex::rank_of_active(SubPlanId id, std::int64_t k) const {
  return id == kLeaf ? 0 : impl_->rank_before(id, k);
}
std::int64_t PlanIndex::first_step(SubPlanId id) const { return id == kLeaf ? 0 : impl_->at(id).first_step; }
std::int64_t PlanIndex::end_step(SubPlanId id) const { return id == kLeaf ? 0 : impl_->at(id).end_step; }
const std::vector<Piece>& PlanIndex::placement_after(SubPlanId id) const { return impl_->placement_after(id); }
std::vector<Interval> PlanIndex::held_after(SubPlanId id, std::int64_t local_rank) const {
  return impl_->held_after(id, local_rank);
}
void PlanIndex::scatter_program(std::int64_t rank, RankProgram& out) const {
  impl_->scatter_program(rank, {0, impl_->num_steps}, out);
}
void PlanIndex::scatter_program(std::int64_t rank, Interval steps, RankProgram& out) const {
  impl_->scatter_program(rank, steps, out);
}

void PlanIndex::scatter_outline(std::int64_t rank, RankProgram& out, std::vector<std::int64_t>& repeats) const {
  repeats.clear();
  impl_->scatter_program(rank, {0, impl_->num_steps}, out, impl_->reorders ? nullptr : &repeats);
  repeats.resize(out.steps.size(), 1);
}

}  // namespace gar
