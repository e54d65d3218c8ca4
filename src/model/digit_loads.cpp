// Border counts of digit stages; see pricer.cpp for the idea.
#include "model/digit_loads.hpp"

namespace gar {

// What leaves and enters the active indices [a, b) in one step of a digit stage.
Crossing crossing(const Stage& st, std::int64_t a, std::int64_t b) {
  Crossing out;
  if (a >= b) return out;
  const std::int64_t block = st.stride * st.radix;
  const auto run = [&](std::int64_t groups, std::int64_t inside) {
    if (groups <= 0 || inside <= 0 || inside >= st.radix) return;
    if (st.kind == StageKind::kRing) {
      out.pieces += groups;
      out.senders_out += groups;
      out.senders_in += groups;
    } else {
      out.pieces += groups * inside * (st.radix - inside);
      out.senders_out += groups * inside;
      out.senders_in += groups * (st.radix - inside);
    }
  };
  const auto partial = [&](std::int64_t x, std::int64_t y) {  // [x, y) inside one block
    const std::int64_t whole = y / st.stride - x / st.stride;
    const std::int64_t rx = x % st.stride;
    const std::int64_t ry = y % st.stride;
    run(std::min(rx, ry), whole);
    run(std::max(rx, ry) - std::min(rx, ry), rx < ry ? whole + 1 : whole - 1);
    run(st.stride - std::max(rx, ry), whole);
  };
  const std::int64_t first_block = a / block;
  const std::int64_t last_block = (b - 1) / block;
  if (first_block == last_block) {
    partial(a - first_block * block, b - first_block * block);
  } else {
    partial(a - first_block * block, block);
    partial(0, b - last_block * block);
  }
  return out;
}

void GroupPaths::TwoBest::offer(std::int32_t c, double l) {
  const int slot = child[0] == c || child[0] < 0 ? 0 : child[1] == c || child[1] < 0 || latency[1] < l ? 1 : -1;
  if (slot < 0) return;
  if (child[slot] != c || latency[slot] < l) {
    child[slot] = c;
    latency[slot] = l;
  }
  if (child[1] >= 0 && latency[1] > latency[0]) {
    std::swap(child[0], child[1]);
    std::swap(latency[0], latency[1]);
  }
}

double GroupPaths::meet(const PricingTree& pt, const Topology& topology, std::int32_t rank) {
  const ExpandedTree& t = pt.tree;
  double longest = 0;
  std::int32_t child = t.leaf[static_cast<std::size_t>(rank)];
  const double mine = pt.latency[static_cast<std::size_t>(child)];
  for (std::int32_t i = t.parent[static_cast<std::size_t>(child)]; i >= 0; i = t.parent[static_cast<std::size_t>(i)]) {
    TwoBest& b = best_[static_cast<std::size_t>(i)];
    if (b.child[0] < 0) touched_.push_back(i);
    const double own = topology.node(t.node[static_cast<std::size_t>(i)]).alpha;
    for (int k = 0; k < 2; ++k) {
      if (b.child[k] >= 0 && b.child[k] != child) {
        longest = std::max(longest, b.latency[k] + mine - 2 * pt.latency[static_cast<std::size_t>(i)] + own);
      }
    }
    b.offer(child, mine);
    child = i;
  }
  return longest;
}

}  // namespace gar
