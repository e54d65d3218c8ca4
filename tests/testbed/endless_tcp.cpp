// Endless AllReduces over TCP, as a rank of the job in the environment: endless_tcp DIRECTORY LIMIT_S
#include <cstdlib>
#include <iostream>

#include "endless.hpp"
#include "gar/tcp.hpp"

int main(int argc, char** argv) {
  const auto job = gar::environment_job();
  if (argc != 3 || !job) {
    std::cerr << "usage: endless_tcp DIRECTORY LIMIT_S, with RANK and WORLD_SIZE in the environment\n";
    return 2;
  }
  gar::CommunicatorOptions options;
  options.timeout_s = std::atof(argv[2]);
  gar::test::run_endlessly(argv[1], job->rank, [&] { return gar::communicator_from_environment(options); });
  return 0;
}
