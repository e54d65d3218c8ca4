// Measures groups of observations.
#include "measure/fit/engine.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "base/clock.hpp"
#include "base/index.hpp"
#include "gar/reduction.hpp"

namespace gar::measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kClockRounds = 24;
constexpr double kLeastMargin = 100e-6;
/// A repetition takes at least this long, so that a late start weighs little; over a network longer, since buffers and
/// token buckets let the first bytes pass faster than the network is.
constexpr double kBatchSeconds = 2e-3;
constexpr double kNetworkSeconds = 25e-3;
constexpr double kReductionSeconds = 6e-3;  ///< longer than ranks that share a core take turns
constexpr std::int64_t kMaxBatch = 4096;
/// An operation that takes this many times the least seconds of a repetition is long: that it was the first of its kind
/// does not explain its time, so it is not run again to find out.
constexpr double kFirstTimes = 4;
constexpr double kLateStart = 1;    ///< seconds; a start that is later means that the machine paused
constexpr double kIdleShare = 0.8;  ///< of the expected time: ranks that take no part sleep this long

double own_now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

/// One server per rank on one switch. Parameters decide nothing where the algorithm is given.
Topology neutral_star(std::size_t num_ranks, std::int64_t max_senders) {
  PaperParams params;
  params.server_link.epsilon = 0;
  params.server_link.max_senders = static_cast<double>(max_senders);
  return make_tree({static_cast<std::int64_t>(num_ranks)}, params);
}

void add_mean(double& mean, double value, std::size_t count) {
  if (value < 0) return;
  mean = std::max(mean, 0.0) + (value - std::max(mean, 0.0)) / static_cast<double>(count);
}

}  // namespace

CommonClock::CommonClock(Control& control, int rank, int size) {
  prctl(PR_SET_TIMERSLACK, 1000);  // nanoseconds; a sleep ends 50 us late otherwise
  double upper = 1e300;            // of this clock minus rank 0's
  double lower = -1e300;
  double sent_before = 0;
  double received_before = -1;
  std::vector<double> rounds;
  for (int round = 0; round < kClockRounds; ++round) {
    const std::array<double, 2> own{own_now(), received_before};
    const std::vector<double> all = control.gather(std::span<const double>(own));
    const double received = own_now();
    upper = std::min(upper, received - all[0]);
    if (all[1] >= 0) lower = std::max(lower, sent_before - all[1]);
    sent_before = own[0];
    received_before = received;
    rounds.push_back(received - own[0]);
  }
  // Clocks of different machines never agree by chance.
  if (rank != 0 && size > 1 && (lower > 0 || upper < 0)) offset_s_ = (lower + upper) / 2;
  std::sort(rounds.begin(), rounds.end());
  meeting_s_ = control.largest(rounds[rounds.size() * 3 / 4]);
}

double CommonClock::now() const { return own_now() - offset_s_; }

void CommonClock::sleep_until(double moment) const {
  const double seconds = moment - now();
  if (seconds > 0) std::this_thread::sleep_until(seconds_from_now(seconds));
}

FitEngine::FitEngine(World& world, Control& control, const FitEngineOptions& options)
    : world_(world), control_(control), options_(options), clock_(control, world.rank(), world.size()) {
  const auto floats = static_cast<std::size_t>(std::max(options.most_floats, 1.0));
  input_.assign(floats, 1.0F, world.cuda());
  output_.assign(floats, 0.0F, world.cuda());
  if (options.has_messages) {
    const std::vector<std::string> networks = control.gather_texts(network_identity());
    const auto first = std::find(networks.begin(), networks.end(), networks[idx(world.rank())]);
    is_counting_ = first - networks.begin() == world.rank();
    if (is_counting_) last_count_ = read_congestion();
  }
}

void FitEngine::Floats::assign(std::size_t count, float value, CudaSession* cuda) {
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 22;
  size_ = count;
  if (cuda == nullptr) {
    host_.assign(count, value);
    return;
  }
  device_.reset();
  device_ = cuda->allocate(static_cast<std::int64_t>(count * sizeof(float)));
  const std::vector<float> part(std::min(count, kMostAtOnce), value);
  for (std::size_t done = 0; done < count; done += part.size()) {
    const std::size_t floats = std::min(part.size(), count - done);
    cuda->upload(data() + done, part.data(), static_cast<std::int64_t>(floats * sizeof(float)));
  }
}

bool FitEngine::takes_part(const Observation& cell) const {
  return std::binary_search(cell.servers.begin(), cell.servers.end(), world_.rank());
}

FitEngine::Runner* FitEngine::runner(const Observation& cell) {
  const bool is_ours = cell.kind == ObservationKind::kCollective && !cell.is_native;
  const std::string algorithm = is_ours ? to_string(cell.algorithm) : "";
  std::shared_ptr<Group> group;
  bool is_known = false;
  for (auto it = runners_.begin(); it != runners_.end(); ++it) {
    if (it->servers != cell.servers) continue;
    group = it->group;
    is_known = true;
    if (it->algorithm != algorithm || it->max_senders != cell.max_senders) continue;
    runners_.splice(runners_.begin(), runners_, it);  // the least used ones are at the end
    return &runners_.front();
  }
  if (!is_known) group = world_.group({cell.servers.begin(), cell.servers.end()});
  runners_.push_front({cell.servers, algorithm, cell.max_senders, group, std::nullopt});
  Runner& out = runners_.front();
  if (group && is_ours) {
    CommunicatorOptions options;
    options.algorithm = algorithm;
    options.topology = neutral_star(cell.servers.size(), cell.max_senders);
    options.timeout_s = options_.timeout_s;
    options.latency_bytes = 0;  // a gather is measured as the plan that it is
    options.explores = false;
    options.log = [](std::string_view) {};
    out.communicator.emplace(group->communicator(options));
  }
  if (runners_.size() > options_.max_runners) runners_.pop_back();
  return &out;
}

FitEngine::Body FitEngine::reduction_of(const Observation& cell) {
  constexpr std::size_t kMostOperands = 16;
  const auto floats = static_cast<std::size_t>(cell.size_floats);
  if (operands_.size() < (kMostOperands + 1) * floats) {
    operands_.assign((kMostOperands + 1) * floats, 1.0F, world_.cuda());
  }
  std::vector<const void*> operands;
  for (std::size_t i = 0; i < idx(cell.fan_in); ++i) {
    operands.push_back(operands_.data() + (i + 1) * floats);
  }
  const auto count = static_cast<std::int64_t>(floats);
  if (CudaSession* cuda = world_.cuda(); cuda != nullptr) {
    const auto reduction = [this, cuda, operands, count] {
      cuda->reduce(DataType::kFloat32, ReduceOp::kSum, operands_.data(), operands, count);
    };
    return {{}, [cuda, reduction](std::int64_t batch) { return cuda->time(reduction, batch); }};
  }
  return {[this, operands, count] { reduce(DataType::kFloat32, ReduceOp::kSum, operands_.data(), operands, count); },
          {}};
}

FitEngine::Body FitEngine::body_of(const Observation& cell) {
  if (cell.kind == ObservationKind::kReduction) {
    if (!takes_part(cell)) return {};
    return reduction_of(cell);
  }
  Runner* on = runner(cell);
  if (!takes_part(cell)) return {};
  const auto floats = static_cast<std::int64_t>(cell.size_floats);
  if (cell.kind == ObservationKind::kGather) {
    return {[this, on, floats] { on->group->gather_to_first(input(), output(), 4 * floats); }, {}};
  }
  if (cell.is_native) {
    return {[this, on, floats] {
              on->group->mpi()->native(
                  {Collective::kAllReduce, input(), output(), floats, DataType::kFloat32, ReduceOp::kSum});
            },
            {}};
  }
  if (cell.collective == Collective::kAllGather) {
    const std::int64_t block = floats / static_cast<std::int64_t>(cell.servers.size());
    // On a GPU the copy of a rank's own block would be a large part of the time, and no message.
    const float* in = output_.is_on_device() ? output() + on->communicator->rank() * block : input();
    return {[this, on, in, block] { on->communicator->all_gather(in, output(), block, DataType::kFloat32); }, {}};
  }
  return {[this, on, floats] { on->communicator->all_reduce(input(), output(), floats, DataType::kFloat32); }, {}};
}

double FitEngine::time(const Body& body, std::int64_t batch, double expected_s, bool is_alone) {
  if (!body) {
    clock_.sleep_until(start_ + kIdleShare * expected_s * static_cast<double>(batch));
    return -1;
  }
  clock_.sleep_until(start_);
  if (body.time) return body.time(batch);
  const double begin = is_alone ? std::max(start_, clock_.now() - kLateStart) : clock_.now();
  for (std::int64_t i = 0; i < batch; ++i) body.run();
  return (clock_.now() - begin) / static_cast<double>(batch);
}

FitEngine::Meeting FitEngine::meet(double seconds) {
  enum { kNow, kSeconds, kRetransmits, kPauses, kStop, kNumValues };
  std::array<double, kNumValues> own{0, seconds, -1, -1, world_.is_stopping() ? 1.0 : 0.0};
  if (is_counting_) {
    const CongestionCount count = read_congestion();
    if (count.retransmits >= 0) own[kRetransmits] = count.retransmits - last_count_.retransmits;
    if (count.pause_frames >= 0) own[kPauses] = count.pause_frames - last_count_.pause_frames;
    last_count_ = count;
  }
  own[kNow] = clock_.now();
  const std::vector<double> all = control_.gather(std::span<const double>(own));
  Meeting out;
  double latest = 0;
  const auto add = [](double& sum, double value) {
    if (value >= 0) sum = std::max(sum, 0.0) + value;
  };
  for (std::size_t i = 0; i < all.size(); i += kNumValues) {
    latest = std::max(latest, all[i + kNow]);
    out.seconds.push_back(all[i + kSeconds]);
    out.slowest = std::max(out.slowest, all[i + kSeconds]);
    add(out.retransmits, all[i + kRetransmits]);
    add(out.pause_frames, all[i + kPauses]);
    out.is_stopping = out.is_stopping || all[i + kStop] > 0;
  }
  start_ = latest + 2 * clock_.meeting_s() + kLeastMargin;
  return out;
}

double FitEngine::least_seconds(const Observation& cell) const {
  if (cell.kind == ObservationKind::kGather) return 0;  // ranks that only send would run ahead
  if (cell.kind == ObservationKind::kReduction) return kReductionSeconds;
  return options_.has_messages ? kNetworkSeconds : kBatchSeconds;
}

bool FitEngine::warm_up(FitGroup& group) {
  const bool is_first = group.batches.empty();
  for (std::size_t i = 0; i < group.cells.size(); ++i) {
    const Observation& cell = group.cells[i];
    const Body body = body_of(cell);
    if (meet(-1).is_stopping) return false;
    Meeting met = meet(time(body, 1, 0));
    if (met.is_stopping) return false;
    if (!is_first) continue;
    // The first operation of its kind also makes plans and opens connections.
    if (met.slowest < kFirstTimes * least_seconds(cell)) met = meet(time(body, 1, met.slowest / 2));
    std::int64_t batch = 1;
    while (met.slowest * static_cast<double>(batch) < least_seconds(cell) && batch < kMaxBatch) {
      met = meet(time(body, batch, met.slowest / 2));
      if (met.is_stopping) return false;
      if (met.slowest * static_cast<double>(batch) < least_seconds(cell)) batch *= 2;
    }
    group.batches.push_back(batch);
  }
  return true;
}

bool FitEngine::visit(FitGroup& group, int repetitions) {
  if (!warm_up(group)) return false;
  const std::size_t num_cells = group.cells.size();
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (std::size_t k = 0; k < num_cells; ++k) {
      const std::size_t which = (k + idx(repetition)) % num_cells;
      Observation& cell = group.cells[which];
      const Body body = body_of(cell);
      const auto batch = group.batches[which];
      const double expected = cell.seconds.empty() ? 0 : cell.seconds.back();
      const Meeting met = meet(time(body, batch, expected, cell.kind == ObservationKind::kReduction));
      cell.seconds.push_back(met.slowest);
      add_mean(cell.retransmits, met.retransmits / static_cast<double>(batch), cell.seconds.size());
      add_mean(cell.pause_frames, met.pause_frames / static_cast<double>(batch), cell.seconds.size());
      if (met.is_stopping) return false;
    }
  }
  return true;
}

std::optional<std::vector<double>> FitEngine::time_ranks(const std::function<void()>& body) {
  if (meet(-1).is_stopping) return std::nullopt;
  Meeting met = meet(time({body, {}}, 1, 0));
  if (met.is_stopping) return std::nullopt;
  return std::move(met.seconds);
}

}  // namespace gar::measure
