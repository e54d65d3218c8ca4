// gar/gar_mpi.h on top of gar/mpi.hpp.
#include "gar/gar_mpi.h"
#include "gar/mpi.hpp"
#include "runtime/c_api.hpp"

static_assert(GAR_MPI_HIERARCHY == static_cast<int>(gar::MpiPath::kHierarchy));
static_assert(GAR_MPI_MESSAGES == static_cast<int>(gar::MpiPath::kMessages));
static_assert(GAR_MPI_SHARED == static_cast<int>(gar::MpiPath::kShared));

gar_status gar_comm_create_mpi(MPI_Comm mpi_comm, gar_mpi_path path, const gar_options* options, gar_comm** comm) {
  return gar::c_api::guarded(__func__, [&](const char* function) {
    gar::c_api::require(comm != nullptr, function, "`comm` is NULL; expected where the communicator shall be written");
    gar::c_api::require(mpi_comm != MPI_COMM_NULL, function,
                        "`mpi_comm` is MPI_COMM_NULL; expected an intracommunicator such as MPI_COMM_WORLD");
    gar::c_api::require(
        path >= GAR_MPI_HIERARCHY && path <= GAR_MPI_SHARED, function,
        "`path` is " + std::to_string(path) + "; expected GAR_MPI_HIERARCHY, GAR_MPI_MESSAGES, GAR_MPI_SHARED");
    *comm = new gar_comm{gar::mpi_communicator(mpi_comm, gar::c_api::communicator_options(options, function),
                                               static_cast<gar::MpiPath>(path))};
  });
}
