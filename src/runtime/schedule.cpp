// Chunk sizes. A chunk must fit the staging space of a slot on every rank, and is not larger than the plan and the
// transport like it; all chunks but the last are equally long. What the staging space must hold grows in proportion to
// the chunk, so one look at a chunk of the largest size says how far it has to shrink.
#include "runtime/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/hash.hpp"
#include "gar/errors.hpp"
#include "runtime/peers.hpp"

namespace gar {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The longest block of a chunk whose staging fits; `limit` at most.
std::int64_t fitting_block(const PlanIndex& index, std::int64_t num_blocks, std::int64_t limit,
                           std::int64_t element_size, std::int64_t staging_bytes) {
  std::int64_t block = std::clamp<std::int64_t>(staging_bytes / element_size / num_blocks, 1, limit);
  while (true) {
    const std::int64_t bytes = largest_staging(index, num_blocks, block) * element_size;
    if (bytes <= staging_bytes) return block;
    if (block == 1) {
      throw PlanError(
          fmt::format("the plan '{}' needs {} bytes of staging memory at least, but a rank has {}; expected a larger "
                      "staging_bytes (GAR_STAGING)",
                      index.plan().algorithm, bytes, staging_bytes));
    }
    const auto smaller = static_cast<std::int64_t>(static_cast<double>(block) * static_cast<double>(staging_bytes) /
                                                   static_cast<double>(bytes));
    block = std::clamp<std::int64_t>(smaller, 1, block - 1);
    if (block > kGrain) block = block / kGrain * kGrain;
  }
}

std::uint64_t mix_all(std::uint64_t hash, std::initializer_list<std::int64_t> values) {
  for (const std::int64_t value : values) hash = mix_in(hash, value);
  return hash;
}

std::uint64_t fingerprint_of(const SubPlan& subplan, std::uint64_t hash) {
  for (const SubPlanRun& run : subplan.children) hash = mix_all(hash, {run.subplan, run.count});
  for (const Stage& stage : subplan.stages) {
    hash = mix_all(hash, {static_cast<std::int64_t>(stage.kind), stage.stride, stage.radix});
    for (const Piece& piece : stage.target) hash = mix_all(hash, {piece.begin, piece.end, piece.owner});
  }
  return mix_in(hash, subplan.stages.size());
}

std::uint64_t fingerprint_of(const RankProgram& program, std::uint64_t hash) {
  for (const Step& step : program.steps) {
    hash = mix_in(hash, step.number);
    for (const std::vector<Message>* messages : {&step.sends, &step.recvs}) {
      for (const Message& m : *messages) hash = mix_all(hash, {m.peer, m.accumulate ? 1 : 0, m.begin, m.end});
      hash = mix_in(hash, messages->size());
    }
  }
  return mix_in(hash, program.steps.size());
}

/// Where that depends on the rank, as much as it could be.
std::int64_t fan_in_of(const Plan& plan) {
  std::int64_t out = plan.is_explicit() ? plan.num_ranks : 1;
  for (const SubPlan& subplan : plan.subplans) {
    for (const Stage& stage : subplan.stages) {
      out = std::max(out, is_digit(stage) ? messages_per_step(stage) : plan.num_ranks);
    }
  }
  return out;
}

std::uint64_t fingerprint_of(const Plan& plan) {
  std::uint64_t hash = 1;
  hash = mix_in(hash, std::string_view(plan.algorithm));
  hash = mix_all(
      hash, {static_cast<std::int64_t>(plan.collective), plan.num_ranks, plan.num_units, plan.num_chunks, plan.root});
  for (const SubPlan& subplan : plan.subplans) hash = fingerprint_of(subplan, hash);
  for (const RankProgram& program : plan.programs) hash = fingerprint_of(program, hash);
  return hash;
}

}  // namespace

IndexedPlan::IndexedPlan(Plan p)
    : plan(std::move(p)), index(plan), fingerprint(fingerprint_of(plan)), fan_in(fan_in_of(plan)) {}

Schedule make_schedule(std::shared_ptr<const IndexedPlan> plan, int rank, std::int64_t count, std::int64_t element_size,
                       const TransportLimits& limits) {
  Schedule out;
  const Plan& p = plan->plan;
  const PlanIndex& index = plan->index;
  out.collective = p.collective;
  out.num_blocks = p.collective == Collective::kAllReduce ? 1 : p.num_ranks;
  out.block_count = count;
  out.element_size = element_size;
  out.plan = std::move(plan);
  std::int64_t block = std::max<std::int64_t>(count, 1);
  if (limits.staging_bytes > 0) {
    block = fitting_block(index, out.num_blocks, block, element_size, limits.staging_bytes);
  }
  if (limits.chunk_bytes > 0) {
    block = std::min(block, std::max(kGrain, ceil_div(limits.chunk_bytes, element_size * out.num_blocks)));
  }
  out.num_chunks = std::max(ceil_div(count, block), std::min(p.num_chunks, std::max<std::int64_t>(count, 1)));
  out.num_chunks = std::max<std::int64_t>(out.num_chunks, 1);
  out.chunk_block_count = ceil_div(count, out.num_chunks);
  if (out.num_chunks > 1 && out.chunk_block_count > 4 * kGrain) {
    // Rounding down keeps the chunk within its limits; there may be one chunk more.
    out.chunk_block_count = out.chunk_block_count / kGrain * kGrain;
  }
  out.num_chunks = std::max<std::int64_t>(ceil_div(count, std::max<std::int64_t>(out.chunk_block_count, 1)), 1);
  if (out.num_chunks > 1) out.full = compile_chunk(index, rank, out.num_blocks, out.chunk_block_count);
  out.last = compile_chunk(index, rank, out.num_blocks, count - (out.num_chunks - 1) * out.chunk_block_count);
  if (limits.needs_sources) {
    find_peer_memory(index, rank, out.full);
    find_peer_memory(index, rank, out.last);
  }
  if (p.collective == Collective::kReduceScatter) {
    out.slot_scratch_bytes = out.num_blocks * out.program(0).block_count * element_size;
  }
  out.fingerprint = mix_all(out.plan->fingerprint, {out.num_chunks, out.chunk_block_count});
  return out;
}

std::int64_t scratch_bytes(const Schedule& schedule, const TransportLimits& limits) {
  return schedule.slot_scratch_bytes * limits.num_slots;
}

}  // namespace gar
