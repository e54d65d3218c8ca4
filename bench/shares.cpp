// What shares that fit gain: gentree+ on 500 random trees whose servers, links and speeds differ by up to 10 times,
// with equal shares and with shares of any size, as multiples of the lower bound.
//
// Both columns are prices; bench_chunks says how far the simulator agrees. Nothing here depends on how busy the machine
// is but the last column, the time that planning takes.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gar/model.hpp"
#include "gar/planner.hpp"
#include "gar/topology.hpp"

namespace {

constexpr int kNumTrees = 500;

double spread(std::mt19937_64& random, double value) {
  return value * std::pow(10.0, static_cast<double>(random() >> 11) * 0x1.0p-53);
}

/// 2 to 40 servers below up to 8 racks, all of them with parameters of their own: from a tenth of the paper's up to
/// them.
gar::Topology draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const gar::PaperParams paper;
  const auto n = static_cast<std::int64_t>(2 + random() % 39);
  const auto num_racks = std::min<std::int64_t>(n / 2, static_cast<std::int64_t>(1 + random() % 8));
  std::vector<gar::Node> nodes;
  const auto make = [&](const char* name, const gar::LinkParams& link) {
    gar::Node node;
    node.name = fmt::format("{}{}", name, nodes.size());
    node.alpha = paper.alpha / 100;
    node.uplink = link;
    node.uplink.beta = spread(random, link.beta / 10);
    node.uplink.epsilon = spread(random, link.epsilon / 10);
    node.server = {spread(random, paper.server.gamma / 10), spread(random, paper.server.delta / 10), paper.alpha / 1e4};
    return node;
  };
  gar::Node root;
  root.name = "root";
  root.alpha = paper.alpha / 100;
  for (std::int64_t r = 0; r < std::max<std::int64_t>(num_racks, 1); ++r) {
    gar::Node rack = make("rack", paper.inner_link);
    const std::int64_t begin = n * r / std::max<std::int64_t>(num_racks, 1);
    const std::int64_t end = n * (r + 1) / std::max<std::int64_t>(num_racks, 1);
    for (std::int64_t s = begin; s < end; ++s) {
      nodes.push_back(make("server", paper.server_link));
      rack.children.push_back({static_cast<gar::NodeId>(nodes.size()) - 1, 1});
    }
    if (num_racks <= 1) {
      root.children = rack.children;
      break;
    }
    nodes.push_back(std::move(rack));
    root.children.push_back({static_cast<gar::NodeId>(nodes.size()) - 1, 1});
  }
  nodes.push_back(std::move(root));
  const auto top = static_cast<gar::NodeId>(nodes.size()) - 1;
  return {fmt::format("random{}", seed), std::move(nodes), top};
}

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double quantile_of(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  const int num_trees = argc > 1 ? std::atoi(argv[1]) : kNumTrees;
  fmt::print("gentree+ on {} random trees, time over the lower bound: median / 95th percentile\n", num_trees);
  fmt::print("{:>7}{:>20}{:>20}{:>12}{:>8}{:>8}{:>22}\n", "floats", "equal shares", "shares that fit", "best gain",
             "better", "slower", "planning, median ms");
  for (const double size : {1e6, 1e7, 1e8, 1e9}) {
    std::vector<double> before;
    std::vector<double> after;
    std::vector<double> equal_ms;
    std::vector<double> shares_ms;
    double gain = 1;
    int num_better = 0;
    int num_slower = 0;
    for (int i = 0; i < num_trees; ++i) {
      const gar::Topology topology = draw(static_cast<std::uint64_t>(i) + 1);
      const double bound = gar::lower_bound(topology, size).seconds();
      gar::PlanRequest request{.topology = topology, .size_floats = size};
      request.model.simulates = false;
      request.model.shares = false;
      auto begin = std::chrono::steady_clock::now();
      const double equal = gar::plan(request).seconds();
      equal_ms.push_back(milliseconds_since(begin));
      request.model.shares = true;
      begin = std::chrono::steady_clock::now();
      const double shared = gar::plan(request).seconds();
      shares_ms.push_back(milliseconds_since(begin));
      before.push_back(equal / bound);
      after.push_back(shared / bound);
      gain = std::max(gain, equal / shared);
      num_better += shared < equal * (1 - 1e-9) ? 1 : 0;
      num_slower += shared > equal ? 1 : 0;
    }
    fmt::print("{:>7.0e}{:>20}{:>20}{:>11.2f}x{:>8}{:>8}{:>22}\n", size,
               fmt::format("{:.3f} / {:.3f}", quantile_of(before, 0.5), quantile_of(before, 0.95)),
               fmt::format("{:.3f} / {:.3f}", quantile_of(after, 0.5), quantile_of(after, 0.95)), gain, num_better,
               num_slower, fmt::format("{:.1f} -> {:.1f}", quantile_of(equal_ms, 0.5), quantile_of(shares_ms, 0.5)));
  }
}
