// The contest of a communicator that explores (runtime/contest.hpp), with calls that we make ourselves and without a
// limit for what looking may cost. So the candidates, and the file that is kept, are those of any other job.
#include "gar/measure/tune.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gar/environment.hpp"
#include "gar/errors.hpp"
#include "gar/format.hpp"
#include "measure/bench/buffers.hpp"
#include "measure/bench/data.hpp"

namespace gar::measure {
namespace {

constexpr std::int64_t kCallsBetweenLooks = 32;  // for a rank that wants to stop

/// The decision for vectors of this many bytes; null: there is none.
const Decision* decision_for(const Decisions& decisions, std::int64_t bytes) {
  for (const Decision& decision : decisions.decisions) {
    if (decision.from_bytes <= bytes && bytes <= decision.to_bytes) return &decision;
  }
  return nullptr;
}

/// One size on one rank.
class Tuning {
 public:
  Tuning(World& world, Control& control, Communicator& communicator, const TuneConfig& config)
      : world_(world),
        control_(control),
        communicator_(communicator),
        config_(config),
        buffers_(*std::max_element(config.sizes.begin(), config.sizes.end()), 0) {}

  /// False: a rank was asked to stop.
  bool measure(const BenchSize& size, std::uint64_t seed, const std::function<void(std::int64_t)>& on_call) {
    buffers_.set_shape({.type = config_.type, .size = size, .rank = world_.rank(), .num_ranks = world_.size()});
    const BenchData data({config_.type, ReduceOp::kSum, world_.size(), seed});
    buffers_.fill(data);
    const CollectiveCall call = buffers_.call(0, false);
    for (std::int64_t i = 0; i < config_.most_calls; ++i) {
      communicator_.run(call);
      if (communicator_.is_settled(size.count, config_.type)) break;
      if (i % kCallsBetweenLooks != 0) continue;
      on_call(i);
      if (control_.any(world_.is_stopping())) return false;
    }
    buffers_.fill(data);
    communicator_.run(call);
    num_wrong_ += buffers_.num_wrong(data, false);
    return true;
  }
  [[nodiscard]] std::int64_t num_wrong() const { return num_wrong_; }

 private:
  World& world_;
  Control& control_;
  Communicator& communicator_;
  const TuneConfig& config_;
  BenchBuffers buffers_;
  std::int64_t num_wrong_ = 0;
};

}  // namespace

TuneOutcome run_tune(World& world, const TuneConfig& config, const TuneWatch& watch) {
  if (world.size() < 2) throw InvalidArgument("there is nothing to measure with one rank; expected two or more");
  if (const std::string algorithm = environment::text(environment::kAlgo); !algorithm.empty() && algorithm != "auto") {
    throw InvalidArgument(fmt::format(
        "GAR_ALGO={} in the environment leaves nothing to be decided; unset it, or set it to auto", algorithm));
  }
  Control control(world, config.timeout_s);
  CommunicatorOptions options;
  options.timeout_s = config.timeout_s;
  options.topology = config.topology;
  options.explores = true;
  options.explore_share = 1;
  options.believes_decisions = false;
  Communicator communicator = world.communicator(options);
  Tuning tuning(world, control, communicator, config);
  TuneOutcome out;
  std::uint64_t seed = 1;
  std::int64_t last = -1;
  for (const std::int64_t bytes : config.sizes) {
    const BenchSize size = bench_size(bytes, config.type, Collective::kAllReduce, world.size());
    if (size.count == 0 || size.bytes == last) continue;
    last = size.bytes;
    const auto on_call = [&](std::int64_t call) {
      if (!watch.on_progress) return;
      watch.on_progress(fmt::format("{}, size {} of {}: call {} of at most {}",
                                    format_bytes(static_cast<double>(size.bytes)), &bytes - config.sizes.data() + 1,
                                    config.sizes.size(), call + 1, config.most_calls));
    };
    out.is_complete = tuning.measure(size, seed++, on_call);
    if (!out.is_complete) break;
    const Decisions found = communicator.decisions();
    const Decision* decision = decision_for(found, size.bytes);
    if (decision != nullptr && watch.on_decision) watch.on_decision(*decision);
  }
  out.num_wrong = control.sums(std::vector<std::int64_t>{tuning.num_wrong()}).front();
  out.found = communicator.decisions();
  if (world.rank() == 0) out.problem = communicator.keep_decisions();
  control.barrier();
  return out;
}

}  // namespace gar::measure
