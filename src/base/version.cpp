// The version of the library, as CMake knows it.
#include "gar/version.hpp"

namespace gar {

std::string_view version() { return GAR_VERSION; }

}  // namespace gar
