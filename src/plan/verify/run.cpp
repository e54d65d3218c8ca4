// Runs a plan on fingerprints or on sets: part 3 of the idea at the top of verify.cpp.
//
// The state is a matrix of ranks x elementary blocks. Receives come round by round; within a round, a rank's receives
// are sorted by their begin, so that the part of a receive that an earlier one has covered is always a prefix of it: it
// is added to the new value, and the rest starts a new value (with the rank's own when it accumulates). New values go
// to a scratch buffer and move into the matrix at the end of the round, because sends take the state before the round.
//
// Memory. Columns are processed in batches, so that matrix and scratch together stay below kMatrixBytes (or have one
// column). The receives are kept in round order for as many rounds at a time as fit into kReceiveBytes, and derived
// anew for the next rounds and batches; a single round that does not fit is derived rank by rank and not kept.
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "plan/verify/internal.hpp"

namespace gar::verify_detail {
namespace {

constexpr std::size_t kMatrixBytes = std::size_t{160} << 20;
constexpr std::size_t kSmallMatrixBytes = std::size_t{1} << 20;
constexpr std::size_t kReceiveBytes = std::size_t{96} << 20;

/// A receive in blocks.
struct Receive {
  std::int32_t peer;
  std::uint32_t begin;
  std::uint32_t end : 31;
  std::uint32_t accumulate : 1;
};

/// All receives of one rank in one round, sorted by begin, and the blocks that they lie in.
struct Receives {
  std::int32_t rank;
  std::uint32_t begin;
  std::uint32_t end;
  std::span<const Receive> all;
};

/// How `Receives` are kept: the span follows from the order.
struct Group {
  std::int32_t rank;
  std::uint32_t begin;
  std::uint32_t end;
  std::uint32_t num_receives;
};

constexpr std::size_t kMostReceives = kReceiveBytes / (sizeof(Receive) + sizeof(Group));

/// Hands the receives of all ranks round by round to a visitor.
class Rounds {
 public:
  Rounds(Programs& programs, const Inspection& inspection) : programs_(programs), inspection_(inspection) {}

  /// `on_rank(receives)` gets what one rank receives in one round; `on_end()` ends a round.
  template <class OnRank, class OnEnd>
  void visit(const OnRank& on_rank, const OnEnd& on_end) {
    const auto& counts = inspection_.receives_of_round;
    constexpr auto kMost = static_cast<std::int64_t>(kMostReceives);
    for (std::size_t first = 0; first < counts.size();) {
      std::int64_t total = counts[first];
      std::size_t last = first + 1;
      while (last < counts.size() && total + counts[last] <= kMost) total += counts[last++];
      if (total > kMost) {
        visit_unkept(first, on_rank);
        on_end();
      } else {
        keep(first, last);
        visit_kept(on_rank, on_end);
      }
      first = last;
    }
  }

 private:
  template <class Use>
  void each_step(std::int64_t rank, std::size_t first, std::size_t last, const Use& use) {
    for (const Step& step : programs_.stored(rank).steps) {
      if (programs_.runs_stored() && !step.recvs.empty()) {
        const std::size_t round = programs_.round_of_stored(step.number);
        if (round >= first && round < last) use(round, step.recvs, false);
      }
      if (programs_.has_mirror(step.number) && !step.sends.empty()) {
        const std::size_t round = programs_.round_of_mirror(step.number);
        if (round >= first && round < last) use(round, step.sends, true);
      }
    }
  }

  Group convert(std::int64_t rank, std::span<const Message> messages, bool is_mirror, Receive* out) const {
    std::int64_t known_unit = -1;
    std::uint32_t known_block = 0;
    const auto block_of = [&](std::int64_t unit) {
      if (unit != known_unit) {
        known_unit = unit;
        known_block = inspection_.blocks.index_of(unit);
      }
      return known_block;
    };
    Group group{static_cast<std::int32_t>(rank), 0, 0, static_cast<std::uint32_t>(messages.size())};
    bool is_sorted = true;
    std::uint32_t last_begin = 0;
    Receive* to = out;
    for (const Message& m : messages) {
      const std::uint32_t begin = block_of(m.begin);
      const std::uint32_t end = block_of(m.end);
      *to++ = {m.peer, begin, end & 0x7fffffffU, m.accumulate && !is_mirror ? 1U : 0U};
      is_sorted &= begin >= last_begin;
      last_begin = begin;
      group.end = std::max(group.end, end);
    }
    if (!is_sorted) std::sort(out, to, [](const Receive& a, const Receive& b) { return a.begin < b.begin; });
    group.begin = out->begin;
    return group;
  }

  void keep(std::size_t first, std::size_t last) {
    if (is_kept_ && first == first_ && last == last_) return;
    const auto& counts = inspection_.receives_of_round;
    rounds_.assign(last - first, {});
    std::size_t total = 0;
    for (std::size_t round = first; round < last; ++round) {
      rounds_[round - first].start = rounds_[round - first].end = total;
      total += static_cast<std::size_t>(counts[round]);
    }
    if (total > capacity_) {
      receives_ = std::make_unique_for_overwrite<Receive[]>(total);
      capacity_ = total;
    }
    for (std::int64_t rank = 0; rank < programs_.num_ranks(); ++rank)
      each_step(rank, first, last, [&](std::size_t round, std::span<const Message> messages, bool is_mirror) {
        Kept& kept = rounds_[round - first];
        kept.groups.push_back(convert(rank, messages, is_mirror, &receives_[kept.end]));
        kept.end += messages.size();
      });
    is_kept_ = true;
    first_ = first;
    last_ = last;
  }

  template <class OnRank, class OnEnd>
  void visit_kept(const OnRank& on_rank, const OnEnd& on_end) {
    for (const Kept& kept : rounds_) {
      const Receive* at = receives_.get() + kept.start;
      for (const Group& g : kept.groups) {
        on_rank(Receives{g.rank, g.begin, g.end, {at, g.num_receives}});
        at += g.num_receives;
      }
      on_end();
    }
  }

  template <class OnRank>
  void visit_unkept(std::size_t wanted, const OnRank& on_rank) {
    std::vector<Receive> all;
    for (std::int64_t rank = 0; rank < programs_.num_ranks(); ++rank)
      each_step(rank, wanted, wanted + 1, [&](std::size_t, std::span<const Message> messages, bool is_mirror) {
        all.resize(messages.size());
        const Group g = convert(rank, messages, is_mirror, all.data());
        on_rank(Receives{g.rank, g.begin, g.end, all});
      });
  }

  struct Kept {
    std::size_t start = 0;
    std::size_t end = 0;
    std::vector<Group> groups;
  };

  Programs& programs_;
  const Inspection& inspection_;
  bool is_kept_ = false;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
  std::size_t capacity_ = 0;
  std::unique_ptr<Receive[]> receives_;  // of the rounds [first_, last_), in order, by rank within a round
  std::vector<Kept> rounds_;
};

/// Which values the matrix holds.
enum class Values { kFingerprints, kCounts, kSets };

/// Ranks whose contributions a set of one word tells apart.
constexpr std::int64_t kRanksOfSet = 64;

/// What the ranks start with: an element of their fingerprints, one, or a set for those from `first_rank` on.
struct Start {
  const Keys* keys = nullptr;
  std::size_t element = 0;
  std::int64_t first_rank = 0;
};

/// The state of all ranks in the blocks [first_block, first_block + num_columns).
template <Values values>
class StateMatrix {
 public:
  StateMatrix(const Plan& plan, const Blocks& blocks, std::size_t max_columns, const Start& start)
      : plan_(plan),
        blocks_(blocks),
        start_(start),
        stride_(max_columns + (max_columns % 16 == 0 ? 8 : 0)),  // columns do not share a cache set
        cells_(std::make_unique_for_overwrite<std::uint64_t[]>(rows() * stride_)),
        scratch_(std::make_unique_for_overwrite<std::uint64_t[]>(rows() * stride_)) {}

  void start(std::uint32_t first_block, std::uint32_t end_block) {
    first_ = first_block;
    end_ = end_block;
    std::uint64_t total = 0;
    for (std::size_t r = 0; r < rows(); ++r) {
      const std::uint64_t value = start_value(static_cast<std::int64_t>(r));
      total = add(total, value);
      std::fill_n(row(r), end_ - first_, value);
    }
    wanted_.assign(end_ - first_, reduced(total));
    if (plan_.collective == Collective::kAllGather) {
      const std::int64_t size = plan_.num_units / plan_.num_ranks;
      for (std::uint32_t b = first_; b < end_; ++b)
        wanted_[b - first_] = reduced(start_value(blocks_.keys()[b] / size));
    }
  }

  void on_rank(const Receives& receives) {
    if (receives.end <= first_ || receives.begin >= end_) return;
    const std::uint64_t* own = row(static_cast<std::size_t>(receives.rank));
    std::uint32_t covered = first_;
    std::uint64_t* at = nullptr;  // scratch place of block `covered`
    for (const Receive& m : receives.all) {
      const std::uint32_t begin = std::max(m.begin, first_);
      const std::uint32_t end = std::min<std::uint32_t>(m.end, end_);
      if (begin >= end) continue;
      const std::uint64_t* sent = row(static_cast<std::size_t>(m.peer)) + (begin - first_);
      const std::uint32_t fresh = std::clamp(covered, begin, end);
      if (fresh > begin) sent = add_to(at - (covered - begin), sent, fresh - begin);
      if (fresh == end) continue;
      if (at == nullptr || fresh > covered) at = open_segment(receives.rank, fresh);
      at = std::copy_n(sent, end - fresh, at);
      if (m.accumulate) add_to(at - (end - fresh), own + (fresh - first_), end - fresh);
      segments_.back().end = end;
      used_ += end - fresh;
      covered = end;
    }
  }

  void on_end() {
    const std::uint64_t* from = scratch_.get();
    for (const Segment& s : segments_) {
      std::copy_n(from, s.end - s.begin, row(static_cast<std::size_t>(s.rank)) + (s.begin - first_));
      from += s.end - s.begin;
    }
    segments_.clear();
    used_ = 0;
  }

  [[nodiscard]] std::optional<WrongCell> check() const {
    for (std::size_t r = 0; r < rows(); ++r) {
      std::uint32_t begin = first_;
      std::uint32_t end = end_;
      const auto rank = static_cast<std::int64_t>(r);
      if (plan_.collective == Collective::kReduceScatter) {
        const Interval own = block_of_rank(plan_, rank);
        begin = std::clamp(blocks_.index_of(own.begin), first_, end_);
        end = std::clamp(blocks_.index_of(own.end), first_, end_);
      }
      const std::uint64_t* cells = row(r);
      std::uint64_t differs = 0;  // zero says that all is well; otherwise a value may only not be fully reduced
      for (std::uint32_t c = begin - first_; c < end - first_; ++c) differs |= cells[c] ^ wanted_[c];
      if (differs == 0) continue;
      if (auto wrong = wrong_cell(rank, begin - first_, end - first_)) return wrong;
    }
    return std::nullopt;
  }

 private:
  struct Segment {
    std::int32_t rank;
    std::uint32_t begin;
    std::uint32_t end;
  };

  static std::uint64_t add(std::uint64_t a, std::uint64_t b) {
    if constexpr (values == Values::kFingerprints) return add_mod(a, b);
    if constexpr (values == Values::kSets) return a | b;
    return add_saturating(a, b);
  }
  [[nodiscard]] std::uint64_t start_value(std::int64_t rank) const {
    if constexpr (values == Values::kFingerprints) return contribution(*start_.keys, rank, start_.element);
    if constexpr (values == Values::kCounts) return 1;
    const std::int64_t bit = rank - start_.first_rank;
    return bit >= 0 && bit < kRanksOfSet ? std::uint64_t{1} << static_cast<unsigned>(bit) : 0;
  }
  [[nodiscard]] std::size_t rows() const { return static_cast<std::size_t>(plan_.num_ranks); }
  [[nodiscard]] std::uint64_t* row(std::size_t rank) const { return &cells_[rank * stride_]; }

  std::uint64_t* open_segment(std::int32_t rank, std::uint32_t begin) {
    segments_.push_back({rank, begin, begin});
    return &scratch_[used_];
  }

  /// Adds `size` cells; returns what follows the addends.
  static const std::uint64_t* add_to(std::uint64_t* __restrict to, const std::uint64_t* __restrict from,
                                     std::uint32_t size) {
    for (std::uint32_t i = 0; i < size; ++i) to[i] = add(to[i], from[i]);
    return from + size;
  }
  static std::uint64_t reduced(std::uint64_t a) { return values == Values::kFingerprints ? canonical(a) : a; }

  /// The first of the columns [begin, end) that are wrong, all in the same way.
  [[nodiscard]] std::optional<WrongCell> wrong_cell(std::int64_t rank, std::uint32_t begin, std::uint32_t end) const {
    const std::uint64_t* cells = row(static_cast<std::size_t>(rank));
    std::uint32_t column = begin;
    while (column < end && reduced(cells[column]) == wanted_[column]) ++column;
    if (column == end) return std::nullopt;
    std::uint32_t last = column + 1;
    while (last < end && cells[last] == cells[column] && wanted_[last] == wanted_[column]) ++last;
    return WrongCell{rank, {blocks_.keys()[first_ + column], blocks_.keys()[first_ + last]}};
  }

  const Plan& plan_;
  const Blocks& blocks_;
  Start start_;
  std::size_t stride_;
  std::unique_ptr<std::uint64_t[]> cells_;
  std::unique_ptr<std::uint64_t[]> scratch_;
  std::size_t used_ = 0;
  std::vector<Segment> segments_;
  std::uint32_t first_ = 0;
  std::uint32_t end_ = 0;
  std::vector<std::uint64_t> wanted_;  // what each block must end as
};

/// How many columns are run at once. Few columns keep the matrix in the cache and need few fresh pages, but every batch
/// visits every receive: a batch has at least kSmallMatrixBytes and some cells for each receive, and when receives have
/// to be derived anew for each batch, as many columns as the memory allows.
std::uint32_t columns_per_batch(const Inspection& inspection, std::size_t num_ranks, std::size_t num_matrices) {
  const auto receives = static_cast<std::size_t>(
      std::accumulate(inspection.receives_of_round.begin(), inspection.receives_of_round.end(), std::int64_t{0}));
  const std::size_t most = kMatrixBytes / 2 / sizeof(std::uint64_t) / num_matrices;
  const std::size_t wanted = std::max(kSmallMatrixBytes / sizeof(std::uint64_t), receives / 4);
  const std::size_t cells = receives > kMostReceives ? most : std::min(wanted, most);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(cells / num_ranks, 1, inspection.blocks.keys().size() - 1));
}

/// Takes the matrices through the plan, side by side.
template <class... Matrices>
std::optional<WrongCell> run_side_by_side(const Inspection& inspection, Rounds& rounds,
                                          std::tuple<Matrices...> matrices, std::uint32_t columns) {
  const auto num_blocks = static_cast<std::uint32_t>(inspection.blocks.keys().size() - 1);
  const auto each = [&](const auto& use) { std::apply([&](auto&... matrix) { (use(matrix), ...); }, matrices); };
  for (std::uint32_t first = 0; first < num_blocks; first += std::min(columns, num_blocks - first)) {
    const std::uint32_t end = first + std::min(columns, num_blocks - first);
    each([&](auto& matrix) { matrix.start(first, end); });
    rounds.visit([&](const Receives& receives) { each([&](auto& matrix) { matrix.on_rank(receives); }); },
                 [&] { each([](auto& matrix) { matrix.on_end(); }); });
    std::optional<WrongCell> wrong;
    each([&](auto& matrix) {
      if (!wrong) wrong = matrix.check();
    });
    if (wrong) return wrong;
  }
  return std::nullopt;
}

/// The runs of one proof.
class Runs {
 public:
  Runs(Programs& programs, const Inspection& inspection)
      : programs_(programs), inspection_(inspection), rounds_(programs, inspection) {}

  template <Values... kinds>
  std::optional<WrongCell> run(const std::array<Start, sizeof...(kinds)>& starts) {
    const std::uint32_t columns =
        columns_per_batch(inspection_, static_cast<std::size_t>(programs_.num_ranks()), sizeof...(kinds));
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return run_side_by_side(
          inspection_, rounds_,
          std::tuple(StateMatrix<kinds>(programs_.plan(), inspection_.blocks, columns, starts[i])...), columns);
    }
    (std::make_index_sequence<sizeof...(kinds)>{});
  }

 private:
  Programs& programs_;
  const Inspection& inspection_;
  Rounds rounds_;
};

/// A set says which ranks are in a value, the counts say that there are as many contributions as ranks: each is there
/// once.
std::optional<WrongCell> run_on_sets(Runs& runs, std::int64_t num_ranks) {
  using enum Values;
  for (std::int64_t first = 0; first < num_ranks; first += kRanksOfSet) {
    const Start start{.first_rank = first};
    const auto wrong = first == 0 ? runs.run<kSets, kCounts>({start, start}) : runs.run<kSets>({start});
    if (wrong) return wrong;
  }
  return std::nullopt;
}

}  // namespace

std::optional<WrongCell> run_on_contributions(Programs& programs, const Inspection& inspection, const Proof& proof) {
  using enum Values;
  Runs runs(programs, inspection);
  if (proof.is_exact) return run_on_sets(runs, programs.num_ranks());
  const Start one{.keys = &proof.keys, .element = 0};
  const Start two{.keys = &proof.keys, .element = 1};
  const bool has_two = proof.num_elements > 1;
  if (inspection.coefficients_are_small) {
    return has_two ? runs.run<kFingerprints, kFingerprints>({one, two}) : runs.run<kFingerprints>({one});
  }
  return has_two ? runs.run<kFingerprints, kFingerprints, kCounts>({one, two, Start{}})
                 : runs.run<kFingerprints, kCounts>({one, Start{}});
}

}  // namespace gar::verify_detail
