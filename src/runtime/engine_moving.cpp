// Movements: checked like every call, then run as programs without a plan (runtime/movement.hpp).
//
// All ranks meet first, in the transport's latency path. A root that only sends would otherwise be done before it could
// notice that another rank takes itself for the root; and where blocks differ, ranks tell each other how long they are.
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/index.hpp"
#include "runtime/engine_running.hpp"

namespace gar {

namespace {

constexpr std::uint64_t kDifferentBlocks = 1;  // in place of a root

bool has_different_blocks(const MovementCall& call) { return !call.in_counts.empty() || !call.out_counts.empty(); }

void require_that(bool condition, const MovementCall& call, const std::string& text) {
  if (!condition) throw InvalidArgument(fmt::format("{}: {}", to_string(call.movement), text));
}

/// Elements that a rank of a movement has at `in` and at `out`; -1: nothing is looked at there.
struct Extents {
  std::int64_t in = -1;
  std::int64_t out = -1;
};
Extents extents_of(const MovementCall& call, int rank, int size) {
  const bool is_root = rank == call.root;
  const std::int64_t whole = call.count * size;
  const auto sum = [](const std::vector<std::int64_t>& counts) {
    std::int64_t out = 0;
    for (const std::int64_t count : counts) out += count;
    return out;
  };
  switch (call.movement) {
    case Movement::kBroadcast:
      return {call.count, call.count};
    case Movement::kReduce:
      return {call.count, is_root ? call.count : -1};
    case Movement::kScatter:
      return {is_root ? whole : -1, call.count};
    case Movement::kGather:
      return {call.count, is_root ? whole : -1};
    case Movement::kTransfer:
      return is_root ? Extents{call.count, -1} : Extents{-1, call.count};
    case Movement::kAllToAll:
      break;
  }
  return has_different_blocks(call) ? Extents{sum(call.in_counts), sum(call.out_counts)} : Extents{whole, whole};
}

void check_blocks(const MovementCall& call, int rank, int size) {
  require_that(call.movement == Movement::kAllToAll, call, "in_counts and out_counts are for all_to_all alone");
  for (const std::vector<std::int64_t>* counts : {&call.in_counts, &call.out_counts}) {
    require_that(counts->size() == idx(size), call,
                 fmt::format("{} numbers of elements; expected one for each of the {} ranks", counts->size(), size));
    constexpr std::int64_t kMost = std::int64_t{1} << 46;
    for (const std::int64_t count : *counts) {
      require_that(count >= 0 && count <= kMost / size, call,
                   fmt::format("a block of {} elements; expected 0 to {}", count, kMost / size));
    }
  }
  require_that(call.count == 0, call, "both a count and counts; expected one of them");
  require_that(call.in_counts[idx(rank)] == call.out_counts[idx(rank)], call,
               fmt::format("rank {} has {} elements for itself, and expects {}; expected equal numbers", rank,
                           call.in_counts[idx(rank)], call.out_counts[idx(rank)]));
}

void check_memory(const MovementCall& call, int rank, int size) {
  require_that(call.movement != Movement::kBroadcast || call.count == 0 || call.in == call.out, call,
               "`in` and `out` differ; expected one vector as both, which the root gives and the others get");
  const Extents extents = extents_of(call, rank, size);
  require_that(extents.in <= 0 || call.in != nullptr, call,
               fmt::format("`in` is null on rank {}, which gives {} elements", rank, extents.in));
  require_that(extents.out <= 0 || call.out != nullptr, call,
               fmt::format("`out` is null on rank {}, which gets {} elements", rank, extents.out));
  if (extents.in <= 0 || extents.out <= 0) return;
  const std::int64_t bytes = size_of(call.type);
  const auto in = reinterpret_cast<std::intptr_t>(call.in);
  const auto out = reinterpret_cast<std::intptr_t>(call.out);
  if (in + extents.in * bytes <= out || out + extents.out * bytes <= in) return;
  const std::int64_t own = rank * call.count * bytes;
  const bool is_fine = call.movement == Movement::kScatter  ? out - in == own
                       : call.movement == Movement::kGather ? in - out == own
                                                            : call.movement != Movement::kAllToAll && in == out;
  require_that(is_fine, call,
               fmt::format("`in` and `out` overlap; expected separate buffers{}",
                           call.movement == Movement::kScatter    ? ", or `out` as this rank's block of `in`"
                           : call.movement == Movement::kGather   ? ", or `in` as this rank's block of `out`"
                           : call.movement == Movement::kAllToAll ? ""
                                                                  : ", or the same one"));
}

/// The movement as the executor knows it.
CollectiveCall as_collective_call(const MovementCall& call, int rank) {
  const std::int64_t own = call.in_counts.empty() ? call.count : call.in_counts[idx(rank)];
  return {.in = call.in, .out = call.out, .count = own, .type = call.type, .op = call.op};
}

}  // namespace

std::string describe_movement(const Signature& signature) {
  const std::string what =
      fmt::format("{} of {} {}", to_string(*signature.movement), signature.count, to_string(signature.type));
  switch (*signature.movement) {
    case Movement::kReduce:
      return fmt::format("{}, {}, to rank {}", what, to_string(signature.op), signature.plan);
    case Movement::kScatter:
      return fmt::format("{} for each rank from rank {}", what, signature.plan);
    case Movement::kGather:
      return fmt::format("{} of each rank to rank {}", what, signature.plan);
    case Movement::kAllToAll:
      if (signature.plan != kDifferentBlocks) return what + " for each rank";
      return fmt::format("all_to_all of blocks of different lengths, {}", to_string(signature.type));
    case Movement::kBroadcast:
    case Movement::kTransfer:
      break;
  }
  return fmt::format("{} from rank {}", what, signature.plan);
}

Engine::Moving::Moving(Engine& engine, const CollectiveCall& call, const Path& path)
    : engine_(engine), call_(call), movement_(path.moving) {
  Transport& transport = *engine.transport_;
  place_ = {engine.rank(), engine.size(), transport.limits(), transport.quick_gather().is_read_in_place};
  Signature signature = engine.next_signature(call, nullptr);
  signature.movement = movement_->movement;
  signature.count = movement_->count;
  signature.op = movement_->movement == Movement::kReduce ? call.op : ReduceOp::kSum;
  signature.plan = has_different_blocks(*movement_) ? kDifferentBlocks : static_cast<std::uint64_t>(movement_->root);
  if (movement_->movement == Movement::kAllToAll && !has_different_blocks(*movement_)) signature.plan = 0;
  told_ = movement_->in_counts;
  told_.insert(told_.end(), movement_->out_counts.begin(), movement_->out_counts.end());
  met_.resize(idx(engine.size()));
  has_met_ = transport.max_exchange_bytes() == 0;
  Operands operands;
  operands.in = call.in;
  operands.out = call.out;
  transport.begin(signature, operands);
  if (has_met_) move();
}

bool Engine::Moving::advance() {
  if (!has_met_) {
    Transport& transport = *engine_.transport_;
    const auto bytes = static_cast<std::int64_t>(told_.size() * sizeof(std::int64_t));
    if (!transport.try_exchange(told_.data(), bytes, met_)) return false;
    transport.progressed();
    has_met_ = true;
    move();
  }
  return !execution_ || execution_->advance();
}

/// How long every rank's blocks are, as they have said. All ranks come to the same result.
BlockCounts Engine::Moving::counts() const {
  if (told_.empty()) return BlockCounts(movement_->count);
  const int size = place_.size;
  std::vector<std::int64_t> given(idx(size) * idx(size));
  const auto told = [&](int rank, int block) {
    std::int64_t value = 0;
    std::memcpy(&value, met_[idx(rank)] + idx(block) * sizeof value, sizeof value);
    return value;
  };
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      const std::int64_t sent = told(from, to);
      const std::int64_t expected = told(to, size + from);
      if (sent != expected || sent < 0) {
        throw TransportError(
            fmt::format("all_to_all: rank {} has {} elements for rank {}, which expects {}; expected equal numbers",
                        from, sent, to, expected));
      }
      given[idx(from) * idx(size) + idx(to)] = sent;
    }
  }
  return {size, std::move(given)};
}

void Engine::Moving::move() {
  const BlockCounts all = counts();
  const OwnBlock own = own_block(*movement_, place_);
  const std::int64_t size = size_of(call_.type);
  if (own.count > 0) {
    const std::byte* in = static_cast<const std::byte*>(call_.in) + own.first_in * size;
    std::byte* out = static_cast<std::byte*>(call_.out) + own.first_out * size;
    if (in != out) copy(out, in, own.count * size);
  }
  if (all.largest() == 0) return;
  schedule_ = schedule_movement(*movement_, place_, all);
  execution_.emplace(*engine_.transport_, schedule_, call_, engine_.serial_);
  engine_.serial_ += static_cast<std::uint64_t>(schedule_.num_chunks);
}

void Engine::check(const MovementCall& call) const {
  check_process(to_string(call.movement));
  // First: the transport of such a communicator may be about to be replaced.
  require_that(survival_ == nullptr, call,
               "this communicator has on_failure = shrink; expected one without, or all_reduce, reduce_scatter, "
               "all_gather or barrier, which can run again between the ranks that are left");
  require_that(device_ == nullptr && own_ == nullptr, call,
               fmt::format("this communicator ({}) works on the memory of a GPU; expected one for host memory",
                           transport_->name()));
  require_that(call.count >= 0, call, fmt::format("count = {}; expected 0 or more", call.count));
  const int type = static_cast<int>(call.type);
  const int op = static_cast<int>(call.op);
  require_that(type >= 0 && type < kNumDataTypes && op >= 0 && op < kNumReduceOps, call,
               fmt::format("type {}, operator {}; expected types 0 to {} and operators 0 to {}", type, op,
                           kNumDataTypes - 1, kNumReduceOps - 1));
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  require_that(call.count <= kMost / size_of(call.type) / size(), call,
               fmt::format("count = {} is too large; expected {} bytes for all blocks together", call.count, kMost));
  require_that(
      call.movement != Movement::kTransfer || size() == 2, call,
      fmt::format("a communicator of {} ranks; expected one of 2, in which one sends and the other receives", size()));
  require_that(call.root >= 0 && call.root < size(), call,
               fmt::format("root = {}; expected a rank from 0 to {}", call.root, size() - 1));
  require_that(call.movement != Movement::kReduce || is_supported(call.type, call.op), call,
               fmt::format("{} of {}; expected sum, prod, min or max", to_string(call.op), to_string(call.type)));
  if (has_different_blocks(call)) {
    check_blocks(call, rank(), size());
    const std::int64_t most = transport_->max_exchange_bytes();
    require_that(
        size() == 1 || 2 * size() * static_cast<std::int64_t>(sizeof(std::int64_t)) <= most, call,
        fmt::format("blocks of different lengths between {} ranks; with so many, expected equal ones", size()));
  }
  check_memory(call, rank(), size());
}

std::shared_ptr<Engine::Task> Engine::task_of(const MovementCall& call) const {
  check(call);
  auto task = std::make_shared<Task>();
  task->call = as_collective_call(call, rank());
  task->path.moving = std::make_shared<MovementCall>(call);
  return task;
}

void Engine::move(const MovementCall& call) {
  const std::shared_ptr<Task> task = task_of(call);
  dispatch(task->call, task->path, std::nullopt);
}

}  // namespace gar
