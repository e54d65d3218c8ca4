// Makes communicators on top of MPI: where the ranks are, which transports that takes, and which network it is.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <random>

#include "base/hash.hpp"
#include "gar/mpi.hpp"
#include "runtime/caches.hpp"
#include "runtime/choice.hpp"
#include "runtime/exploration.hpp"
#include "runtime/shared_options.hpp"
#include "runtime/transports/hybrid/hybrid_transport.hpp"
#include "runtime/transports/mpi/hosts.hpp"
#include "runtime/transports/mpi/mpi_transport.hpp"
#include "runtime/transports/mpi/native.hpp"
#include "runtime/transports/mpi/network.hpp"
#include "runtime/transports/mpi/placement.hpp"
#include "topology/hash.hpp"
#include "topology/hosts.hpp"

namespace gar {

namespace {

constexpr std::int64_t kLeastChunkBytes = 256 << 10;
constexpr double kJoinLimitS = 30;  // all ranks are here already; one that does not join has failed

/// Runs a part of the set-up that may fail on some ranks; throws on all of them when it did on one.
template <class Body>
void agree(MPI_Comm comm, const char* what, const Body& body) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  std::exception_ptr error;
  try {
    body();
  } catch (...) {
    error = std::current_exception();
  }
  constexpr int kNoRank = std::numeric_limits<int>::max();
  const int failed = all_reduce_politely(comm, error ? rank : kNoRank, MPI_MIN);
  if (error) std::rethrow_exception(error);
  if (failed != kNoRank) {
    throw AlikeError<TransportError>(
        fmt::format("mpi_communicator: rank {} could not {}; its own error says why", failed, what));
  }
}

void compare_options(MPI_Comm comm, const CommunicatorOptions& options, MpiPath path, int num_fakes) {
  const auto all =
      all_gather_politely(comm, shared_options(options, static_cast<std::uint64_t>(path), num_fakes, kExploresOverMpi));
  if (const std::string difference = difference_of(all); !difference.empty()) {
    throw AlikeError<InvalidArgument>("mpi_communicator: " + difference);
  }
}

/// Which ranks are where: what an earlier job found holds for the same hosts in the same order.
std::uint64_t digest_of(MPI_Comm comm, const Hosts& hosts, const CommunicatorOptions& options) {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const std::vector<std::uint64_t> names = all_gather_politely(comm, mix_in(3, std::string_view(name.data())));
  std::uint64_t out = options.topology ? mix_in(4, hash_of(*options.topology)) : 4;
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    out = mix_in(mix_in(out, names[rank]), hosts.host_of[rank]);
  }
  return out;
}

/// What is known of earlier jobs, and MPI's own AllReduce. Collective. With a `job` calls are those that the program
/// believes to be MPI's: none of them has to go on in one thread while another call waits in it.
Exploration make_exploration(MPI_Comm comm, const CommunicatorOptions& options, const Transport& transport,
                             DecisionPlace place, const JobNetwork* job) {
  Exploration out;
  out.is_on = transport.size() > 1 && is_exploring(options, kExploresOverMpi);
  if (!out.is_on) return out;
  // A thread of ours calls MPI only with MPI_THREAD_MULTIPLE. With less, MPI's own AllReduce is a candidate where all
  // calls come from threads that may call MPI: with messages, where operations wait in calls of the program.
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  const bool is_free = level == MPI_THREAD_MULTIPLE || job != nullptr;
  const int is_blocking = all_reduce_politely(comm, is_free ? 1 : 0, MPI_MIN);
  const int is_there = all_reduce_politely(comm, is_free || !transport.allows_threads() ? 1 : 0, MPI_MIN);
  if (is_there != 0) {
    out.begins_natively = job != nullptr;  // the program shall not become slower for a single call
    out.is_patient = job != nullptr && !options.explores;
    out.native = native_all_reduce(comm, is_blocking != 0, job == nullptr ? nullptr : job->all_reduce);
  }
  place.transport = transport.name();
  place.num_ranks = transport.size();
  place.library = mpi_library();
  out.place = std::move(place);
  if (transport.rank() == 0) load(out, options);
  broadcast_politely(comm, out.told);
  return out;
}

std::string make_name() {
  std::random_device random;
  return fmt::format("mpi-{:08x}{:08x}", random(), random());
}

std::shared_ptr<Segment> join_hosts_segment(MPI_Comm comm, const Hosts& hosts, const CommunicatorOptions& options) {
  int local_rank = 0;
  check_mpi(MPI_Comm_rank(hosts.host_comm.get(), &local_rank), "MPI_Comm_rank");
  // The same staging space everywhere, because it decides how operations are cut.
  SegmentShape shape = suitable_shape(static_cast<int>(hosts.members.size()), options.staging_bytes);
  shape.staging_bytes = all_reduce_politely(comm, shape.staging_bytes, MPI_MIN);
  std::array<char, 32> name{};
  if (local_rank == 0) {
    const std::string made = make_name();
    std::copy(made.begin(), made.end(), name.begin());
  }
  broadcast_politely(hosts.host_comm.get(), name);
  std::shared_ptr<Segment> segment;
  agree(comm, "join the shared memory of its host",
        [&] { segment = join_segment(name.data(), local_rank, shape, std::min(options.timeout_s, kJoinLimitS)); });
  return segment;
}

/// MPI makes progress only inside its functions. A rank that waits in shared memory may have sent a message that
/// another one must receive before it can come here; so it calls MPI now and then, where its thread may.
/// `is_mpi_call`: the program sees to it that no other thread calls MPI meanwhile.
void make_progress(bool is_mpi_call) {
  int level = MPI_THREAD_SINGLE;
  int is_main = 0;
  MPI_Query_thread(&level);
  if (level == MPI_THREAD_SERIALIZED && !is_mpi_call) return;
  if (level < MPI_THREAD_SERIALIZED && (MPI_Is_thread_main(&is_main) != MPI_SUCCESS || is_main == 0)) return;
  int is_there = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &is_there, MPI_STATUS_IGNORE);
}

struct TransportChoice {
  MpiPath path = MpiPath::kHierarchy;
  int max_senders = 0;
  bool is_mpi_call = false;  ///< as in make_progress
};

std::unique_ptr<Transport> make_transport(MPI_Comm comm, const Hosts& hosts, const CommunicatorOptions& options,
                                          const TransportChoice& choice) {
  const int size = static_cast<int>(hosts.host_of.size());
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  MpiTransportOptions mpi;
  mpi.timeout_s = options.timeout_s;
  mpi.max_senders = choice.max_senders;
  // Stages inside a host and between hosts can overlap; those of one host compete for its cores.
  if (hosts.num_hosts > 1) mpi.least_chunk_bytes = kLeastChunkBytes;
  const bool has_single_ranks = choice.path == MpiPath::kHierarchy && hosts.num_hosts == size;
  if (choice.path == MpiPath::kMessages || has_single_ranks) {
    return std::make_unique<MpiTransport>(comm, mpi);
  }
  const Membership membership{rank, size, hosts.members};
  auto shared =
      std::make_unique<SharedTransport>(join_hosts_segment(comm, hosts, options), membership, options.timeout_s);
  shared->set_idle([is_mpi_call = choice.is_mpi_call] { make_progress(is_mpi_call); });
  if (hosts.num_hosts == 1) return shared;
  mpi.has_other_way.assign(static_cast<std::size_t>(size), false);
  for (const int member : hosts.members) mpi.has_other_way[static_cast<std::size_t>(member)] = true;
  return std::make_unique<HybridTransport>(std::move(shared), std::make_unique<MpiTransport>(comm, mpi));
}

/// The given network with this communicator's ranks on it, if there is one.
std::optional<Topology> place_communicator(MPI_Comm comm, const Hosts& hosts, const CommunicatorOptions& options,
                                           bool is_shared, const JobNetwork* job) {
  if (job == nullptr ? !options.topology : !job->network) return std::nullopt;
  const Topology& network = job == nullptr ? *options.topology : *job->network;
  const std::vector<std::int64_t> servers =
      job == nullptr ? servers_of_ranks(network, hosts.host_of) : all_gather_politely(comm, job->server);
  if (job != nullptr && !std::is_sorted(servers.begin(), servers.end())) return std::nullopt;
  check_order(network, servers);
  return place_ranks(network, servers, measure_rank(comm, hosts, is_shared));
}

Communicator make(MPI_Comm comm, const CommunicatorOptions& options, MpiPath path, const JobNetwork* job) {
  int is_initialised = 0;
  MPI_Initialized(&is_initialised);
  if (is_initialised == 0) throw InvalidArgument("mpi_communicator: accepted after MPI_Init");
  int is_inter = 0;
  if (comm == MPI_COMM_NULL || (MPI_Comm_test_inter(comm, &is_inter) == MPI_SUCCESS && is_inter != 0)) {
    throw InvalidArgument("mpi_communicator: expected an intracommunicator");
  }
  const OwnedComm own = duplicate_plainly(comm);
  CommunicatorOptions complete;
  int num_fakes = 1;
  agree(own.get(), "read its options", [&] {
    int size = 0;
    MPI_Comm_size(own.get(), &size);
    complete = with_environment(options, size, true);
    num_fakes = fake_hosts_from_environment();
  });
  compare_options(own.get(), complete, path, num_fakes);
  const Hosts hosts = find_hosts(own.get(), num_fakes);
  if (path == MpiPath::kShared && hosts.num_hosts > 1) {
    throw InvalidArgument(fmt::format(
        "mpi_communicator: kShared, but the ranks are on {} hosts; expected one host, or kHierarchy", hosts.num_hosts));
  }
  const bool is_shared = path != MpiPath::kMessages && hosts.num_hosts < static_cast<int>(hosts.host_of.size());
  std::optional<Topology> topology = place_communicator(own.get(), hosts, complete, is_shared, job);
  const bool is_given = topology.has_value();
  if (!is_given) topology = measure_network(own.get(), hosts, is_shared);
  DecisionPlace place;
  place.network = topology->name();
  if (is_exploring(complete, kExploresOverMpi)) place.digest = digest_of(own.get(), hosts, complete);
  complete.topology.reset();
  int max_senders = 0;
  agree(own.get(), "read GAR_MAX_SENDERS", [&] { max_senders = admitted_senders(*topology); });
  max_senders = all_reduce_politely(own.get(), max_senders, MPI_MIN);
  std::unique_ptr<Transport> transport =
      make_transport(own.get(), hosts, complete, {path, max_senders, job != nullptr});
  std::optional<Topology> short_network;
  if (is_given) {
    short_network = measure_messages(own.get(), hosts, *topology);
  } else {
    agree(own.get(), "measure", [&] { short_network = measure_caches(*transport, *topology); });
  }
  Exploration exploration = make_exploration(own.get(), complete, *transport, std::move(place), job);
  std::optional<Communicator> out;
  agree(own.get(), "make the communicator", [&] {
    out.emplace(
        make_communicator(std::move(transport), complete, *topology, std::move(exploration), std::move(short_network)));
  });
  return std::move(*out);
}

}  // namespace

Communicator mpi_communicator(MPI_Comm comm, const CommunicatorOptions& options, MpiPath path) {
  return make(comm, options, path, nullptr);
}

Communicator mpi_communicator(MPI_Comm comm, const CommunicatorOptions& options, MpiPath path, const JobNetwork& job) {
  return make(comm, options, path, &job);
}

}  // namespace gar
