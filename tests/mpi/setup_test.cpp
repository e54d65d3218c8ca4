// How communicators are made: tags, hosts, the network's tree, persistent requests, and errors that all ranks see.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "mpi/mpi_test.hpp"
#include "runtime/transports/mpi/hosts.hpp"
#include "runtime/transports/mpi/mpi_call.hpp"
#include "runtime/transports/mpi/mpi_transport.hpp"
#include "runtime/transports/mpi/network.hpp"

namespace {

using namespace gar;
using namespace gar::test;

/// All tags are different, and MPI accepts them.
void check_tags(MpiTest& test, int largest) {
  const MpiTags tags(largest);
  std::set<int> seen{tags.signature(), tags.abort()};
  std::size_t expected = 2;
  const auto add = [&](int tag) {
    test.expect(tag >= 0 && tag <= largest,
                "tag " + std::to_string(tag) + " with a limit of " + std::to_string(largest));
    seen.insert(tag);
    ++expected;
  };
  for (int slot = 0; slot < MpiTags::kMaxSlots; ++slot) {
    for (const std::int64_t step : {0, 1, 5, tags.step_limit() - 1}) {
      add(tags.data(0, slot, step));
      if (largest > 1 << 20) add(tags.data(7, slot, step));
    }
  }
  for (std::uint64_t sequence = 1000; sequence < 1128; ++sequence) {
    for (int round = 0; round < MpiTags::kMaxRounds; ++round) add(tags.exchange(sequence, round));
  }
  test.expect(seen.size() == expected, "two kinds of messages have the same tag");
  test.expect(tags.step_limit() >= 2048, "steps of a chunk have tags of their own");
}

Hosts make_hosts(std::vector<int> host_of, std::vector<int> numa_of = {}) {
  Hosts hosts;
  hosts.num_hosts = 1 + *std::max_element(host_of.begin(), host_of.end());
  if (numa_of.empty()) numa_of.assign(host_of.size(), -1);
  hosts.cores_of.assign(host_of.size(), 4);
  hosts.host_of = std::move(host_of);
  hosts.numa_of = std::move(numa_of);
  return hosts;
}

/// The tree in words: (children), a number of ranks, or r for one rank below a switch of its own.
std::string shape(const Topology& topology, NodeId id) {
  const Node& node = topology.node(id);
  if (node.is_server()) return "r";
  std::string out;
  for (const ChildRun& run : node.children) {
    const std::string child = shape(topology, run.node);
    out += (out.empty() ? "" : " ") + (run.count > 1 ? std::to_string(run.count) + "*" : "") + child;
  }
  return "(" + out + ")";
}

void check_trees(MpiTest& test) {
  NetworkCosts costs;
  costs.rank = {1e-6, 1e-9};
  costs.numa = {3e-6, 2e-9};
  costs.host = {9e-6, 4e-9};
  costs.server = {1e-10, 2e-10};
  // What a message costs a rank is no part of the latencies any more, and the times of single messages stay.
  NetworkCosts measured = costs;
  measured.rank.mu = 5e-7;
  measured.host.mu = 2e-7;
  const NetworkCosts split = with_mu(measured);
  test.expect(split.server.mu == 2e-7 && split.server.gamma == 1e-10, "mu of the hosts' level");
  test.expect(std::abs(split.host.latency + 2 * 2e-7 - 9e-6) < 1e-15, "a message between hosts costs what it did");
  test.expect(std::abs(split.rank.latency + 2 * 2e-7 - 1e-6) < 1e-15, "a message inside a host costs what it did");
  measured.host = {};
  test.expect(with_mu(measured).server.mu == 2.5e-7, "at least half of the shortest latency is no mu");
  const auto expect_shape = [&](const Hosts& hosts, const std::string& expected) {
    const Topology topology = network_topology("mpi", hosts, costs);
    const std::string found = shape(topology, topology.root());
    test.expect(found == expected, "expected the tree " + expected + ", found " + found);
  };
  expect_shape(make_hosts({0}), "r");
  expect_shape(make_hosts({0, 0, 0}), "(3*r)");
  expect_shape(make_hosts({0, 0, 1, 1}), "(2*(2*r))");
  expect_shape(make_hosts({0, 0, 1, 1, 1}), "((2*r) (3*r))");
  expect_shape(make_hosts({0, 1, 2}), "(3*(r))");
  expect_shape(make_hosts({0, 0, 0, 0}, {0, 0, 1, 1}), "(2*(2*r))");
  expect_shape(make_hosts({0, 0, 0, 0, 1, 1, 1, 1}, {0, 0, 1, 1, 0, 0, 1, 1}), "(2*(2*(2*r)))");
  // Ranks dealt out in turn: those of a host or a NUMA node are no subtree.
  expect_shape(make_hosts({0, 1, 0, 1}), "(4*r)");
  expect_shape(make_hosts({0, 0, 0, 0}, {0, 1, 0, 1}), "(4*r)");
  expect_shape(make_hosts({0, 0, 0, 0, 1, 1}, {0, 1, 0, 1, 0, 0}), "((4*r) (2*r))");

  const Topology two = network_topology("mpi", make_hosts({0, 0, 1, 1}), costs);
  test.expect(two.path_latency(0, 1) == 1e-6, "latency inside a host");
  test.expect(std::abs(two.path_latency(0, 2) - 9e-6) < 1e-12, "latency between hosts");
  const Topology deep = network_topology("mpi", make_hosts({0, 0, 0, 0, 1, 1, 1, 1}, {0, 0, 1, 1, 0, 0, 1, 1}), costs);
  test.expect(std::abs(deep.path_latency(0, 1) - 1e-6) < 1e-12, "latency inside a NUMA node");
  test.expect(std::abs(deep.path_latency(0, 2) - 3e-6) < 1e-12, "latency between NUMA nodes");
  test.expect(std::abs(deep.path_latency(0, 4) - 9e-6) < 1e-12, "latency between hosts of several NUMA nodes");
  test.expect(two.node(two.root()).children.front().count == 2, "two hosts");
  const Node& host = two.node(two.node(two.root()).children.front().node);
  test.expect(host.uplink.beta == 4e-9, "a host's link");
  test.expect(two.node(host.children.front().node).server.delta == 2e-10, "a rank's calculation");
}

void check_hosts(MpiTest& test, int num_fakes) {
  const Hosts hosts = find_hosts(MPI_COMM_WORLD, num_fakes);
  test.expect(static_cast<int>(hosts.host_of.size()) == test.size(), "a host for every rank");
  test.expect(hosts.num_hosts == std::min(num_fakes, test.size()), "as many hosts as pretended");
  test.expect(std::is_sorted(hosts.host_of.begin(), hosts.host_of.end()), "consecutive ranks share a pretended host");
  for (int r = 0; r < test.size(); ++r) {
    const bool is_member = std::find(hosts.members.begin(), hosts.members.end(), r) != hosts.members.end();
    const auto host = [&](int rank) { return hosts.host_of[static_cast<std::size_t>(rank)]; };
    test.expect(is_member == (host(r) == host(test.rank())), "members are the ranks of the same host");
    test.expect(hosts.cores_of[static_cast<std::size_t>(r)] > 0, "a host has cores");
  }
}

/// The same operation with the same memory restarts its requests. (Messages up to 16 KiB are packed, and keep none.)
void check_requests(MpiTest& test) {
  MpiTransportOptions options;
  options.chunk_bytes = 256 << 10;
  auto transport = std::make_unique<MpiTransport>(MPI_COMM_WORLD, options);
  const RequestCache& requests = transport->requests();
  CommunicatorOptions algorithm;
  algorithm.algorithm = "cps";
  Communicator communicator =
      make_communicator(std::move(transport), algorithm, make_tree({static_cast<std::int64_t>(test.size())}));
  const Case c{Collective::kAllReduce, Form::kOutOfPlace, DataType::kFloat32, ReduceOp::kSum, 400'000, Call::kBlocking};
  CaseRun run(c, test.rank(), test.size(), 5);
  const auto repeat = [&](int times) {
    for (int i = 0; i < times; ++i) {
      run.block(communicator);
      run.verify();
    }
  };
  repeat(6);  // chunks come to every slot
  const std::int64_t built = requests.num_built();
  const std::int64_t restarted = requests.num_restarted();
  repeat(5);
  test.expect(requests.num_built() == built, "no request is built anew");
  test.expect(requests.num_restarted() > restarted || test.size() == 1, "requests are restarted");
}

void expect_invalid(MpiTest& test, const std::function<void()>& call, const std::string& word) {
  std::string text;
  try {
    call();
  } catch (const InvalidArgument& error) {
    text = error.what();
  }
  test.expect(text.find(word) != std::string::npos, "expected an error about " + word + ", not '" + text + "'");
}

void check_errors(MpiTest& test) {
  expect_invalid(
      test, [] { mpi_communicator(MPI_COMM_NULL); }, "intracommunicator");
  setenv("GAR_FAKE_HOSTS", "two", 1);
  expect_invalid(
      test, [] { mpi_communicator(MPI_COMM_WORLD); }, "GAR_FAKE_HOSTS");
  setenv("GAR_FAKE_HOSTS", "2", 1);
  if (test.size() > 1) {
    expect_invalid(
        test, [] { mpi_communicator(MPI_COMM_WORLD, {}, MpiPath::kShared); }, "kShared");
  }
  CommunicatorOptions wrong;
  wrong.algorithm = "hcps:999x7";
  expect_invalid(
      test, [&] { mpi_communicator(MPI_COMM_WORLD, wrong, MpiPath::kMessages); }, "hcps");
  // One rank's mistake is everybody's error.
  CommunicatorOptions odd;
  if (test.rank() == test.size() - 1) odd.timeout_s = -1;
  std::string text;
  try {
    mpi_communicator(MPI_COMM_WORLD, odd);
  } catch (const Error& error) {
    text = error.what();
  }
  test.expect(!text.empty(), "one rank's wrong option is an error on all ranks");
}

/// A child that a rank has forked has no part in its communicators, whatever carries them.
void check_fork(MpiTest& test) {
  for (const MpiPath path : {MpiPath::kMessages, MpiPath::kHierarchy}) {
    Communicator communicator = mpi_communicator(MPI_COMM_WORLD, {}, path);
    std::vector<double> values(5000, 1.0);
    communicator.all_reduce(std::span(values));
    const pid_t child = fork();
    if (child == 0) {
      int code = 1;
      try {
        communicator.all_reduce(std::span(values));
      } catch (const InvalidArgument& error) {
        code = std::string(error.what()).find("which has forked this one") == std::string::npos ? 2 : 0;
      } catch (...) {
        code = 3;
      }
      _exit(code);
    }
    int status = -1;
    waitpid(child, &status, 0);
    test.expect(status == 0, "all_reduce in a child: status " + std::to_string(status));
    values.assign(values.size(), 1.0);
    communicator.all_reduce(std::span(values));
    test.expect(values.back() == test.size(), "the sum after a child");
  }
}

void check_full_memory(MpiTest& test) {
  CommunicatorOptions large;
  large.staging_bytes = std::int64_t{1} << 39;
  const std::string text = transport_error_of([&] { mpi_communicator(MPI_COMM_WORLD, large); });
  if (test.size() < 3) {  // no host has two ranks
    test.expect(text.empty(), "without shared memory there is no error: " + text);
    return;
  }
  test.expect(text.find("shared memory") != std::string::npos, "too little shared memory: '" + text + "'");
}

}  // namespace

int main(int argc, char** argv) {
  MpiTest test(argc, argv);
  for (const int largest : {32767, 65535, 1 << 20, 268435455, 2147483647}) {
    test.part("tags below " + std::to_string(largest), [&] { check_tags(test, largest); });
  }
  test.part("trees", [&] { check_trees(test); });
  for (const int num_fakes : {1, 2, 3}) {
    test.part("hosts, " + std::to_string(num_fakes), [&] { check_hosts(test, num_fakes); });
  }
  test.part("requests", [&] { check_requests(test); });
  test.part("errors", [&] { check_errors(test); });
  test.part("a forked child", [&] { check_fork(test); });
  test.part("full memory", [&] { check_full_memory(test); });
  return test.finish();
}
