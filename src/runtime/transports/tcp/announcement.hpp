// What the ranks of a job say about themselves in the store, before they are connected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/network_costs.hpp"
#include "runtime/shared_options.hpp"
#include "runtime/switches.hpp"
#include "runtime/transports/tcp/secret.hpp"
#include "runtime/transports/tcp/sockets.hpp"

namespace gar {

/// One rank.
struct Announcement {
  Address address;         ///< where it listens
  std::uint64_t host = 0;  ///< the same for ranks that can share memory
  int num_cores = 1;       ///< of its host
  SwitchPath switches;     ///< above its host
  SharedOptions options{};
};
std::string write_announcement(const Announcement& announcement);
/// Nothing when it is none.
std::optional<Announcement> read_announcement(std::string_view text);

/// All ranks, as rank 0 publishes them; or why there is no communicator.
struct JobTable {
  Nonce nonce{};  ///< the key of the job is made of it
  std::vector<Announcement> ranks;
  std::string failure;
};
std::string write_table(const JobTable& table);
std::optional<JobTable> read_table(std::string_view text);

/// What to_hex has written; nothing when it is no nonce.
std::optional<Nonce> read_nonce(std::string_view text);

/// What ranks have in common that can share memory: the running kernel, its shared memory, the user, the host name.
std::uint64_t host_identity();
int own_cores();

/// Who is where. `num_fakes`: pretended hosts of each host.
HostMap map_hosts(const std::vector<Announcement>& ranks, int rank, int num_fakes);

}  // namespace gar
