// The buffer protocol and DLPack.
#include "buffers.hpp"

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "gar/errors.hpp"

namespace gar::python {
namespace {

/// DLPack's layout of a tensor, version 0 (https://dmlc.github.io/dlpack): what a capsule named "dltensor" points to
/// begins with it.
struct DlTensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t num_dimensions;
  std::uint8_t type_code;
  std::uint8_t type_bits;
  std::uint16_t type_lanes;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: compact, in the order of C
  std::uint64_t byte_offset;
};
static_assert(sizeof(DlTensor) == 48, "the layout is part of DLPack's interface");

constexpr std::int32_t kDlCpu = 1;
constexpr std::int32_t kDlCudaHost = 3;  // memory of the CPU that a GPU can reach
enum DlCode : std::uint8_t { kDlInt = 0, kDlUint = 1, kDlFloat = 2, kDlBfloat = 4, kDlBool = 6 };

constexpr const char* kAcceptedTypes =
    "expected int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64 or bool";

/// Says what Python has raised, and clears it.
std::string raised() {
  const py::error_already_set error;
  return py::str(error.value()).cast<std::string>();
}

std::optional<DataType> integer_type(std::int64_t bytes, bool is_signed) {
  switch (bytes) {
    case 1:
      return is_signed ? DataType::kInt8 : DataType::kUint8;
    case 2:
      return is_signed ? DataType::kInt16 : DataType::kUint16;
    case 4:
      return is_signed ? DataType::kInt32 : DataType::kUint32;
    case 8:
      return is_signed ? DataType::kInt64 : DataType::kUint64;
    default:
      return std::nullopt;
  }
}

/// The type of a buffer's elements, from what the struct module calls its format.
std::optional<DataType> type_of_format(std::string_view format, std::int64_t bytes) {
  if (!format.empty() && std::string_view("@=<").find(format.front()) != std::string_view::npos) {
    format.remove_prefix(1);
  }
  if (format.size() != 1) return std::nullopt;
  const char code = format.front();
  if (std::string_view("bhilqn").find(code) != std::string_view::npos) return integer_type(bytes, true);
  if (std::string_view("BHILQN?c").find(code) != std::string_view::npos) return integer_type(bytes, false);
  if (code == 'e' && bytes == 2) return DataType::kFloat16;
  if (code == 'f' && bytes == 4) return DataType::kFloat32;
  if (code == 'd' && bytes == 8) return DataType::kFloat64;
  return std::nullopt;
}

std::optional<DataType> type_of_tensor(const DlTensor& tensor) {
  if (tensor.type_lanes != 1) return std::nullopt;
  const std::int64_t bytes = tensor.type_bits / 8;
  switch (tensor.type_code) {
    case kDlInt:
      return integer_type(bytes, true);
    case kDlUint:
      return integer_type(bytes, false);
    case kDlBool:
      return bytes == 1 ? std::optional(DataType::kUint8) : std::nullopt;
    case kDlBfloat:
      return bytes == 2 ? std::optional(DataType::kBfloat16) : std::nullopt;
    case kDlFloat:
      return bytes == 2   ? std::optional(DataType::kFloat16)
             : bytes == 4 ? std::optional(DataType::kFloat32)
             : bytes == 8 ? std::optional(DataType::kFloat64)
                          : std::nullopt;
    default:
      return std::nullopt;
  }
}

bool is_compact(const DlTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  std::int64_t expected = 1;
  for (std::int32_t i = tensor.num_dimensions; i-- > 0;) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

constexpr const char* kNotContiguous = "is not contiguous; expected elements that lie one after the other (C order)";

}  // namespace

Buffer::Buffer(py::object object, Access access, const std::string& what, std::optional<DataType> dtype)
    : object_(std::move(object)) {
  if (PyObject_CheckBuffer(object_.ptr()) != 0) {
    take_view(what, access);
  } else if (py::hasattr(object_, "__dlpack__")) {
    take_tensor(what);
  } else {
    const auto name = py::type::of(object_).attr("__name__").cast<std::string>();
    throw InvalidArgument(what + " is of type " + name +
                          "; expected a NumPy array, or an object with the buffer protocol or DLPack");
  }
  if (dtype) override_type(*dtype, what);
}

Buffer::~Buffer() {
  if (has_view_) PyBuffer_Release(&view_);
}

void Buffer::take_view(const std::string& what, Access access) {
  if (PyObject_GetBuffer(object_.ptr(), &view_, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
    throw InvalidArgument(what + ": " + raised());
  }
  has_view_ = true;
  // What is thrown from a constructor has no destructor to follow.
  const auto refuse = [&](const std::string& why) {
    PyBuffer_Release(&view_);
    has_view_ = false;
    throw InvalidArgument(what + " " + why);
  };
  if (access == Access::kWrite && view_.readonly != 0) refuse("cannot be written; expected memory for the result");
  if (PyBuffer_IsContiguous(&view_, 'C') == 0) refuse(kNotContiguous);
  const std::string format = view_.format == nullptr ? "B" : view_.format;
  const std::optional<DataType> type = type_of_format(format, view_.itemsize);
  if (!type) refuse("has elements of the format '" + format + "'; " + kAcceptedTypes);
  type_ = *type;
  is_bool_ = format.back() == '?';
  data_ = static_cast<char*>(view_.buf);
  count_ = view_.len / view_.itemsize;
}

// The capsule keeps its name, so the tensor's owner takes it back when it is gone.
void Buffer::take_tensor(const std::string& what) {
  try {
    capsule_ = object_.attr("__dlpack__")();
  } catch (const py::error_already_set& error) {
    throw InvalidArgument(what + ": " + py::str(error.value()).cast<std::string>());
  }
  const auto* const tensor = static_cast<const DlTensor*>(PyCapsule_GetPointer(capsule_.ptr(), "dltensor"));
  if (tensor == nullptr) throw InvalidArgument(what + ": " + raised());
  if (tensor->device_type != kDlCpu && tensor->device_type != kDlCudaHost) {
    throw InvalidArgument(what + " is in the memory of a device (DLPack's number " +
                          std::to_string(tensor->device_type) + "); expected memory of the CPU");
  }
  if (!is_compact(*tensor)) throw InvalidArgument(what + " " + kNotContiguous);
  const std::optional<DataType> type = type_of_tensor(*tensor);
  if (!type) {
    throw InvalidArgument(what + " has elements of " + std::to_string(tensor->type_bits) + " bits and DLPack's code " +
                          std::to_string(tensor->type_code) + "; " + kAcceptedTypes);
  }
  type_ = *type;
  is_bool_ = tensor->type_code == kDlBool;
  data_ = static_cast<char*>(tensor->data) + tensor->byte_offset;
  count_ = 1;
  for (std::int32_t i = 0; i < tensor->num_dimensions; ++i) count_ *= tensor->shape[i];
}

void Buffer::override_type(DataType dtype, const std::string& what) {
  if (size_of(dtype) != size_of(type_)) {
    const std::string name(to_string(type_));
    if (has_view_) PyBuffer_Release(&view_);
    has_view_ = false;
    throw InvalidArgument(what + " has elements of type " + name + ", which have another size than " +
                          std::string(to_string(dtype)) + "; expected the same size");
  }
  type_ = dtype;
  is_bool_ = false;
}

}  // namespace gar::python
