// Plans for networks. plan() is the door: it takes algorithms by name, a network and a size, and answers with the best
// plan, what it costs, what was decided at each switch and what it was compared with. Behind it are the classic
// algorithms, GenTree (the paper's Section 4) and GenTree+, which searches beyond it. See docs/planner.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/plan.hpp"
#include "gar/topology.hpp"

namespace gar {

/// One way to combine a switch's children, and what its own stages cost (both halves).
struct SwitchCandidate {
  /// cps hcps ring rhd acps shares; at the root also recursive-doubling recursive-multiplying gather, and hcps+exchange
  /// ring+exchange, whose last factor is an exchange
  std::string algorithm;
  std::vector<std::int64_t> factors;  ///< fan-ins, first stage first
  Terms terms;                        ///< cost of its stages, both halves
  bool is_uneven = false;             ///< groups differ by one member: "~8x3" of 23 children
};

/// What a child of a switch owns of the part of the vector that all of them own together.
struct ChildShare {
  std::string name;  ///< below the switch: "rack3"
  double share = 0;  ///< 0 to 1
};

/// What was decided about the results of a switch's children before they leave.
struct Rearrangement {
  bool is_applied = false;     ///< the results are moved to the subset
  std::int64_t subset = 0;     ///< servers that would hold the results
  double seconds_without = 0;  ///< transfer out of the child as it is
  double seconds_with = 0;     ///< moving to the subset, then the transfer out
  std::string reason;          ///< in words
};

/// What was decided at a switch; identical switches are listed once.
struct SwitchChoice {
  NodeId node = 0;                            ///< the switch, or one of several that are the same
  std::string name;                           ///< its name, for people
  std::int64_t count = 1;                     ///< instances of it in the network
  std::string algorithm;                      ///< the candidate that was taken
  std::vector<std::int64_t> factors;          ///< its fan-ins, first stage first
  bool is_uneven = false;                     ///< groups differ by one member, at most: "~8x3" of 23 children
  bool is_rearranged = false;                 ///< some child's results were moved to a subset first
  std::vector<ChildShare> shares;             ///< where these are unequal: of every child, or of every server below
  Terms terms;                                ///< its own stages, both halves
  std::vector<SwitchCandidate> candidates;    ///< best first
  std::vector<Rearrangement> rearrangements;  ///< one per distinct child that is a switch
  /// Cost of its own stages.
  [[nodiscard]] double seconds() const { return terms.total(); }
};

/// A whole plan that was considered.
struct PlanCandidate {
  std::string algorithm;                                          ///< with factors: "hcps:8x3"
  std::int64_t num_chunks = 1;                                    ///< parts of the vector that follow each other
  Terms terms;                                                    ///< predicted cost
  [[nodiscard]] double seconds() const { return terms.total(); }  ///< predicted time
};

/// A planned tree.
struct TreePlan {
  Plan plan;                                 ///< an AllReduce; from gentree+ the collective that was asked for
  std::vector<PlanCandidate> considered;     ///< gentree+: the whole plans that it was compared with, best first
  std::vector<SwitchChoice> switches;        ///< lowest first; the root is last
  std::shared_ptr<const PricedPlan> priced;  ///< gentree+: the plan as it was priced; gentree prices switches only
};

/// How `gentree` works.
struct GenTreeOptions {
  bool rearrange = true;  ///< false: the paper's GenTree*
  ModelOptions model;     ///< the model that it minimises
};

/// Plans a tree by the paper's Algorithms 1 and 2, for a vector of `size_floats` floats of 4 bytes. The plan is chosen
/// as an AllReduce whatever the collective of the model's options is.
TreePlan gentree(const Topology& topology, double size_floats, const GenTreeOptions& options = {});

/// Searches beyond GenTree, for the least cost of `options.collective` under the model: never worse than any of the
/// classic algorithms, gentree and gentree-norearrange on the same input. The plan is one for that collective. See
/// docs/planner.md for the plans that it searches.
TreePlan gentree_plus(const Topology& topology, double size_floats, const ModelOptions& options = {});

/// What decides between plans that are predicted to take nearly the same time.
enum class Policy {
  kModel,  ///< the least predicted time, always
  /// what a Communicator does: the least predicted time of gentree+'s plan without exchanges, of the gather of
  /// PlanRequest::quick_gather and, where that goes by messages, of Recursive Doubling; and a ring where
  /// PlanRequest::overlap says that this is less
  kRuntime,
};

/// How a transport gathers the vectors of all ranks by itself: the plan `gather`, run in a way that is faster for short
/// vectors than sending its messages one by one.
struct QuickGather {
  double max_bytes = 0;           ///< of a vector; 0: the transport has no such way
  int num_rounds = 0;             ///< in which ranks pass on what they have; 1: every rank's vector reaches all others
  double header_bytes = 0;        ///< that travel with each vector, beyond what a message has anyway
  bool is_read_in_place = false;  ///< a rank copies its vector once, and all others read it there
  double plan_seconds = 0;        ///< that a plan on this transport takes beyond its stages, and a gather does not
  bool operator==(const QuickGather&) const = default;
};
/// That over messages, as communicators over MPI have it: log2 N rounds.
QuickGather message_gather(std::int64_t num_ranks);
/// What it costs, for vectors of `size_floats` (of all blocks together, for ReduceScatter and AllGather). `gather` is
/// the plan of that name for `num_ranks` ranks on the network.
Terms cost_of(const QuickGather& quick, const PricedPlan& gather, std::int64_t num_ranks, Collective collective,
              double size_floats);

/// What to plan. Only the topology has to be given.
struct PlanRequest {
  Topology topology;                        ///< the network; one rank per server
  double size_floats = 0;                   ///< the vector, in floats of 4 bytes
  std::vector<AlgorithmSpec> algorithms{};  ///< the best of these; empty: gentree+. hcps and hring find their factors
  ModelOptions model{};                     ///< how plans are priced
  Collective collective = Collective::kAllReduce;  ///< what the plan computes
  Policy policy = Policy::kModel;                  ///< what decides between nearly equal plans
  /// Policy::kRuntime, AllReduce: what the transport can do besides plans. As it is, no gather is considered.
  QuickGather quick_gather{};
  /// Policy::kRuntime: plans in which ranks hear from others in one stage than in the next take this many times as long
  /// as the model says, compared with rings (Profile::overlap); 1: nothing is known of it.
  double overlap = 1;
  bool with_optimality = false;  ///< also judge an AllReduce's optimality, which looks at every message of every rank
};

/// The plan that Policy::kRuntime did not take, although it is predicted to be faster.
struct PassedOver {
  std::string algorithm;  ///< "hcps:8x3"
  double excess = 0;      ///< of the chosen plan's predicted time over its own: 0.03 is 3% longer
  double overlap = 1;     ///< PlanRequest::overlap, which decided
};

/// A plan and everything that the planner knows about it.
struct PlanAnswer {
  AlgorithmSpec spec;                        ///< the algorithm that was taken, with its factors
  Plan plan;                                 ///< of the collective that was asked for
  std::shared_ptr<const PricedPlan> priced;  ///< `plan` on the network; busiest() is known if gentree+ made it
  Terms terms;                               ///< priced->cost(size_floats)
  std::vector<SwitchChoice> switches;        ///< lowest first; a flat algorithm has one, a single server none
  std::vector<PlanCandidate> asked;          ///< what each algorithm of the request comes to, in order
  std::vector<PlanCandidate> considered;     ///< by gentree+: the whole plans that it compared, best first
  std::int64_t num_considered = 1;           ///< factorisations and groupings that a flat algorithm was chosen from
  LowerBound bound;                          ///< for this collective on this network
  std::optional<Optimality> optimality;      ///< when it was asked for
  std::optional<PassedOver> passed_over;     ///< when the policy did not take the least predicted time
  bool is_quick = false;                     ///< the plan is `gather`, run and priced as PlanRequest::quick_gather says
  [[nodiscard]] double seconds() const { return terms.total(); }  ///< predicted time
};

/// Plans with each of the algorithms and takes the best one; the earlier one of two that cost the same. Throws
/// InvalidArgument when factors do not fit the number of servers, or the size is negative or not finite.
PlanAnswer plan(const PlanRequest& request);

/// Throws InvalidArgument where plan() would because of the algorithm. Nothing is searched or priced.
void check_algorithm(const AlgorithmSpec& spec, std::int64_t num_ranks);

/// The fan-ins of a choice, "8x3"; "~8x3" where groups are uneven.
std::string fan_in_words(const SwitchChoice& choice);
/// Who owns how much, where shares are unequal: "rack0 to rack3 25.0% each; rack4 to rack6 and slow nothing". Empty
/// where they are equal.
std::string share_words(const SwitchChoice& choice);
/// What was decided, in a few words: "rack hcps 8x3; root cps 16".
std::string plan_words(const std::vector<SwitchChoice>& switches);
/// The same for people who do not know the algorithms' names: "rack: groups of 8, then of 3 (hcps 8x3); root: all 16
/// at once (cps 16)".
std::string plan_sentence(const std::vector<SwitchChoice>& switches);
/// What an exchange at a switch means, in a sentence; empty where there is none.
std::string exchange_words(const SwitchChoice& choice);
/// What the plan is on the command line, if it has a name there: a gentree+ plan may be "cps" or "hcps:8x3".
std::string plan_name(const PlanAnswer& answer);
/// Why this plan: "least predicted time on 'ss24'; next is hcps:8x3, 2.1% longer", or why a policy took another one.
std::string choice_words(const PlanAnswer& answer, const Topology& topology);

/// A decision table: which plan is best for which number of elements.
struct DecisionTableRequest {
  PlanRequest plan;                ///< what to plan; its size is replaced by those of the table
  std::int64_t from = 1;           ///< elements, at least 1
  std::int64_t to = 2;             ///< more than `from`
  std::int64_t element_bytes = 4;  ///< size of an element
  /// Rows become one where a plan of theirs is predicted to take at most this share longer than the best one at both
  /// ends of each: 0.01 is 1%. 0: rows are exact.
  double merge = 0;
  std::function<void(std::int64_t num_planned, std::int64_t count)> progress{};  ///< called after every size
};

/// What is best for one number of elements.
struct DecisionPoint {
  std::int64_t count = 0;              ///< number of elements
  AlgorithmSpec spec;                  ///< the algorithm, with its factors
  std::vector<SwitchChoice> switches;  ///< as in PlanAnswer
  std::int64_t num_chunks = 1;         ///< parts of the vector that follow each other
  Terms terms;                         ///< predicted cost
  /// Equal for equal plans, whatever their chunks: "hcps:8x3: root hcps 8x3".
  [[nodiscard]] std::string words() const;
};

/// Sizes with the same plan: from `first` on, up to and including `last`.
struct DecisionRow {
  DecisionPoint first;  ///< the smallest size of the row
  DecisionPoint last;   ///< the largest size of the row
};

/// The rows cover every number of elements of the request. Where the best plan changes is known to one element or to
/// one part in ten thousand. Throws InvalidArgument as plan() does, for an empty range, and when `merge` is not from 0
/// to 1.
std::vector<DecisionRow> decision_table(const DecisionTableRequest& request);

}  // namespace gar
