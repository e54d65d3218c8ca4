// gar._core.sweep: the sweep runs on its own threads; this one sleeps without the GIL, tells how far it is, and notices
// Ctrl-C.
#include <utility>

#include "common.hpp"
#include "gar/errors.hpp"
#include "sweep.hpp"

namespace gar::python {
namespace {

constexpr double kProgressSeconds = 0.1;

/// Numbers that Python reads in place, through the buffer protocol; any shape.
template <class T>
struct Column {
  std::vector<T> values;
  std::vector<py::ssize_t> shape;
};

template <class T>
void add_column(py::module_& module, const char* name) {
  py::class_<Column<T>, std::shared_ptr<Column<T>>>(module, name, py::buffer_protocol())
      .def_buffer([](Column<T>& column) {
        std::vector<py::ssize_t> strides(column.shape.size());
        py::ssize_t stride = sizeof(T);
        for (std::size_t i = strides.size(); i-- > 0;) {
          strides[i] = stride;
          stride *= column.shape[i];
        }
        return py::buffer_info(column.values.data(), sizeof(T), py::format_descriptor<T>::format(),
                               static_cast<py::ssize_t>(column.shape.size()), column.shape, strides, true);
      });
}

template <class T>
std::shared_ptr<Column<T>> column_of(std::vector<T> values, std::vector<py::ssize_t> shape) {
  return std::make_shared<Column<T>>(Column<T>{std::move(values), std::move(shape)});
}

/// An algorithm's name, or a plan.
Contender contender_of(const py::handle& given) {
  if (py::isinstance<Plan>(given)) return {{}, given.cast<std::shared_ptr<Plan>>()};
  return {parse_algorithm(given.cast<std::string>()), nullptr};
}

std::vector<double> floats_of(const std::vector<std::int64_t>& counts, DataType dtype) {
  std::vector<double> out;
  out.reserve(counts.size());
  const std::int64_t most = kMaxVectorBytes / size_of(dtype);
  for (const std::int64_t count : counts) {
    if (count < 0 || count > most) vector_size_of_count("counts", std::to_string(count), dtype);  // says why not
    out.push_back(VectorSize{dtype, count, count * size_of(dtype)}.floats());
  }
  return out;
}

py::dict sweep(const std::vector<std::shared_ptr<Topology>>& topologies, const py::list& contenders,
               const std::vector<std::int64_t>& counts, const std::string& dtype,
               const std::vector<WhatIfText>& what_ifs, const SimulationText& simulation, const std::string& model,
               int num_threads, const py::object& on_progress) {
  SweepRequest request;
  request.topologies.assign(topologies.begin(), topologies.end());
  for (const py::handle& given : contenders) request.contenders.push_back(contender_of(given));
  request.sizes_floats = floats_of(counts, parse_dtype("dtype", dtype));
  for (const WhatIfText& text : what_ifs) request.what_ifs.push_back(what_if_of(text));
  request.model = model_options(model, "senders");
  request.simulation = simulation_options(simulation, request.model);
  request.num_threads = num_threads;
  if (request.topologies.empty() || request.contenders.empty() || request.sizes_floats.empty()) {
    throw InvalidArgument("sweep: there is nothing to do; expected at least one topology, one algorithm and one size");
  }
  const auto shape = [&](bool has_what_ifs, py::ssize_t last = 0) {
    std::vector<py::ssize_t> out{static_cast<py::ssize_t>(request.topologies.size()),
                                 static_cast<py::ssize_t>(request.contenders.size())};
    if (has_what_ifs) out.push_back(static_cast<py::ssize_t>(request.what_ifs.size()));
    out.push_back(static_cast<py::ssize_t>(request.sizes_floats.size()));
    if (last > 0) out.push_back(last);
    return out;
  };
  const auto shape_of_terms = shape(false, static_cast<py::ssize_t>(kTerms.size()));
  const auto shape_of_priced = shape(false);
  const auto shape_of_simulated = shape(true);

  SweepAnswer answer;
  {
    const py::gil_scoped_release no_gil;
    Sweep run(std::move(request));
    while (!run.wait_for(kProgressSeconds)) {
      const py::gil_scoped_acquire gil;
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (!on_progress.is_none()) on_progress(run.num_done(), run.num_cases());
    }
    answer = run.take();
  }
  py::dict out;
  out["terms"] = column_of(std::move(answer.terms), shape_of_terms);
  out["predicted_seconds"] = column_of(std::move(answer.predicted_s), shape_of_priced);
  out["chunks"] = column_of(std::move(answer.chunks), shape_of_priced);
  out["plan"] = column_of(std::move(answer.plan_name), shape_of_priced);
  out["names"] = answer.names;
  if (!answer.simulated_s.empty()) {
    out["simulated_seconds"] = column_of(std::move(answer.simulated_s), shape_of_simulated);
  }
  return out;
}

}  // namespace

void add_sweep(py::module_& module) {
  add_column<double>(module, "Doubles");
  add_column<std::int64_t>(module, "Integers");
  add_column<std::int32_t>(module, "Indices");
  py::list names;
  for (const TermInfo& term : kTerms) names.append(std::string(term.name));
  module.attr("terms") = py::tuple(names);
  module.def("sweep", &sweep, py::arg("topologies"), py::arg("contenders"), py::arg("counts"), py::arg("dtype"),
             py::arg("what_ifs"), py::arg("simulation"), py::arg("model"), py::arg("num_threads"),
             py::arg("on_progress").none(true));
}

}  // namespace gar::python
