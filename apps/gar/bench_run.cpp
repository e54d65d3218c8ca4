// The measurement, on one rank.
//
// Timings on a machine that does other things drift and jump. So all algorithms are measured in turns: iteration 1 of
// each, then iteration 2 of each, beginning with another one every time; what disturbs the machine meets all alike.
// Before a timed iteration the ranks meet at a barrier; an iteration takes as long as its slowest rank. The median is
// what the table shows, with the range in which four of five iterations were.
#include "apps/gar/bench_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "apps/gar/bench_buffers.hpp"
#include "apps/gar/bench_data.hpp"

namespace gar::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// One of the things that are measured, on this rank.
struct Runner {
  BenchEntry entry;
  std::optional<Communicator> communicator;  ///< nothing for native
  MpiSession* mpi = nullptr;

  void run(const Call& call) {
    if (mpi != nullptr) {
      mpi->native(call);
      return;
    }
    switch (call.collective) {
      case Collective::kAllReduce:
        communicator->all_reduce(call.in, call.out, call.count, call.type, call.op);
        break;
      case Collective::kReduceScatter:
        communicator->reduce_scatter(call.in, call.out, call.count, call.type, call.op);
        break;
      case Collective::kAllGather:
        communicator->all_gather(call.in, call.out, call.count, call.type);
        break;
    }
  }
};

std::vector<Runner> make_runners(BenchWorld& world, const BenchConfig& config) {
  std::vector<Runner> out;
  for (const BenchEntry& entry : config.entries) {
    Runner runner;
    runner.entry = entry;
    if (entry.is_native) {
      runner.mpi = world.mpi();
    } else {
      CommunicatorOptions options;
      options.algorithm = entry.algorithm;
      if (entry.is_plan) options.plan = config.plan;
      options.topology = config.topology;
      options.reproducible = entry.is_reproducible;
      options.timeout_s = config.timeout_s;
      runner.communicator.emplace(world.communicator(options));
    }
    out.push_back(std::move(runner));
  }
  return out;
}

/// All algorithms at one size, type and operator.
class Round {
 public:
  Round(BenchWorld& world, Control& control, BenchBuffers& buffers, const BenchConfig& config)
      : world_(world), control_(control), buffers_(buffers), config_(config) {}

  /// False: somebody wants to stop, and there are no results.
  bool measure(std::vector<Runner*> runners, const BenchCase& kind, const BenchSize& size, std::uint64_t seed,
               const BenchWatch& watch);
  [[nodiscard]] BenchResult result(std::size_t runner) const;

 private:
  void check(std::size_t runner, std::uint64_t seed);
  double time(Runner& runner);
  bool agree_to_go_on(std::vector<double> own);

  BenchWorld& world_;
  Control& control_;
  BenchBuffers& buffers_;
  const BenchConfig& config_;
  std::vector<Runner*> runners_;
  BenchCase kind_;
  BenchSize size_;
  std::int64_t batch_ = 1;
  std::vector<std::vector<double>> seconds_;  ///< per runner
  std::vector<double> wrong_;                 ///< per runner, on this rank
};

void Round::check(std::size_t runner, std::uint64_t seed) {
  const BenchData data({kind_.type, kind_.op, world_.size(), seed});
  buffers_.fill(data);
  const bool is_native = runners_[runner]->entry.is_native;
  runners_[runner]->run(buffers_.call(0, is_native));
  wrong_[runner] += static_cast<double>(buffers_.num_wrong(data, is_native));
}

double Round::time(Runner& runner) {
  buffers_.restore();
  std::vector<Call> calls;
  for (std::int64_t i = 0; i < batch_; ++i) calls.push_back(buffers_.call(i, runner.entry.is_native));
  control_.barrier();
  const Clock::time_point start = Clock::now();
  for (const Call& call : calls) runner.run(call);
  return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(batch_);
}

// Takes this rank's times of one iteration of each algorithm, keeps the slowest rank's.
bool Round::agree_to_go_on(std::vector<double> own) {
  own.push_back(world_.is_stopping() ? 1 : 0);
  const std::vector<double> slowest = control_.largest(own);
  for (std::size_t i = 0; i < runners_.size(); ++i) {
    if (own[i] >= 0) seconds_[i].push_back(slowest[i]);
  }
  return slowest.back() == 0;
}

bool Round::measure(std::vector<Runner*> runners, const BenchCase& kind, const BenchSize& size, std::uint64_t seed,
                    const BenchWatch& watch) {
  runners_ = std::move(runners);
  kind_ = kind;
  size_ = size;
  batch_ = batch_of(config_, size.bytes);
  seconds_.assign(runners_.size(), {});
  wrong_.assign(runners_.size(), 0);
  buffers_.set_shape(
      {config_.collective, kind.type, kind.op, size, world_.rank(), world_.size(), config_.in_place, batch_});
  const auto progress = [&](const std::string& what) {
    if (watch.on_progress)
      watch.on_progress(fmt::format("{}, {}", format_bytes(static_cast<double>(size.bytes)), what));
  };
  if (config_.check) {
    progress("checking");
    for (std::size_t i = 0; i < runners_.size(); ++i) check(i, seed + 2 * i);
  } else {
    buffers_.fill(BenchData({kind.type, kind.op, world_.size(), seed}));
  }
  for (std::int64_t i = 0; i < config_.warmup + config_.iterations; ++i) {
    const bool is_warmup = i < config_.warmup;
    progress(is_warmup ? "warming up" : fmt::format("iteration {} of {}", i - config_.warmup + 1, config_.iterations));
    std::vector<double> own(runners_.size(), -1);
    for (std::size_t k = 0; k < runners_.size(); ++k) {
      const std::size_t which = (k + static_cast<std::size_t>(i)) % runners_.size();
      const double seconds = time(*runners_[which]);
      if (!is_warmup) own[which] = seconds;
    }
    if (!agree_to_go_on(own)) return false;
  }
  if (config_.check) {
    for (std::size_t i = 0; i < runners_.size(); ++i) check(i, seed + 2 * i + 1);
    const std::vector<double> all = control_.gather(wrong_);
    std::fill(wrong_.begin(), wrong_.end(), 0);
    for (std::size_t i = 0; i < all.size(); ++i) wrong_[i % wrong_.size()] += all[i];
  }
  return true;
}

BenchResult Round::result(std::size_t runner) const {
  Runner& r = *runners_[runner];
  BenchResult out;
  out.entry = r.entry;
  out.collective = config_.collective;
  out.kind = kind_;
  out.size = size_;
  out.batch = batch_;
  out.iterations = config_.iterations;
  out.seconds = spread_of(seconds_[runner]);
  out.algbw = algorithm_bandwidth(static_cast<double>(size_.bytes), out.seconds.median);
  out.busbw = bus_bandwidth(config_.collective, world_.size(), out.algbw);
  if (config_.check) out.wrong = static_cast<std::int64_t>(wrong_[runner]);
  if (r.mpi != nullptr) {
    out.plan = r.mpi->library_version();
    out.transport = "mpi";
    out.reason = "the library's own choice";
    return out;
  }
  const PlanReport report = r.communicator->report(config_.collective, size_.count, kind_.type);
  out.plan = report.algorithm;
  out.transport = report.transport;
  out.reason = report.reason;
  out.num_chunks = report.num_chunks;
  out.predicted_seconds = report.predicted_seconds;
  const SizeCorrection* correction = correction_of(config_.profile, static_cast<double>(size_.bytes));
  if (correction != nullptr && config_.collective == Collective::kAllReduce && out.predicted_seconds > 0) {
    out.correction = correction->factor.value;
    out.predicted_seconds *= out.correction;
  }
  return out;
}

BenchBuffers make_buffers(const BenchConfig& config) {
  std::int64_t max_slots = 0;
  if (config.in_place) {
    for (const std::int64_t size : config.sizes) max_slots = std::max(max_slots, size * batch_of(config, size));
  }
  return BenchBuffers(*std::max_element(config.sizes.begin(), config.sizes.end()), max_slots);
}

/// The algorithms that can do this; says once per reason why others cannot.
std::vector<Runner*> able_runners(std::vector<Runner>& runners, const BenchCase& kind, const BenchSize& size,
                                  std::vector<std::string>& said, const BenchWatch& watch) {
  std::vector<Runner*> out;
  for (Runner& runner : runners) {
    const std::string why_not = runner.mpi != nullptr ? runner.mpi->why_not(kind.type, size.count) : "";
    if (why_not.empty()) {
      out.push_back(&runner);
    } else if (std::find(said.begin(), said.end(), why_not) == said.end()) {
      said.push_back(why_not);
      if (watch.on_note) watch.on_note(why_not);
    }
  }
  return out;
}

}  // namespace

BenchOutcome run_bench(BenchWorld& world, const BenchConfig& config, const BenchWatch& watch) {
  Control control(world, config.timeout_s);
  std::vector<Runner> runners = make_runners(world, config);
  BenchBuffers buffers = make_buffers(config);
  Round round(world, control, buffers, config);
  BenchOutcome outcome;
  std::vector<std::string> said;
  std::uint64_t seed = 1;
  for (const BenchCase& kind : config.cases) {
    std::optional<BenchSize> last;
    for (const std::int64_t bytes : config.sizes) {
      const BenchSize size = bench_size(bytes, kind.type, config.collective, world.size());
      if (last && *last == size) continue;  // the same after rounding
      last = size;
      const std::vector<Runner*> able = able_runners(runners, kind, size, said, watch);
      if (able.empty()) continue;
      if (!round.measure(able, kind, size, seed, watch)) {
        outcome.is_complete = false;
        return outcome;
      }
      seed += 1000;
      for (std::size_t i = 0; i < able.size(); ++i) {
        const BenchResult result = round.result(i);
        outcome.num_wrong += result.wrong.value_or(0);
        if (watch.on_result) watch.on_result(result);
      }
    }
  }
  control.barrier();
  return outcome;
}

}  // namespace gar::cli
