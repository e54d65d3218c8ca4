#include "runtime/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iostream>
#include <list>

#include "gar/environment.hpp"
#include "runtime/reproducible.hpp"

namespace gar {

namespace {

constexpr std::size_t kMaxPaths = 256;

/// Communicators whose operations make progress only inside calls.
struct Polled {
  std::recursive_mutex mutex;
  std::list<Engine*> engines;
};
Polled& polled() {
  static Polled instance;
  return instance;
}

std::int64_t total_count(const Call& call, int size) {
  return call.collective == Collective::kAllReduce ? call.count : call.count * size;
}

Site site_of(const Call& call, int size) {
  const std::int64_t block = call.count * size_of(call.type);
  Site site{call.in, call.out, block, block, call.stream, nullptr};
  if (call.collective == Collective::kReduceScatter) site.in_bytes *= size;
  if (call.collective == Collective::kAllGather) site.out_bytes *= size;
  return site;
}

/// Ends a blocking call, however it ends.
struct Unblock {
  bool& is_blocked;
  explicit Unblock(bool& b) : is_blocked(b) {}
  Unblock(const Unblock&) = delete;
  Unblock& operator=(const Unblock&) = delete;
  ~Unblock() { is_blocked = false; }
};

void reduce_exchanged(const Call& call, int rank, std::span<const std::byte*> operands) {
  const std::int64_t bytes = call.count * size_of(call.type);
  if (bytes == 0) return;
  if (call.collective == Collective::kAllGather) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      std::byte* out = static_cast<std::byte*>(call.out) + static_cast<std::int64_t>(i) * bytes;
      if (static_cast<int>(i) != rank || out != call.in) copy(out, operands[i], bytes);
    }
    return;
  }
  std::vector<const void*> inputs(operands.begin(), operands.end());
  if (call.collective == Collective::kReduceScatter) {
    for (const void*& input : inputs) input = static_cast<const std::byte*>(input) + rank * bytes;
  }
  reduce(call.type, call.op, call.out, inputs, call.count);
}

}  // namespace

/// One operation that can be carried on a little at a time.
class Engine::Running {
 public:
  Running(Engine& engine, const Call& call, const Path& path)
      : engine_(engine),
        call_(call),
        schedule_(path.schedule),
        signature_(engine.next_signature(call, schedule_.get())),
        site_(site_of(call, engine.size())) {
    Transport& transport = *engine.transport_;
    site_.schedule = schedule_.get();
    transport.begin(signature_, site_);
    if (schedule_ == nullptr) {
      operands_.resize(static_cast<std::size_t>(engine.size()));
      return;
    }
    const Buffers buffers{static_cast<const std::byte*>(call.in), static_cast<std::byte*>(call.out), call.type,
                          call.op};
    execution_.emplace(transport, *schedule_, buffers, engine.serial_);
    engine.serial_ += static_cast<std::uint64_t>(schedule_->num_chunks);
  }

  bool advance() {
    if (execution_) return execution_->advance();
    if (engine_.transport_->is_on_device()) return advance_without_plan();
    const std::int64_t bytes = call_.collective == Collective::kReduceScatter
                                   ? call_.count * engine_.size() * size_of(call_.type)
                                   : call_.count * size_of(call_.type);
    if (!engine_.transport_->try_exchange(call_.in, bytes, operands_)) return false;
    engine_.transport_->progressed();
    reduce_exchanged(call_, engine_.rank(), operands_);
    return true;
  }

 private:
  /// On a device: one rank, no elements, or the transport's own way.
  bool advance_without_plan() {
    Transport& transport = *engine_.transport_;
    if (!has_met_) {
      if (!transport.try_meet()) return false;
      has_met_ = true;
      if (call_.count > 0 && engine_.size() > 1) {
        transport.run_own(signature_, site_);
      } else if (call_.count > 0 && call_.in != call_.out) {
        transport.compute().copy(call_.out, call_.in, call_.count * size_of(call_.type), Stores::kCached);
        transport.compute().end_step();
      }
    }
    return transport.try_complete();
  }

  Engine& engine_;
  Call call_;
  bool has_met_ = false;
  std::shared_ptr<const Schedule> schedule_;
  Signature signature_;
  Site site_;
  std::optional<Execution> execution_;
  std::vector<const std::byte*> operands_;
};

Engine::Engine(std::unique_ptr<Transport> transport, const CommunicatorOptions& options,
               const Topology& default_topology)
    : transport_(std::move(transport)),
      options_(options),
      chooser_(options, default_topology, transport_->size(), transport_->limits().least_chunk_bytes),
      log_(options.log),
      sequence_(kFirstSequence) {
  if (!log_ && environment::text(environment::kDebug) == "INFO" && rank() == 0) {
    log_ = [](std::string_view line) { std::cerr << fmt::format("gar: {}\n", line); };
  }
  if (options.reproducible && transport_->is_on_device()) {
    throw InvalidArgument("`reproducible` on GPUs is not there; accepted is a communicator for host memory");
  }
  if (!transport_->allows_threads()) {
    const std::lock_guard lock(polled().mutex);
    polled().engines.push_back(this);
  }
}

void Engine::drain() {
  if (transport_->allows_threads()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.empty(); });
    return;
  }
  while (!queue_.empty()) {
    poll_all();
    if (!queue_.empty()) pause();
  }
}

Engine::~Engine() {
  drain();
  if (transport_->allows_threads()) {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    if (worker_.joinable()) worker_.join();
    return;
  }
  const std::lock_guard lock(polled().mutex);
  polled().engines.remove(this);
}

PlanReport Engine::make_report(const Call& call, const Schedule* schedule, const ChosenPlan* plan) const {
  PlanReport report;
  report.transport = transport_->name();
  if (schedule == nullptr && size() > 1 && !transport_->own_collectives().empty()) {
    report.algorithm = "native";
    report.reason = fmt::format("{}'s own", transport_->own_collectives());
    return report;
  }
  if (schedule == nullptr) {
    report.algorithm = size() == 1 ? "copy" : "latency";
    report.reason = size() == 1 ? "one rank" : "small: every rank reads all operands, one synchronisation";
    return report;
  }
  report.algorithm = plan->name;
  report.reason = plan->reason;
  report.num_chunks = schedule->num_chunks;
  const bool is_priced = call.collective == Collective::kAllReduce || transport_->limits().has_equal_halves;
  if (plan->priced && is_priced) {
    const double floats = static_cast<double>(total_count(call, size()) * size_of(call.type)) / 4;
    report.predicted_seconds = plan->priced->cost(floats).total();
  }
  return report;
}

void Engine::log_once(const Call& call, const PlanReport& report) {
  if (!log_) return;
  const std::int64_t bytes = total_count(call, size()) * size_of(call.type);
  const int size_class = std::bit_width(static_cast<std::uint64_t>(bytes));
  {
    const std::lock_guard lock(choice_mutex_);
    if (std::exchange(has_logged_[{call.collective, size_class}], true)) return;
  }
  // Not while anything is locked: the user's function may ask the communicator something.
  const std::int64_t from = bytes == 0 ? 0 : std::int64_t{1} << (size_class - 1);
  const std::int64_t to = bytes == 0 ? 0 : 2 * from - 1;
  log_(fmt::format("{} of {}..{} bytes, {} ranks over {}: {}{}{} ({})", name_of(call.collective), from, to, size(),
                   report.transport, report.algorithm,
                   report.num_chunks > 1 ? fmt::format(" in {} chunks", report.num_chunks) : "",
                   report.predicted_seconds >= 0 ? fmt::format(", predicted {:.3g} s", report.predicted_seconds) : "",
                   report.reason));
}

Path Engine::path_of(const Call& call) {
  std::unique_lock lock(choice_mutex_);
  const std::int64_t element_size = size_of(call.type);
  const bool is_reproducible = options_.reproducible && call.count > 0 && call.collective != Collective::kAllGather &&
                               changes_bits(call.type, call.op);
  const Key key{call.collective, call.count, element_size};
  auto known = paths_.find(key);
  bool is_new = false;
  if (known == paths_.end()) {
    Path path;
    const std::int64_t bytes = total_count(call, size()) * element_size;
    const std::int64_t exchanged = call.collective == Collective::kAllGather ? call.count * element_size : bytes;
    const std::int64_t most = transport_->max_latency_bytes();
    if (size() == 1 || (call.count == 0 && most > 0) || chooser_.takes_latency_path(exchanged, most) ||
        !transport_->own_collectives().empty()) {
      path.report = make_report(call, nullptr, nullptr);
    } else if (call.count > 0) {
      const ChosenPlan& chosen = chooser_.choose(call.collective, bytes);
      path.schedule = std::make_shared<Schedule>(
          make_schedule(chosen.plan, rank(), call.count, element_size, transport_->limits()));
      path.report = make_report(call, path.schedule.get(), &chosen);
    }
    if (paths_.size() >= kMaxPaths) {
      paths_.erase(std::min_element(paths_.begin(), paths_.end(), [](const auto& x, const auto& y) {
        return x.second.last_use < y.second.last_use;
      }));
    }
    known = paths_.emplace(key, std::move(path)).first;
    is_new = true;
  }
  known->second.last_use = ++num_path_uses_;
  Path out = known->second;
  lock.unlock();
  if (is_reproducible) {
    out.report.algorithm = "reproducible";
    out.report.num_chunks = 1;
    out.report.predicted_seconds = -1;
    out.report.reason = "made of plain operations on integers and exponents";
  }
  if (is_new || is_reproducible) log_once(call, out.report);
  out.is_reproducible = is_reproducible;
  return out;
}

void Engine::run_path(const Call& call, const Path& path) {
  if (path.is_reproducible) {
    run_reproducible(call);
    return;
  }
  if (size() == 1 && !transport_->is_on_device()) {
    if (call.count > 0 && call.in != call.out) copy(call.out, call.in, call.count * size_of(call.type));
    return;
  }
  if (call.count == 0 && transport_->max_latency_bytes() == 0 && !transport_->is_on_device()) {
    run_nothing(call);
    return;
  }
  try {
    const std::shared_ptr<void> scope = transport_->enter();
    Running running(*this, call, path);
    while (!running.advance()) {
      if (!transport_->allows_threads()) poll_all();
      transport_->wait();
    }
  } catch (const std::exception& e) {
    if (transport_->is_intact()) throw;
    transport_->fail(e.what());
    // Who catches DeviceError goes on with the communicator.
    if (dynamic_cast<const DeviceError*>(&e) != nullptr) throw TransportError(e.what());
    throw;
  }
}

void Engine::barrier() {
  if (transport_->is_on_device()) {
    run({Collective::kAllReduce, nullptr, nullptr, 0, DataType::kInt8, ReduceOp::kSum, std::nullopt});
    return;
  }
  // Everybody's contribution goes into the one element, so nobody has it before all have come.
  std::int8_t token = 0;
  run({Collective::kAllReduce, &token, &token, 1, DataType::kInt8, ReduceOp::kSum, std::nullopt});
}

void Engine::synchronize(Stream stream) {
  check_stream("synchronize");
  drain();
  try {
    const std::shared_ptr<void> scope = transport_->enter();
    while (!transport_->is_idle(stream)) transport_->wait();
  } catch (const std::exception& e) {
    if (!transport_->is_intact()) transport_->fail(e.what());
    throw;
  }
}

void Engine::run(const Call& call) {
  check(call);
  check_overlap(call);
  const Path path = path_of(call);
  if (path.is_reproducible && !transport_->allows_threads()) {
    // Many operations in one; those of other communicators go on meanwhile.
    drain();
    is_blocked_ = true;
    const Unblock unblock(is_blocked_);
    run_path(call, path);
    return;
  }
  // What enters a stream does so in this thread: some streams are another one in every thread.
  if (call.stream) drain();
  bool is_idle = false;
  {
    const std::lock_guard lock(mutex_);
    is_idle = queue_.empty() && transport_->allows_threads();
  }
  if (is_idle) {
    run_path(call, path);
    return;
  }
  const auto task = std::make_shared<Task>();
  task->call = call;
  task->path = path;
  start(task);
  wait(*task);
}

void Engine::start(const std::shared_ptr<Task>& task) {
  if (!task->is_persistent && task->has_started) {
    throw InvalidArgument(
        "start: the operation is not persistent and has run; accepted is one of prepare_all_reduce etc.");
  }
  if (task->path.is_reproducible && !transport_->allows_threads()) {
    throw InvalidArgument(
        "start: reproducible operations that do not block need MPI_THREAD_MULTIPLE; accepted are blocking ones, or "
        "MPI_Init_thread with "
        "that level");
  }
  if (is_closed_) throw InvalidArgument("start: the communicator does not exist any more");
  if (task->is_active) {
    throw InvalidArgument("start: the operation is still running; accepted after wait, or test that returned true");
  }
  const std::unique_lock lock(mutex_);
  if (transport_->allows_threads() && !worker_.joinable()) worker_ = std::thread(&Engine::work, this);
  queue_.push_back(task);
  task->has_started = true;
  task->is_active = true;
  task->is_done = false;
  task->error = nullptr;
  changed_.notify_all();
}

void Engine::complete(Task& task, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  task.is_done = true;
  task.error = std::move(error);
  queue_.pop_front();
  changed_.notify_all();
}

void Engine::work() {
  while (true) {
    std::shared_ptr<Task> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      task = queue_.front();
    }
    std::exception_ptr error;
    try {
      run_path(task->call, task->path);
    } catch (...) {
      error = std::current_exception();
    }
    complete(*task, error);
  }
}

void Engine::poll() {
  if (queue_.empty() || is_blocked_) return;
  const std::shared_ptr<Task> task = queue_.front();
  const bool is_resumable = size() > 1 && !task->path.is_reproducible &&
                            (task->path.schedule != nullptr || transport_->max_latency_bytes() > 0);
  std::exception_ptr error;
  try {
    if (is_resumable) {
      if (polled_ == nullptr) polled_ = std::make_unique<Running>(*this, task->call, task->path);
      if (!polled_->advance()) return;
    } else {
      run_path(task->call, task->path);
    }
  } catch (const std::exception& e) {
    transport_->fail(e.what());
    error = std::current_exception();
  }
  polled_ = nullptr;
  complete(*task, error);
}

void Engine::pause() {
  try {
    transport_->wait();
  } catch (const std::exception& e) {
    transport_->fail(e.what());
    if (queue_.empty()) return;
    polled_ = nullptr;
    complete(*queue_.front(), std::current_exception());
  }
}

void Engine::poll_all() {
  const std::lock_guard lock(polled().mutex);
  for (Engine* engine : polled().engines) engine->poll();
}

bool Engine::test(Task& task) {
  if (!task.is_active) {
    if (task.error) std::rethrow_exception(task.error);
    return true;
  }
  if (!transport_->allows_threads()) poll_all();
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    if (!task.is_done) return false;
    error = task.error;
  }
  task.is_active = false;
  if (error) std::rethrow_exception(error);
  return true;
}

void Engine::wait(Task& task) {
  if (!task.is_active) {
    test(task);
    return;
  }
  if (transport_->allows_threads()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return task.is_done; });
  } else {
    while (!task.is_done) {
      poll_all();
      if (!task.is_done) pause();
    }
  }
  test(task);
}

}  // namespace gar
