// Networks, plans and profiles: values that Python holds, with their files and documents.
#include <functional>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "common.hpp"
#include "gar/documents.hpp"
#include "gar/errors.hpp"
#include "gar/explain_topology.hpp"
#include "gar/files.hpp"
#include "gar/fit.hpp"
#include "gar/plan_io.hpp"
#include "gar/profile_io.hpp"
#include "gar/topology_io.hpp"

namespace gar::python {
namespace {

std::string written(const std::function<void(std::ostream&)>& write) {
  std::ostringstream out;
  write(out);
  return out.str();
}

// What cannot be written is an OSError there.
void save_text(const std::string& path, const std::string& text) {
  std::string problem;
  {
    const py::gil_scoped_release no_gil;
    try {
      save_file(path, [&](std::ostream& out) { out << text; });
    } catch (const Error&) {
      throw;
    } catch (const std::runtime_error& e) {
      problem = e.what();
    }
  }
  if (problem.empty()) return;
  PyErr_SetString(PyExc_OSError, problem.c_str());
  throw py::error_already_set();
}

/// What load_network answers, for Python.
std::tuple<Topology, std::optional<Profile>, std::vector<std::string>> load(const std::string& spec,
                                                                            const std::string& profile) {
  Network network = load_network(spec, profile);
  return {std::move(network.topology), std::move(network.profile), std::move(network.notes)};
}

/// Several files are one set of measurements, as with `gar fit --from A --from B`.
Measurements measurements_of(const std::vector<std::string>& paths) {
  if (paths.empty()) throw InvalidArgument("measurements: there are none; expected at least one file");
  Measurements all = read_measurements_file(paths.front());
  for (std::size_t i = 1; i < paths.size(); ++i) {
    try {
      join(all, read_measurements_file(paths[i]));
    } catch (const InvalidArgument& e) {
      throw InvalidArgument(paths[i] + ", after " + paths.front() + ": " + e.what());
    }
  }
  return all;
}

std::pair<Profile, std::string> fit_files(const std::vector<std::string>& paths, std::uint64_t seed, bool validates) {
  const Measurements measurements = measurements_of(paths);
  FitOptions options;
  options.seed = seed;
  FitReport report{fit(measurements, options), measurements, validates};
  if (validates) report.profile.validation = validate(report.profile, measurements.observations);
  std::string document = fit_document(report);
  return {std::move(report.profile), std::move(document)};
}

}  // namespace

void add_values(py::module_& module) {
  module.def("save_text", &save_text, py::arg("path"), py::arg("text"));

  py::class_<Topology, std::shared_ptr<Topology>>(module, "Topology")
      .def_static("load", &load, py::arg("spec"), py::arg("profile"), NoGil())
      .def_static(
          "parse", [](const std::string& text, const std::string& source) { return parse_topology(text, source); },
          py::arg("text"), py::arg("source"), NoGil())
      .def_property_readonly("name", &Topology::name)
      .def_property_readonly("num_servers", [](const Topology& t) { return t.num_servers(); })
      .def_property_readonly("num_switches", [](const Topology& t) { return t.num_switches(); })
      .def("document", &topology_document, NoGil())
      .def("totals", &topology_totals, NoGil())
      .def(
          "remarks", [](const Topology& t) { return topology_remarks(t); }, NoGil())
      .def(
          "text", [](const Topology& t) { return written([&](std::ostream& out) { write_topology(t, out); }); },
          NoGil())
      .def(
          "dot", [](const Topology& t) { return written([&](std::ostream& out) { write_topology_dot(t, out); }); },
          NoGil());

  py::class_<Plan, std::shared_ptr<Plan>>(module, "Plan")
      .def_static("read", &read_plan_file, py::arg("path"), NoGil())
      .def_static(
          "parse",
          [](const std::string& text, const std::string& source) {
            std::istringstream in(text);
            return read_plan(in, source);
          },
          py::arg("text"), py::arg("source"), NoGil())
      .def_property_readonly("algorithm", [](const Plan& plan) { return plan.algorithm; })
      .def_property_readonly("collective", [](const Plan& plan) { return std::string(to_string(plan.collective)); })
      .def_property_readonly("num_ranks", [](const Plan& plan) { return plan.num_ranks; })
      .def_property_readonly("num_chunks", [](const Plan& plan) { return plan.num_chunks; })
      .def_property_readonly("count", [](const Plan& plan) { return plan.count; })
      .def(
          "text", [](const Plan& plan) { return written([&](std::ostream& out) { write_plan(plan, out); }); }, NoGil());

  py::class_<Profile, std::shared_ptr<Profile>>(module, "Profile")
      .def_static("read", &read_profile_file, py::arg("path"), NoGil())
      .def_static(
          "parse", [](const std::string& text, const std::string& source) { return parse_profile(text, source); },
          py::arg("text"), py::arg("source"), NoGil())
      .def_property_readonly("topology", [](const Profile& profile) { return profile.topology; })
      .def(
          "lay_over",
          [](const Profile& profile, const Topology& topology) {
            std::vector<int> unknown;
            Topology laid = lay_over(profile, topology, &unknown);
            return std::pair(std::move(laid), std::move(unknown));
          },
          py::arg("topology"), NoGil())
      .def("document", &profile_document, py::arg("file"), NoGil())
      .def(
          "diff_document",
          [](const Profile& before, const Profile& after, const std::string& before_name,
             const std::string& after_name) {
            return profile_diff_document(compare_profiles(before, after), before_name, after_name);
          },
          py::arg("after"), py::arg("before_name"), py::arg("after_name"), NoGil())
      .def(
          "text",
          [](const Profile& profile) { return written([&](std::ostream& out) { write_profile(profile, out); }); },
          NoGil());

  module.def("fit", &fit_files, py::arg("paths"), py::arg("seed"), py::arg("validate"), NoGil());
}

}  // namespace gar::python
