// Basic sub-plans: the paper's Algorithm 1 (`generate_basic_plan`, Section 4.2), block by block.
//
// Problem: a tree of N servers, the vector in N blocks. Before a switch's own ReduceScatter each of its children has
// left every block with one of the child's servers; afterwards every block is with one server below the switch, and the
// shares are as equal as whole blocks allow. In between every block goes straight to its new server.
//
// Idea: bottom up; a switch goes through its servers in order, and each takes its share, floor(N / n) blocks (the first
// N mod n servers one more), from the blocks that it holds and that are not taken yet, so that what it keeps need not
// move.
//
// GenTree itself cuts intervals instead of dealing out blocks (see gentree.cpp); this is the text to compare it with.
//
// Deviation: the recursive calls lack the number of servers and `num_total_blocks` is undefined; both are N.
//
// Deviation: the text gives each server ceil(N / n) blocks, the algorithm floor and a remainder; only the latter adds
// up.
//
// Deviation: the greedy dealing can leave blocks over, because their holders have taken a share already while others
// find nothing that is free. Two servers and a rack of two below a root are enough: the rack leaves AB and CD, the
// servers take A and B, the rack's first server finds neither free, its second takes C, and D is left without a server.
// The paper's code would drop D. We let a holder take such a block and pass another on to one of that block's holders,
// along a shortest chain that ends at a server with room (augmenting paths of bipartite matching). Where whole blocks
// cannot be shared equally, because of how the children were dealt theirs, shares grow by one.
//
// Complexity: O(N * children) per switch without repairs, O(N * children) more for each repaired block.
#include "gar/basic_plan.hpp"

#include <fmt/format.h>

#include "gar/errors.hpp"

namespace gar {

namespace {

class Dealer {
 public:
  Dealer(const BlockPlacement& initial, std::int32_t num_blocks)
      : initial_(initial), owner_(static_cast<std::size_t>(num_blocks), kNone), final_(initial.size()) {
    const auto n = static_cast<std::int32_t>(initial.size());
    holders_.resize(owner_.size());
    for (std::int32_t server = 0; server < n; ++server) {
      for (const std::int32_t block : initial[at(server)]) holders_[at(block)].push_back(server);
      room_.push_back(num_blocks / n + (server < num_blocks % n ? 1 : 0));
    }
  }

  // As in the paper.
  void deal() {
    for (std::size_t server = 0; server < initial_.size(); ++server) {
      for (const std::int32_t block : initial_[server]) {
        if (room_[server] == 0) break;
        if (owner_[at(block)] == kNone) take(static_cast<std::int32_t>(server), block);
      }
    }
  }

  // Finds a server for every block that is left over; says how many these were.
  std::int64_t repair() {
    std::int64_t repaired = 0;
    for (std::int32_t block = 0; at(block) < owner_.size(); ++block) {
      if (owner_[at(block)] != kNone) continue;
      ++repaired;
      while (!place(block)) {
        for (std::int32_t& room : room_) ++room;
      }
    }
    return repaired;
  }

  BlockPlacement take_result() {
    for (std::int32_t block = 0; at(block) < owner_.size(); ++block) final_[at(owner_[at(block)])].push_back(block);
    return std::move(final_);
  }

 private:
  static constexpr std::int32_t kNone = -1;
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  void take(std::int32_t server, std::int32_t block) {
    owner_[at(block)] = server;
    --room_[at(server)];
  }

  // Breadth first over servers: a holder of `block`, a holder of a block that this server has, and so on until one has
  // room; then every block on the chain moves on by one server.
  bool place(std::int32_t block) {
    std::vector<std::int32_t> reached_by(initial_.size(), kNone);  // the block that would come to the server
    std::vector<std::int32_t> queue;
    const auto reach = [&](std::int32_t b) {
      for (const std::int32_t server : holders_[at(b)]) {
        if (reached_by[at(server)] != kNone) continue;
        reached_by[at(server)] = b;
        queue.push_back(server);
      }
    };
    reach(block);
    std::size_t next = 0;
    while (next < queue.size()) {  // which grows meanwhile
      const std::int32_t server = queue[next++];
      if (room_[at(server)] > 0) {
        --room_[at(server)];
        for (std::int32_t to = server; to != kNone;) {
          const std::int32_t moved = reached_by[at(to)];
          const std::int32_t from = owner_[at(moved)];
          owner_[at(moved)] = to;
          to = from;
        }
        return true;
      }
      for (const std::int32_t b : initial_[at(server)]) {
        if (owner_[at(b)] == server) reach(b);
      }
    }
    return false;
  }

  const BlockPlacement& initial_;
  std::vector<std::int32_t> owner_;  // by block
  BlockPlacement holders_;           // by block
  std::vector<std::int32_t> room_;   // by server
  BlockPlacement final_;
};

class BasicPlan {
 public:
  explicit BasicPlan(const Topology& topology)
      : topology_(topology), num_blocks_(static_cast<std::int32_t>(topology.num_servers())) {}

  // Returns what the servers below hold when the node is done.
  BlockPlacement generate(NodeId id, std::int64_t first_rank, int depth) {
    const Node& node = topology_.node(id);
    if (node.is_server()) {
      std::vector<std::int32_t> all;
      for (std::int32_t b = 0; b < num_blocks_; ++b) all.push_back(b);
      return {all};
    }
    BasicSubPlan plan;
    plan.name = topology_.instance_name(first_rank, depth);
    plan.first_rank = first_rank;
    std::int64_t rank = first_rank;
    for (const ChildRun& run : node.children) {
      for (std::int64_t i = 0; i < run.count; ++i) {
        for (auto& blocks : generate(run.node, rank, depth + 1)) plan.initial_place.push_back(std::move(blocks));
        rank += topology_.num_servers(run.node);
      }
    }
    Dealer dealer(plan.initial_place, num_blocks_);
    dealer.deal();
    plan.num_repaired = dealer.repair();
    plan.final_place = dealer.take_result();
    plans_.push_back(plan);
    return plan.final_place;
  }

  std::vector<BasicSubPlan> take() { return std::move(plans_); }

 private:
  const Topology& topology_;
  std::int32_t num_blocks_;
  std::vector<BasicSubPlan> plans_;
};

}  // namespace

std::vector<BasicSubPlan> generate_basic_plan(const Topology& topology) {
  if (topology.num_servers() > kMaxBasicServers) {
    throw InvalidArgument(fmt::format("blocks can be dealt out to {} servers at most; the tree has {}",
                                      kMaxBasicServers, topology.num_servers()));
  }
  BasicPlan plan(topology);
  plan.generate(topology.root(), 0, 0);
  return plan.take();
}

}  // namespace gar
