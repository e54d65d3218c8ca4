// Figure `fig:hcps`: the initial and final placement of every switch in GenTree's basic plan, on two small trees.
//
// The figure's drawings are not in the paper's source. Its first tree is "3 x 2": two switches with three servers each,
// blocks A to F. The second has seven servers, and its drawing is 7/6 as wide as the first, so they stand side by side
// in one row: we take the first tree with one server more, two switches with 4 and 3 servers, blocks A to G.
//
// Beside Algorithm 1, which deals out whole blocks, stands what our GenTree leaves, which cuts intervals: where blocks
// do not divide evenly its servers hold parts of blocks.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "apps/gar/reproduce/reproduce.hpp"
#include "gar/basic_plan.hpp"
#include "gar/planner.hpp"
#include "gar/verify.hpp"

namespace gar::cli {
namespace {

constexpr double kSize = 1e7;  // for GenTree's choice; on these trees every switch takes CPS at every size of the paper

/// Units of each block that each server holds after a switch.
using Shares = std::vector<std::vector<std::int64_t>>;

struct SwitchPlacement {
  BasicSubPlan basic;
  Shares ours;
  std::int64_t block_units = 1;
  std::vector<std::string> problems;
};

Topology two_switches(const char* name, std::int64_t first, std::int64_t second) {
  const PaperParams p;
  std::vector<Node> nodes;
  nodes.push_back({"server", p.alpha, p.server_link, p.server, {}});
  nodes.push_back({"sw", p.alpha, p.inner_link, {}, {{0, first}}});
  nodes.push_back({"sw", p.alpha, p.inner_link, {}, {{0, second}}});
  nodes.push_back({"root", p.alpha, {}, {}, {{1, 1}, {2, 1}}});
  return Topology(name, nodes, 3);
}

Shares shares_of(const std::vector<Piece>& placement, std::size_t servers, std::int64_t blocks, std::int64_t units) {
  Shares shares(servers, std::vector<std::int64_t>(static_cast<std::size_t>(blocks), 0));
  const std::int64_t block_units = units / blocks;
  for (const Piece& piece : placement) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t begin = std::max(piece.begin, b * block_units);
      const std::int64_t end = std::min(piece.end, (b + 1) * block_units);
      if (begin < end) shares[static_cast<std::size_t>(piece.owner)][static_cast<std::size_t>(b)] += end - begin;
    }
  }
  return shares;
}

// The sub-plans of a plan, children before parents, as the switches of the tree are listed.
void sub_plans_in_order(const Plan& plan, SubPlanId id, std::vector<SubPlanId>& out) {
  if (id == kLeaf) return;
  for (const SubPlanRun& run : plan.subplans[static_cast<std::size_t>(id)].children) {
    for (std::int64_t i = 0; i < run.count; ++i) sub_plans_in_order(plan, run.subplan, out);
  }
  out.push_back(id);
}

// Every block with exactly one server, which held it before; shares that differ by one block at most.
void check(SwitchPlacement& s, std::int64_t num_blocks) {
  const auto blocks = static_cast<std::size_t>(num_blocks);
  std::vector<int> times(blocks, 0);
  std::size_t least = blocks;
  std::size_t most = 0;
  for (std::size_t server = 0; server < s.basic.final_place.size(); ++server) {
    const auto& before = s.basic.initial_place[server];
    const auto& after = s.basic.final_place[server];
    least = std::min(least, after.size());
    most = std::max(most, after.size());
    for (const std::int32_t b : after) {
      ++times[static_cast<std::size_t>(b)];
      if (std::find(before.begin(), before.end(), b) == before.end()) {
        s.problems.push_back(fmt::format("server {} ends with a block that it did not hold", server));
      }
    }
  }
  if (std::any_of(times.begin(), times.end(), [](int t) { return t != 1; })) {
    s.problems.emplace_back("a block is not reduced exactly once");
  }
  if (most - least > 1) s.problems.emplace_back("shares differ by more than one block");

  std::vector<std::int64_t> covered(blocks, 0);
  std::int64_t smallest = num_blocks * s.block_units;
  std::int64_t largest = 0;
  for (const auto& row : s.ours) {
    const std::int64_t share = std::accumulate(row.begin(), row.end(), std::int64_t{0});
    smallest = std::min(smallest, share);
    largest = std::max(largest, share);
    for (std::size_t b = 0; b < blocks; ++b) covered[b] += row[b];
  }
  if (std::any_of(covered.begin(), covered.end(), [&](std::int64_t c) { return c != s.block_units; })) {
    s.problems.emplace_back("our plan does not reduce every block exactly once");
  }
  if (largest - smallest > s.block_units) s.problems.emplace_back("our shares differ by more than one block");
}

struct TreePlacement {
  Topology topology;
  std::vector<SwitchPlacement> switches;
  bool is_verified = false;
};

TreePlacement place(Topology topology) {
  TreePlacement tree{std::move(topology), {}, false};
  const std::int64_t blocks = tree.topology.num_servers();
  const TreePlan planned = gentree(tree.topology, kSize);
  const PlanIndex index(planned.plan);
  std::vector<SubPlanId> ids;
  sub_plans_in_order(planned.plan, planned.plan.root, ids);
  std::vector<BasicSubPlan> basic = generate_basic_plan(tree.topology);
  for (std::size_t i = 0; i < basic.size(); ++i) {
    SwitchPlacement s;
    s.basic = std::move(basic[i]);
    s.block_units = planned.plan.num_units / blocks;
    if (i < ids.size()) {
      s.ours = shares_of(index.placement_after(ids[i]), s.basic.final_place.size(), blocks, planned.plan.num_units);
    }
    if (planned.plan.num_units % blocks != 0) s.problems.emplace_back("our units do not divide into blocks");
    check(s, blocks);
    tree.switches.push_back(std::move(s));
  }
  tree.is_verified = verify(planned.plan).ok;
  return tree;
}

char letter(std::int64_t block) { return static_cast<char>('A' + block); }

// "3/4", in lowest terms.
std::string ratio_text(std::int64_t numerator, std::int64_t denominator) {
  const std::int64_t divisor = std::gcd(numerator, denominator);
  if (denominator == divisor) return fmt::format("{}", numerator / divisor);
  return fmt::format("{}/{}", numerator / divisor, denominator / divisor);
}

std::string blocks_text(const std::vector<std::int32_t>& blocks, std::int64_t num_blocks) {
  std::string text;
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    const bool has = std::find(blocks.begin(), blocks.end(), b) != blocks.end();
    text += fmt::format("{}{}", b == 0 ? "" : " ", has ? letter(b) : '*');
  }
  return text;
}

std::string shares_text(const std::vector<std::int64_t>& row, std::int64_t block_units, std::size_t width) {
  std::string text;
  for (std::size_t b = 0; b < row.size(); ++b) {
    std::string cell = "*";
    if (row[b] == block_units) {
      cell = letter(static_cast<std::int64_t>(b));
    } else if (row[b] > 0) {
      cell = ratio_text(row[b], block_units) + letter(static_cast<std::int64_t>(b));
    }
    text += fmt::format("{}{:<{}}", b == 0 ? "" : " ", cell, b + 1 == row.size() ? 0 : width);
  }
  return text;
}

std::size_t share_width(const SwitchPlacement& s) {
  std::size_t width = 1;
  for (const auto& row : s.ours) {
    for (const std::int64_t units : row) {
      if (units > 0 && units != s.block_units) width = std::max(width, ratio_text(units, s.block_units).size() + 1);
    }
  }
  return width;
}

// "2 2 2 1".
std::string basic_sizes(const SwitchPlacement& s) {
  std::string text;
  for (const auto& blocks : s.basic.final_place) text += fmt::format("{}{}", text.empty() ? "" : " ", blocks.size());
  return text;
}

std::string our_sizes(const SwitchPlacement& s) {
  std::string text;
  for (const auto& row : s.ours) {
    const std::int64_t units = std::accumulate(row.begin(), row.end(), std::int64_t{0});
    text += fmt::format("{}{}", text.empty() ? "" : " ", ratio_text(units, s.block_units));
  }
  return text;
}

std::string statement(const SwitchPlacement& s) {
  const std::string theirs = basic_sizes(s);
  const std::string ours = our_sizes(s);
  if (theirs == ours) return fmt::format("shares in blocks: {}, the same in both", theirs);
  return fmt::format("shares in blocks: Algorithm 1 {}; ours {}, because intervals are cut within blocks", theirs,
                     ours);
}

Json tree_json(const TreePlacement& tree) {
  Json j;
  j["topology"] = tree.topology.name();
  j["num_ranks"] = tree.topology.num_servers();
  j["verified"] = tree.is_verified;
  j["switches"] = Json::array();
  for (const SwitchPlacement& s : tree.switches) {
    Json one;
    one["name"] = s.basic.name;
    one["first_rank"] = s.basic.first_rank;
    one["initial"] = s.basic.initial_place;
    one["final"] = s.basic.final_place;
    one["repaired_blocks"] = s.basic.num_repaired;
    one["units_per_block"] = s.block_units;
    one["ours_units"] = s.ours;
    one["same_shares"] = basic_sizes(s) == our_sizes(s);
    one["problems"] = s.problems;
    j["switches"].push_back(one);
  }
  return j;
}

void print_tree(const TreePlacement& tree, bool color) {
  const std::int64_t blocks = tree.topology.num_servers();
  say(fmt::format("\n{}, blocks A to {}\n", tree.topology.name(), letter(blocks - 1)));
  for (const SwitchPlacement& s : tree.switches) {
    Table table({{"server", true}, {"before"}, {"after, Algorithm 1"}, {"after, our gentree"}});
    const std::size_t width = share_width(s);
    for (std::size_t i = 0; i < s.basic.final_place.size(); ++i) {
      table.add_row({fmt::format("{}", s.basic.first_rank + static_cast<std::int64_t>(i)),
                     blocks_text(s.basic.initial_place[i], blocks), blocks_text(s.basic.final_place[i], blocks),
                     i < s.ours.size() ? shares_text(s.ours[i], s.block_units, width) : "-"});
    }
    say(fmt::format("\nplacement of {}\n{}{}\n", s.basic.name, table.folded(color), statement(s)));
    for (const std::string& problem : s.problems) say(paint("WRONG: " + problem, Paint::kRed, color) + "\n");
  }
}

}  // namespace

bool reproduce_hcps(const Context& context, Json& document) {
  std::vector<TreePlacement> trees;
  trees.push_back(place(two_switches("two switches with 3 and 3 servers", 3, 3)));
  trees.push_back(place(two_switches("two switches with 4 and 3 servers", 4, 3)));
  bool ok = true;
  document["trees"] = Json::array();
  for (const TreePlacement& tree : trees) {
    ok = ok && tree.is_verified;
    for (const SwitchPlacement& s : tree.switches) ok = ok && s.problems.empty();
    document["trees"].push_back(tree_json(tree));
  }
  if (context.json) return ok;
  const bool color = use_color(context.color, stdout);
  say("fig:hcps: the blocks that servers are responsible for before and after each switch (* for the others)\n");
  for (const TreePlacement& tree : trees) print_tree(tree, color);
  say(fmt::format("\nevery block is reduced exactly once at every switch, shares differ by one block at most: {}\n",
                  ok ? paint("yes", Paint::kGreen, color) : paint("NO", Paint::kRed, color)));
  return ok;
}

}  // namespace gar::cli
