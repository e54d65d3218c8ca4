#include "runtime/caches.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/stats.hpp"
#include "runtime/transports/shared/exchange_once.hpp"

namespace gar {

namespace {

constexpr std::uint64_t kFirst = 50;  // of the numbers of operations; below those of other set-up (communicator.cpp)
constexpr std::uint64_t kGathers = 12;
constexpr std::int64_t kFloats = 2048;
constexpr double kLeast = 0.1;

/// Gathers a vector of every rank and adds them up, as a communicator does it with short ones. Seconds.
double time_gather(Transport& transport, std::uint64_t sequence, const std::vector<float>& in, std::vector<float>& out,
                   std::int64_t count) {
  Signature signature;
  signature.sequence = sequence;
  signature.count = count;
  const auto begin = std::chrono::steady_clock::now();
  transport.begin(signature, {});
  std::vector<const std::byte*> operands(static_cast<std::size_t>(transport.size()));
  while (!transport.try_exchange(in.data(), 4 * count, operands)) transport.wait();
  transport.progressed();
  const std::vector<const void*> inputs(operands.begin(), operands.end());
  reduce(DataType::kFloat32, ReduceOp::kSum, out.data(), inputs, count);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The network with this share of what transfers and reductions cost.
Topology in_caches(const Topology& topology, double share) {
  std::vector<Node> nodes;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    Node node = topology.node(id);
    node.uplink.beta *= share;
    node.server.gamma *= share;
    node.server.delta *= share;
    nodes.push_back(std::move(node));
  }
  return {topology.name(), std::move(nodes), topology.root()};
}

}  // namespace

std::optional<Topology> measure_caches(Transport& transport, const Topology& topology) {
  const QuickGather quick = transport.quick_gather();
  const int n = transport.size();
  if (n < 2 || !quick.is_read_in_place || quick.max_bytes < 4.0 * kFloats) return std::nullopt;
  const std::vector<float> in(static_cast<std::size_t>(kFloats), 1.0F);
  std::vector<float> out(in.size());
  std::vector<double> short_times;
  std::vector<double> long_times;
  for (std::uint64_t i = 0; i < 2 * kGathers; i += 2) {
    short_times.push_back(time_gather(transport, kFirst + i, in, out, 1));
    long_times.push_back(time_gather(transport, kFirst + i + 1, in, out, kFloats));
  }
  const PricedPlan plan(gather(n), topology);
  const auto priced = [&](double floats) { return cost_of(quick, plan, n, Collective::kAllReduce, floats).total(); };
  const double expected = priced(kFloats) - priced(1);
  const double measured = median(std::move(long_times)) - median(std::move(short_times));
  const double own = expected > 0 ? std::clamp(measured / expected, kLeast, 1.0) : 1;
  return in_caches(topology, exchange_once(transport, kFirst + 2 * kGathers, own).front());
}

}  // namespace gar
