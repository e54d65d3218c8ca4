#include "apps/gar/cli/installed.hpp"

namespace gar::cli {

std::string_view libdir_from_bindir() {
  return GAR_LIBDIR_FROM_BINDIR;  // of apps/gar/CMakeLists.txt
}

std::string_view datadir_from_bindir() { return GAR_DATADIR_FROM_BINDIR; }

}  // namespace gar::cli
