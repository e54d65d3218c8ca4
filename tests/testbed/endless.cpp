// AllReduce after AllReduce, until it fails: endless DIRECTORY LIMIT_S
// Writes DIRECTORY/rank-R.running after the first, and DIRECTORY/rank-R.failed with the error when it comes; then waits
// until it is ended, so that the launcher does not end the others before they have said what they saw.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "gar/mpi.hpp"

namespace {

void note(const std::string& directory, int rank, const std::string& what, const std::string& text) {
  const std::string name = directory + "/rank-" + std::to_string(rank) + "." + what;
  std::ofstream(name + ".part") << text << '\n';
  std::rename((name + ".part").c_str(), name.c_str());
}

}  // namespace

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
  try {
    gar::Communicator communicator = gar::mpi_communicator(MPI_COMM_WORLD, options);
    std::vector<float> values(100'000);
    for (int i = 0; i < 10'000; ++i) {
      communicator.all_reduce(std::span(values));
      if (i == 0) note(argv[1], rank, "running", "");
    }
    note(argv[1], rank, "failed", "never failed");
  } catch (const gar::TransportError& error) {
    note(argv[1], rank, "failed", error.what());
  }
  while (true) pause();  // MPI_Finalize would wait for a rank that cannot be reached
}
