// Threads of C++ that call Python, and the end of the interpreter. A thread that asks for Python's lock while the
// interpreter ends is ended by it, in the middle of whatever C++ it is in. So threads that are about to ask are
// counted; once the end has begun they ask no more, and the end waits for those that have.
#pragma once

#include <exception>
#include <type_traits>

#include "common.hpp"

namespace gar::python {

/// Has the end begun?
bool is_ending();
/// Python is about to end. After this, calls complete without telling it.
void begin_ending();

/// May this thread ask for the lock? Counts it until leave_python().
bool may_enter_python();
void leave_python();
/// A daemon thread of Python stops where it is, until the process is gone.
[[noreturn]] void stop_here();

/// For code of Python that C++ calls, from before it takes the lock.
struct InPython {
  InPython() {
    if (!may_enter_python()) stop_here();
  }
  InPython(const InPython&) = delete;
  InPython& operator=(const InPython&) = delete;
  ~InPython() { leave_python(); }
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
      if (is_back) leave_python();
    }
    void come_back() {
      if (!may_enter_python()) stop_here();
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

/// A function of Python that some thread calls once.
class Callback {
 public:
  explicit Callback(py::function function) : function_(function.release().ptr()) {}
  /// None, or a tuple of the name of the exception's class and its words.
  void operator()(const std::exception_ptr& failure);
  /// The same, and a rank.
  void operator()(const std::exception_ptr& failure, int rank);

 private:
  template <class Arguments>
  void call(const Arguments& arguments);
  PyObject* function_;
};

/// Is this thread inside of a Callback?
bool is_called_back();

}  // namespace gar::python
