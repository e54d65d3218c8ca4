// Connections between all ranks of a job, when they are told where the others are.
#pragma once

#include <functional>
#include <vector>

#include "runtime/transports/tcp/reception.hpp"

namespace gar {

struct MeshMember {
  int rank = 0;
  Digest key{};
  Address own;                     ///< connections begin here
  std::vector<Address> addresses;  ///< where the ranks listen
  double timeout_s = 30;
  std::function<void()> look{};  ///< called now and then while it waits; may throw
  double answer_s = 15;          ///< a rank that has said nothing for this long is called again
};

/// Every rank calls those below it and is called by those above. Returns connections by rank, the own one empty, when
/// all are there: they do not block. Throws PeerLost that names the missing ranks. Nobody else may call
/// `reception`, which stays open until the ranks have met over these connections: one that was turned away calls again.
std::vector<File> connect_mesh(const MeshMember& member, Reception& reception);

}  // namespace gar
