// A program without MPI.
#include <stdexcept>

#include "gar/measure/mpi_session.hpp"

namespace gar::measure {

std::optional<MpiLibrary> built_with() { return std::nullopt; }

std::unique_ptr<MpiSession> start_mpi() { throw std::runtime_error("this program is built without MPI"); }

}  // namespace gar::measure
