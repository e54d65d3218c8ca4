// Movements without a plan.
//
// Problem: operations that are no AllReduce, ReduceScatter or AllGather, on N ranks with S elements in a vector or
// block. Idea: a program for each rank is easily said, so there is no plan to be searched and proven:
//   broadcast   a binomial tree from the root: a rank has its vector after at most log2(N) hops. Where all can read
//               what one has staged, the root serves all at once.
//   reduce      the mirror image: a rank combines what its children send with its own vector in one pass, and
//               sends that on. Where all can read what one has staged, the root reads from all.
//   scatter     the root sends N - 1 blocks, gather: it receives as many.
//   all_to_all  N - 1 steps: in step k a rank sends to the one k after it and receives from the one k before it,
//               so each rank has one sender and one receiver at a time.
// Vectors are cut into chunks of equal length that follow each other through these steps (runtime/schedule.hpp).
//
// Shared memory needs to know where a sender has staged a message. That follows from the sender's program: in trees,
// scatter and gather from its place alone; in all_to_all from the lengths of the messages of its steps before, O(N) for
// each peer.
#include "runtime/movement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/hash.hpp"
#include "base/index.hpp"
#include "gar/errors.hpp"

namespace gar {

namespace {

std::int64_t rounded_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

/// What the staging space of a message of this length is a multiple of, so that the next one begins at one.
std::int64_t staging_grain(std::int64_t length) {
  constexpr std::int64_t kShort = 4;
  constexpr std::int64_t kLong = 1024;
  return length < kShort ? 1 : length < kLong ? kShort : kGrain;
}
std::int64_t staged(std::int64_t length) { return rounded_up(length, staging_grain(length)); }

ChunkSend sending(int peer, const Part& from, std::int64_t staged_at) {
  ChunkSend out;
  out.peer = peer;
  out.end = from.count;
  out.parts = {from};
  out.staged_at = staged_at;
  return out;
}

/// A message that ends in `target` as it is.
ChunkRecv receiving(int peer, const Part& target, std::int32_t peer_step, std::int64_t staged_at) {
  ChunkRecv out;
  out.peer = peer;
  out.end = target.count;
  out.is_direct = true;
  out.target = target;
  out.peer_step = peer_step;
  out.staged_at = staged_at;
  out.is_last_of_peer = true;
  return out;
}

void add_plain(ChunkStep& step, const ChunkRecv& recv) {
  Reduction copy;
  copy.out = recv.target;
  copy.operands = {{static_cast<std::int32_t>(step.recvs.size()), 0}};
  step.recvs.push_back(recv);
  step.reductions.push_back(std::move(copy));
}

/// The binomial tree over the ranks, numbered from the root: the parent of v lacks v's lowest bit. Flat: the root is
/// everybody's parent.
class Tree {
 public:
  Tree(const MovementPlace& place, int root) : place_(place), root_(root) {
    number_ = (place.rank - root + place.size) % place.size;
  }
  [[nodiscard]] bool is_root() const { return number_ == 0; }
  [[nodiscard]] int parent() const { return rank_of(place_.is_flat ? 0 : number_ & (number_ - 1)); }
  /// Those with the most ranks below them first.
  [[nodiscard]] std::vector<int> children() const {
    std::vector<int> out;
    if (place_.is_flat) {
      for (int v = 1; is_root() && v < place_.size; ++v) out.push_back(rank_of(v));
      return out;
    }
    const int limit = is_root() ? place_.size : number_ & -number_;
    for (int bit = static_cast<int>(std::bit_floor(static_cast<unsigned>(place_.size))); bit > 0; bit /= 2) {
      if (bit < limit && number_ + bit < place_.size) out.push_back(rank_of(number_ + bit));
    }
    return out;
  }
  [[nodiscard]] bool has_children(int rank) const {
    const MovementPlace other{rank, place_.size, place_.limits, place_.is_flat};
    return !Tree(other, root_).children().empty();
  }
  /// Edges to the root.
  [[nodiscard]] int depth() const {
    return place_.is_flat ? (is_root() ? 0 : 1) : std::popcount(static_cast<unsigned>(number_));
  }
  /// No rank is deeper.
  [[nodiscard]] int height() const { return place_.is_flat ? 1 : std::bit_width(static_cast<unsigned>(place_.size)); }

 private:
  [[nodiscard]] int rank_of(int number) const { return (number + root_) % place_.size; }

  MovementPlace place_;
  int root_;
  int number_;
};

ChunkProgram broadcast(const Tree& tree, std::int64_t length) {
  ChunkProgram out;
  if (!tree.is_root()) {
    ChunkStep step;
    step.number = tree.depth() - 1;
    // The parent's sends are its second step, unless it is the root.
    add_plain(step, receiving(tree.parent(), {Space::kWork, 0, 0, length}, tree.depth() > 1 ? 1 : 0, 0));
    out.steps.push_back(std::move(step));
  }
  const std::vector<int> children = tree.children();
  if (children.empty()) return out;
  ChunkStep step;
  step.number = tree.depth();
  for (const int child : children) {
    step.sends.push_back(sending(child, {tree.is_root() ? Space::kInput : Space::kWork, 0, 0, length}, 0));
  }
  out.staging_count = length;
  out.num_receivers = static_cast<std::int32_t>(children.size());
  out.steps.push_back(std::move(step));
  return out;
}

ChunkProgram reduction(const Tree& tree, int rank, std::int64_t length) {
  ChunkProgram out;
  std::vector<int> children = tree.children();
  std::sort(children.begin(), children.end());
  if (!children.empty()) {
    ChunkStep step;
    step.number = tree.height() - tree.depth() - 1;
    Reduction all;
    all.out = {Space::kWork, 0, 0, length};
    all.has_own = true;
    all.own = Space::kInput;
    for (const int child : children) {
      if (child < rank) ++all.own_position;
      ChunkRecv recv = receiving(child, all.out, tree.has_children(child) ? 1 : 0, 0);
      recv.is_direct = false;
      recv.accumulate = true;
      all.operands.push_back({static_cast<std::int32_t>(step.recvs.size()), 0});
      step.recvs.push_back(recv);
    }
    step.reductions.push_back(std::move(all));
    out.steps.push_back(std::move(step));
  }
  if (tree.is_root()) return out;
  ChunkStep step;
  step.number = tree.height() - tree.depth();
  step.sends.push_back(sending(tree.parent(), {children.empty() ? Space::kInput : Space::kWork, 0, 0, length}, 0));
  out.staging_count = length;
  out.num_receivers = 1;
  out.steps.push_back(std::move(step));
  return out;
}

ChunkProgram scatter(const MovementPlace& place, int root, std::int64_t length) {
  ChunkProgram out;
  ChunkStep step;
  const auto place_of = [&](int rank) { return (rank < root ? rank : rank - 1) * staged(length); };
  if (place.rank == root) {
    for (int r = 0; r < place.size; ++r) {
      if (r != root) step.sends.push_back(sending(r, {Space::kInput, r, 0, length}, place_of(r)));
    }
    out.num_receivers = place.size - 1;
    out.staging_count = out.num_receivers * staged(length);
  } else {
    add_plain(step, receiving(root, {Space::kWork, 0, 0, length}, 0, place_of(place.rank)));
  }
  out.steps.push_back(std::move(step));
  return out;
}

ChunkProgram gather(const MovementPlace& place, int root, std::int64_t length) {
  ChunkProgram out;
  ChunkStep step;
  if (place.rank == root) {
    for (int r = 0; r < place.size; ++r) {
      if (r != root) add_plain(step, receiving(r, {Space::kWork, r, 0, length}, 0, 0));
    }
  } else {
    step.sends.push_back(sending(root, {Space::kInput, 0, 0, length}, 0));
    out.num_receivers = 1;
    out.staging_count = length;
  }
  out.steps.push_back(std::move(step));
  return out;
}

/// What of each message belongs to a chunk.
struct Cut {
  const BlockCounts& counts;
  std::int64_t begin = 0;
  std::int64_t length = 0;
  [[nodiscard]] std::int64_t operator()(int from, int to) const {
    return std::clamp<std::int64_t>(counts(from, to) - begin, 0, length);
  }
};

/// Where the message that `from` sends in step `k` is staged, and the index of that step in its program.
std::pair<std::int64_t, std::int32_t> staging_of(const Cut& cut, int from, int k, int size) {
  std::int64_t at = 0;
  std::int32_t step = 0;
  for (int before = 1; before < k; ++before) {
    const std::int64_t sent = cut(from, (from + before) % size);
    at += staged(sent);
    if (sent > 0 || cut((from - before + size) % size, from) > 0) ++step;
  }
  return {at, step};
}

ChunkProgram all_to_all(const MovementPlace& place, const Cut& cut) {
  ChunkProgram out;
  const int size = place.size;
  const int rank = place.rank;
  std::vector<std::int64_t> first_in(idx(size) + 1, 0);
  std::vector<std::int64_t> first_out(idx(size) + 1, 0);
  for (int r = 0; r < size; ++r) {
    first_in[idx(r) + 1] = first_in[idx(r)] + cut.counts(rank, r);
    first_out[idx(r) + 1] = first_out[idx(r)] + cut.counts(r, rank);
  }
  for (int k = 1; k < size; ++k) {
    const int to = (rank + k) % size;
    const int from = (rank - k + size) % size;
    const std::int64_t sent = cut(rank, to);
    const std::int64_t received = cut(from, rank);
    ChunkStep step;
    step.number = k;
    step.staging_begin = out.staging_count;
    if (sent > 0) {
      step.sends.push_back(sending(to, {Space::kInput, 0, first_in[idx(to)], sent}, 0));
      out.staging_count += staged(sent);
      ++out.num_receivers;
    }
    if (received > 0) {
      const auto [at, peer_step] = staging_of(cut, from, k, size);
      add_plain(step, receiving(from, {Space::kWork, 0, first_out[idx(from)], received}, peer_step, at));
    }
    if (sent > 0 || received > 0) out.steps.push_back(std::move(step));
  }
  return out;
}

/// Messages of a chunk that a rank stages in different places, at most.
int staged_messages(const MovementCall& call, int size) {
  return call.movement == Movement::kScatter || call.movement == Movement::kAllToAll ? size - 1 : 1;
}

/// Elements of a chunk of a message.
std::int64_t chunk_length(const MovementCall& call, const MovementPlace& place, std::int64_t largest) {
  const std::int64_t size = size_of(call.type);
  std::int64_t out = std::max<std::int64_t>(largest, 1);
  const TransportLimits& limits = place.limits;
  if (limits.staging_bytes > 0) {
    const int messages = staged_messages(call, place.size);
    std::int64_t most = limits.staging_bytes / size / std::max(messages, 1);
    most -= most % staging_grain(most);
    if (most == 0) {
      throw PlanError(fmt::format(
          "{}: {} blocks need {} bytes of staging memory at least, but a rank has {}; expected a larger staging_bytes "
          "(GAR_STAGING)",
          to_string(call.movement), messages, messages * size, limits.staging_bytes));
    }
    out = std::min(out, most);
  }
  if (limits.chunk_bytes > 0) out = std::min(out, std::max(kGrain, limits.chunk_bytes / size));
  return out;
}

}  // namespace

std::string_view to_string(Movement movement) {
  switch (movement) {
    case Movement::kBroadcast:
      return "broadcast";
    case Movement::kReduce:
      return "reduce";
    case Movement::kScatter:
      return "scatter";
    case Movement::kGather:
      return "gather";
    case Movement::kAllToAll:
      return "all_to_all";
    case Movement::kTransfer:
      break;
  }
  return "transfer";
}

std::int64_t BlockCounts::largest() const {
  return counts_.empty() ? count_ : *std::max_element(counts_.begin(), counts_.end());
}

Schedule schedule_movement(const MovementCall& call, const MovementPlace& place, const BlockCounts& counts) {
  Schedule out;
  out.block_count = call.count;
  out.element_size = size_of(call.type);
  const std::int64_t largest = counts.largest();
  const std::int64_t length = chunk_length(call, place, largest);
  out.chunk_block_count = length;
  out.num_chunks = std::max<std::int64_t>((largest + length - 1) / length, 1);
  const Tree tree(place, call.root);
  const auto program = [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * length;
    const std::int64_t rest = std::min(length, largest - begin);
    ChunkProgram made;
    switch (call.movement) {
      case Movement::kBroadcast:
      case Movement::kTransfer:
        made = broadcast(tree, rest);
        break;
      case Movement::kReduce:
        made = reduction(tree, place.rank, rest);
        break;
      case Movement::kScatter:
        made = scatter(place, call.root, rest);
        break;
      case Movement::kGather:
        made = gather(place, call.root, rest);
        break;
      case Movement::kAllToAll:
        made = all_to_all(place, {counts, begin, length});
        break;
    }
    made.block_count = rest;
    return made;
  };
  if (!call.in_counts.empty()) {
    for (std::int64_t chunk = 0; chunk < out.num_chunks; ++chunk) out.each.push_back(program(chunk));
  } else {
    if (out.num_chunks > 1) out.full = program(0);
    out.last = program(out.num_chunks - 1);
  }
  if (call.movement == Movement::kReduce && !tree.is_root() && !tree.children().empty()) {
    out.slot_scratch_bytes = length * out.element_size;
  }
  return out;
}

OwnBlock own_block(const MovementCall& call, const MovementPlace& place) {
  const bool is_root = place.rank == call.root;
  const auto sum_before = [&](const std::vector<std::int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.begin() + place.rank, std::int64_t{0});
  };
  switch (call.movement) {
    case Movement::kScatter:
      return is_root ? OwnBlock{place.rank * call.count, 0, call.count} : OwnBlock();
    case Movement::kGather:
      return is_root ? OwnBlock{0, place.rank * call.count, call.count} : OwnBlock();
    case Movement::kAllToAll:
      if (call.in_counts.empty()) return {place.rank * call.count, place.rank * call.count, call.count};
      return {sum_before(call.in_counts), sum_before(call.out_counts), call.in_counts[idx(place.rank)]};
    case Movement::kBroadcast:
    case Movement::kReduce:
    case Movement::kTransfer:
      break;
  }
  return {};
}

}  // namespace gar
