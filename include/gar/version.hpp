// The version of the library.
#pragma once

#include <string_view>

namespace gar {

/// "0.1.0".
std::string_view version();

}  // namespace gar
