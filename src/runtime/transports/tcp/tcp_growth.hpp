// How members of a job over TCP and newcomers find and connect with each other.
//
// A newcomer takes a seat: it puts an address where it listens into the job's store, under the next number that is
// free. It lets nobody in but a member, by the handshake of all connections. When the members grow, the lowest of them
// calls those who sit, and keeps a line to each. The newcomer says where it will listen; the members tell each other
// all of that; then the newcomer is told the table of the larger group over its line, and all connect.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/transports/tcp/tcp_survival.hpp"

namespace gar {

/// Who belongs to the larger group.
struct GrowthTable {
  std::uint64_t generation = 0;
  int first_newcomer = 0;  ///< those with a smaller number are members
  std::vector<int> ranks;  ///< ascending
  JobTable table;          ///< the same, in their order
  TcpPath path = TcpPath::kHierarchy;
  int num_fakes = 1;
  TcpDoor door;  ///< what of it is the same on all
};
std::string write_growth(const GrowthTable& table);
/// Nothing when no member sends that.
std::optional<GrowthTable> read_growth(std::string_view text);

/// The job's key in the store under which newcomers find its nonce, and that of a seat.
std::string door_key(const std::string& prefix);
std::string seat_key(const std::string& prefix, std::uint64_t seat);
/// The secret of a job that may grow. Where none is given it is the nonce, which who can read the store knows; that of
/// each group may then travel without harm.
std::string secret_at_door(const std::string& given, const TcpDoor& door);
/// What members and newcomers prove to each other to know.
Digest newcomer_key(const std::string& secret, const TcpDoor& door);

/// `own`: what this process knows of the job and itself; members, generation and table are those of the growth.
/// `index`: its place in the table. Collective among all who are in the table.
Grown connect_grown(const TcpJob& own, const GrowthTable& table, int index, File listening,
                    const std::function<void()>& look);

std::unique_ptr<Grower> grower_over_tcp(const TcpJob& job);

}  // namespace gar
