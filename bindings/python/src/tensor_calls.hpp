// The quick way of torch.distributed.all_reduce: one call from Python into the extension, which looks at the tensor and
// at the caller itself. It knows nothing of PyTorch's headers, only the names of attributes.
#pragma once

#include "collectives.hpp"

namespace gar::python {

/// What PyTorch calls things, told once by gar.torch.
void add_tensor_calls(py::module_& module);

/// To be called by the method of a process group that torch.distributed.all_reduce calls. Does it if that waits for the
/// result, nobody takes a profile, and `tensors` is a list of one contiguous tensor in the CPU's memory with a type and
/// an operator that need nothing before or after. False: something is different, and nothing has been done.
bool try_all_reduce(Collectives& collectives, py::handle tensors);

}  // namespace gar::python
