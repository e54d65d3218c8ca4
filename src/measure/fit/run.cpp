// The measuring of a fit: find out where the ranks are, choose lengths by a probe, then visit groups as long as the
// budget lasts. Rank 0 looks at the clock and decides; everything else follows from what all ranks know.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/index.hpp"
#include "gar/fit_design.hpp"
#include "gar/measure/fit.hpp"
#include "gar/measure/launch.hpp"
#include "measure/fit/engine.hpp"
#include "measure/fit/links.hpp"
#include "measure/fit/network.hpp"

namespace gar::measure {
namespace {

/// Ranks that have nothing to do wait for the others as long as these take; a rank that dies is noticed in another way.
constexpr double kControlTimeout = 3600;
constexpr double kMostFloats = 4e6;
constexpr double kMostDeviceFloats = 1 << 26;                         ///< 256 MiB
constexpr std::array<double, 2> kDeviceReductions{1 << 24, 1 << 26};  ///< floats: beyond the caches of a GPU
constexpr double kProbeShare = 1.0 / 400;  ///< of the budget, for the last repetition of the probe
constexpr double kReductionShare = 1.0 / 50;
constexpr double kBytesPerSecond = 2e9;  ///< that a core reads at least
constexpr double kMaxFanIn = 16;
constexpr double kAssumedMemory = 1e9;  ///< where the kernel does not say
constexpr double kSumOfFanIns = 51;     ///< of the reductions in src/fit/design: 2 + 3 + 4 + 6 + 8 + 12 + 16
constexpr std::int64_t kAdmitted = 2;   ///< senders at once: what the runtime admits at least
constexpr double kLinkShare = 0.25;     ///< of the largest length, for messages over single links

/// What a rank may take without driving others out.
double memory_of_rank(World& world, Control& control, const FitNetwork& network) {
  CudaSession* cuda = world.cuda();
  const double available = cuda != nullptr ? static_cast<double>(cuda->free_bytes()) : available_bytes();
  const auto sharers =
      static_cast<double>(cuda != nullptr ? ranks_per_gpu(*cuda, world.size()) : network.ranks_per_machine);
  return control.smallest(available < 0 ? kAssumedMemory : available) / 4 / sharers;
}

std::vector<double> device_reduction_sizes(double memory_bytes) {
  std::vector<double> out;
  const double fits = memory_bytes / 4 / (kMaxFanIn + 1);
  for (const double floats : kDeviceReductions) {
    const double size = two_digits(std::min(floats, fits * floats / kDeviceReductions.back()));
    if (out.empty() || size > out.back()) out.push_back(size);
  }
  return out;
}

std::vector<double> reduction_sizes(double memory_bytes, double budget_s, double ranks_per_core) {
  std::vector<double> out{16384, 262144};
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const double wanted = std::clamp(static_cast<double>(cache) / 2, 4194304.0, 33554432.0) / 4;
  const double fits = memory_bytes / 4 / (kMaxFanIn + 1);
  const double affordable = kReductionShare * budget_s * kBytesPerSecond / ranks_per_core / kSumOfFanIns / 4;
  const double large = two_digits(std::min({wanted, fits, affordable}));
  if (large > 2 * out.back()) out.push_back(large);
  return out;
}

class Run {
 public:
  Run(World& world, const FitConfig& config, const std::function<void(const std::string&)>& on_progress)
      : world_(world),
        config_(config),
        on_progress_(on_progress),
        control_(world, kControlTimeout),
        network_(find_network(world, control_, config)),
        memory_(memory_of_rank(world, control_, network_)),
        most_floats_(most_floats()),
        engine_(world, control_, engine_options()) {}

  FitRun run() {
    FitRun out{Measurements{
        network_.topology, network_.cores, {}, {}, network_.provenance, network_.is_memory, network_.access}};
    sizes_.collective = config_.sizes;
    const bool has_network = world_.size() > 1;
    out.is_stopped = has_network && sizes_.collective.empty() && !choose_lengths();
    if (!out.is_stopped) {
      sizes_.reduction = world_.cuda() != nullptr ? device_reduction_sizes(memory_)
                                                  : reduction_sizes(memory_, config_.budget_s, ranks_per_core());
      groups_ = plan_fit(network_.topology, sizes_, scope());
      out.is_stopped = !measure(out);
    }
    collect(out);
    return out;
  }

 private:
  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  [[nodiscard]] double ranks_per_core() const {
    const double lowest = network_.cores;
    return lowest > 0 ? static_cast<double>(network_.ranks_per_machine) / lowest : 1;
  }
  /// Room for the held-out lengths beyond the largest.
  [[nodiscard]] double most_floats() const {
    if (!config_.sizes.empty()) return config_.sizes.back();
    return std::min(world_.cuda() != nullptr ? kMostDeviceFloats : kMostFloats, memory_ / 16);
  }
  [[nodiscard]] FitEngineOptions engine_options() const {
    FitEngineOptions out{config_.timeout_s, network_.has_messages, 2 * most_floats_};
    // Streams, events and mappings of a GPU are scarcer than shared memory, NCCL's buffers scarcer than both.
    if (world_.cuda() != nullptr) out.max_runners = config_.transport == TransportKind::kNccl ? 8 : 32;
    return out;
  }
  [[nodiscard]] FitScope scope() const {
    return {network_.has_messages, world_.mpi() != nullptr,  config_.is_validated,
            max_senders_,          world_.cuda() != nullptr, is_tcp(config_.transport)};
  }
  void say(const std::string& what) const {
    if (!on_progress_) return;
    const double left = std::max(0.0, config_.budget_s - elapsed());
    on_progress_(fmt::format("{:.0f} s of {:g} s left: {}", left, config_.budget_s, what));
  }

  /// A ring of all ranks, longer and longer; false: a rank was asked to stop.
  bool choose_lengths() {
    constexpr double kFirst = 128;
    constexpr double kFactor = 8;
    std::vector<std::int64_t> all;
    for (int r = 0; r < world_.size(); ++r) all.push_back(r);
    Probe probe;
    for (double floats = kFirst;; floats *= kFactor) {
      say("choosing lengths");
      FitGroup group;
      Observation& cell = group.cells.emplace_back();
      cell.algorithm = {"ring", {}, false};
      cell.servers = all;
      cell.size_floats = floats;
      if (!engine_.visit(group, 2)) return false;
      const double seconds = std::min(cell.seconds[0], cell.seconds[1]);
      if (floats == kFirst) probe.latency_s = seconds;
      probe.seconds_per_float = std::max(seconds - probe.latency_s, 0.0) / floats;
      const bool is_long = seconds > kProbeShare * config_.budget_s && floats > kFirst;
      if (is_long || floats * kFactor > most_floats_) break;
    }
    sizes_.collective = choose_sizes(probe, config_.budget_s, most_floats_);
    return true;
  }

  /// From now on with receivers that admit senders, as the runtime's do where incast is.
  void admit_senders() {
    max_senders_ = kAdmitted;
    std::vector<FitGroup> more = plan_fit(network_.topology, sizes_, scope());
    take_over(more, groups_);
    groups_ = std::move(more);
  }

  /// Rank 0's choice, for all ranks.
  std::optional<FitVisit> agree_on_visit() {
    constexpr std::int64_t kNothing = -1;
    std::array<std::int64_t, 2> own{kNothing, 0};
    if (world_.rank() == 0) {
      if (const std::optional<FitVisit> visit = next_visit(groups_, config_.budget_s, elapsed())) {
        own = {static_cast<std::int64_t>(visit->group), visit->repetitions};
      }
    }
    const std::vector<std::int64_t> all = control_.gather(std::span<const std::int64_t>(own));
    if (all[0] == kNothing) return std::nullopt;
    return FitVisit{idx(all[0]), static_cast<int>(all[1])};
  }

  bool measure(FitRun& out) {
    bool has_looked = !network_.has_messages;
    while (const std::optional<FitVisit> visit = agree_on_visit()) {
      if (!has_looked && !groups_[visit->group].is_essential) {
        has_looked = true;
        say("single links");
        const auto floats = static_cast<std::int64_t>(std::max(1.0, kLinkShare * sizes_.collective.back()));
        auto links = measure_links(engine_, world_, network_.topology, network_.host_of, floats);
        if (!links) return false;
        out.measurements.links = std::move(*links);
        if (has_incast(network_.topology, groups_)) admit_senders();
        continue;
      }
      say(describe(groups_[visit->group].cells.front()));
      if (!engine_.visit(groups_[visit->group], visit->repetitions)) return false;
    }
    return true;
  }

  void collect(FitRun& out) {
    std::size_t num_essential = 0;
    std::size_t num_done = 0;
    for (FitGroup& group : groups_) {
      const bool is_done = !group.cells.front().seconds.empty();
      num_essential += group.is_essential ? 1 : 0;
      num_done += group.is_essential && is_done ? 1 : 0;
      for (Observation& cell : group.cells) {
        if (!cell.seconds.empty()) out.measurements.observations.push_back(std::move(cell));
      }
    }
    out.is_enough = !groups_.empty() && num_done == num_essential;
    if (!out.is_enough) {
      const double share = static_cast<double>(std::max<std::size_t>(num_done, 1)) /
                           std::max<double>(static_cast<double>(num_essential), 1);
      out.needed_s = two_digits(std::ceil(2 * elapsed() / share));
    }
    Provenance& provenance = out.measurements.provenance;
    provenance.seconds = elapsed();
    for (const Observation& o : out.measurements.observations) {
      provenance.num_measurements += static_cast<std::int64_t>(o.seconds.size());
    }
    if (config_.is_validated && world_.mpi() == nullptr && world_.cuda() == nullptr) {
      out.notes.emplace_back("there is no MPI: nothing is held against an MPI library's own AllReduce");
    }
    control_.barrier();
  }

  World& world_;
  const FitConfig& config_;
  const std::function<void(const std::string&)>& on_progress_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Control control_;
  FitNetwork network_;
  double memory_;
  double most_floats_;
  FitEngine engine_;
  FitSizes sizes_;
  std::int64_t max_senders_ = 0;
  std::vector<FitGroup> groups_;
};

}  // namespace

FitRun run_fit(World& world, const FitConfig& config, const std::function<void(const std::string&)>& on_progress) {
  return Run(world, config, on_progress).run();
}

}  // namespace gar::measure
