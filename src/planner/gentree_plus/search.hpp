// GenTree+'s search: for every distinct subtree the plans that may be part of the best one. See gentree_plus.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "gar/planner.hpp"
#include "planner/footprint.hpp"
#include "planner/fragment.hpp"
#include "planner/groups_floor.hpp"
#include "planner/switch_names.hpp"

namespace gar::plus {

inline constexpr std::int64_t kExhaustive = 8;  ///< servers up to which nothing is pruned
inline constexpr std::int64_t kMaxFlat = 64;    ///< servers that are also combined as if they were on one switch
inline constexpr std::int64_t kMaxChunks = 1 << 14;
inline constexpr std::size_t kBeam = 2;  ///< plans that are kept per number of chunks
/// Floats of a chunk at least, where the model does not know what handling a message costs: 4 KiB.
inline constexpr double kLeastChunk = 1024;
inline constexpr std::int64_t kMaxManySubsets = 2048;  ///< servers of a child for which all subset sizes are tried

/// Into how many chunks a vector may be cut. Where every server has a price for handling messages, short chunks price
/// themselves; elsewhere the model finds them cheaper than they are.
std::int64_t most_chunks(const Topology& topology, double size_floats, const ModelOptions& options);

/// What was decided at a switch, with what was decided below it.
struct Decision {
  NodeId node = 0;
  std::string algorithm;
  std::vector<std::int64_t> factors;
  std::int64_t subset = 0;  ///< of the children; 0: not rearranged
  Terms terms;
  std::string note;  ///< on the children's results
  std::shared_ptr<std::vector<SwitchCandidate>> candidates;
  std::vector<std::shared_ptr<const Decision>> below;
};
using DecisionPtr = std::shared_ptr<const Decision>;

/// One way to plan a subtree.
struct Option {
  FragmentPtr fragment;
  Footprint footprint;
  DecisionPtr decision;
};

/// For every number of chunks of a search the least times that are known: who does not beat them is not kept.
class Beam {
 public:
  Beam(double size_floats, const std::vector<std::int64_t>& chunks);
  void offer(const Footprint& footprint);
  [[nodiscard]] bool excludes(const GroupsFloor& floor) const;

 private:
  double size_;
  const std::vector<std::int64_t>& chunks_;
  std::vector<std::vector<double>> least_;  // per number of chunks, ascending
};

class Search {
 public:
  Search(const Topology& topology, double size_floats, const ModelOptions& options);

  /// Plans for the whole tree, the most promising first.
  std::vector<Option> run();
  /// After run(): plans for the whole tree that end in exchanges, the most promising first.
  [[nodiscard]] std::vector<Option> ending_in_exchanges() const { return sorted(exchanged_); }
  [[nodiscard]] std::int64_t units() const { return units_; }

 private:
  /// The children of a switch, about to be combined.
  struct Joint {
    NodeId id = 0;
    FragmentRuns runs;
    Footprint below;          ///< of all children side by side
    double pair_latency = 0;  ///< of the longest path between two children
    std::string label;
    Decision decision;  ///< all but the algorithm
    [[nodiscard]] DecisionPtr decide(const char* algorithm, std::vector<std::int64_t> factors,
                                     const Terms& terms) const;
  };

  // search.cpp: which plans of the children are put together, and which results are kept.
  double least(const Option& o) const;
  [[nodiscard]] std::vector<Option> sorted(std::vector<Option> options) const;
  std::vector<Option> build(NodeId id);
  std::vector<std::vector<Option>> combinations(const Node& node);
  std::vector<std::vector<const Option*>> all_picks(const std::vector<std::int32_t>& shapes) const;
  std::vector<std::vector<const Option*>> best_picks(const Node& node, const std::vector<std::int32_t>& shapes) const;
  bool is_worth_keeping(const Option& o, const std::vector<Option>& found) const;
  std::vector<Option> keep(std::vector<Option> found) const;

  // combine.cpp: the ways to combine the children of a switch.
  void combine(NodeId id, const std::vector<Option>& children, bool with_subsets, std::vector<Option>& found);
  void combine_as_they_are(NodeId id, const std::vector<Option>& children, std::int64_t subset,
                           std::vector<Option>& found);
  Joint join(NodeId id, const std::vector<Option>& children, std::int64_t subset);
  void add_digits_option(const Joint& joint, const char* algorithm, const Digits& digits, std::vector<Option>& found);
  void exchanges(const Joint& joint, bool one_kind);
  void groups(const Joint& joint, std::vector<Option>& found);
  void add_groups(const Joint& joint, std::int64_t groups, std::int64_t large, std::vector<Option>& found);
  std::optional<GroupsFloor> groups_floor_of(const Joint& joint, std::int64_t groups, std::int64_t large);
  const Footprint& priced_child(NodeId child, const FragmentPtr& fragment);
  void flat(NodeId id, std::vector<Option>& found);
  void add_priced(NodeId id, const FragmentPtr& fragment, const DecisionPtr& decision, std::vector<Option>& found);
  Footprint priced_footprint(NodeId id, const FragmentPtr& fragment, bool with_top, Terms& own);
  const Topology& subtree_of(NodeId id);
  std::string note_on(NodeId id, const std::vector<Option>& children, std::int64_t subset) const;
  std::vector<std::int64_t> subsets(NodeId id, const std::vector<Option>& children) const;
  std::vector<Option> rearranged(NodeId id, const std::vector<Option>& children, std::int64_t subset);

  const Topology& topology_;
  SwitchNames names_;
  double size_;
  ModelOptions options_;
  std::int64_t units_;
  bool is_exhaustive_ = false;
  NodeId top_ = 0;                 // the highest switch with several children, which may end in exchanges
  std::vector<Option> exchanged_;  // of that switch
  std::vector<std::int64_t> chunks_;
  std::map<std::int32_t, std::vector<Option>> options_of_;  // by shape
  std::map<NodeId, Topology> subtrees_;
  std::map<std::tuple<const Fragment*, std::int32_t, std::int64_t>, Option> moved_;
  std::map<std::pair<const Fragment*, std::int32_t>, Footprint> priced_children_;
  std::vector<FragmentPtr> kept_alive_;  // keys of these
};

}  // namespace gar::plus
