// How an operation runs: which path it takes, and the path itself. Requests and their thread are in
// engine_requests.cpp.
#include "runtime/engine.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <iostream>
#include <limits>

#include "gar/environment.hpp"
#include "gar/format.hpp"
#include "runtime/engine_running.hpp"
#include "runtime/reproducible.hpp"

namespace gar {

namespace {

constexpr std::size_t kMaxPaths = 512;
constexpr int kMeetings = std::numeric_limits<int>::min();  // in place of a class; explored ones count from 0 or -1

}  // namespace

Engine::Engine(std::unique_ptr<Transport> transport, const CommunicatorOptions& options,
               const Topology& default_topology, Exploration exploration, std::optional<Topology> short_network)
    : transport_(std::move(transport)),
      rank_(transport_->rank()),
      size_(transport_->size()),
      allows_threads_(transport_->allows_threads()),
      device_(transport_->device()),
      own_(transport_->own_collectives()),
      options_(options),
      chooser_(options, default_topology, transport_->size(), transport_->limits().least_chunk_bytes,
               {transport_->quick_gather(), std::move(short_network)}),
      log_(options.log),
      exploration_(std::move(exploration)),
      sequence_(kFirstSequence) {
  const auto say = [](std::string_view line) { std::cerr << fmt::format("gar: {}\n", escaped(line)); };
  const std::string debug = environment::text(environment::kDebug);
  if (!log_ && debug == "INFO" && rank() == 0) log_ = say;
  warn_ = log_;
  if (!warn_ && debug == "WARN" && rank() == 0) warn_ = say;
  if (warn_ && !exploration_.problem.empty()) {
    warn_(fmt::format("decisions of earlier jobs are not used: {}", exploration_.problem));
  }
  if (options.reproducible && device_ != nullptr) {
    throw InvalidArgument("`reproducible` on GPUs is not there; expected a communicator for host memory");
  }
  if (!allows_threads_) join_polled();
}

PlanReport Engine::make_report(const CollectiveCall& call, const Schedule* schedule, const ChosenPlan* plan) const {
  PlanReport report;
  report.transport = transport_->name();
  if (schedule == nullptr && size() > 1 && own_ != nullptr) {
    report.algorithm = "native";
    report.reason = fmt::format("{}'s own", own_->library());
    return report;
  }
  if (plan == nullptr) {
    report.algorithm = size() == 1 ? "copy" : "gather";
    report.reason = size() == 1 ? "one rank" : "nothing to reduce: ranks only meet";
    return report;
  }
  report.algorithm = plan->name;
  report.reason = plan->reason;
  if (schedule != nullptr) report.num_chunks = schedule->num_chunks;
  const bool is_priced = call.collective == Collective::kAllReduce || transport_->limits().has_equal_halves;
  if (is_priced) {
    report.predicted_seconds = plan->seconds(call.collective, static_cast<double>(vector_bytes(call, size())) / 4);
  }
  return report;
}

void Engine::log_once(const CollectiveCall& call, const PlanReport& report) {
  if (!log_) return;
  const std::int64_t bytes = vector_bytes(call, size());
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

Path Engine::make_path(const CollectiveCall& call, bool is_meeting) {
  Path path;
  const std::int64_t bytes = vector_bytes(call, size());
  const std::int64_t gathered = call.collective == Collective::kAllGather ? in_bytes(call, size()) : bytes;
  const std::int64_t most = transport_->max_exchange_bytes();
  if (size() == 1 || call.count == 0 || own_ != nullptr) {
    path.report = std::make_shared<PlanReport>(call.count == 0 && size() > 1 && most == 0 && own_ == nullptr
                                                   ? PlanReport()
                                                   : make_report(call, nullptr, nullptr));
  } else if ((is_meeting && gathered <= most) || chooser_.is_told_to_gather(gathered)) {
    const ChosenPlan chosen = chooser_.gathered();
    path.report = std::make_shared<PlanReport>(make_report(call, nullptr, &chosen));
  } else {
    path = path_with(call, chooser_.choose(call.collective, bytes));
  }
  return path;
}

Path Engine::path_with(const CollectiveCall& call, const ChosenPlan& chosen) {
  Path path;
  if (!chosen.quick) {
    path.schedule = std::make_shared<Schedule>(
        make_schedule(chosen.plan, rank(), call.count, size_of(call.type), transport_->limits()));
  }
  path.report = std::make_shared<PlanReport>(make_report(call, path.schedule.get(), &chosen));
  return path;
}

const Path& Engine::remember(const Key& key, Path path) {
  if (paths_.size() >= kMaxPaths) {
    recent_paths_ = {};
    paths_.erase(std::min_element(paths_.begin(), paths_.end(),
                                  [](const auto& x, const auto& y) { return x.second.last_use < y.second.last_use; }));
  }
  path.last_use = ++num_path_uses_;
  return paths_.insert_or_assign(key, std::move(path)).first->second;
}

/// Programs call with few counts in turns; the last ones are found without a search.
const Path* Engine::find_path(const Key& key) {
  for (const auto& [known, path] : recent_paths_) {
    if (path == nullptr || known != key) continue;
    path->last_use = ++num_path_uses_;
    return path;
  }
  const auto found = paths_.find(key);
  if (found == paths_.end()) return nullptr;
  found->second.last_use = ++num_path_uses_;
  recent_paths_[next_recent_++ % recent_paths_.size()] = {key, &found->second};
  return &found->second;
}

Path Engine::path_of(const CollectiveCall& call, bool explores, bool is_meeting) {
  check_process(name_of(call.collective));  // a lock may be held by a thread that is not here
  std::unique_lock lock(choice_mutex_);
  if (std::shared_ptr<ExploredClass> explored = explores ? explored_class(call) : nullptr) {
    Path out;
    out.report = candidate_path(call, *explored, explored->turn.candidate).report;
    out.explored = std::move(explored);
    lock.unlock();
    log_once(call, *out.report);
    return out;
  }
  const bool is_reproducible = options_.reproducible && call.count > 0 && call.collective != Collective::kAllGather &&
                               changes_bits(call.type, call.op);
  const Key key{call.collective, call.count, size_of(call.type), is_meeting ? kMeetings : -1, -1};
  const Path* known = find_path(key);
  const bool is_new = known == nullptr;
  Path out = is_new ? remember(key, make_path(call, is_meeting)) : *known;
  lock.unlock();
  if (is_reproducible) {
    PlanReport report = *out.report;
    report.algorithm = "reproducible";
    report.num_chunks = 1;
    report.predicted_seconds = -1;
    report.reason = "made of plain operations on integers and exponents";
    out.report = std::make_shared<PlanReport>(std::move(report));
  }
  if (is_new || is_reproducible) log_once(call, *out.report);
  out.is_reproducible = is_reproducible;
  return out;
}

void Engine::give_up(std::string_view reason) noexcept {
  has_failed_ = true;
  transport_->fail(reason);
}

void Engine::run_path(const CollectiveCall& call, const Path& path, std::optional<Stream> stream) {
  if (survival_ != nullptr) {
    run_surviving(call, path);
  } else {
    run_once(call, path, stream);
  }
}

void Engine::run_once(const CollectiveCall& call, const Path& path, std::optional<Stream> stream) {
  if (path.is_reproducible) {
    run_reproducibly(call);
    return;
  }
  if (size() == 1 && device_ == nullptr) {
    if (call.count > 0 && call.in != call.out) copy(call.out, call.in, in_bytes(call, 1));
    return;
  }
  if (call.count == 0 && !path.moving && transport_->max_exchange_bytes() == 0 && device_ == nullptr) {
    run_nothing(call);
    return;
  }
  try {
    const std::shared_ptr<void> scope = device_ == nullptr ? nullptr : device_->enter();
    const auto finish = [&](auto&& running) {
      while (!running.advance()) {
        if (!allows_threads_) poll_all();
        if (running.waits_elsewhere()) {
          sched_yield();
        } else {
          transport_->wait();
        }
      }
    };
    // On the stack: a short operation takes less than a microsecond.
    if (path.moving) {
      finish(Moving(*this, call, path));
    } else if (path.explored) {
      finish(Explored(*this, call, path.explored));
    } else {
      finish(Running(*this, call, path, stream));
    }
  } catch (const std::exception& e) {
    if (device_ != nullptr && device_->is_intact()) throw;
    give_up(e.what());
    // A caller that catches DeviceError goes on with the communicator, which has failed here.
    if (dynamic_cast<const DeviceError*>(&e) != nullptr) throw TransportError(e.what());
    throw;
  }
}

void Engine::barrier() {
  if (device_ != nullptr) {
    run({.type = DataType::kInt8});
    return;
  }
  // Every rank contributes to the one element, so no rank has the sum before all have called.
  std::int8_t token = 0;
  run_call({.in = &token, .out = &token, .count = 1, .type = DataType::kInt8}, false, std::nullopt);
}

void Engine::synchronize(Stream stream) {
  check_process("synchronize");
  check_stream("synchronize");
  drain();
  try {
    const std::shared_ptr<void> scope = device_->enter();
    while (!device_->is_idle(stream)) transport_->wait();
  } catch (const std::exception& e) {
    if (!device_->is_intact()) give_up(e.what());
    throw;
  }
}

void Engine::run(const CollectiveCall& call, std::optional<Stream> stream) { run_call(call, true, stream); }

void Engine::run_call(const CollectiveCall& call, bool explores, std::optional<Stream> stream) {
  check_process(name_of(call.collective));
  if (stream) check_stream(name_of(call.collective));
  check(call);
  check_overlap(call);
  if (explores && !stream && run_plainly(call)) return;
  const Path path = path_to_run(call, explores, !explores);
  if (path.is_reproducible && !allows_threads_) {
    // It is many operations in one. Those of other communicators go on meanwhile.
    drain();
    is_blocked_ = true;
    const Unblock unblock(is_blocked_);
    run_path(call, path);
    return;
  }
  dispatch(call, path, stream);
}

void Engine::dispatch(const CollectiveCall& call, const Path& path, std::optional<Stream> stream) {
  if (!stream && !allows_threads_ && queue_.empty() && !is_blocked_) {
    is_blocked_ = true;  // for what goes on meanwhile
    const Unblock unblock(is_blocked_);
    run_path(call, path);
    return;
  }
  // The calling thread puts operations into streams: the same handle can mean another stream in every thread.
  if (stream) drain();
  bool is_idle = false;
  {
    const std::lock_guard lock(mutex_);
    is_idle = queue_.empty() && allows_threads_;
  }
  if (is_idle) {
    run_path(call, path, stream);
    if (survival_ != nullptr) {
      const std::lock_guard lock(mutex_);
      see(last_members_);
    }
    return;
  }
  const auto task = std::make_shared<Task>();
  task->call = call;
  task->path = path;
  start(task);
  wait(*task);
}

}  // namespace gar
