// A benchmark, on one rank.
//
// Timings on a machine that does other things drift and jump. So all algorithms are measured in turns: iteration 1 of
// each, then iteration 2 of each, beginning with another one every time; what disturbs the machine meets all alike.
// Before a timed iteration the ranks meet at a barrier; an iteration takes as long as its slowest rank. The median is
// what the table shows, with the range in which four of five iterations were.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/index.hpp"
#include "gar/environment.hpp"
#include "gar/format.hpp"
#include "gar/measure/bench.hpp"
#include "gar/measure/cuda_session.hpp"
#include "gar/profile.hpp"
#include "measure/bench/bound.hpp"
#include "measure/bench/buffers.hpp"
#include "measure/bench/data.hpp"
#include "measure/fit/counters.hpp"

namespace gar::measure {
namespace {

using Clock = std::chrono::steady_clock;

/// One of the things that are measured, on this rank.
struct Runner {
  BenchEntry entry;
  std::optional<Communicator> communicator;  ///< nothing for MPI's own
  MpiSession* mpi = nullptr;
  CudaSession* cuda = nullptr;

  [[nodiscard]] bool is_of_mpi() const { return mpi != nullptr; }
  /// Complete when it returns.
  void run(const CollectiveCall& call) {
    if (mpi != nullptr) {
      mpi->native(call);
      return;
    }
    communicator->run(call);
  }
  /// Several, one after the other. On a GPU they follow each other in a stream, and only the end is waited for.
  void run_all(const std::vector<CollectiveCall>& calls) {
    if (cuda == nullptr) {
      for (const CollectiveCall& call : calls) run(call);
      return;
    }
    const Stream stream = cuda->stream();
    for (const CollectiveCall& call : calls) communicator->run(call, stream);
    communicator->synchronize(stream);
  }
};

std::vector<Runner> make_runners(World& world, const BenchConfig& config) {
  std::vector<Runner> out;
  for (const BenchEntry& entry : config.entries) {
    Runner runner;
    runner.entry = entry;
    runner.cuda = world.cuda();
    CommunicatorOptions options;
    options.timeout_s = config.timeout_s;
    // The model's choice, and not what looking around makes of it, unless that is what is asked for.
    options.explores = environment::flag(environment::kExplore).value_or(false);
    if (entry.is_native && world.cuda() != nullptr) {
      runner.communicator = world.native_communicator(options);
    } else if (entry.is_native) {
      runner.mpi = world.mpi();
    } else {
      options.algorithm = entry.algorithm;
      if (entry.is_plan) options.plan = config.plan;
      options.topology = config.topology;
      options.reproducible = entry.is_reproducible;
      runner.communicator.emplace(world.communicator(options));
    }
    out.push_back(std::move(runner));
  }
  return out;
}

/// Between hosts the first rank of each counts what TCP sends; otherwise no rank does.
struct SegmentCounting {
  bool is_known = false;  ///< to any rank
  bool is_mine = false;   ///< this rank counts
};

SegmentCounting segment_counting(World& world, Control& control) {
  if (world.mpi() == nullptr) return {};
  const std::vector<std::string> networks = control.gather_texts(network_identity());
  const auto own = std::find(networks.begin(), networks.end(), networks[idx(world.rank())]);
  const bool has_several =
      std::any_of(networks.begin(), networks.end(), [&](const auto& n) { return n != networks[0]; });
  return {has_several, has_several && own - networks.begin() == world.rank()};
}

/// ", about 40 s left"; empty where that is hardly anything, or not known.
std::string left_words(double seconds) {
  constexpr double kLong = 2;
  return seconds < kLong ? "" : fmt::format(", about {} left", format_seconds(seconds, 2));
}

/// How many times as long as the size at `index` all that follow take, by their bytes; short vectors all take the same.
double later_sizes(const std::vector<std::int64_t>& sizes, std::size_t index) {
  static constexpr double kShort = 65536;
  const auto weight = [](std::int64_t bytes) { return std::max(kShort, static_cast<double>(bytes)); };
  double out = 0;
  for (std::size_t i = index + 1; i < sizes.size(); ++i) out += weight(sizes[i]) / weight(sizes[index]);
  return out;
}

/// All algorithms at one size, type and operator.
class SizeRun {
 public:
  SizeRun(World& world, Control& control, BenchBuffers& buffers, const BenchConfig& config, double copy_bytes_per_s)
      : world_(world),
        control_(control),
        buffers_(buffers),
        config_(config),
        copy_bytes_per_s_(copy_bytes_per_s),
        counting_(segment_counting(world, control)) {}

  /// False: a rank was asked to stop, and there are no results. `later`: how much longer all that follows takes.
  bool measure(std::vector<Runner*> runners, const BenchCase& kind, const BenchSize& size, std::uint64_t seed,
               double later, const BenchWatch& watch);
  [[nodiscard]] BenchResult result(std::size_t runner) const;

 private:
  enum class How { kBlocking, kInStream };
  void check(std::size_t runner, std::uint64_t seed, How how);
  [[nodiscard]] double bound_of(const BenchResult& result) const;
  double time(Runner& runner);
  double time_and_count(std::size_t runner);
  bool agree_to_go_on(std::vector<double> own);

  World& world_;
  Control& control_;
  BenchBuffers& buffers_;
  const BenchConfig& config_;
  double copy_bytes_per_s_;  ///< of a GPU's memory
  SegmentCounting counting_;
  std::vector<Runner*> runners_;
  BenchCase kind_;
  BenchSize size_;
  std::int64_t batch_ = 1;
  std::vector<std::vector<double>> seconds_;  ///< per runner
  std::vector<std::int64_t> wrong_;           ///< per runner, on this rank; over all ranks in the end
  std::vector<double> segments_;              ///< per runner: those sent, and those sent again; likewise
};

void SizeRun::check(std::size_t runner, std::uint64_t seed, How how) {
  const BenchData data({kind_.type, kind_.op, world_.size(), seed});
  buffers_.fill(data);
  Runner& on = *runners_[runner];
  const CollectiveCall call = buffers_.call(0, on.is_of_mpi());
  if (how == How::kBlocking) {
    on.run(call);
  } else {
    on.run_all({call});
  }
  wrong_[runner] += buffers_.num_wrong(data, on.is_of_mpi());
}

double SizeRun::time(Runner& runner) {
  buffers_.restore();
  std::vector<CollectiveCall> calls;
  for (std::int64_t i = 0; i < batch_; ++i) calls.push_back(buffers_.call(i, runner.is_of_mpi()));
  control_.barrier();
  const Clock::time_point start = Clock::now();
  if (batch_ == 1) {
    runner.run(calls.front());
  } else {
    runner.run_all(calls);
  }
  return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(batch_);
}

double SizeRun::time_and_count(std::size_t runner) {
  if (!counting_.is_mine) return time(*runners_[runner]);
  const TcpSegments before = read_segments();
  const double seconds = time(*runners_[runner]);
  const TcpSegments after = read_segments();
  segments_[2 * runner] += after.sent - before.sent;
  segments_[2 * runner + 1] += after.again - before.again;
  return seconds;
}

// Takes this rank's times of one iteration of each algorithm, keeps the slowest rank's.
bool SizeRun::agree_to_go_on(std::vector<double> own) {
  own.push_back(world_.is_stopping() ? 1 : 0);
  const std::vector<double> slowest = control_.largest(own);
  for (std::size_t i = 0; i < runners_.size(); ++i) {
    if (own[i] >= 0) seconds_[i].push_back(slowest[i]);
  }
  return slowest.back() == 0;  // one exchange carries the times and the wish to stop
}

bool SizeRun::measure(std::vector<Runner*> runners, const BenchCase& kind, const BenchSize& size, std::uint64_t seed,
                      double later, const BenchWatch& watch) {
  runners_ = std::move(runners);
  kind_ = kind;
  size_ = size;
  batch_ = batch_of(config_, size.bytes);
  seconds_.assign(runners_.size(), {});
  wrong_.assign(runners_.size(), 0);
  segments_.assign(2 * runners_.size(), 0);
  buffers_.set_shape(
      {config_.collective, kind.type, kind.op, size, world_.rank(), world_.size(), config_.in_place, batch_});
  const auto progress = [&](const std::string& what) {
    if (watch.on_progress)
      watch.on_progress(fmt::format("{}, {}", format_bytes(static_cast<double>(size.bytes)), what));
  };
  if (config_.check) {
    progress("checking");
    for (std::size_t i = 0; i < runners_.size(); ++i) check(i, seed + 2 * i, How::kBlocking);
  } else {
    buffers_.fill(BenchData({kind.type, kind.op, world_.size(), seed}));
  }
  const Clock::time_point begin = Clock::now();
  const std::int64_t all = config_.warmup + config_.iterations;
  for (std::int64_t i = 0; i < all; ++i) {
    const bool is_warmup = i < config_.warmup;
    const double each =
        i == 0 ? 0 : std::chrono::duration<double>(Clock::now() - begin).count() / static_cast<double>(i);
    const std::string left = left_words(each * (static_cast<double>(all - i) + later * static_cast<double>(all)));
    progress(
        (is_warmup ? "warming up" : fmt::format("iteration {} of {}", i - config_.warmup + 1, config_.iterations)) +
        left);
    std::vector<double> own(runners_.size(), -1);
    for (std::size_t k = 0; k < runners_.size(); ++k) {
      const std::size_t which = (k + idx(i)) % runners_.size();
      if (is_warmup) {
        time(*runners_[which]);
      } else {
        own[which] = time_and_count(which);
      }
    }
    if (!agree_to_go_on(own)) return false;
  }
  if (config_.check) {
    for (std::size_t i = 0; i < runners_.size(); ++i) check(i, seed + 2 * i + 1, How::kInStream);
    wrong_ = control_.sums(std::move(wrong_));
  }
  if (counting_.is_known) segments_ = control_.sums(std::move(segments_));
  return true;
}

/// All GPUs move their share of the plan's bytes at the same time, at best.
double SizeRun::bound_of(const BenchResult& result) const {
  if (copy_bytes_per_s_ <= 0 || result.transport != to_string(TransportKind::kCudaIpc)) return -1;
  const auto bytes = static_cast<double>(size_.bytes);
  const std::optional<double> traffic = result.entry.is_plan && config_.collective == Collective::kAllReduce
                                            ? memory_traffic(*config_.plan, bytes)
                                            : memory_traffic_of(result.plan, config_.collective, world_.size(), bytes);
  if (!traffic) return -1;
  return *traffic / std::min(world_.cuda()->num_devices(), world_.size()) / copy_bytes_per_s_;
}

BenchResult SizeRun::result(std::size_t runner) const {
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
  if (config_.check) out.wrong = wrong_[runner];
  out.is_on_gpu = r.cuda != nullptr;
  const double sent = segments_[2 * runner];
  if (counting_.is_known && sent > 0) out.resent = segments_[2 * runner + 1] / sent;
  if (r.entry.is_native) {
    out.plan = r.is_of_mpi() ? r.mpi->library_version() : "NCCL " + r.cuda->nccl_version();
    out.transport = r.is_of_mpi() ? "mpi" : "nccl";
    out.reason = "the library's own choice";
    return out;
  }
  const PlanReport report = r.communicator->report(config_.collective, size_.count, kind_.type, kind_.op);
  out.plan = report.algorithm;
  out.transport = report.transport;
  out.reason = report.reason;
  out.num_chunks = report.num_chunks;
  out.predicted_seconds = report.predicted_seconds;
  out.bound_seconds = bound_of(out);
  const SizeCorrection* correction =
      config_.profile ? correction_of(*config_.profile, static_cast<double>(size_.bytes)) : nullptr;
  if (correction != nullptr && config_.collective == Collective::kAllReduce && out.predicted_seconds > 0) {
    out.correction = correction->factor.value;
    out.predicted_seconds *= out.correction;
  }
  return out;
}

BenchBuffers make_buffers(const BenchConfig& config, CudaSession* cuda) {
  std::int64_t max_slots = 0;
  if (config.in_place) {
    for (const std::int64_t size : config.sizes) max_slots = std::max(max_slots, size * batch_of(config, size));
  }
  return {*std::max_element(config.sizes.begin(), config.sizes.end()), max_slots, cuda};
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

/// By the first rank alone, while the others wait.
double measure_copy(World& world, Control& control) {
  constexpr std::int64_t kMostBytes = std::int64_t{512} << 20;
  constexpr std::int64_t kShareOfFree = 8;
  if (world.cuda() == nullptr) return 0;
  control.barrier();  // until all have come to rest
  double own = 0;
  if (world.rank() == 0) {
    own = copy_bytes_per_s(*world.cuda(), std::min(kMostBytes, world.cuda()->free_bytes() / kShareOfFree));
  }
  return control.largest(own);
}

void note_nccl(World& world, const BenchConfig& config, const BenchWatch& watch) {
  if (world.cuda() == nullptr || !watch.on_note || ranks_per_gpu(*world.cuda(), world.size()) == 1) return;
  if (config.has_native() || config.transport == TransportKind::kNccl) {
    watch.on_note("NCCL goes over sockets between ranks that share a GPU; that is no statement about a cluster");
  }
}

}  // namespace

BenchOutcome run_bench(World& world, const BenchConfig& config, const BenchWatch& watch) {
  Control control(world, config.timeout_s);
  BenchOutcome outcome;
  outcome.copy_bytes_per_s = measure_copy(world, control);
  note_nccl(world, config, watch);
  BenchBuffers buffers = make_buffers(config, world.cuda());
  std::vector<Runner> runners = make_runners(world, config);
  SizeRun run(world, control, buffers, config, outcome.copy_bytes_per_s);
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
      const double later = later_sizes(config.sizes, static_cast<std::size_t>(&bytes - config.sizes.data()));
      if (!run.measure(able, kind, size, seed, later, watch)) {
        outcome.is_complete = false;
        return outcome;
      }
      seed += 1000;
      for (std::size_t i = 0; i < able.size(); ++i) {
        const BenchResult result = run.result(i);
        outcome.num_wrong += result.wrong.value_or(0);
        if (watch.on_result) watch.on_result(result);
      }
    }
  }
  control.barrier();
  return outcome;
}

}  // namespace gar::measure
