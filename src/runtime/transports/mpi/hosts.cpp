#include "runtime/transports/mpi/hosts.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "runtime/switches.hpp"

#ifdef GAR_HAVE_HWLOC
#include <hwloc.h>
#endif

namespace gar {

namespace {

/// What a rank knows about where it runs.
struct RankLocation {
  int host = 0;  ///< first rank of the host
  int numa = -1;
  int num_cores = 1;
  SwitchPath switches;
};

#ifdef GAR_HAVE_HWLOC

/// The NUMA node that this process is bound to, and the cores of the machine that the job may use.
void find_cores(RankLocation& own) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return;
  if (hwloc_topology_load(topology) == 0) {
    own.num_cores = std::max(1, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE));
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    if (hwloc_get_cpubind(topology, cpus, HWLOC_CPUBIND_PROCESS) == 0) {
      hwloc_cpuset_to_nodeset(topology, cpus, nodes);
      if (hwloc_bitmap_weight(nodes) == 1) own.numa = hwloc_bitmap_first(nodes);
    }
    hwloc_bitmap_free(nodes);
    hwloc_bitmap_free(cpus);
  }
  hwloc_topology_destroy(topology);
}

#else

void find_cores(RankLocation& own) {
  own.num_cores = std::max<int>(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

#endif

/// The ranks of this host, without those of other pretended hosts.
OwnedComm split_by_host(MPI_Comm comm, int rank, int num_fakes) {
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
  OwnedComm real(host);
  if (num_fakes == 1) return real;
  int local_rank = 0;
  int local_size = 1;
  check_mpi(MPI_Comm_rank(real.get(), &local_rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(real.get(), &local_size), "MPI_Comm_size");
  const auto color = static_cast<int>(static_cast<std::int64_t>(local_rank) * num_fakes / local_size);
  MPI_Comm fake = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(real.get(), color, rank, &fake), "MPI_Comm_split");
  return OwnedComm(fake);
}

}  // namespace

Hosts find_hosts(MPI_Comm comm, int num_fakes) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  Hosts out;
  out.host_comm = split_by_host(comm, rank, num_fakes);
  RankLocation own;
  own.host = rank;
  find_cores(own);
  own.switches = own_switch_path();
  broadcast_politely(out.host_comm.get(), own.host);
  const std::vector<RankLocation> all = all_gather_politely(comm, own);
  std::map<int, int> numbers;  // of hosts, by their first ranks
  for (const RankLocation& one : all) numbers.try_emplace(one.host, static_cast<int>(numbers.size()));
  out.num_hosts = static_cast<int>(numbers.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    out.host_of.push_back(numbers[all[r].host]);
    out.numa_of.push_back(all[r].numa);
    out.cores_of.push_back(static_cast<double>(all[r].num_cores) / num_fakes);
    if (all[r].host == own.host) out.members.push_back(static_cast<int>(r));
  }
  std::vector<SwitchPath> paths;
  for (const RankLocation& one : all) paths.push_back(one.switches);
  out.switches_of = switch_levels(paths, out.host_of, num_fakes > 1);
  return out;
}

}  // namespace gar
