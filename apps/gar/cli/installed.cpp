#include "apps/gar/cli/installed.hpp"

namespace gar::cli {

std::string_view libdir_from_bindir() {
  return GAR_LIBDIR_FROM_BINDIR;  // of apps/gar/CMakeLists.txt
}

}  // namespace gar::cli
