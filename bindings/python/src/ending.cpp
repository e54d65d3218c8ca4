#include "ending.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "gar/errors.hpp"

namespace gar::python {
namespace {

std::atomic<bool> has_end_begun{false};
std::atomic<std::thread::id> ending_thread{};
std::atomic<int> num_in_python{0};

/// This thread is inside of a Callback.
thread_local bool runs_callback = false;

py::object words_of(const std::exception_ptr& failure) {
  if (!failure) return py::none();
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

}  // namespace

bool is_ending() { return has_end_begun; }

void begin_ending() {
  ending_thread = std::this_thread::get_id();
  has_end_begun = true;
  const py::gil_scoped_release no_gil;
  while (num_in_python > 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

bool may_enter_python() {
  ++num_in_python;
  if (!has_end_begun || std::this_thread::get_id() == ending_thread.load()) return true;
  --num_in_python;
  return false;
}

void leave_python() { --num_in_python; }

void stop_here() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

bool is_called_back() { return runs_callback; }

template <class Arguments>
void Callback::call(const Arguments& arguments) {
  if (!may_enter_python()) return;
  const bool is_nested = runs_callback;
  runs_callback = true;
  {
    const py::gil_scoped_acquire gil;
    const auto function = py::reinterpret_steal<py::function>(function_);
    try {
      arguments(function);
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("gar");
    }
  }
  runs_callback = is_nested;
  leave_python();
}

void Callback::operator()(const std::exception_ptr& failure) {
  call([&](const py::function& function) { function(words_of(failure)); });
}

void Callback::operator()(const std::exception_ptr& failure, int rank) {
  call([&](const py::function& function) { function(words_of(failure), rank); });
}

}  // namespace gar::python
