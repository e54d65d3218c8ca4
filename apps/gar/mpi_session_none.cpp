// A program without MPI.
#include <stdexcept>

#include "apps/gar/mpi_session.hpp"

namespace gar::cli {

std::optional<MpiLibrary> built_with() { return std::nullopt; }

std::unique_ptr<MpiSession> start_mpi() { throw std::runtime_error("this program is built without MPI"); }

}  // namespace gar::cli
