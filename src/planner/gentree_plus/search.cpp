// GenTree+'s dynamic programming: which plans of a switch's children are put together, and which results are kept.
#include "planner/gentree_plus/search.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace gar::plus {

namespace {

constexpr std::size_t kMaxMoved = 2;      // above kMaxManySubsets, plans of the children for which any subset is tried
constexpr std::int64_t kManyChunks = 64;  // and the one number of chunks, next to 1, for which children are chosen

}  // namespace

std::int64_t most_chunks(const Topology& topology, double size_floats, const ModelOptions& options) {
  bool knows_messages = has_handling(options.kind);
  for (NodeId id = 0; id < topology.num_nodes() && knows_messages; ++id) {
    knows_messages = !topology.node(id).is_server() || topology.node(id).server.mu > 0;
  }
  const double most = std::min(size_floats / (knows_messages ? 1 : kLeastChunk), 1e15);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(most), 1, kMaxChunks);
}

Search::Search(const Topology& topology, double size_floats, const ModelOptions& options)
    : topology_(topology), names_(topology), size_(size_floats), options_(options), units_(units_for(topology)) {
  options_.overlap = true;
  is_exhaustive_ = topology.num_servers() <= kExhaustive;
  top_ = topology.root();
  while (topology.num_children(top_) == 1) top_ = topology.node(top_).children.front().node;
  const std::int64_t possible = most_chunks(topology, size_floats, options);
  const std::int64_t most = options.max_chunks > 0 ? std::min(options.max_chunks, possible) : possible;
  for (std::int64_t k = 1; k <= most; k *= 4) chunks_.push_back(k);
}

Beam::Beam(double size_floats, const std::vector<std::int64_t>& chunks)
    : size_(size_floats), chunks_(chunks), least_(chunks.size()) {}

void Beam::offer(const Footprint& footprint) {
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    std::vector<double>& least = least_[i];
    const double seconds = footprint.pipelined_seconds(size_, chunks_[i]);
    least.insert(std::upper_bound(least.begin(), least.end(), seconds), seconds);
    if (least.size() > kBeam) least.pop_back();
  }
}

bool Beam::excludes(const GroupsFloor& floor) const {
  constexpr double kRounding = 1e-9;  // shares are whole units
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    if (least_[i].size() < kBeam) return false;
    if ((1 - kRounding) * floor.seconds(size_, chunks_[i]) <= least_[i].back()) return false;
  }
  return true;
}

std::vector<Option> Search::run() {
  for (NodeId id = 0; id < topology_.num_nodes(); ++id) {
    const std::int32_t shape = topology_.shape(id);
    if (!options_of_.contains(shape)) options_of_[shape] = build(id);
  }
  return sorted(options_of_.at(topology_.shape(topology_.root())));
}

std::vector<Option> Search::sorted(std::vector<Option> options) const {
  std::stable_sort(options.begin(), options.end(),
                   [&](const Option& a, const Option& b) { return least(a) < least(b); });
  return options;
}

double Search::least(const Option& o) const {
  double best = std::numeric_limits<double>::infinity();
  for (const std::int64_t k : chunks_) best = std::min(best, o.footprint.pipelined_seconds(size_, k));
  return best;
}

std::vector<Option> Search::build(NodeId id) {
  const Node& node = topology_.node(id);
  if (node.is_server()) return {{nullptr, server_footprint(node), nullptr}};
  std::vector<Option> found;
  std::size_t nth = 0;
  for (const std::vector<Option>& children : combinations(node)) {
    // Moving the results of many servers is expensive to price: only for the most promising ones.
    combine(id, children, topology_.num_servers(id) <= kMaxManySubsets || nth < kMaxMoved, found);
    ++nth;
  }
  const bool has_levels = topology_.height(id) > 1;
  if (has_levels && topology_.num_servers(id) <= kMaxFlat) flat(id, found);
  return keep(std::move(found));
}

// One option per run of children; runs of the same shape have the same.
std::vector<std::vector<Option>> Search::combinations(const Node& node) {
  std::vector<std::int32_t> shapes;
  for (const ChildRun& run : node.children) {
    const std::int32_t s = topology_.shape(run.node);
    if (std::find(shapes.begin(), shapes.end(), s) == shapes.end()) shapes.push_back(s);
  }
  std::vector<std::vector<Option>> out;
  for (const auto& pick : shapes.size() == 1 || is_exhaustive_ ? all_picks(shapes) : best_picks(node, shapes)) {
    std::vector<Option> runs;
    for (const ChildRun& run : node.children) {
      const auto at = std::find(shapes.begin(), shapes.end(), topology_.shape(run.node));
      runs.push_back(*pick[static_cast<std::size_t>(at - shapes.begin())]);
    }
    out.push_back(std::move(runs));
  }
  return out;
}

// Every option of every shape with every one of the others; a pick has one per shape.
std::vector<std::vector<const Option*>> Search::all_picks(const std::vector<std::int32_t>& shapes) const {
  std::vector<std::vector<const Option*>> picks(1);
  for (const std::int32_t s : shapes) {
    std::vector<std::vector<const Option*>> next;
    for (const auto& pick : picks) {
      for (const Option& o : options_of_.at(s)) {
        next.push_back(pick);
        next.back().push_back(&o);
      }
    }
    picks = std::move(next);
  }
  return picks;
}

// For every number of chunks, what is best for each child.
std::vector<std::vector<const Option*>> Search::best_picks(const Node& node,
                                                           const std::vector<std::int32_t>& shapes) const {
  std::vector<std::vector<const Option*>> picks;
  std::set<std::vector<const Option*>> seen;
  std::int64_t below = 0;
  for (const ChildRun& run : node.children) below += run.count * topology_.num_servers(run.node);
  for (const std::int64_t k : chunks_) {
    if (below > kMaxManySubsets && k != 1 && k != kManyChunks) continue;  // each of them takes long to price
    std::vector<const Option*> pick;
    for (const std::int32_t s : shapes) {
      const std::vector<Option>& all = options_of_.at(s);
      pick.push_back(&*std::min_element(all.begin(), all.end(), [&](const Option& a, const Option& b) {
        return a.footprint.pipelined_seconds(size_, k) < b.footprint.pipelined_seconds(size_, k);
      }));
    }
    if (seen.insert(pick).second) picks.push_back(std::move(pick));
  }
  return picks;
}

// Options without a price of their own are many: those that an option at hand beats in every respect are skipped.
bool Search::is_worth_keeping(const Option& o, const std::vector<Option>& found) const {
  if (is_exhaustive_) return true;
  const Footprint& f = o.footprint;
  return std::none_of(found.begin(), found.end(), [&](const Option& other) {
    const Footprint& g = other.footprint;
    return g.active == f.active && g.fixed.total() <= f.fixed.total() && g.slope.total() <= f.slope.total() &&
           g.busiest() <= f.busiest() && g.busiest_handling() <= f.busiest_handling() &&
           g.links.size() <= f.links.size();
  });
}

std::vector<Option> Search::keep(std::vector<Option> found) const {
  if (is_exhaustive_) return found;
  std::set<std::size_t> kept;
  for (const std::int64_t k : chunks_) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < found.size(); ++i)
      order.emplace_back(found[i].footprint.pipelined_seconds(size_, k), i);
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < std::min(kBeam, order.size()); ++i) kept.insert(order[i].second);
  }
  std::vector<Option> out;
  for (const std::size_t i : kept) out.push_back(std::move(found[i]));
  return sorted(std::move(out));
}

}  // namespace gar::plus
