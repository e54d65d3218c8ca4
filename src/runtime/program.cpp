// From a plan's per-rank program (in units) to a chunk program (in elements).
//
// Every rank maps units to elements in the same way, so both ends of a message agree on its interval and on whether it
// is empty (then it does not exist). Boundaries inside an AllReduce are rounded down to whole vectors of kGrain
// elements when the pieces are large enough, so that two ranks do not write to one cache line.
//
// Shared memory needs to know where a *sender* has put its data: the layout of a sender's staging space follows from
// its own program alone, so a receiver can derive it as well. O(programs of the peers).
#include "runtime/program.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "gar/errors.hpp"

namespace gar {

namespace {

constexpr std::int64_t kLongPiece = 1024;     // elements: staged intervals from here on begin at multiples of kGrain,
constexpr std::int64_t kShortGrain = 4;       // shorter ones, of which there may be many, at multiples of this
constexpr std::int64_t kGrainsPerPiece = 16;  // round boundaries only where a rank's share is larger than this

std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

/// A set of disjoint intervals, sorted; touching ones are merged.
class IntervalSet {
 public:
  void add(std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    auto first = std::lower_bound(intervals_.begin(), intervals_.end(), begin,
                                  [](const Interval& i, std::int64_t b) { return i.end < b; });
    auto last = first;
    Interval merged{begin, end};
    while (last != intervals_.end() && last->begin <= end) {
      merged.begin = std::min(merged.begin, last->begin);
      merged.end = std::max(merged.end, last->end);
      ++last;
    }
    first = intervals_.erase(first, last);
    intervals_.insert(first, merged);
  }
  /// Does [begin, end) meet the set?
  [[nodiscard]] bool meets(std::int64_t begin, std::int64_t end) const {
    const auto i = after(begin);
    return begin < end && i != intervals_.end() && i->begin < end;
  }
  [[nodiscard]] bool contains(std::int64_t element) const {
    const auto i = after(element);
    return i != intervals_.end() && i->begin <= element;
  }
  /// The first place after `element` where membership changes, at most `limit`.
  [[nodiscard]] std::int64_t next_change(std::int64_t element, std::int64_t limit) const {
    const auto i = after(element);
    if (i == intervals_.end()) return limit;
    return std::min(limit, i->begin <= element ? i->end : i->begin);
  }

 private:
  [[nodiscard]] std::vector<Interval>::const_iterator after(std::int64_t element) const {
    return std::lower_bound(intervals_.begin(), intervals_.end(), element,
                            [](const Interval& i, std::int64_t e) { return i.end <= e; });
  }
  std::vector<Interval> intervals_;
};

struct Mapper {
  std::int64_t num_units = 1;
  std::int64_t count = 0;
  bool is_rounded = false;

  [[nodiscard]] std::int64_t operator()(std::int64_t unit) const {
    const std::int64_t element = element_of_unit(unit, num_units, count);
    return is_rounded && unit < num_units ? element / kGrain * kGrain : element;
  }
};

/// The steps of one rank that have a message, with staged sends.
std::vector<ChunkStep> raw_steps(const PlanIndex& index, std::int64_t rank, const Mapper& map, std::int64_t& staging) {
  std::vector<ChunkStep> out;
  const RankProgram program = index.program(rank);
  staging = 0;
  for (const Step& step : program.steps) {
    ChunkStep chunk_step;
    chunk_step.number = step.number;
    chunk_step.staging_begin = staging;
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> staged;
    for (const Message& m : step.sends) {
      const std::int64_t begin = map(m.begin);
      const std::int64_t end = map(m.end);
      if (begin == end) continue;
      const auto [place, is_new] = staged.try_emplace({begin, end}, staging - chunk_step.staging_begin);
      if (is_new) staging += round_up(end - begin, end - begin < kLongPiece ? kShortGrain : kGrain);
      ChunkSend send;
      send.peer = m.peer;
      send.begin = begin;
      send.end = end;
      send.staged_at = place->second;
      chunk_step.sends.push_back(std::move(send));
    }
    for (const Message& m : step.recvs) {
      const std::int64_t begin = map(m.begin);
      const std::int64_t end = map(m.end);
      if (begin == end) continue;
      ChunkRecv recv;
      recv.peer = m.peer;
      recv.begin = begin;
      recv.end = end;
      recv.accumulate = m.accumulate;
      chunk_step.recvs.push_back(recv);
    }
    if (!chunk_step.sends.empty() || !chunk_step.recvs.empty()) out.push_back(std::move(chunk_step));
  }
  return out;
}

class Compiler {
 public:
  Compiler(const PlanIndex& index, std::int64_t rank, ChunkProgram& program)
      : index_(index), rank_(rank), program_(program) {
    map_.num_units = index.plan().num_units;
    map_.count = program.count();
    map_.is_rounded = program.num_blocks == 1 && map_.count >= kGrain * kGrainsPerPiece * index.plan().num_ranks;
    if (index.plan().collective == Collective::kAllGather) written_.add(0, program.count());
  }

  void compile() {
    program_.steps = raw_steps(index_, rank_, map_, program_.staging_count);
    for (ChunkStep& step : program_.steps) {
      for (ChunkSend& send : step.sends) {
        send.parts = parts(send.begin, send.end);
      }
      for (const ChunkSend& send : step.sends) sent_.add(send.begin, send.end);
      reductions(step);
    }
    find_sources();
    mark_last();
  }

 private:
  /// Where [begin, end) lies in memory before the step.
  std::vector<Part> parts(std::int64_t begin, std::int64_t end) const {
    std::vector<Part> out;
    while (begin < end) {
      const std::int64_t block = begin / program_.block_count;
      const std::int64_t stop = written_.next_change(begin, std::min(end, (block + 1) * program_.block_count));
      out.push_back({written_.contains(begin) ? Space::kWork : Space::kInput, block,
                     begin - block * program_.block_count, stop - begin});
      begin = stop;
    }
    return out;
  }

  /// Cuts what a step receives so that every piece has one set of operands, one block and one place of its own value.
  void reductions(ChunkStep& step) {
    std::vector<std::int64_t> cuts;
    for (const ChunkRecv& recv : step.recvs) {
      cuts.push_back(recv.begin);
      cuts.push_back(recv.end);
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<std::int32_t> by_begin(step.recvs.size());
    for (std::size_t i = 0; i < by_begin.size(); ++i) by_begin[i] = static_cast<std::int32_t>(i);
    std::stable_sort(by_begin.begin(), by_begin.end(),
                     [&](std::int32_t a, std::int32_t b) { return recv_at(step, a).begin < recv_at(step, b).begin; });
    std::vector<std::int32_t> active;  // ascending: recvs are sorted by peer
    std::size_t next = 0;
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      std::erase_if(active, [&](std::int32_t i) { return recv_at(step, i).end <= cuts[c]; });
      for (; next < by_begin.size() && recv_at(step, by_begin[next]).begin == cuts[c]; ++next) {
        active.insert(std::upper_bound(active.begin(), active.end(), by_begin[next]), by_begin[next]);
      }
      if (!active.empty()) reduce_piece(step, active, cuts[c], cuts[c + 1]);
    }
    for (const ChunkRecv& recv : step.recvs) {
      step.overwrites_sent = step.overwrites_sent || sent_.meets(recv.begin, recv.end);
    }
    for (const ChunkRecv& recv : step.recvs) written_.add(recv.begin, recv.end);
    mark_direct(step);
  }

  static const ChunkRecv& recv_at(const ChunkStep& step, std::int32_t i) {
    return step.recvs[static_cast<std::size_t>(i)];
  }

  void reduce_piece(ChunkStep& step, const std::vector<std::int32_t>& active, std::int64_t begin, std::int64_t end) {
    const bool has_own = recv_at(step, active.front()).accumulate;
    for (const Part& part : parts(begin, end)) {
      Reduction reduction;
      reduction.out = part;
      reduction.out.space = Space::kWork;
      reduction.has_own = has_own;
      reduction.own = part.space;
      for (const std::int32_t i : active) {
        const ChunkRecv& recv = recv_at(step, i);
        if (recv.peer < rank_) ++reduction.own_position;
        reduction.operands.push_back({i, begin - recv.begin});
      }
      step.reductions.push_back(std::move(reduction));
      begin += part.count;
    }
  }

  static void mark_direct(ChunkStep& step) {
    // What the step itself sends must be read before anything arrives in its place.
    IntervalSet sent_now;
    for (const ChunkSend& send : step.sends) sent_now.add(send.begin, send.end);
    std::vector<int> uses(step.recvs.size(), 0);
    for (const Reduction& r : step.reductions) {
      const bool is_plain = !r.has_own && r.operands.size() == 1;
      for (const Operand& operand : r.operands) {
        const auto i = static_cast<std::size_t>(operand.recv);
        ChunkRecv& recv = step.recvs[i];
        ++uses[i];
        recv.is_direct =
            uses[i] == 1 && is_plain && r.out.count == recv.end - recv.begin && !sent_now.meets(recv.begin, recv.end);
        recv.target = r.out;
      }
    }
  }

  /// Finds the staging place of everything that is received.
  void find_sources() {
    struct Source {
      std::int32_t step = 0;
      std::int64_t staged_at = 0;
    };
    using Key = std::tuple<std::int32_t, std::int64_t, std::int64_t, std::int64_t>;  // peer, step number, begin, end
    std::map<Key, Source> sources;
    std::vector<std::int32_t> peers;
    for (const ChunkStep& step : program_.steps) {
      for (const ChunkRecv& recv : step.recvs) peers.push_back(recv.peer);
    }
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    for (const std::int32_t peer : peers) {
      std::int64_t staging = 0;
      const std::vector<ChunkStep> steps = raw_steps(index_, peer, map_, staging);
      for (std::size_t s = 0; s < steps.size(); ++s) {
        for (const ChunkSend& send : steps[s].sends) {
          if (send.peer != rank_) continue;
          sources[{peer, steps[s].number, send.begin, send.end}] = {static_cast<std::int32_t>(s),
                                                                    steps[s].staging_begin + send.staged_at};
        }
      }
    }
    for (ChunkStep& step : program_.steps) {
      for (ChunkRecv& recv : step.recvs) {
        const auto source = sources.find({recv.peer, step.number, recv.begin, recv.end});
        if (source == sources.end()) {
          throw PlanError("step " + std::to_string(step.number) + ": rank " + std::to_string(rank_) +
                          " receives a message that rank " + std::to_string(recv.peer) + " does not send");
        }
        recv.peer_step = source->second.step;
        recv.staged_at = source->second.staged_at;
      }
    }
  }

  void mark_last() {
    std::vector<std::int32_t> seen;
    std::vector<std::int32_t> receivers;
    for (auto step = program_.steps.rbegin(); step != program_.steps.rend(); ++step) {
      for (auto recv = step->recvs.rbegin(); recv != step->recvs.rend(); ++recv) {
        if (std::find(seen.begin(), seen.end(), recv->peer) != seen.end()) continue;
        recv->is_last_of_peer = true;
        seen.push_back(recv->peer);
      }
      for (const ChunkSend& send : step->sends) receivers.push_back(send.peer);
    }
    std::sort(receivers.begin(), receivers.end());
    receivers.erase(std::unique(receivers.begin(), receivers.end()), receivers.end());
    program_.num_receivers = static_cast<std::int32_t>(receivers.size());
  }

  const PlanIndex& index_;
  std::int64_t rank_;
  ChunkProgram& program_;
  Mapper map_;
  IntervalSet written_;
  IntervalSet sent_;
};

}  // namespace

ChunkProgram compile_chunk(const PlanIndex& index, std::int64_t rank, std::int64_t num_blocks,
                           std::int64_t block_count) {
  ChunkProgram program;
  program.num_blocks = num_blocks;
  program.block_count = block_count;
  if (block_count > 0) Compiler(index, rank, program).compile();
  return program;
}

std::int64_t largest_staging(const PlanIndex& index, std::int64_t num_blocks, std::int64_t block_count) {
  Mapper map;
  map.num_units = index.plan().num_units;
  map.count = num_blocks * block_count;
  map.is_rounded = num_blocks == 1 && map.count >= kGrain * kGrainsPerPiece * index.plan().num_ranks;
  std::int64_t largest = 0;
  for (std::int64_t rank = 0; rank < index.plan().num_ranks; ++rank) {
    std::int64_t staging = 0;
    raw_steps(index, rank, map, staging);
    largest = std::max(largest, staging);
  }
  return largest;
}

}  // namespace gar
