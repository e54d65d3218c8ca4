// gar._core.Collectives: a communicator for callers that have addresses (gar.torch). Calls are numbers; a call that is
// started says when it is complete by calling a Python function from the communicator's thread.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "common.hpp"
#include "gar/communicator.hpp"
#include "gar/errors.hpp"
#include "gar/store.hpp"
#include "gar/tcp.hpp"

namespace gar::python {
namespace {

// A thread that asks for Python's lock while the interpreter ends is ended by it, in the middle of whatever C++ it is
// in. So threads that are about to ask are counted; once the end has begun they ask no more, and the end waits for
// those that have.
std::atomic<bool> is_ending{false};
std::atomic<std::thread::id> ending_thread{};
std::atomic<int> num_in_python{0};

/// May this thread ask for the lock? Counts it until leave().
bool may_enter() {
  ++num_in_python;
  if (!is_ending || std::this_thread::get_id() == ending_thread.load()) return true;
  --num_in_python;
  return false;
}
void leave() { --num_in_python; }

/// A daemon thread of Python stops where it is, until the process is gone.
[[noreturn]] void stop_here() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

/// Daemon threads of Python that call PyTorch: it gives the lock away inside, and who asks for it again while Python ends is
/// thrown out, through code that throws nothing, which ends the process. So the end waits for what is between these two.
void enter_python() {
  if (may_enter()) return;
  const py::gil_scoped_release no_gil;
  stop_here();
}
void leave_python() { leave(); }

/// For code of Python that C++ calls, from before it takes the lock.
struct InPython {
  InPython() {
    if (!may_enter()) stop_here();
  }
  InPython(const InPython&) = delete;
  InPython& operator=(const InPython&) = delete;
  ~InPython() { leave(); }
};

/// Runs f() without the lock, and takes it again.
template <class F>
auto without_lock(const F& f) {
  struct Way {
    bool is_back = false;
    Way() = default;
    Way(const Way&) = delete;
    Way& operator=(const Way&) = delete;
    ~Way() {
      if (is_back) leave();
    }
    void come_back() {
      if (!may_enter()) stop_here();
      is_back = true;
    }
  } way;  // ends when the lock is there again
  const py::gil_scoped_release no_gil;
  try {
    if constexpr (std::is_void_v<decltype(f())>) {
      f();
      way.come_back();
    } else {
      auto out = f();
      way.come_back();
      return out;
    }
  } catch (...) {
    if (!way.is_back) way.come_back();
    throw;
  }
}

/// This thread is inside of a Callback.
thread_local bool is_called_back = false;

/// What Python's side calls: collectives as they are, then movements, then the barrier.
constexpr int kFirstMovement = 3;
constexpr int kBarrier = kFirstMovement + kNumMovements;

/// A call as numbers; `in` and `out` are addresses.
struct NumberedCall {
  int what = 0;
  std::uintptr_t in = 0;
  std::uintptr_t out = 0;
  std::int64_t count = 0;
  int type = 0;
  int op = 0;
  int root = 0;
  std::vector<std::int64_t> in_counts;
  std::vector<std::int64_t> out_counts;
};

// Tensors say where they lie by a number.
void* writable(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): Python has no pointers
}
const void* pointer(std::uintptr_t address) { return writable(address); }

/// Every rank contributes to the one element, so no rank has the sum before all have called.
CollectiveCall barrier_call(std::int8_t& token) {
  return {.in = &token, .out = &token, .count = 1, .type = DataType::kInt8};
}

CollectiveCall collective_call(const NumberedCall& call) {
  return {static_cast<Collective>(call.what),
          pointer(call.in),
          writable(call.out),
          call.count,
          static_cast<DataType>(call.type),
          static_cast<ReduceOp>(call.op)};
}

MovementCall movement_call(const NumberedCall& call) {
  return {static_cast<Movement>(call.what - kFirstMovement),
          pointer(call.in),
          writable(call.out),
          call.count,
          static_cast<DataType>(call.type),
          static_cast<ReduceOp>(call.op),
          call.root,
          call.in_counts,
          call.out_counts};
}

/// A store made of two Python functions that do not wait: `look` returns None while nobody has set the key.
class PythonStore final : public Store {
 public:
  PythonStore(py::function set, py::function look, std::string server)
      : set_(std::move(set)), look_(std::move(look)), server_(std::move(server)) {}

  void set(const std::string& key, const std::string& value) override {
    ask("set", key, [&] { set_(key, py::bytes(value)); });
  }
  std::string get(const std::string& key, double timeout_s) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
    auto pause = std::chrono::microseconds(200);
    while (true) {
      std::optional<std::string> value;
      ask("get", key, [&] {
        const py::object found = look_(key);
        if (!found.is_none()) value = found.cast<std::string>();
      });
      if (value) return *value;
      if (std::chrono::steady_clock::now() > end) {
        throw TransportError("nobody has put '" + key + "' into the store for " + std::to_string(timeout_s) + " s");
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, std::chrono::microseconds(20'000));
    }
  }
  [[nodiscard]] std::string server() const override { return server_; }

 private:
  template <class F>
  void ask(const std::string& what, const std::string& key, const F& f) {
    const InPython counted;
    const py::gil_scoped_acquire gil;
    try {
      f();
    } catch (const py::error_already_set& error) {
      throw TransportError("the store cannot " + what + " '" + key + "': " + error.what());
    }
  }

  py::function set_;
  py::function look_;
  std::string server_;
};

/// A function of Python that some thread calls once.
class Callback {
 public:
  explicit Callback(py::function function) : function_(function.release().ptr()) {}
  /// None, or the name of the exception's class and its words.
  void operator()(const std::exception_ptr& failure) {
    if (!may_enter()) return;
    is_called_back = true;
    call(failure);
    is_called_back = false;
    leave();
  }

 private:
  void call(const std::exception_ptr& failure) {
    const py::gil_scoped_acquire gil;
    const auto function = py::reinterpret_steal<py::function>(function_);
    try {
      function(failure ? py::object(words_of(failure)) : py::none());
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("gar");
    }
  }
  static py::tuple words_of(const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const TransportError& error) {
      return py::make_tuple("TransportError", error.what());
    } catch (const PlanError& error) {
      return py::make_tuple("PlanError", error.what());
    } catch (const InvalidArgument& error) {
      return py::make_tuple("InvalidArgument", error.what());
    } catch (const std::exception& error) {
      return py::make_tuple("Error", error.what());
    }
  }
  PyObject* function_;
};

class Collectives {
 public:
  explicit Collectives(Communicator made) : rank_(made.rank()), size_(made.size()) {
    state_->communicator = std::make_unique<Communicator>(std::move(made));
  }
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;
  ~Collectives() {  // NOLINT(bugprone-exception-escape): only where Python itself is broken
    if (is_ending) {
      abandon();
    } else if (PyGILState_Check() != 0) {
      const py::gil_scoped_release no_gil;
      close();
    } else {
      close();
    }
  }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  /// Calls that were started and are not complete.
  [[nodiscard]] int num_pending() const { return *num_pending_; }

  /// In this thread, when what was started is complete.
  void run(const NumberedCall& call) {
    if (is_called_back) {
      throw InvalidArgument(
          "a call that waits, inside of what runs when another one is complete; expected one with async_op=True");
    }
    std::unique_lock lock(state_->mutex);
    while (const int pending = num_pending()) {
      // What is called back may start more.
      lock.unlock();
      num_pending_->wait(pending);
      lock.lock();
    }
    Communicator& communicator = checked();
    if (call.what == kBarrier) {
      // As it is started: the others may have something under way.
      std::int8_t token = 0;
      communicator.run(barrier_call(token));
    } else if (call.what >= kFirstMovement) {
      communicator.move(movement_call(call));
    } else {
      communicator.run(collective_call(call));
    }
  }

  void start(const NumberedCall& call, std::shared_ptr<Callback> callback) {
    const std::lock_guard lock(state_->mutex);
    Communicator& communicator = checked();
    ++*num_pending_;
    auto token = std::make_shared<std::int8_t>(std::int8_t{0});
    const auto complete = [callback = std::move(callback), pending = num_pending_,
                           token](const std::exception_ptr& failure) {
      (*callback)(failure);
      --*pending;
      pending->notify_all();  // until now, what is called may have started more, which must not run in another thread
                              // meanwhile
    };
    try {
      if (call.what == kBarrier) {
        communicator.start(barrier_call(*token), complete).detach();
      } else if (call.what >= kFirstMovement) {
        communicator.start_move(movement_call(call), complete).detach();
      } else {
        communicator.start(collective_call(call), complete).detach();
      }
    } catch (...) {
      --*num_pending_;
      num_pending_->notify_all();
      throw;
    }
  }

  /// Completes what is under way.
  void close() {
    if (is_ending) return;
    std::unique_ptr<Communicator> last;
    {
      const std::lock_guard lock(state_->mutex);
      last = std::move(state_->communicator);
    }
    last.reset();
  }
  /// The process ends. What is under way, also in other threads, ends with it; the others see that this rank has died.
  void abandon() {
    const auto* kept = new std::shared_ptr<State>(state_);
    const std::unique_lock lock((*kept)->mutex, std::try_to_lock);
    if (lock && num_pending() == 0) state_->communicator.reset();
  }
  [[nodiscard]] bool is_closed() const { return state_->communicator == nullptr; }

 private:
  struct State {
    std::mutex mutex;
    std::unique_ptr<Communicator> communicator;
  };

  Communicator& checked() {
    if (is_closed()) throw InvalidArgument("this communicator is closed");
    return *state_->communicator;
  }

  int rank_;
  int size_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::shared_ptr<std::atomic<int>> num_pending_ = std::make_shared<std::atomic<int>>(0);
};

/// Python is about to end. After this, communicators complete calls without telling it.
void end_callbacks() {
  ending_thread = std::this_thread::get_id();
  is_ending = true;
  const py::gil_scoped_release no_gil;
  while (num_in_python > 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

}  // namespace

void add_collectives(py::module_& module) {
  module.def("end_callbacks", &end_callbacks);
  module.def("enter_python", &enter_python);
  module.def("leave_python", &leave_python);
  py::class_<Collectives>(module, "Collectives")
      .def_static(
          "meet",
          [](py::function set, py::function look, std::string server, const std::string& name, int rank, int size,
             const CommunicatorOptions& options) {
            PythonStore store(std::move(set), std::move(look), std::move(server));
            return without_lock(
                [&] { return std::make_unique<Collectives>(tcp_communicator(store, name, rank, size, options)); });
          },
          py::arg("set"), py::arg("look"), py::arg("server"), py::arg("name"), py::arg("rank"), py::arg("size"),
          py::arg("options"))
      .def_property_readonly("rank", &Collectives::rank)
      .def_property_readonly("size", &Collectives::size)
      .def_property_readonly("num_pending", &Collectives::num_pending)
      .def_property_readonly("closed", &Collectives::is_closed)
      .def(
          "run",
          [](Collectives& self, int what, std::uintptr_t in, std::uintptr_t out, std::int64_t count, int type, int op,
             int root) { without_lock([&] {
                           self.run({what, in, out, count, type, op, root, {}, {}});
                         }); },
          py::arg("what"), py::arg("input"), py::arg("out"), py::arg("count"), py::arg("type"), py::arg("op"),
          py::arg("root"))
      .def(
          "start",
          [](Collectives& self, int what, std::uintptr_t in, std::uintptr_t out, std::int64_t count, int type, int op,
             int root, py::function callback) {
            auto called = std::make_shared<Callback>(std::move(callback));
            const py::gil_scoped_release no_gil;
            self.start({what, in, out, count, type, op, root, {}, {}}, std::move(called));
          },
          py::arg("what"), py::arg("input"), py::arg("out"), py::arg("count"), py::arg("type"), py::arg("op"),
          py::arg("root"), py::arg("callback"))
      .def(
          "run_blocks",
          [](Collectives& self, std::uintptr_t in, std::vector<std::int64_t> in_counts, std::uintptr_t out,
             std::vector<std::int64_t> out_counts, int type) {
            without_lock([&] {
              self.run({kFirstMovement + static_cast<int>(Movement::kAllToAll), in, out, 0, type, 0, 0,
                        std::move(in_counts), std::move(out_counts)});
            });
          },
          py::arg("input"), py::arg("in_counts"), py::arg("out"), py::arg("out_counts"), py::arg("type"))
      .def(
          "start_blocks",
          [](Collectives& self, std::uintptr_t in, std::vector<std::int64_t> in_counts, std::uintptr_t out,
             std::vector<std::int64_t> out_counts, int type, py::function callback) {
            auto called = std::make_shared<Callback>(std::move(callback));
            const py::gil_scoped_release no_gil;
            self.start({kFirstMovement + static_cast<int>(Movement::kAllToAll), in, out, 0, type, 0, 0,
                        std::move(in_counts), std::move(out_counts)},
                       std::move(called));
          },
          py::arg("input"), py::arg("in_counts"), py::arg("out"), py::arg("out_counts"), py::arg("type"),
          py::arg("callback"))
      .def("close", &Collectives::close, NoGil())
      .def("abandon", &Collectives::abandon, NoGil());
}

}  // namespace gar::python
