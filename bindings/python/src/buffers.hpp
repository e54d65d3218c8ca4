// Memory of Python objects: NumPy arrays, whatever has the buffer protocol, and CPU tensors through DLPack. Nothing is
// copied.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string>

#include "gar/data_type.hpp"

namespace gar::python {

namespace py = pybind11;

enum class Access { kRead, kWrite };

/// The elements of an object, which stays alive and keeps its size as long as this exists. Made and destroyed with the
/// GIL.
class Buffer {
 public:
  /// `what` names it in messages ("all_reduce: values"); `dtype`, if given, is what elements of that many bytes mean.
  /// Throws InvalidArgument where memory is not contiguous, cannot be written, is not on the CPU, or has elements that
  /// cannot be reduced.
  Buffer(py::object object, Access access, const std::string& what, std::optional<DataType> dtype);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  [[nodiscard]] char* data() const { return data_; }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] DataType type() const { return type_; }
  /// True or false in every byte; type() is kUint8 then.
  [[nodiscard]] bool is_bool() const { return is_bool_; }
  [[nodiscard]] std::int64_t bytes() const { return count_ * size_of(type_); }

 private:
  void take_view(const std::string& what, Access access);
  void take_tensor(const std::string& what);
  void override_type(DataType dtype, const std::string& what);

  py::object object_;
  Py_buffer view_{};
  bool has_view_ = false;
  py::object capsule_;
  char* data_ = nullptr;
  std::int64_t count_ = 0;
  DataType type_ = DataType::kFloat32;
  bool is_bool_ = false;
};

}  // namespace gar::python
