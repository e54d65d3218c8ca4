// gar._core.Collectives and gar._core.Channels: what gar.torch is made of.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "channels.hpp"
#include "collectives.hpp"
#include "gar/errors.hpp"
#include "gar/tcp.hpp"
#include "tensor_calls.hpp"

namespace gar::python {
namespace {

/// What ranks find each other through, for any thread.
std::shared_ptr<PythonStore> shared_store(py::object meeting) {
  const auto destroy = [](PythonStore* store) {
    // At the end of Python it stays.
    if (!may_enter_python()) return;
    {
      const py::gil_scoped_acquire gil;
      delete store;
    }
    leave_python();
  };
  return {new PythonStore(std::move(meeting)), destroy};
}

NumberedCall blocks_call(std::uintptr_t in, std::vector<std::int64_t> in_counts, std::uintptr_t out,
                         std::vector<std::int64_t> out_counts, int type) {
  return {kFirstMovement + static_cast<int>(Movement::kAllToAll),
          in,
          out,
          0,
          type,
          0,
          0,
          std::move(in_counts),
          std::move(out_counts)};
}

Parcel parcel_of(std::uintptr_t memory, std::int64_t bytes, int tag, int peer, py::function callback) {
  auto called = std::make_shared<Callback>(std::move(callback));
  return {static_cast<std::byte*>(memory_at(memory)), bytes, tag, peer,
          [called](const std::exception_ptr& failure, int other) { (*called)(failure, other); }};
}

void start(Collectives& collectives, const NumberedCall& call, py::function callback) {
  auto called = std::make_shared<Callback>(std::move(callback));
  const py::gil_scoped_release no_gil;
  collectives.start(call, std::move(called));
}

/// For a daemon thread of Python, before it calls anything of C++ that may want the lock back: parks it where the end
/// has begun.
void enter_python() {
  if (may_enter_python()) return;
  const py::gil_scoped_release no_gil;
  stop_here();
}

void add_channels(py::module_& module) {
  py::class_<Channels>(module, "Channels")
      .def(py::init([](py::object meeting, std::string name, int rank, int size, double timeout) {
             return std::make_unique<Channels>(
                 GroupPlace{std::move(name), rank, size, timeout, shared_store(std::move(meeting))});
           }),
           py::arg("meeting"), py::arg("name"), py::arg("rank"), py::arg("size"), py::arg("timeout"))
      .def(
          "send",
          [](Channels& self, std::uintptr_t memory, std::int64_t bytes, int tag, int destination,
             py::function callback) {
            Parcel parcel = parcel_of(memory, bytes, tag, destination, std::move(callback));
            without_lock([&] { self.send(std::move(parcel)); });
          },
          py::arg("memory"), py::arg("bytes"), py::arg("tag"), py::arg("destination"), py::arg("callback"))
      .def(
          "receive",
          [](Channels& self, std::uintptr_t memory, std::int64_t bytes, int tag, int source, py::function callback) {
            Parcel parcel = parcel_of(memory, bytes, tag, source, std::move(callback));
            without_lock([&] { self.receive(std::move(parcel)); });
          },
          py::arg("memory"), py::arg("bytes"), py::arg("tag"), py::arg("source"), py::arg("callback"))
      .def("close", &Channels::close, NoGil())
      .def("abandon", &Channels::abandon, NoGil());
  module.attr("ANY_SOURCE") = kAnySource;
}

}  // namespace

void add_collectives(py::module_& module) {
  module.def("begin_ending", &begin_ending);
  module.def("enter_python", &enter_python);
  module.def("leave_python", &leave_python);
  py::class_<Collectives>(module, "Collectives")
      .def_static(
          "meet",
          [](py::object meeting, const std::string& name, int rank, int size, const CommunicatorOptions& options) {
            const std::shared_ptr<PythonStore> store = shared_store(std::move(meeting));
            return without_lock(
                [&] { return std::make_unique<Collectives>(tcp_communicator(*store, name, rank, size, options)); });
          },
          py::arg("meeting"), py::arg("name"), py::arg("rank"), py::arg("size"), py::arg("options"))
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
      .def("try_all_reduce", &try_all_reduce, py::arg("tensors"))
      .def(
          "start",
          [](Collectives& self, int what, std::uintptr_t in, std::uintptr_t out, std::int64_t count, int type, int op,
             int root, py::function callback) {
            start(self, {what, in, out, count, type, op, root, {}, {}}, std::move(callback));
          },
          py::arg("what"), py::arg("input"), py::arg("out"), py::arg("count"), py::arg("type"), py::arg("op"),
          py::arg("root"), py::arg("callback"))
      .def(
          "run_blocks",
          [](Collectives& self, std::uintptr_t in, std::vector<std::int64_t> in_counts, std::uintptr_t out,
             std::vector<std::int64_t> out_counts, int type) {
            without_lock([&] { self.run(blocks_call(in, std::move(in_counts), out, std::move(out_counts), type)); });
          },
          py::arg("input"), py::arg("in_counts"), py::arg("out"), py::arg("out_counts"), py::arg("type"))
      .def(
          "start_blocks",
          [](Collectives& self, std::uintptr_t in, std::vector<std::int64_t> in_counts, std::uintptr_t out,
             std::vector<std::int64_t> out_counts, int type, py::function callback) {
            start(self, blocks_call(in, std::move(in_counts), out, std::move(out_counts), type), std::move(callback));
          },
          py::arg("input"), py::arg("in_counts"), py::arg("out"), py::arg("out_counts"), py::arg("type"),
          py::arg("callback"))
      .def("close", &Collectives::close, NoGil())
      .def("abandon", &Collectives::abandon, NoGil());
  add_channels(module);
  add_tensor_calls(module);
}

}  // namespace gar::python
