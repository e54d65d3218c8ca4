#include "runtime/executor.hpp"

#include <algorithm>

namespace gar {

namespace {

// Results larger than this are written with streaming stores, which bypass the caches: nothing of them would stay there
// anyway.
constexpr std::int64_t kStreamingBytes = 4 << 20;

}  // namespace

Execution::Execution(Transport& transport, const Schedule& schedule, const CollectiveCall& call, std::uint64_t serial)
    : transport_(transport),
      schedule_(schedule),
      in_(static_cast<const std::byte*>(call.in)),
      out_(static_cast<std::byte*>(call.out)),
      type_(call.type),
      op_(call.op),
      serial_(serial),
      limits_(transport.limits()),
      compute_(transport.compute()) {
  const std::int64_t bytes = schedule.num_blocks * schedule.block_count * schedule.element_size;
  if (bytes >= kStreamingBytes) stores_ = Stores::kStreaming;
  scratch_ = compute_.scratch(scratch_bytes(schedule, limits_));
}

bool Execution::advance() {
  bool has_progressed = true;
  while (has_progressed) {
    // The oldest chunk comes first: what it waits for is what the transport will sleep on.
    has_progressed = false;
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      has_progressed = advance_chunk(i) || has_progressed;
    }
    while (!chunks_.empty() && chunks_.front().is_finished && transport_.try_close(chunks_.front().flight)) {
      // Only now nothing reads the input of this chunk any more, which may be where its result goes.
      epilogue(chunks_.front());
      chunks_.pop_front();
      has_progressed = true;
    }
    has_progressed = open_chunks() || has_progressed;
    if (has_progressed) transport_.progressed();
  }
  return chunks_.empty() && next_chunk_ == schedule_.num_chunks;
}

bool Execution::open_chunks() {
  bool has_opened = false;
  while (next_chunk_ < schedule_.num_chunks && chunks_.size() < static_cast<std::size_t>(limits_.num_slots)) {
    Chunk chunk;
    Flight& flight = chunk.flight;
    flight.program = &schedule_.program(next_chunk_);
    const std::uint64_t serial = serial_ + static_cast<std::uint64_t>(next_chunk_);
    flight.serial = static_cast<std::uint32_t>(serial);
    flight.slot = static_cast<int>(serial % static_cast<std::uint64_t>(limits_.num_slots));
    flight.chunk = next_chunk_;
    flight.element_size = schedule_.element_size;
    const std::int64_t stride = schedule_.block_count * schedule_.element_size;
    const std::int64_t begin = next_chunk_ * schedule_.chunk_block_count * schedule_.element_size;
    // The input is never written; views have one type for both spaces. A rank that gives or gets nothing may have none.
    if (in_ != nullptr) flight.input = {const_cast<std::byte*>(in_) + begin, stride};  // NOLINT(*-const-cast)
    if (out_ != nullptr) flight.work = {out_ + begin, stride};
    if (schedule_.slot_scratch_bytes > 0) {
      flight.work = {scratch_ + flight.slot * schedule_.slot_scratch_bytes,
                     schedule_.slot_scratch_bytes / schedule_.num_blocks};
    }
    if (!transport_.try_open(flight)) return has_opened;
    prologue(chunk);
    chunks_.push_back(chunk);
    ++next_chunk_;
    has_opened = true;
  }
  return has_opened;
}

bool Execution::may_start(std::size_t i) const {
  if (i == 0) return true;
  const Chunk& before = chunks_[i - 1];
  return before.is_finished || before.step > chunks_[i].step || (before.step == chunks_[i].step && before.has_sent);
}

bool Execution::advance_chunk(std::size_t i) {
  Chunk& chunk = chunks_[i];
  const auto num_steps = static_cast<int>(chunk.flight.program->steps.size());
  bool has_progressed = false;
  while (chunk.step < num_steps) {
    if (!chunk.has_sent) {
      if (!may_start(i) || !transport_.try_send(chunk.flight, chunk.step)) return has_progressed;
      chunk.has_sent = true;
      has_progressed = true;
    }
    received_.resize(chunk.flight.program->steps[static_cast<std::size_t>(chunk.step)].recvs.size());
    if (!transport_.try_receive(chunk.flight, chunk.step, received_)) return has_progressed;
    reduce_step(chunk);
    transport_.consumed(chunk.flight, chunk.step);
    ++chunk.step;
    chunk.has_sent = false;
    has_progressed = true;
  }
  if (!chunk.is_finished) {
    chunk.is_finished = true;
    has_progressed = true;
  }
  return has_progressed;
}

void Execution::reduce_step(const Chunk& chunk) {
  const Flight& flight = chunk.flight;
  const ChunkStep& step = flight.program->steps[static_cast<std::size_t>(chunk.step)];
  const std::int64_t size = flight.element_size;
  for (const Reduction& reduction : step.reductions) {
    std::byte* out = address(flight.work, reduction.out, size);
    operands_.clear();
    for (const Operand& operand : reduction.operands) {
      operands_.push_back(received_[static_cast<std::size_t>(operand.recv)] + operand.offset * size);
    }
    if (reduction.has_own) {
      const SpaceView& own = reduction.own == Space::kInput ? flight.input : flight.work;
      operands_.insert(operands_.begin() + reduction.own_position, address(own, reduction.out, size));
    }
    if (operands_.size() > 1) {
      compute_.reduce(type_, op_, out, operands_, reduction.out.count);
    } else if (operands_.front() != out) {
      compute_.copy(out, operands_.front(), reduction.out.count * size, stores_);
    }
  }
  compute_.end_step();
}

std::byte* Execution::block_of(const Chunk& chunk, const std::byte* base, std::int64_t block) const {
  const std::int64_t element = block * schedule_.block_count + chunk.flight.chunk * schedule_.chunk_block_count;
  return const_cast<std::byte*>(base) + element * schedule_.element_size;  // NOLINT(*-const-cast)
}

void Execution::prologue(const Chunk& chunk) {
  if (schedule_.collective != Collective::kAllGather) return;
  const std::byte* in = block_of(chunk, in_, 0);
  std::byte* out = block_of(chunk, out_, transport_.rank());
  if (in == out) return;
  compute_.copy(out, in, chunk.flight.program->block_count * schedule_.element_size, stores_);
  compute_.end_step();
}

void Execution::epilogue(const Chunk& chunk) {
  if (schedule_.collective != Collective::kReduceScatter) return;
  const Part part{Space::kWork, transport_.rank(), 0, chunk.flight.program->block_count};
  compute_.copy(block_of(chunk, out_, 0), address(chunk.flight.work, part, schedule_.element_size),
                part.count * schedule_.element_size, stores_);
  compute_.end_step();
}

}  // namespace gar
