// How a group takes newcomers in (Communicator::grow; docs/failures.md).
//
// Problem: the members and the newcomers must come to one opinion about who belongs to the larger group, whoever dies
// meanwhile, and nobody may compute in the old group while others do in the new one.
//
// Idea: the larger group is made beside the old one, which stays whole: new connections, a new agreement, the next
// generation. Whether it is taken is decided by an operation of the old group, in which every member says whether it is
// connected. Such an operation has the same result between the same members for everybody who is given it
// (engine_surviving.cpp), so all members decide alike: the larger group, if all have said yes and none was lost; or the
// old one. A newcomer does nothing in the larger group before a member has told it that this was decided. So newcomers
// can never go on by themselves, and who dies after the decision is a loss of the larger group, as any other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gar/topology.hpp"
#include "runtime/transport.hpp"

namespace gar {

class Survival;

/// A larger group, connected; not yet decided.
struct Grown {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Survival> survival;
  Topology topology;
  std::optional<Topology> short_network;
  int first_newcomer = 0;
};

/// What the members know when they connect.
struct Growing {
  std::string invitation;              ///< what invite() has returned
  std::vector<int> members;            ///< ranks of the first generation
  std::vector<std::string> addresses;  ///< what each of them has prepared
  std::uint64_t generation = 0;        ///< of the larger group
  /// To be called now and then while waiting. Throws PeerLost when it will come to nothing.
  std::function<void()> look;
};

/// Connects members with newcomers; one for each kind of transport that can.
class Grower {
 public:
  Grower() = default;
  Grower(const Grower&) = delete;
  Grower& operator=(const Grower&) = delete;
  virtual ~Grower() = default;
  /// On the lowest member: asks those who wait. Returns what all members need to know about them; empty: nobody. Throws
  /// TransportError when it cannot be found out.
  virtual std::string invite() = 0;
  /// On every member: where the others will find it, kMostAddressBytes at most.
  virtual std::string prepare() = 0;
  /// Collective among the members and those who are invited.
  virtual Grown connect(const Growing& growing) = 0;
  /// It was decided not to grow, or nobody asked: what the functions above have opened is closed.
  virtual void end() noexcept = 0;
};

}  // namespace gar
