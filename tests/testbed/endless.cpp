// Endless AllReduces under MPI: endless DIRECTORY LIMIT_S. At the end it waits until it is ended, so that the launcher
// does not end the others before they have said what they saw.
#include "endless.hpp"

#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "gar/mpi.hpp"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: endless DIRECTORY LIMIT_S\n";
    return 2;
  }
  MPI_Init(nullptr, nullptr);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  gar::CommunicatorOptions options;
  options.timeout_s = std::atof(argv[2]);
  gar::test::run_endlessly(argv[1], rank, [&] { return gar::mpi_communicator(MPI_COMM_WORLD, options); });
  while (true) pause();  // MPI_Finalize would wait for a rank that cannot be reached
}
