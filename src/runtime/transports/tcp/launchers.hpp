// What launchers say in the environment, for tests.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gar/tcp.hpp"

namespace gar {

/// The value of an environment variable; null: not set.
using EnvironmentLookup = std::function<const char*(const char*)>;
std::optional<EnvironmentJob> environment_job(const EnvironmentLookup& lookup);
/// Where the job's store is for a process that is no rank of it: GAR_STORE, or MASTER_ADDR and MASTER_PORT; empty:
/// nobody has said.
std::string environment_store(const EnvironmentLookup& lookup);
/// The job's store, and its server where this process has it. The server is to live as long as any rank may ask.
struct EnvironmentStore {
  std::unique_ptr<StoreServer> server;
  std::unique_ptr<Store> store;
};
/// Throws InvalidArgument that says what is missing, and TransportError.
EnvironmentStore open_environment_store(const EnvironmentJob& job, const TcpOptions& tcp, double timeout_s);

/// A port of this host's loopback, for a server that is made later, maybe by a child of this process.
class LoopbackListener {
 public:
  /// Throws TransportError.
  LoopbackListener();
  ~LoopbackListener();
  LoopbackListener(const LoopbackListener&) = delete;
  LoopbackListener& operator=(const LoopbackListener&) = delete;
  [[nodiscard]] const std::string& address() const { return address_; }
  /// The descriptor, which belongs to the caller from now on.
  int take();

 private:
  int fd_ = -1;
  std::string address_;
};

/// The first host of "node[03-07,12],other1": node03. Empty when there is none.
std::string first_slurm_host(std::string_view list);

}  // namespace gar
