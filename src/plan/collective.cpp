// The three collectives: how they are spelled, and the halves of an AllReduce as plans of their own.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "gar/errors.hpp"
#include "gar/plan.hpp"

namespace gar {

namespace {

// Ours first, then those that older files and other programs have.
using Spellings = std::array<std::string_view, 3>;
constexpr Spellings kAllReduceSpellings{"allreduce", "all-reduce", "all_reduce"};
constexpr Spellings kReduceScatterSpellings{"reduce-scatter", "reducescatter", "reduce_scatter"};
constexpr Spellings kAllGatherSpellings{"allgather", "all-gather", "all_gather"};

const Spellings& spellings_of(Collective collective) {
  switch (collective) {
    case Collective::kReduceScatter:
      return kReduceScatterSpellings;
    case Collective::kAllGather:
      return kAllGatherSpellings;
    case Collective::kAllReduce:
      break;
  }
  return kAllReduceSpellings;
}

// Every rank gets as much as every other one. It keeps the first of what it holds, up to that, and the rest goes to
// those who lack it, both in the order of the ranks, so that little moves, and not far. `held`: units by rank.
std::vector<Piece> evened(const std::vector<Piece>& placement, std::vector<std::int64_t> held, std::int64_t block) {
  struct Part {
    std::int32_t owner = 0;
    std::int64_t units = 0;
  };
  std::vector<std::vector<Part>> parts(held.size());  // of what a rank holds, the last one first
  std::size_t lacking = 0;
  for (std::size_t r = 0; r < held.size(); ++r) {
    parts[r].push_back({static_cast<std::int32_t>(r), std::min(held[r], block)});
    while (held[r] > block) {
      while (held[lacking] >= block) ++lacking;
      const std::int64_t units = std::min(held[r] - block, block - held[lacking]);
      parts[r].push_back({static_cast<std::int32_t>(lacking), units});
      held[r] -= units;
      held[lacking] += units;
    }
    std::reverse(parts[r].begin(), parts[r].end());
  }
  std::vector<Piece> out;
  for (const Piece& piece : placement) {
    std::vector<Part>& left = parts[static_cast<std::size_t>(piece.owner)];
    for (std::int64_t begin = piece.begin; begin < piece.end;) {
      Part& part = left.back();
      const std::int64_t units = std::min(part.units, piece.end - begin);
      if (!out.empty() && out.back().owner == part.owner) {
        out.back().end += units;
      } else if (units > 0) {
        out.push_back({begin, begin + units, part.owner});
      }
      begin += units;
      part.units -= units;
      if (part.units == 0) left.pop_back();
    }
  }
  return out;
}

Plan half(const Plan& allreduce, Collective collective) {
  if (allreduce.is_explicit()) {
    throw InvalidArgument("an explicit plan has no separate ReduceScatter; build it from an algorithm");
  }
  if (!has_halves(allreduce)) {
    throw InvalidArgument(
        fmt::format("the plan '{}' ends in exchanges of whole intervals, so it has no {}; expected plans without "
                    "exchanges, such as rhd, cps and ring",
                    allreduce.algorithm, to_string(collective)));
  }
  Plan plan = allreduce;
  plan.collective = collective;
  if (plan.num_ranks == 1) return plan;
  const std::int64_t n = plan.num_ranks;
  const std::int64_t scale = n / std::gcd(n, plan.num_units);
  if (plan.num_units > std::numeric_limits<std::int64_t>::max() / scale) {
    throw InvalidArgument(fmt::format("{} units cannot be cut into blocks for {} ranks; expected a multiple of {}",
                                      plan.num_units, n, n));
  }
  plan.num_units *= scale;
  for (SubPlan& sp : plan.subplans) {
    for (Stage& stage : sp.stages) {
      for (Piece& p : stage.target) {
        p.begin *= scale;
        p.end *= scale;
      }
    }
  }
  const std::int64_t block = plan.num_units / n;
  Plan whole = plan;
  whole.collective = Collective::kAllReduce;
  std::vector<std::int64_t> held(static_cast<std::size_t>(n), 0);
  const PlanIndex index(whole);
  for (const Piece& p : index.placement_after(plan.root)) held[static_cast<std::size_t>(p.owner)] += p.end - p.begin;
  if (std::all_of(held.begin(), held.end(), [&](std::int64_t h) { return h == block; })) return plan;
  plan.subplans[static_cast<std::size_t>(plan.root)].stages.push_back(
      {StageKind::kPlace, 1, 1, evened(index.placement_after(plan.root), std::move(held), block)});
  return plan;
}

}  // namespace

std::string_view to_string(Collective collective) { return spellings_of(collective).front(); }

std::optional<Collective> parse_collective(std::string_view text) {
  for (const Collective collective : kCollectives) {
    const Spellings& spellings = spellings_of(collective);
    if (std::find(spellings.begin(), spellings.end(), text) != spellings.end()) return collective;
  }
  return std::nullopt;
}

bool has_halves(const Plan& plan) {
  if (plan.is_explicit()) return false;
  return std::none_of(plan.subplans.begin(), plan.subplans.end(), [](const SubPlan& subplan) {
    return std::any_of(subplan.stages.begin(), subplan.stages.end(),
                       [](const Stage& stage) { return stage.kind == StageKind::kExchange; });
  });
}

Plan as_reduce_scatter(const Plan& allreduce) { return half(allreduce, Collective::kReduceScatter); }
Plan as_all_gather(const Plan& allreduce) { return half(allreduce, Collective::kAllGather); }

Plan as_collective(const Plan& allreduce, Collective collective) {
  return collective == Collective::kAllReduce ? allreduce : half(allreduce, collective);
}

}  // namespace gar
