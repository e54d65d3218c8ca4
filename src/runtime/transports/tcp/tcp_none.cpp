// A build without OpenSSL: everything that needs it says so.
#include "gar/errors.hpp"
#include "gar/tcp.hpp"
#include "runtime/transports/tcp/launchers.hpp"

namespace gar {

namespace {

[[noreturn]] void leave_out() {
  throw TransportError("this build has no TCP transport: it was built without OpenSSL (Debian: libssl-dev)");
}

}  // namespace

bool has_tcp() { return false; }

struct StoreServer::Impl {};
StoreServer::StoreServer(const std::string& /*listen*/, const std::string& /*secret*/) { leave_out(); }
StoreServer::StoreServer(int /*listening*/, const std::string& /*secret*/) { leave_out(); }
StoreServer::~StoreServer() = default;
std::string StoreServer::address() const { return {}; }

std::unique_ptr<Store> tcp_store(const std::string& /*address*/, const std::string& /*secret*/, double /*timeout_s*/) {
  leave_out();
}
std::string make_secret() { leave_out(); }
std::string job_secret() { leave_out(); }

Communicator tcp_communicator(Store& /*store*/, std::string_view /*name*/, int /*rank*/, int /*size*/,
                              const CommunicatorOptions& /*options*/, const TcpOptions& /*tcp*/) {
  leave_out();
}
Communicator communicator_from_environment(const CommunicatorOptions& /*options*/, const TcpOptions& /*tcp*/) {
  leave_out();
}

Communicator join_tcp(Store& /*store*/, std::string_view /*name*/, double /*limit_s*/,
                      const CommunicatorOptions& /*options*/, const TcpOptions& /*tcp*/) {
  leave_out();
}
Communicator join_from_environment(double /*limit_s*/, const CommunicatorOptions& /*options*/,
                                   const TcpOptions& /*tcp*/) {
  leave_out();
}

EnvironmentStore open_environment_store(const EnvironmentJob& /*job*/, const TcpOptions& /*tcp*/,
                                        double /*timeout_s*/) {
  leave_out();
}
LoopbackListener::LoopbackListener() { leave_out(); }
LoopbackListener::~LoopbackListener() = default;
int LoopbackListener::take() { return fd_; }

}  // namespace gar
