// In an MPI program: shared memory between the ranks of a host, messages between hosts. mpirun -np 3 example_09_mpi...
#include <mpi.h>

#include <cstdio>
#include <numeric>
#include <vector>

#include "gar/mpi.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    gar::Communicator comm = gar::mpi_communicator(MPI_COMM_WORLD);
    std::vector<float> values(100'000);
    std::iota(values.begin(), values.end(), static_cast<float>(comm.rank()));
    std::vector<float> expected(values.size());
    const int count = static_cast<int>(values.size());
    MPI_Allreduce(values.data(), expected.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);

    comm.all_reduce(values);

    if (comm.rank() == 0) {
      std::printf("%d ranks: %g %g ... %g, %s as MPI_Allreduce\n", comm.size(), values[0], values[1], values.back(),
                  values == expected ? "the same" : "not the same");
    }
  }  // the communicator ends before MPI does
  MPI_Finalize();
}
