// A stage of kPlace in sums. Every child's ranks hold the whole vector between them, each position once. So a rank
// sends what it holds to the owners, and the owner of a piece gets each position of it from every other child, and from
// its own one where it does not hold it itself: all positions of a piece have the same number of operands.
//
// Sums are those over a rank's messages, in the order of these (by the other rank, then by the place in the vector), so
// that a plan has the same price however it is found out.
#include "model/place_steps.hpp"

#include <algorithm>
#include <numeric>

namespace gar {

namespace {

template <class Part>
void sort_parts(std::vector<Part>& parts) {
  const auto before = [](const Part& a, const Part& b) {
    return a.peer != b.peer ? a.peer < b.peer : a.begin < b.begin;
  };
  if (!std::is_sorted(parts.begin(), parts.end(), before)) std::sort(parts.begin(), parts.end(), before);
}

// Calls f(piece, begin, end) for the pieces of a sorted partition that overlap [begin, end), with the overlap.
template <class Pieces, class F>
void for_parts(const Pieces& pieces, std::int64_t begin, std::int64_t end, F f) {
  auto it = std::upper_bound(pieces.begin(), pieces.end(), begin,
                             [](std::int64_t at, const auto& piece) { return at < piece.end; });
  for (; it != pieces.end() && it->begin < end; ++it) f(*it, std::max(it->begin, begin), std::min(it->end, end));
}

}  // namespace

PlaceSteps::PlaceSteps(const Plan& plan, const PlanIndex& index, SubPlanId id)
    : num_units_(plan.num_units), num_ranks_(index.num_ranks(id)) {
  const SubPlan& subplan = plan.subplans[static_cast<std::size_t>(id)];
  std::int64_t first = 0;
  for (const SubPlanRun& run : subplan.children) {
    const std::size_t kind = kind_of(index, run.subplan);
    runs_.push_back({kind, run.count, first});
    kinds_[kind].count += run.count;
    num_children_ += run.count;
    first += run.count * kinds_[kind].num_ranks;
  }
  cut(subplan.stages.front().target);
  sort_by_owner();
}

std::size_t PlaceSteps::kind_of(const PlanIndex& index, SubPlanId id) {
  const auto known = std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& kind) { return kind.id == id; });
  if (known != kinds_.end()) return static_cast<std::size_t>(known - kinds_.begin());
  Kind kind;
  kind.id = id;
  kind.num_ranks = index.num_ranks(id);
  kind.partition = id == kLeaf ? std::vector<Piece>{{0, num_units_, 0}} : index.placement_after(id);
  kind.held.resize(static_cast<std::size_t>(kind.num_ranks));
  for (const Piece& p : kind.partition) kind.held[static_cast<std::size_t>(p.owner)].push_back({p.begin, p.end});
  kind.sends.resize(kind.held.size());
  kind.is_known.resize(kind.held.size(), false);
  kinds_.push_back(std::move(kind));
  return kinds_.size() - 1;
}

PlaceSteps::Place PlaceSteps::place_of(std::int64_t rank) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), rank,
                                      [](std::int64_t r, const Run& run) { return r < run.first_rank; });
  const Run& run = *(after - 1);
  const std::int64_t size = kinds_[run.kind].num_ranks;
  const std::int64_t at = rank - run.first_rank;
  return {static_cast<std::size_t>(after - 1 - runs_.begin()), at / size, at % size};
}

double PlaceSteps::fraction(std::int64_t units) const {
  return static_cast<double>(units) / static_cast<double>(num_units_);
}

// Pieces are cut where what their owner holds begins or ends.
void PlaceSteps::cut(const std::vector<Piece>& target) {
  for (const Piece& p : target) {
    const Place place = place_of(p.owner);
    std::int64_t reached = p.begin;
    for (const Interval& h : kinds_[runs_[place.run].kind].held[static_cast<std::size_t>(place.rank)]) {
      const std::int64_t begin = std::max(h.begin, reached);
      const std::int64_t end = std::min(h.end, p.end);
      if (begin >= end) continue;
      if (begin > reached) pieces_.push_back({reached, begin, p.owner, false});
      pieces_.push_back({begin, end, p.owner, true});
      reached = end;
    }
    if (reached < p.end) pieces_.push_back({reached, p.end, p.owner, false});
  }
}

void PlaceSteps::sort_by_owner() {
  first_of_.assign(static_cast<std::size_t>(num_ranks_) + 1, 0);
  for (const Owned& p : pieces_) ++first_of_[static_cast<std::size_t>(p.owner) + 1];
  std::partial_sum(first_of_.begin(), first_of_.end(), first_of_.begin());
  by_owner_.resize(pieces_.size());
  std::vector<std::size_t> next(first_of_.begin(), first_of_.end() - 1);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    by_owner_[next[static_cast<std::size_t>(pieces_[i].owner)]++] = static_cast<std::int32_t>(i);
  }
}

const std::vector<PlaceSteps::Part>& PlaceSteps::sends_of(Kind& kind, std::int64_t rank) const {
  const auto at = static_cast<std::size_t>(rank);
  std::vector<Part>& out = kind.sends[at];
  if (kind.is_known[at]) return out;
  kind.is_known[at] = true;
  for (const Interval& h : kind.held[at]) {
    for_parts(pieces_, h.begin, h.end, [&](const Owned& p, std::int64_t begin, std::int64_t end) {
      out.push_back({p.owner, false, begin, fraction(end - begin)});
    });
  }
  sort_parts(out);
  return out;
}

// Who holds the pieces of an owner, in one child of every kind.
void PlaceSteps::look_up_holders(std::int64_t rank) {
  const auto at = static_cast<std::size_t>(rank);
  for (Kind& kind : kinds_) {
    kind.receives.clear();
    for (std::size_t i = first_of_[at]; i < first_of_[at + 1]; ++i) {
      const Owned& piece = pieces_[static_cast<std::size_t>(by_owner_[i])];
      for_parts(kind.partition, piece.begin, piece.end, [&](const Piece& p, std::int64_t begin, std::int64_t end) {
        kind.receives.push_back({p.owner, piece.accumulate, begin, fraction(end - begin)});
      });
    }
    sort_parts(kind.receives);
  }
}

// From one child. What an owner holds itself does not come from anyone in its own child.
void PlaceSteps::receive(const Kind& kind, bool is_own, RankStep& out) const {
  std::int32_t last = -1;
  for (const Part& part : kind.receives) {
    if (is_own && part.accumulate) continue;
    out.received += part.volume;
    ++out.num_parts;
    if (part.peer != last) ++out.messages.received;
    last = part.peer;
  }
}

// Between the borders of what arrives the reductions are the same.
void PlaceSteps::calculate(std::int64_t rank, const Kind& own, Calculation& out) {
  const auto at = static_cast<std::size_t>(rank);
  for (std::size_t i = first_of_[at]; i < first_of_[at + 1]; ++i) {
    const Owned& piece = pieces_[static_cast<std::size_t>(by_owner_[i])];
    const std::int64_t num_received = num_children_ - (piece.accumulate ? 1 : 0);
    if (num_received == 0) continue;
    borders_.clear();
    for (const Kind& kind : kinds_) {
      if (kind.count == 1 && &kind == &own && piece.accumulate) continue;
      for (const Part& part : kind.receives) {
        if (part.begin >= piece.begin && part.begin < piece.end) borders_.push_back(part.begin);
      }
    }
    borders_.push_back(piece.end);
    std::sort(borders_.begin(), borders_.end());
    for (std::size_t b = 0; b + 1 < borders_.size(); ++b) {
      if (borders_[b + 1] > borders_[b]) {
        out.add(fraction(borders_[b + 1] - borders_[b]), num_received, piece.accumulate);
      }
    }
  }
}

RankStep PlaceSteps::of(std::int64_t rank) {
  RankStep out;
  const Place place = place_of(rank);
  Kind& own = kinds_[runs_[place.run].kind];
  std::int32_t last = -1;
  for (const Part& part : sends_of(own, place.rank)) {
    if (part.peer == rank) continue;
    out.sent += part.volume;
    ++out.num_parts;
    if (part.peer != last) ++out.messages.sent;
    last = part.peer;
  }
  const auto at = static_cast<std::size_t>(rank);
  if (first_of_[at] == first_of_[at + 1]) return out;
  look_up_holders(rank);
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    for (std::int64_t child = 0; child < runs_[r].count; ++child) {
      receive(kinds_[runs_[r].kind], r == place.run && child == place.child, out);
    }
  }
  calculate(rank, own, out.calculation);
  return out;
}

}  // namespace gar
