// What calls must be, and how messages speak of them.
#include <fmt/format.h>

#include "base/hash.hpp"
#include "runtime/engine.hpp"

namespace gar {

std::string_view name_of(Collective collective) {
  return collective == Collective::kAllReduce       ? "all_reduce"
         : collective == Collective::kReduceScatter ? "reduce_scatter"
                                                    : "all_gather";
}

int code_of(const Signature& signature) {
  return signature.movement ? 3 + static_cast<int>(*signature.movement) : static_cast<int>(signature.collective);
}

void set_code(Signature& signature, int code) {
  signature.movement.reset();
  signature.collective = Collective::kAllReduce;
  if (code >= 3) {
    signature.movement = static_cast<Movement>(code - 3);
  } else {
    signature.collective = static_cast<Collective>(code);
  }
}

std::string describe(const Signature& signature) {
  if (signature.movement) return describe_movement(signature);
  if (signature.collective == Collective::kAllGather) {
    return fmt::format("all_gather of {} {}", signature.count, to_string(signature.type));
  }
  return fmt::format("{} of {} {}, {}", name_of(signature.collective), signature.count, to_string(signature.type),
                     to_string(signature.op));
}

std::string describe_mismatch(const Signature& ours, int our_rank, const Signature& theirs, int their_rank) {
  const std::string mine = describe(ours);
  const std::string other = describe(theirs);
  const std::string_view why = mine == other ? " with another plan" : "";
  return fmt::format("rank {} called {}, but rank {} called {}{}; expected the same call on all ranks", our_rank, mine,
                     their_rank, other, why);
}

Signature Engine::next_signature(const CollectiveCall& call, const Schedule* schedule) {
  const CollectiveCall& shown = outer_ ? *outer_ : call;
  Signature signature;
  signature.sequence = sequence_++;
  signature.collective = shown.collective;
  signature.count = shown.count;
  signature.type = shown.type;
  signature.op = shown.collective == Collective::kAllGather ? ReduceOp::kSum : shown.op;
  signature.plan = schedule == nullptr ? 0 : schedule->fingerprint;
  if (outer_) {
    for (const std::int64_t value : {std::int64_t{1}, static_cast<std::int64_t>(call.collective), call.count,
                                     static_cast<std::int64_t>(call.type), static_cast<std::int64_t>(call.op)}) {
      signature.plan = mix_in(signature.plan, value);
    }
  }
  return signature;
}

void Engine::check_process(std::string_view function) const {
  if (is_own_process()) return;
  throw InvalidArgument(
      fmt::format("{}: the communicator belongs to process {}, which has forked this one ({}); expected "
                  "communicators that this "
                  "process has made",
                  function, pid_, getpid()));
}

void Engine::check_overlap(const CollectiveCall& call) const {
  const std::int64_t block = call.count * size_of(call.type);
  const auto in = reinterpret_cast<std::intptr_t>(call.in);
  const auto out = reinterpret_cast<std::intptr_t>(call.out);
  const std::int64_t in_length = in_bytes(call, visible_size());
  if (block == 0 || in + in_length <= out || out + out_bytes(call, visible_size()) <= in) return;
  const bool is_fine = call.collective == Collective::kAllReduce ? in == out
                       : call.collective == Collective::kAllGather
                           ? in - out == visible_rank() * block
                           : out >= in && out - in < in_length && (out - in) % block == 0;
  if (is_fine) return;
  throw InvalidArgument(fmt::format("{}: `in` and `out` overlap in part; expected separate buffers, or {}",
                                    name_of(call.collective),
                                    call.collective == Collective::kAllReduce   ? "the same one"
                                    : call.collective == Collective::kAllGather ? "`in` as this rank's block of `out`"
                                                                                : "`out` as a block of `in`"));
}

void Engine::check_stream(std::string_view function) const {
  if (device_ != nullptr) return;
  throw InvalidArgument(
      fmt::format("{}: a stream, but this communicator ({}) works on host memory; expected communicators of "
                  "gar/cuda.hpp and gar/nccl.hpp",
                  function, transport_->name()));
}

void Engine::check(const CollectiveCall& call) const {
  const std::string_view name = name_of(call.collective);
  if (call.count < 0) throw InvalidArgument(fmt::format("{}: count = {}; expected 0 or more", name, call.count));
  const int type = static_cast<int>(call.type);
  const int op = static_cast<int>(call.op);
  if (type < 0 || type >= kNumDataTypes || op < 0 || op >= kNumReduceOps) {
    throw InvalidArgument(fmt::format("{}: type {}, operator {}; expected types 0 to {} and operators 0 to {}", name,
                                      type, op, kNumDataTypes - 1, kNumReduceOps - 1));
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  if (call.count > kMost / size_of(call.type) / visible_size()) {
    throw InvalidArgument(
        fmt::format("{}: count = {} is too large; expected {} bytes for all blocks together", name, call.count, kMost));
  }
  if (call.count > 0 && (call.in == nullptr || call.out == nullptr)) {
    throw InvalidArgument(fmt::format("{}: `{}` is null, but count is {}; expected null only with count 0", name,
                                      call.in == nullptr ? "in" : "out", call.count));
  }
  if (call.collective != Collective::kAllGather && !is_supported(call.type, call.op)) {
    throw InvalidArgument(fmt::format("{}: {} of {}; expected sum, prod, min or max for {}", name, to_string(call.op),
                                      to_string(call.type), to_string(call.type)));
  }
  if (device_ != nullptr && call.count > 0 && call.collective != Collective::kAllGather &&
      !transport_->compute().supports(call.type, call.op)) {
    throw InvalidArgument(
        fmt::format("{}: {} of {} on a GPU; expected sum, prod, min and max of float16, bfloat16, float32, float64 "
                    "and integers of 8, 32 and 64 bits",
                    name, to_string(call.op), to_string(call.type)));
  }
}

}  // namespace gar
