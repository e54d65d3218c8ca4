// What the files of the extension share: requests in the words of Python's side, and Ctrl-C.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/quantity.hpp"
#include "gar/simulate.hpp"
#include "gar/what_if.hpp"

namespace gar::python {

namespace py = pybind11;
/// For functions that know nothing of Python: other threads of it go on meanwhile.
using NoGil = py::call_guard<py::gil_scoped_release>;

/// Each adds its part to the module.
void add_errors(py::module_& module);
void add_values(py::module_& module);
void add_answers(py::module_& module);
void add_sweep(py::module_& module);
void add_communicators(py::module_& module);
void add_collectives(py::module_& module);

/// A vector's length as it was given: `name` is "count" or "size", which messages name too.
struct SizeText {
  std::string name;
  std::string text;
  std::string dtype;
};
/// Throws UsageError with what is accepted.
VectorSize vector_size(const SizeText& size);

/// "genmodel", "paper" or "abc", and "senders" or "participants". Throws UsageError.
ModelOptions model_options(const std::string& model, const std::string& incast_degree);
/// Names as on the command line; "all" stands for those that are compared by default. Each comes once.
std::vector<AlgorithmSpec> algorithm_specs(const std::vector<std::string>& names);
/// "allreduce", "reduce-scatter", "allgather". Throws UsageError.
Collective collective_of(const std::string& text);

/// Conditions in order: the kind ("degrade"), and what is written behind it ("rack3.uplink=0.5").
struct WhatIfText {
  std::vector<std::pair<std::string, std::string>> conditions;
  std::string jitter = "0";
  std::string seed = "1";
};
/// Throws UsageError that names the kind, the text and what is accepted.
WhatIf what_if_of(const WhatIfText& text);

/// How simulations run, in words.
struct SimulationText {
  bool barrier = false;
  std::string engine = "auto";
  double tolerance = 0;
};
/// Without what-if conditions. Throws UsageError.
SimulationOptions simulation_options(const SimulationText& text, const ModelOptions& model);

/// Lets Ctrl-C end what runs without the GIL: go_on() says false, and check() then throws what Python's handler raised.
class Interrupts {
 public:
  /// Takes the GIL for a moment.
  bool go_on() {
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() == 0) return true;
    pending_ = std::make_exception_ptr(py::error_already_set());
    return false;
  }
  void check() const {
    if (pending_) std::rethrow_exception(pending_);
  }

 private:
  std::exception_ptr pending_;
};

}  // namespace gar::python
