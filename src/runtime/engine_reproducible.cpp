// Reproducible operations: several plain ones, after all ranks have agreed on what is asked for.
#include <array>

#include "runtime/engine.hpp"
#include "runtime/reproducible.hpp"

namespace gar {

/// The calls that a reproducible operation is made of say nothing of what the user asked for.
void Engine::agree_on(const Call& call, const PlainCollectives& plain) {
  if (size() == 1) return;
  using Words = std::array<std::int64_t, 4>;
  const Words ours{static_cast<std::int64_t>(call.collective), call.count, static_cast<std::int64_t>(call.type),
                   static_cast<std::int64_t>(call.op)};
  std::vector<Words> all(static_cast<std::size_t>(size()));
  plain.all_gather(ours.data(), all.data(), static_cast<std::int64_t>(ours.size()), DataType::kInt64);
  const auto signature = [](const Words& words) {
    return Signature{0,
                     static_cast<Collective>(words[0]),
                     words[1],
                     static_cast<DataType>(words[2]),
                     static_cast<ReduceOp>(words[3]),
                     0};
  };
  for (int peer = 0; peer < size(); ++peer) {
    const Words& theirs = all[static_cast<std::size_t>(peer)];
    if (theirs == ours) continue;
    const std::string text = describe_mismatch(signature(ours), rank(), signature(theirs), peer);
    transport_->fail(text);
    throw TransportError(text);
  }
}

void Engine::run_reproducible(const Call& call) {
  PlainCollectives plain;
  plain.size = size();
  const auto run_plain = [this](Collective collective, const void* in, void* out, std::int64_t count, DataType type,
                                ReduceOp op) {
    const Call part{collective, in, out, count, type, op};
    Path path = path_of(part);
    path.is_reproducible = false;
    run_path(part, path);
  };
  plain.all_reduce = [&](const void* in, void* out, std::int64_t count, DataType type, ReduceOp op) {
    run_plain(Collective::kAllReduce, in, out, count, type, op);
  };
  plain.reduce_scatter = [&](const void* in, void* out, std::int64_t count, DataType type, ReduceOp op) {
    run_plain(Collective::kReduceScatter, in, out, count, type, op);
  };
  plain.all_gather = [&](const void* in, void* out, std::int64_t count, DataType type) {
    run_plain(Collective::kAllGather, in, out, count, type, ReduceOp::kSum);
  };
  agree_on(call, plain);
  if (call.collective == Collective::kAllReduce) {
    reproducible_all_reduce(plain, call.in, call.out, call.count, call.type, call.op);
  } else {
    reproducible_reduce_scatter(plain, rank(), call.in, call.out, call.count, call.type, call.op);
  }
}

}  // namespace gar
