// Ranks on a network that is given: the part of it that a communicator sees, who is where, and who may send when.
#include "runtime/transports/mpi/placement.hpp"

#include <chrono>
#include <cstdlib>

#include "mpi/mpi_test.hpp"
#include "runtime/transports/mpi/admission.hpp"
#include "topology/hosts.hpp"

namespace {

using namespace gar;
using namespace gar::test;

/// The tree in words: (children) of a switch, r for a rank.
std::string shape(const Topology& topology, NodeId id) {
  const Node& node = topology.node(id);
  if (node.is_server()) return "r";
  std::string out;
  for (const ChildRun& run : node.children) {
    for (std::int64_t i = 0; i < run.count; ++i) out += shape(topology, run.node);
  }
  return "(" + out + ")";
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// Two racks of three servers:   (  (0 1 2)  (3 4 5)  )
void check_trees(MpiTest& test) {
  const Topology network = make_tree({2, 3});
  Node rank;
  rank.name = "rank";
  rank.alpha = 1e-6;
  rank.uplink.beta = 1e-10;
  const auto expect_shape = [&](const std::vector<std::int64_t>& servers, const std::string& expected) {
    const Topology placed = place_ranks(network, servers, rank);
    const std::string found = shape(placed, placed.root());
    test.expect(found == expected, "expected the tree " + expected + ", found " + found);
    test.expect(placed.num_servers() == static_cast<std::int64_t>(servers.size()), "a leaf for every rank");
  };
  expect_shape({0, 1, 2, 3, 4, 5}, "((rrr)(rrr))");
  expect_shape({0, 2, 5}, "((rr)(r))");
  expect_shape({3, 4}, "(rr)");  // the root says nothing about two servers of one rack
  expect_shape({4}, "r");
  expect_shape({0, 0, 1, 1}, "((rr)(rr))");
  expect_shape({0, 0, 5, 5, 5}, "(((rr))((rrr)))");

  const Topology hosts = place_ranks(network, {0, 0, 3, 3}, rank);
  test.expect(std::abs(hosts.path_latency(0, 1) - (2e-6 + network.node(0).alpha)) < 1e-12, "latency inside a host");
  test.expect(hosts.path_latency(0, 2) > network.path_latency(0, 3), "latency between hosts");
  const Topology same = place_ranks(network, {0, 1, 2, 3, 4, 5}, rank);
  test.expect(same.path_latency(0, 5) == network.path_latency(0, 5), "the whole network is as it was");
  test.expect(!error_of([&] { place_ranks(network, {1, 0}, rank); }).empty(), "ranks from right to left");
  test.expect(!error_of([&] { place_ranks(network, {6}, rank); }).empty(), "a server that is not there");
}

void check_servers(MpiTest& test) {
  const std::vector<int> hosts{0, 0, 1, 1, 2, 2};
  test.expect(servers_of_ranks(make_tree({6}), hosts) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5},
              "a server per rank");
  test.expect(servers_of_ranks(make_tree({3}), hosts) == std::vector<std::int64_t>{0, 0, 1, 1, 2, 2},
              "a server per host");
  const std::string text = error_of([&] { servers_of_ranks(make_tree({4}), hosts); });
  test.expect(text.find("4 servers") != std::string::npos && text.find("6 ranks on 3 hosts") != std::string::npos,
              "what does not fit: " + text);
}

/// w_t = 9 at a server; the uplink of a rack of 3 is shared by as many that admit.
void check_senders(MpiTest& test) {
  test.expect(admitted_senders(make_tree({6})) == 9, "as many as the port stands");
  test.expect(admitted_senders(make_tree({2, 3})) == 3, "fewer where a link is shared");
  test.expect(admitted_senders(make_tree({2, 60})) == 2, "two at least");
  PaperParams params;
  params.server_link.epsilon = 0;
  test.expect(admitted_senders(make_tree({6}, params)) == 0, "no limit without incast");
  setenv("GAR_MAX_SENDERS", "7", 1);
  test.expect(admitted_senders(make_tree({6})) == 7, "the environment wins");
  setenv("GAR_MAX_SENDERS", "many", 1);
  test.expect(error_of([] { admitted_senders(make_tree({6})); }).find("GAR_MAX_SENDERS") != std::string::npos,
              "what is no number");
  unsetenv("GAR_MAX_SENDERS");
}

/// Rank 0 expects all others in a first step and rank 1 again in a second; it admits two at a time. Each rank learns
/// after a while whether it has been admitted.
void check_admission(MpiTest& test) {
  constexpr int kTag = 4711;
  constexpr int kMaxSenders = 2;
  MpiAdmission admission(MPI_COMM_WORLD, test.rank(), test.size(), kMaxSenders);
  test.expect(admission.concerns(1 << 20) && !admission.concerns(8), "short messages need no admission");
  const int others = test.size() - 1;
  if (test.rank() == 0) {
    std::vector<MpiAdmission::Expected> first;
    for (int peer = 1; peer <= others; ++peer) first.push_back({peer, kTag});
    admission.expect(first);
    if (others > 0) admission.expect({{1, kTag}});
    admission.admit();
  } else {
    admission.await(0, kTag, 1);
    if (test.rank() == 1) admission.await(0, kTag, 2);
  }
  // Rank 1 is last of the first step, so its second message follows at once (it is sending then).
  int num_admitted = 0;
  // How many are admitted on all ranks, once these are as many as expected; a few more rounds would show too many.
  const auto settle = [&](int expected_sum) {
    constexpr int kMoreRounds = 20;
    const auto begin = Clock::now();
    int sum = 0;
    for (int more = 0; more < kMoreRounds;) {
      num_admitted += static_cast<int>(admission.admitted().size());
      MPI_Allreduce(&num_admitted, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      int is_late = seconds_since(begin) > kLongestWait ? 1 : 0;
      MPI_Allreduce(MPI_IN_PLACE, &is_late, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
      if (sum >= expected_sum || is_late != 0) ++more;
    }
    return sum;
  };
  const int all = others == 0 ? 0 : others + 1;
  int expected = others <= kMaxSenders ? all : kMaxSenders;
  test.expect(settle(expected) == expected, "two senders at first");
  // The nearest rank below comes first: size - 1, size - 2, ...
  for (int peer = others; peer > kMaxSenders; --peer) {
    if (test.rank() == 0) admission.arrived(peer);
    ++expected;
    if (peer - kMaxSenders == 1) ++expected;  // rank 1, and its second message with it
    test.expect(settle(expected) == expected, "one more when one has arrived");
  }
  test.expect(expected == all, "all ranks have been admitted");
  admission.cancel();
}

/// One server per host in the topology of the options, several ranks on each.
void check_communicator(MpiTest& test) {
  CommunicatorOptions options;
  options.topology = make_tree({2});
  if (test.size() < 4) return;
  Communicator communicator = mpi_communicator(MPI_COMM_WORLD, options);
  const Case c{Collective::kAllReduce, Form::kOutOfPlace, DataType::kFloat32, ReduceOp::kSum, 100'000, Call::kBlocking};
  CaseRun run(c, test.rank(), test.size(), 3);
  run.block(communicator);
  run.verify();
  test.compared();
  options.topology = make_tree({3});
  const std::string text = error_of([&] { mpi_communicator(MPI_COMM_WORLD, options); });
  test.expect(text.find("one server per rank, or one per host") != std::string::npos, "a wrong topology: " + text);
  // A part of the job knows its part of the network.
  const JobNetwork place{make_tree({2, test.size()}), test.rank() + (test.rank() % 2 == 0 ? 0 : test.size())};
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, test.rank() % 2, test.rank(), &half);
  {
    Communicator part = mpi_communicator(half, {}, MpiPath::kHierarchy, place);
    std::vector<float> values(1000, 1.0F);
    part.all_reduce(std::span(values));
    test.expect(values[999] == static_cast<float>(part.size()), "a sum of ones");
  }
  MPI_Comm_free(&half);
}

}  // namespace

int main(int argc, char** argv) {
  MpiTest test(argc, argv);
  test.part("trees", [&] { check_trees(test); });
  test.part("servers", [&] { check_servers(test); });
  test.part("senders", [&] { check_senders(test); });
  test.part("admission", [&] { check_admission(test); });
  if (test.size() >= 4) test.part("communicator", [&] { check_communicator(test); });
  return test.finish();
}
