// Requests: operations wait in a queue and run one after the other, in the communicator's thread or, where the
// transport allows no thread, a little at a time inside the calls of the user.
#include <sched.h>

#include <functional>
#include <list>

#include "runtime/engine_running.hpp"

namespace gar {

namespace {

/// Communicators whose operations make progress only inside calls. The recursive mutex is there because an operation
/// that waits inside poll_all lets the others go on.
struct Polled {
  std::recursive_mutex mutex;
  int depth = 0;  ///< calls of poll_all inside each other
  std::list<Engine*> engines;
  std::list<std::function<void()>> due;  ///< completions, for when nothing is locked any more
};
Polled& polled() {
  static Polled instance;
  return instance;
}

void use_all_cores() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all);
  sched_setaffinity(0, sizeof all, &all);
}

}  // namespace

void Engine::join_polled() {
  const std::lock_guard lock(polled().mutex);
  polled().engines.push_back(this);
}

void Engine::drain() {
  if (allows_threads_) {
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
  if (allows_threads_) {
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

void Engine::start(const std::shared_ptr<Task>& task) {
  check_process("start");
  if (!task->is_persistent && task->has_started) {
    throw InvalidArgument(
        "start: the operation is not persistent and has run; expected one of prepare_all_reduce etc.");
  }
  if (task->path.is_reproducible && !allows_threads_) {
    throw InvalidArgument(
        "start: reproducible operations that do not block need MPI_THREAD_MULTIPLE; expected blocking ones, or "
        "MPI_Init_thread with "
        "that level");
  }
  if (is_closed_) throw InvalidArgument("start: the communicator does not exist any more");
  if (task->is_active) {
    throw InvalidArgument("start: the operation is still running; accepted after wait, or test that returned true");
  }
  check_layout(*task);
  const std::unique_lock lock(mutex_);
  if (allows_threads_ && !worker_.joinable()) worker_ = std::thread(&Engine::work, this);
  queue_.push_back(task);
  ++num_queued_;
  task->has_started = true;
  task->is_active = true;
  task->has_run = false;
  task->is_done = false;
  task->error = nullptr;
  changed_.notify_all();
}

void Engine::complete(Task& task, std::exception_ptr error) noexcept {
  // Not while anything is locked: the user's function may start operations. The task stays in the queue meanwhile, so
  // the communicator does not end, and no other operation runs.
  if (task.on_complete) task.on_complete(error);
  const std::lock_guard lock(mutex_);
  task.is_done = true;
  task.error = std::move(error);
  task.members = last_members_;
  queue_.pop_front();
  --num_queued_;
  changed_.notify_all();
}

void Engine::work() {
  if (options_.unbinds_thread) use_all_cores();
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
  if (queue_.empty() || is_blocked_ || queue_.front()->has_run) return;
  const std::shared_ptr<Task> task = queue_.front();
  const bool is_resumable = size() > 1 && !task->path.is_reproducible &&
                            (task->path.schedule != nullptr || task->path.moving != nullptr ||
                             task->path.explored != nullptr || transport_->max_exchange_bytes() > 0);
  std::exception_ptr error;
  try {
    if (is_resumable) {
      if (polled_ == nullptr) polled_ = begin(task->call, task->path);
      if (!polled_->advance()) return;
    } else {
      run_path(task->call, task->path);
    }
  } catch (const std::exception& e) {
    give_up(e.what());
    error = std::current_exception();
  }
  polled_ = nullptr;
  task->has_run = true;
  polled().due.emplace_back([this, task, error] { complete(*task, error); });
}

void Engine::poll_all() {
  Polled& all = polled();
  {
    const std::lock_guard lock(all.mutex);
    ++all.depth;
    for (Engine* engine : all.engines) {
      if (engine->is_own_process()) engine->poll();
    }
    --all.depth;
    if (all.depth > 0) return;
  }
  // One at a time: a completion may itself wait for one that is due.
  while (true) {
    std::function<void()> next;
    {
      const std::lock_guard lock(all.mutex);
      if (all.due.empty()) return;
      next = std::move(all.due.front());
      all.due.pop_front();
    }
    next();
  }
}

void Engine::pause() {
  try {
    if (polled_ != nullptr && polled_->waits_elsewhere()) {
      sched_yield();
      return;
    }
    transport_->wait();
  } catch (const std::exception& e) {
    give_up(e.what());
    if (queue_.empty()) return;
    polled_ = nullptr;
    const std::shared_ptr<Task> task = queue_.front();
    complete(*task, std::current_exception());
  }
}

bool Engine::test(Task& task) {
  check_process("test");
  if (!task.is_active) {
    if (task.error) std::rethrow_exception(task.error);
    return true;
  }
  if (!allows_threads_) poll_all();
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    if (!task.is_done) return false;
    error = task.error;
    see(task.members);
  }
  task.is_active = false;
  if (error) std::rethrow_exception(error);
  return true;
}

void Engine::wait(Task& task) {
  check_process("wait");
  if (!task.is_active) {
    test(task);
    return;
  }
  if (allows_threads_) {
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
