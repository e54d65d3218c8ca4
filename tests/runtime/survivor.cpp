// A rank of a job that survivors.py does things to:
//
//   survivor DIRECTORY SEED LIMIT_S report|shrink shm:NAME|tcp|hosts     with RANK and WORLD_SIZE in the environment
//
// Runs random operations, each checked, until one fails or DIRECTORY/stop is there. DIRECTORY/rank-R.log gets a line
// for each: its number, the generation and the members; then "finished", or "error" and the words of it.
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include "gar/tcp.hpp"
#include "support/rank_log.hpp"
#include "support/surviving.hpp"

namespace {

std::string words(std::uint64_t operation, const gar::Members& members) {
  std::string out = std::to_string(operation) + " " + std::to_string(members.generation) + " ";
  for (const int rank : members.ranks) out += (out.back() == ' ' ? "" : ",") + std::to_string(rank);
  return out;
}

gar::Communicator make(const std::string& over, const gar::EnvironmentJob& job,
                       const gar::CommunicatorOptions& options) {
  if (over.starts_with("shm:")) return gar::shared_memory_communicator(over.substr(4), job.rank, job.size, options);
  gar::TcpOptions tcp;
  tcp.path = over == "tcp" ? gar::TcpPath::kMessages : gar::TcpPath::kHierarchy;
  return gar::communicator_from_environment(options, tcp);
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<gar::EnvironmentJob> job = gar::environment_job();
  if (argc != 6 || !job) {
    std::cerr << "usage: survivor DIRECTORY SEED LIMIT_S report|shrink shm:NAME|tcp|hosts, with RANK and WORLD_SIZE\n";
    return 2;
  }
  const std::string directory = argv[1];
  const gar::test::RankLog notes(directory, job->rank);
  gar::CommunicatorOptions options;
  options.timeout_s = std::atof(argv[3]);
  if (std::string(argv[4]) == "shrink") options.on_failure = gar::OnFailure::kShrink;
  const std::string over = argv[5];
  std::string outcome = "finished";
  try {
    gar::Communicator communicator = make(over, *job, options);
    // The store's connection, and a server in rank 0, stay; the communicator is what is counted from here on.
    gar::test::SurvivorRun run(
        communicator, job->rank, std::strtoull(argv[2], nullptr, 10), 60'000,
        [&](std::uint64_t operation, const gar::Members& members) { notes.line(words(operation, members)); });
    const std::string stop = directory + "/stop";
    while (run.step(access(stop.c_str(), F_OK) == 0)) {
    }
  } catch (const gar::test::Failure& failure) {
    outcome = std::string("wrong ") + failure.what();
  } catch (const std::exception& error) {
    outcome = std::string("error ") + error.what();
  }
  notes.line("descriptors " + std::to_string(gar::test::num_descriptors()));
  notes.line(outcome);
  return 0;
}
