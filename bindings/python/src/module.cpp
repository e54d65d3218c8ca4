// gar._core: the extension behind `import gar`. It turns words into requests of the library and gives back the
// library's own JSON documents; what Python's side shows is made of these alone.
#include "common.hpp"
#include "gar/errors.hpp"
#include "gar/version.hpp"

namespace gar::python {
namespace {

/// The exception classes of Python's side; they live as long as the interpreter.
struct ErrorClasses {
  PyObject* error = nullptr;
  PyObject* parse = nullptr;
  PyObject* invalid = nullptr;
  PyObject* usage = nullptr;
  PyObject* plan = nullptr;
  PyObject* transport = nullptr;
  PyObject* device = nullptr;
};
ErrorClasses& classes() {
  static ErrorClasses all;
  return all;
}

PyObject* add_class(py::module_& module, const char* name, const char* words, PyObject* bases) {
  const std::string full = std::string("gar.") + name;
  PyObject* const made = PyErr_NewExceptionWithDoc(full.c_str(), words, bases, nullptr);
  if (made == nullptr) throw py::error_already_set();
  module.add_object(name, py::reinterpret_borrow<py::object>(made));
  return made;
}

void translate(std::exception_ptr failure) {
  if (!failure) return;
  const ErrorClasses& all = classes();
  try {
    std::rethrow_exception(failure);
  } catch (const ParseError& e) {
    PyErr_SetString(all.parse, e.what());
  } catch (const UsageError& e) {
    PyErr_SetString(all.usage, e.what());
  } catch (const InvalidArgument& e) {
    PyErr_SetString(all.invalid, e.what());
  } catch (const PlanError& e) {
    PyErr_SetString(all.plan, e.what());
  } catch (const TransportError& e) {
    PyErr_SetString(all.transport, e.what());
  } catch (const DeviceError& e) {
    PyErr_SetString(all.device, e.what());
  } catch (const Error& e) {
    PyErr_SetString(all.error, e.what());
  }
}

}  // namespace

void add_errors(py::module_& module) {
  ErrorClasses& all = classes();
  all.error = add_class(module, "Error", "Base of everything that gar raises.", PyExc_Exception);
  all.parse = add_class(module, "ParseError", "A file that cannot be read, or whose content the format does not allow.",
                        all.error);
  const py::tuple value_error = py::make_tuple(py::reinterpret_borrow<py::object>(all.error),
                                               py::reinterpret_borrow<py::object>(PyExc_ValueError));
  all.invalid = add_class(module, "InvalidArgument", "A value that a function does not accept. Also a ValueError.",
                          value_error.ptr());
  all.usage = add_class(module, "UsageError", "Text that makes no sense, such as the size '400MX'.", all.invalid);
  all.plan = add_class(module, "PlanError", "A plan that is malformed, or does not fit the network.", all.error);
  const py::tuple runtime_error = py::make_tuple(py::reinterpret_borrow<py::object>(all.error),
                                                 py::reinterpret_borrow<py::object>(PyExc_RuntimeError));
  all.transport =
      add_class(module, "TransportError",
                "A rank that died, failed or did not answer. Also a RuntimeError, as PyTorch's backends raise.",
                runtime_error.ptr());
  all.device = add_class(module, "DeviceError", "A GPU that cannot do what is asked of it.", all.error);
  py::register_exception_translator(translate);
}

}  // namespace gar::python

PYBIND11_MODULE(_core, module) {
  using namespace gar::python;
  module.doc() = "The extension behind `import gar`; use that.";
  module.attr("version") = std::string(gar::version());
  add_errors(module);
  add_values(module);
  add_answers(module);
  add_sweep(module);
  add_communicators(module);
  add_collectives(module);
}
