// What functions that make communicators accept.
#pragma once

#include <string_view>

namespace gar {

/// Throw InvalidArgument in the name of `function`.
void check_size(int size, const char* function);
void check_membership(std::string_view name, int rank, int size, const char* function);

}  // namespace gar
