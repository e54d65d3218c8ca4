#include "tensor_calls.hpp"

#include <frameobject.h>

#include <optional>
#include <unordered_map>

namespace gar::python {
namespace {

/// Names as Python has them. They live as long as the interpreter.
struct AttributeNames {
  PyObject* async_op = PyUnicode_InternFromString("async_op");
  PyObject* data_ptr = PyUnicode_InternFromString("data_ptr");
  PyObject* dtype = PyUnicode_InternFromString("dtype");
  PyObject* f_locals = PyUnicode_InternFromString("f_locals");
  PyObject* is_contiguous = PyUnicode_InternFromString("is_contiguous");
  PyObject* is_cpu = PyUnicode_InternFromString("is_cpu");
  PyObject* layout = PyUnicode_InternFromString("layout");
  PyObject* numel = PyUnicode_InternFromString("numel");
  PyObject* op = PyUnicode_InternFromString("op");
};

/// Objects of PyTorch of which there is one each, and that live as long as the interpreter.
struct TorchWords {
  PyObject* code = nullptr;  ///< of torch.distributed.all_reduce
  PyObject* is_profiling = nullptr;
  PyObject* strided = nullptr;
  std::unordered_map<PyObject*, int> types;
  std::unordered_map<PyObject*, int> operators;
};
TorchWords& torch_words() {
  static TorchWords words;
  return words;
}

std::unordered_map<PyObject*, int> numbers_of(const py::dict& dict) {
  std::unordered_map<PyObject*, int> out;
  for (const auto& [object, number] : dict) out[object.inc_ref().ptr()] = number.cast<int>();
  return out;
}

void set_torch_words(py::object code, py::object is_profiling, py::object strided, const py::dict& types,
                     const py::dict& operators) {
  torch_words() = {code.release().ptr(), is_profiling.release().ptr(), strided.release().ptr(), numbers_of(types),
                   numbers_of(operators)};
}

py::object checked(PyObject* made) {
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

std::optional<int> number_in(const std::unordered_map<PyObject*, int>& numbers, const py::object& object) {
  const auto found = numbers.find(object.ptr());
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

bool is_true(PyObject* object) { return object == Py_True; }

/// The operator with which all_reduce was called, if it waits.
std::optional<int> operator_of_caller(const TorchWords& words, const AttributeNames& names) {
  PyFrameObject* const method = PyEval_GetFrame();
  if (method == nullptr) return std::nullopt;
  const auto caller = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(method)));
  if (!caller) return std::nullopt;
  auto* const frame = reinterpret_cast<PyFrameObject*>(caller.ptr());
  const auto code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  if (code.ptr() != words.code) return std::nullopt;
  const py::object locals = checked(PyObject_GetAttr(caller.ptr(), names.f_locals));
  const py::object async_op = checked(PyObject_GetItem(locals.ptr(), names.async_op));
  if (async_op.ptr() != Py_False) return std::nullopt;
  return number_in(words.operators, checked(PyObject_GetItem(locals.ptr(), names.op)));
}

/// The call on this tensor, if it can be used as it is.
std::optional<NumberedCall> call_on(PyObject* tensor, const TorchWords& words, const AttributeNames& names) {
  const auto get = [&](PyObject* name) { return checked(PyObject_GetAttr(tensor, name)); };
  const auto call = [&](PyObject* name) { return checked(PyObject_CallMethodNoArgs(tensor, name)); };
  const std::optional<int> type = number_in(words.types, get(names.dtype));
  if (!type || !is_true(get(names.is_cpu).ptr()) || get(names.layout).ptr() != words.strided ||
      !is_true(call(names.is_contiguous).ptr())) {
    return std::nullopt;
  }
  NumberedCall out;
  out.what = static_cast<int>(Collective::kAllReduce);
  out.in = out.out = call(names.data_ptr).cast<std::uintptr_t>();
  out.count = call(names.numel).cast<std::int64_t>();
  out.type = *type;
  return out;
}

}  // namespace

bool try_all_reduce(Collectives& collectives, py::handle tensors) {
  static const AttributeNames kNames;
  const TorchWords& words = torch_words();
  if (words.code == nullptr || !PyList_CheckExact(tensors.ptr()) || PyList_GET_SIZE(tensors.ptr()) != 1) return false;
  const std::optional<int> op = operator_of_caller(words, kNames);
  if (!op || is_true(checked(PyObject_CallNoArgs(words.is_profiling)).ptr())) return false;
  std::optional<NumberedCall> call = call_on(PyList_GET_ITEM(tensors.ptr(), 0), words, kNames);
  if (!call) return false;
  call->op = *op;
  without_lock([&] { collectives.run(*call); });
  return true;
}

void add_tensor_calls(py::module_& module) {
  module.def("set_torch_words", &set_torch_words, py::arg("code"), py::arg("is_profiling"), py::arg("strided"),
             py::arg("types"), py::arg("operators"));
}

}  // namespace gar::python
