// Operations that are made of others. To the other ranks all of these bear the name of what the user called, so that
// different calls are noticed.
#include "runtime/engine.hpp"
#include "runtime/reproducible.hpp"

namespace gar {

namespace {

/// The call that those inside belong to, for as long as it runs.
class Outer {
 public:
  Outer(std::optional<Call>& place, const Call& call) : place_(place) { place_ = call; }
  ~Outer() { place_.reset(); }
  Outer(const Outer&) = delete;
  Outer& operator=(const Outer&) = delete;

 private:
  std::optional<Call>& place_;
};

}  // namespace

void Engine::run_nothing(const Call& call) {
  const Outer outer(outer_, call);
  std::int8_t token = 0;
  const Call part{Collective::kAllReduce, &token, &token, 1, DataType::kInt8, ReduceOp::kSum, std::nullopt};
  run_path(part, path_of(part));
}

void Engine::run_reproducible(const Call& call) {
  const Outer outer(outer_, call);
  PlainCollectives plain;
  plain.size = size();
  const auto run_plain = [this](Collective collective, const void* in, void* out, std::int64_t count, DataType type,
                                ReduceOp op) {
    const Call part{collective, in, out, count, type, op, std::nullopt};
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
  if (call.collective == Collective::kAllReduce) {
    reproducible_all_reduce(plain, call.in, call.out, call.count, call.type, call.op);
  } else {
    reproducible_reduce_scatter(plain, rank(), call.in, call.out, call.count, call.type, call.op);
  }
}

}  // namespace gar
