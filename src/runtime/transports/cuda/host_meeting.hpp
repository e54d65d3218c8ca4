// How the processes of GPU communicators find each other.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "gar/communicator.hpp"
#include "runtime/transports/shared/shared_transport.hpp"

namespace gar {

/// Throws DeviceError that says why, when this process can use no GPU.
void require_cuda(const char* function);

/// Throws InvalidArgument when some ranks have a topology and some do not.
void check_alike(const std::vector<int>& has_topology, const char* function);

/// Shared memory for a few words of every rank.
class HostMeeting {
 public:
  /// Returns when all ranks have joined. Throws TransportError.
  HostMeeting(std::string_view name, int rank, int size, double timeout_s);
  /// Runs `body(control)`; when it throws, the other ranks are told why.
  template <class Body>
  Communicator make(Body body) {
    try {
      return body(std::make_unique<SharedTransport>(segment_, Membership{rank_, size_, {}}, timeout_s_));
    } catch (const std::exception& e) {
      segment_->set_failure(e.what());
      throw;
    }
  }

 private:
  std::shared_ptr<Segment> segment_;
  int rank_;
  int size_;
  double timeout_s_;
};

}  // namespace gar
