// gar._core.Communicator: the runtime's communicators on memory of Python objects, without the GIL.
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "buffers.hpp"
#include "common.hpp"
#include "gar/communicator.hpp"
#include "gar/errors.hpp"

namespace gar::python {
namespace {

/// A communicator that says so when two threads use it at the same time, which it is not made for.
class Member {
 public:
  explicit Member(Communicator made) : communicator_(std::move(made)) {}

  /// Runs f(communicator) without the GIL.
  template <class F>
  auto use(const F& f) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) {
      throw InvalidArgument(
          "this communicator is in use by another thread; expected one thread at a time, or a communicator for each");
    }
    if (!communicator_) throw InvalidArgument("this communicator is closed");
    const py::gil_scoped_release no_gil;
    return f(*communicator_);
  }
  void close() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) throw InvalidArgument("this communicator is in use by another thread; expected an idle one");
    const py::gil_scoped_release no_gil;
    communicator_.reset();
  }
  [[nodiscard]] bool is_closed() const { return !communicator_; }

 private:
  std::optional<Communicator> communicator_;
  std::mutex mutex_;
};

CommunicatorOptions options_of(const std::string& algorithm, const Topology* topology, const Plan* plan,
                               bool is_reproducible, double timeout_s, const std::optional<bool>& explores) {
  CommunicatorOptions out;
  out.algorithm = algorithm;
  if (topology != nullptr) out.topology = *topology;
  if (plan != nullptr) out.plan = *plan;
  out.reproducible = is_reproducible;
  out.timeout_s = timeout_s;
  out.explores = explores;
  return out;
}

/// A collective on Python's memory: what it reads and what it writes.
struct Call {
  std::shared_ptr<Buffer> in;
  std::shared_ptr<Buffer> out;
  CollectiveCall call;
};

/// One of a collective's operands, as a Python object.
struct Operands {
  py::object values;
  py::object out;  ///< None: in place
  std::string op = "sum";
  std::optional<std::string> dtype;
};

void check_operator(const Buffer& buffer, ReduceOp op, const std::string& what) {
  if (buffer.is_bool() && (op == ReduceOp::kSum || op == ReduceOp::kProd)) {
    throw InvalidArgument(what + ": a " + std::string(to_string(op)) +
                          " of bool is not defined; expected lor, land, lxor, min or max");
  }
}

[[noreturn]] void refuse_sizes(const std::string& what, const std::string& rule, std::int64_t in, std::int64_t out) {
  throw InvalidArgument(what + ": " + rule + ", but there are " + std::to_string(in) + " and " + std::to_string(out) +
                        " elements");
}

Call call_of(Collective collective, const Operands& operands, int rank, int size) {
  const std::string what = collective == Collective::kAllReduce       ? "all_reduce"
                           : collective == Collective::kReduceScatter ? "reduce_scatter"
                                                                      : "all_gather";
  std::optional<DataType> dtype;
  if (operands.dtype) dtype = parse_dtype("dtype", *operands.dtype);
  const bool in_place = operands.out.is_none();
  Call made;
  made.in =
      std::make_shared<Buffer>(operands.values, in_place ? Access::kWrite : Access::kRead, what + ": values", dtype);
  made.out = in_place ? made.in : std::make_shared<Buffer>(operands.out, Access::kWrite, what + ": out", dtype);
  const Buffer& in = *made.in;
  const Buffer& out = *made.out;
  if (in.type() != out.type() || in.is_bool() != out.is_bool()) {
    throw InvalidArgument(what + ": values has elements of type " + std::string(to_string(in.type())) +
                          ", and out of " + std::string(to_string(out.type())) + "; expected the same type");
  }
  CollectiveCall& call = made.call;
  call.collective = collective;
  call.type = in.type();
  call.op = parse_reduce_op(operands.op);
  check_operator(in, call.op, what);
  call.in = in.data();
  call.out = out.data();
  if (collective == Collective::kAllReduce) {
    if (in.count() != out.count())
      refuse_sizes(what, "expected as many elements in out as in values", in.count(), out.count());
    call.count = in.count();
    return made;
  }
  // Whole vectors have a block for every rank; in place, the block of this rank is its own part of the vector.
  const bool scatters = collective == Collective::kReduceScatter;
  const Buffer& whole = scatters ? in : out;
  if (whole.count() % size != 0) {
    throw InvalidArgument(what + ": the whole vector has " + std::to_string(whole.count()) +
                          " elements; expected a multiple of the " + std::to_string(size) + " ranks");
  }
  call.count = whole.count() / size;
  if (in_place) {
    char* const own = whole.data() + rank * call.count * size_of(call.type);
    if (scatters) {
      call.out = own;
    } else {
      call.in = own;
    }
  } else if ((scatters ? out : in).count() != call.count) {
    refuse_sizes(what,
                 scatters ? "expected size times as many elements in values as in out"
                          : "expected size times as many elements in out as in values",
                 in.count(), out.count());
  }
  return made;
}

/// A communicator as Python holds it.
struct PyCommunicator {
  std::shared_ptr<Member> member;
  int rank = 0;
  int size = 0;

  explicit PyCommunicator(Communicator made) : rank(made.rank()), size(made.size()) {
    member = std::make_shared<Member>(std::move(made));
  }
};

/// A non-blocking operation; its buffers stay where they are until it is complete.
class PyRequest {
 public:
  PyRequest(Call call, std::shared_ptr<Member> member) : call_(std::move(call)), member_(std::move(member)) {
    request_ = member_->use([&](Communicator& c) { return c.start(call_.call); });
  }
  PyRequest(const PyRequest&) = delete;
  PyRequest& operator=(const PyRequest&) = delete;
  ~PyRequest() {  // NOLINT(bugprone-exception-escape): only where Python itself is broken
    const py::gil_scoped_release no_gil;
    request_ = {};
  }
  void wait() {
    const py::gil_scoped_release no_gil;
    request_.wait();
  }
  bool test() {
    const py::gil_scoped_release no_gil;
    return request_.test();
  }

 private:
  Call call_;
  std::shared_ptr<Member> member_;  // ends after the request
  Request request_;
};

py::dict report_of(PyCommunicator& self, const std::string& collective, std::int64_t count, const std::string& dtype) {
  const Collective what = collective_of(collective);
  const DataType type = parse_dtype("dtype", dtype);
  const PlanReport report = self.member->use([&](Communicator& c) { return c.report(what, count, type); });
  py::dict out;
  out["algorithm"] = report.algorithm;
  out["transport"] = report.transport;
  out["reason"] = report.reason;
  out["chunks"] = report.num_chunks;
  out["predicted_seconds"] =
      report.predicted_seconds < 0 ? py::object(py::none()) : py::float_(report.predicted_seconds);
  return out;
}

}  // namespace

void add_communicators(py::module_& module) {
  py::class_<Operands>(module, "Operands")
      .def(py::init([](py::object values, py::object out, std::string op, std::optional<std::string> dtype) {
             return Operands{std::move(values), std::move(out), std::move(op), std::move(dtype)};
           }),
           py::arg("values"), py::arg("out").none(true), py::arg("op"), py::arg("dtype").none(true));

  py::class_<PyRequest>(module, "Request").def("wait", &PyRequest::wait).def("test", &PyRequest::test);

  py::class_<CommunicatorOptions>(module, "CommunicatorOptions")
      .def(py::init(&options_of), py::arg("algorithm"), py::arg("topology").none(true), py::arg("plan").none(true),
           py::arg("reproducible"), py::arg("timeout"), py::arg("explores").none(true));

  const auto collective = [](const std::string& text) { return collective_of(text); };
  py::class_<PyCommunicator>(module, "Communicator")
      .def_static(
          "shared_memory",
          [](const std::string& name, int rank, int size, const CommunicatorOptions& options) {
            const py::gil_scoped_release no_gil;
            return PyCommunicator(shared_memory_communicator(name, rank, size, options));
          },
          py::arg("name"), py::arg("rank"), py::arg("size"), py::arg("options"))
      .def_static(
          "threads",
          [](int size, const CommunicatorOptions& options) {
            std::vector<PyCommunicator> out;
            const py::gil_scoped_release no_gil;
            for (Communicator& made : thread_communicators(size, options)) out.emplace_back(std::move(made));
            return out;
          },
          py::arg("size"), py::arg("options"))
      .def_readonly("rank", &PyCommunicator::rank)
      .def_readonly("size", &PyCommunicator::size)
      .def(
          "run",
          [collective](PyCommunicator& self, const std::string& what, const Operands& operands) {
            const Call call = call_of(collective(what), operands, self.rank, self.size);
            self.member->use([&](Communicator& c) { c.run(call.call); });
          },
          py::arg("collective"), py::arg("operands"))
      .def(
          "start",
          [collective](PyCommunicator& self, const std::string& what, const Operands& operands) {
            return std::make_unique<PyRequest>(call_of(collective(what), operands, self.rank, self.size), self.member);
          },
          py::arg("collective"), py::arg("operands"))
      .def("barrier", [](PyCommunicator& self) { self.member->use([](Communicator& c) { c.barrier(); }); })
      .def("report", &report_of, py::arg("collective"), py::arg("count"), py::arg("dtype"))
      .def("close", [](PyCommunicator& self) { self.member->close(); })
      .def_property_readonly("closed", [](const PyCommunicator& self) { return self.member->is_closed(); });
}

}  // namespace gar::python
