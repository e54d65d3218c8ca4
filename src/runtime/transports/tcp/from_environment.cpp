// Communicators of the job that the environment describes.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "gar/errors.hpp"
#include "gar/format.hpp"
#include "gar/tcp.hpp"
#include "runtime/choice.hpp"
#include "runtime/transports/tcp/launchers.hpp"
#include "runtime/transports/tcp/secret.hpp"
#include "runtime/transports/tcp/sockets.hpp"

namespace gar {

namespace {

/// What a process keeps of a job as long as it lives: a rank may still ask rank 0's server for the next communicator
/// when rank 0 has made it.
struct OpenJob {
  EnvironmentStore at;
  int num_made = 0;
};

/// "tcp://host:port" without the scheme; empty: it is not one.
std::string tcp_place(const std::string& text) {
  constexpr std::string_view kScheme = "tcp://";
  return text.compare(0, kScheme.size(), kScheme) == 0 ? text.substr(kScheme.size()) : std::string();
}

std::string needed_secret(const TcpOptions& tcp) {
  std::string out = tcp.secret.empty() ? job_secret() : tcp.secret;
  if (!out.empty()) return out;
  throw InvalidArgument(
      "communicator_from_environment: the job has no secret; expected GAR_SECRET in the environment of all ranks, such "
      "as that of: export GAR_SECRET=$(openssl rand -hex 32), or GAR_SECRET_FILE, or a store in a directory "
      "(GAR_STORE=file:///DIRECTORY)");
}

std::unique_ptr<StoreServer> serve(const std::string& place, const std::string& secret) {
  try {
    return std::make_unique<StoreServer>(place, secret);
  } catch (const TransportError& error) {
    throw TransportError(
        fmt::format("{}; rank 0 makes the job's store at MASTER_ADDR:MASTER_PORT, which needs a free "
                    "port of this host (torchrun has taken that one; expected GAR_STORE of a gar "
                    "store, or another MASTER_PORT)",
                    error.what()));
  }
}

}  // namespace

EnvironmentStore open_environment_store(const EnvironmentJob& job, const TcpOptions& tcp, double timeout_s) {
  constexpr std::string_view kFile = "file://";
  if (job.store.empty()) {
    throw InvalidArgument(
        "communicator_from_environment: nobody says where the ranks find each other; expected MASTER_ADDR and "
        "MASTER_PORT, or GAR_STORE=tcp://HOST:PORT or file:///DIRECTORY");
  }
  if (job.store.compare(0, kFile.size(), kFile) == 0) {
    return {nullptr, directory_store(job.store.substr(kFile.size()))};
  }
  const std::string place = tcp_place(job.store);
  if (place.empty()) {
    throw InvalidArgument(fmt::format("GAR_STORE={} in the environment: expected tcp://HOST:PORT or file:///DIRECTORY",
                                      escaped(job.store)));
  }
  const std::string secret = needed_secret(tcp);
  EnvironmentStore out;
  if (job.may_serve && job.rank == 0) out.server = serve(place, secret);
  out.store = tcp_store(place, secret, timeout_s);
  return out;
}

LoopbackListener::LoopbackListener() {
  File listening = listen_on(resolve("127.0.0.1:0", "the loopback"));
  address_ = to_string(bound_address(listening.fd));
  fd_ = std::exchange(listening.fd, -1);
}

LoopbackListener::~LoopbackListener() {
  if (fd_ >= 0) close(fd_);
}

int LoopbackListener::take() { return std::exchange(fd_, -1); }

namespace {

/// Of this process, by store.
struct OpenJobs {
  std::mutex mutex;
  std::map<std::string, OpenJob> jobs;
};
OpenJobs& open_jobs() {
  static OpenJobs instance;
  return instance;
}

TcpOptions with_secret(TcpOptions tcp) {
  if (tcp.secret.empty()) tcp.secret = job_secret();
  return tcp;
}

}  // namespace

Communicator communicator_from_environment(const CommunicatorOptions& options, const TcpOptions& tcp) {
  const std::optional<EnvironmentJob> where = environment_job();
  if (!where) {
    throw InvalidArgument(
        "communicator_from_environment: no launcher has started this process; expected RANK and WORLD_SIZE in the "
        "environment, or the variables of srun, or of mpirun of Open MPI or MPICH");
  }
  if (where->size == 1 && options.on_failure != OnFailure::kShrinkAndGrow) {
    return std::move(thread_communicators(1, options).front());
  }
  const std::lock_guard lock(open_jobs().mutex);
  OpenJob& job = open_jobs().jobs[where->store];
  if (!job.at.store) {
    job.at = open_environment_store(*where, tcp, with_environment(options, where->size, true).timeout_s);
  }
  return tcp_communicator(*job.at.store, fmt::format("job-{}", job.num_made++), where->rank, where->size, options,
                          with_secret(tcp));
}

Communicator join_from_environment(double limit_s, const CommunicatorOptions& options, const TcpOptions& tcp) {
  EnvironmentJob where;
  where.rank = -1;
  where.store = environment_store([](const char* name) -> const char* { return std::getenv(name); });
  const std::lock_guard lock(open_jobs().mutex);
  OpenJob& job = open_jobs().jobs[where.store];
  if (!job.at.store) job.at = open_environment_store(where, tcp, limit_s);
  return join_tcp(*job.at.store, fmt::format("job-{}", job.num_made), limit_s, options, with_secret(tcp));
}

}  // namespace gar
