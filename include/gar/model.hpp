// GenModel: what a plan costs on a network, in seconds per term and per stage.
//
// A stage costs the latency of its longest path, plus the time of its busiest link direction, plus the slowest
// server's calculation, plus the handling of its messages. On a link that w distinct senders' traffic crosses in the
// stage, every float costs beta + max(w - incast_threshold, 0) * epsilon. Reducing f blocks of s floats (own included)
// costs (f - 1) s gamma + (f + 1) s delta. A server that sends (or receives) m messages in a step spends m mu on them;
// a message is all that one rank sends to another in a step, and a step costs the slowest sender and the slowest
// receiver. A sub-plan starts when its own children have finished.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/plan.hpp"
#include "gar/topology.hpp"

namespace gar {

/// Seconds per term of the model. A new term is a field here and a row of kTerms.
struct Terms {
  double alpha = 0;                                 ///< latency of paths, in seconds like all terms
  double beta = 0;                                  ///< transfer over links
  double gamma = 0;                                 ///< adding floats
  double delta = 0;                                 ///< reading and writing memory
  double epsilon = 0;                               ///< incast: senders beyond a link's threshold
  double mu = 0;                                    ///< handling messages, at both of their ends
  [[nodiscard]] constexpr double total() const;     ///< sum of all terms
  constexpr Terms& operator+=(const Terms& other);  ///< adds `other`, term by term
  bool operator==(const Terms&) const = default;
};

/// What is known about a term: a row of kTerms.
struct TermInfo {
  std::string_view name;   ///< of the term and of its parameter in files: "alpha"
  std::string_view words;  ///< what the time is spent on, for people: "latency"
  std::string_view unit;   ///< of the parameter: "s/float"
  double Terms::*seconds;  ///< the field of Terms
  /// Not part of the paper's model: tables and documents leave it out where it costs nothing.
  bool is_optional = false;
};

/// All terms, in the order in which tables and documents show them.
inline constexpr std::array<TermInfo, 6> kTerms{{{"alpha", "latency", "s", &Terms::alpha},
                                                 {"beta", "link time", "s/float", &Terms::beta},
                                                 {"gamma", "adding", "s/float", &Terms::gamma},
                                                 {"delta", "memory access", "s/float", &Terms::delta},
                                                 {"epsilon", "incast", "s/float", &Terms::epsilon},
                                                 {"mu", "handling messages", "s/message", &Terms::mu, true}}};
static_assert(sizeof(Terms) == kTerms.size() * sizeof(double), "every term has a row in kTerms");

/// Calls f(member) for every term with its pointer to member. The compiler unrolls it, so it is fit for inner loops.
template <class F, std::size_t... kRow>
constexpr void for_each_term(const F& f, std::index_sequence<kRow...> /*rows*/) {
  (f(kTerms[kRow].seconds), ...);
}
/// Calls f(member) for every row of kTerms.
template <class F>
constexpr void for_each_term(const F& f) {
  for_each_term(f, std::make_index_sequence<kTerms.size()>{});
}

constexpr double Terms::total() const {
  double sum = 0;
  for_each_term([&](auto term) { sum += this->*term; });
  return sum;
}

constexpr Terms& Terms::operator+=(const Terms& other) {
  for_each_term([&](auto term) { this->*term += other.*term; });
  return *this;
}

constexpr Terms operator+(Terms a, const Terms& b) { return a += b; }  ///< sum, term by term

/// Every term times `factor`.
constexpr Terms operator*(double factor, const Terms& t) {
  Terms out;
  for_each_term([&](auto term) { out.*term = factor * (t.*term); });
  return out;
}

/// Difference, term by term.
constexpr Terms operator-(const Terms& a, const Terms& b) {
  Terms out;
  for_each_term([&](auto term) { out.*term = a.*term - b.*term; });
  return out;
}

/// A term and its seconds, or a difference of seconds.
struct TermSeconds {
  const TermInfo* term = nullptr;  ///< row of kTerms
  double seconds = 0;              ///< may be negative, as a difference
};
/// All terms, those with the largest absolute value first.
std::array<TermSeconds, kTerms.size()> largest_first(const Terms& terms);

/// Which model: GenModel; GenModel as in the paper, which does not know what handling a message costs; or (alpha, beta,
/// gamma), which knows neither that nor incast nor memory access.
enum class ModelKind { kGenModel, kPaper, kAbc };
/// Whether incast (epsilon) and memory access (delta) count.
constexpr bool has_incast_and_memory(ModelKind kind) { return kind != ModelKind::kAbc; }
/// Whether handling messages (mu) counts.
constexpr bool has_handling(ModelKind kind) { return kind == ModelKind::kGenModel; }
/// Without what the model does not know.
constexpr ServerParams known_to(ModelKind kind, ServerParams server) {
  if (!has_incast_and_memory(kind)) server.delta = 0;
  if (!has_handling(kind)) server.mu = 0;
  return server;
}

/// What w counts: the senders on a link (N - 1 for CPS), or all participants, receiver included (N), as in the paper's
/// formulas. The paper's tables use the first, its Figure `fig:costmodel` the second.
enum class IncastDegree { kSenders, kParticipants };

/// How a plan is priced.
struct ModelOptions {
  ModelKind kind = ModelKind::kGenModel;         ///< which terms count
  IncastDegree degree = IncastDegree::kSenders;  ///< what w counts
  bool overlap = false;  ///< also find out how long each link and server is busy, which plans with several chunks need
  std::int64_t max_chunks = 0;  ///< gentree+: cut the vector into at most this many chunks; 0: as many as pay
  bool exchanges = true;        ///< gentree+: also consider plans that end in exchanges, which have no halves
  bool shares = true;           ///< gentree+: also consider shares of the vector that follow what ranks can do
  bool simulates = true;        ///< gentree+: simulate the best plans in chunks, which may wait for each other
  /// gentree+ and Predictor: what is planned. The plan of an AllReduce is priced as this half of it.
  Collective collective = Collective::kAllReduce;
  /// What pricing counts against (kPricingLimit). Without one, every planner, predictor and priced plan has its own.
  std::shared_ptr<WorkMeter> work{};
};
/// The same options, with something to count work against.
ModelOptions metered(ModelOptions options, const Topology& topology);

/// What is busiest over the whole plan.
struct Resource {
  std::string name;  ///< "downlink of rack3", "calculation of rack0/server2"
  Terms slope;       ///< seconds per float of the vector
  Terms fixed{};     ///< seconds for every chunk, however long: mu of a server
  /// For a chunk of `floats` floats.
  [[nodiscard]] Terms at(double floats) const { return fixed + floats * slope; }
};

/// Busy seconds per float of the vector, over the whole plan: links by instance of expand(topology, root), servers by
/// rank.
struct BusyTimes {
  std::vector<double> up;           ///< links, towards the root
  std::vector<double> down;         ///< links, away from the root
  std::vector<double> calculation;  ///< servers
  std::vector<double> handling{};   ///< servers: seconds for the messages of every chunk, however long it is
};

/// One priced stage. Everything per float of the whole vector except alpha and mu.
struct StageCost {
  std::string label;            ///< the sub-plan's label and the stage, for people
  bool is_gather = false;       ///< AllGather half
  bool is_exchange = false;     ///< an exchange, which comes between the halves
  std::int64_t num_steps = 1;   ///< a ring stage has several identical steps; all of them are in `fixed` and `slope`
  Terms fixed;                  ///< alpha and mu
  Terms slope;                  ///< per float of the vector
  std::string link;             ///< the busiest link, "downlink of rack3"
  int link_level = -1;          ///< height of the node below it (0: a server's own link); -1: no link is used
  std::int64_t senders = 0;     ///< distinct senders on it (w)
  double volume = 0;            ///< what crosses it in one step, as a fraction of the vector
  double incast_threshold = 0;  ///< of that link
  std::int64_t fan_in = 0;      ///< most operands of one reduction
  double sending = 0;           ///< of the mu of one step: what the slowest sender spends before its messages leave
  /// The stage's cost for a vector of `size_floats` floats, in one piece.
  [[nodiscard]] Terms at(double size_floats) const { return fixed + size_floats * slope; }
};

/// A plan priced on a network; evaluating it at a size is cheap.
class PricedPlan {
 public:
  /// Throws PlanError when the plan has another number of ranks than the topology has servers.
  PricedPlan(const Plan& plan, const Topology& topology, const ModelOptions& options = {});

  /// Seconds per term for a vector of `size_floats` floats of 4 bytes, in the plan's number of chunks, waiting
  /// included.
  [[nodiscard]] Terms cost(double size_floats) const;
  /// The same in another number of chunks: the first chunk's way through all stages, and for every other chunk one turn
  /// of the busiest resource or, if that takes longer, of the slowest step. Needs ModelOptions::overlap for chunks > 1.
  [[nodiscard]] Terms pipelined_cost(double size_floats, std::int64_t chunks) const;
  /// From now on cost() means this number of chunks. More than one needs ModelOptions::overlap.
  void set_num_chunks(std::int64_t chunks) { num_chunks_ = chunks; }
  /// How much longer chunks were found to take, because they wait for each other: seconds per float of the vector.
  void set_waiting(double seconds_per_float) { waiting_ = seconds_per_float; }
  [[nodiscard]] double waiting() const { return waiting_; }  ///< as set_waiting says; 0 before
  /// The number of chunks, at most `limit`, with the least pipelined cost (found by doubling and halving).
  [[nodiscard]] std::int64_t best_chunks(double size_floats, std::int64_t limit) const;
  /// The fewest chunks that cost at most a thousandth more than best_chunks(): where every further chunk gains a little
  /// less, the best number is some thousands, which nobody would send.
  [[nodiscard]] std::int64_t few_chunks(double size_floats, std::int64_t limit) const;
  /// The link direction or server with the most to do per float; empty without ModelOptions::overlap.
  [[nodiscard]] const Resource& busiest() const { return busiest_; }
  /// The one that a chunk of `chunk_floats` floats keeps busy longest: short chunks cost a server their messages.
  [[nodiscard]] const Resource& busiest(double chunk_floats) const;
  /// What every link direction and server does; empty without ModelOptions::overlap.
  [[nodiscard]] const BusyTimes& busy() const { return busy_; }
  /// Every kind of step: {latency and handling of messages, seconds per float of the vector}.
  [[nodiscard]] std::vector<std::pair<double, double>> steps() const;
  /// The stages on the critical path of one chunk as large as the whole vector, in order.
  [[nodiscard]] std::vector<StageCost> critical_stages(double size_floats) const;
  /// The stages of the top sub-plan alone, without what lies below it.
  [[nodiscard]] Terms own_cost(double size_floats) const;
  /// Most senders beyond the incast threshold on any link in any stage.
  [[nodiscard]] double max_incast_excess() const { return max_excess_; }

 private:
  friend class Pricer;
  struct PlacedSubPlan {  // a sub-plan at one place of the tree
    std::vector<StageCost> scatter;
    std::vector<StageCost> gather;
    std::vector<std::int32_t> children;  // indices into placed_, distinct
    bool is_inner = false;               // a part of its parent: a plan may write several digits in one sub-plan
    bool is_first = false;               // some rank's first stage
  };
  struct Critical {  // of one of them: seconds with its slowest child, and which child that is
    Terms terms;
    std::int32_t child = -1;
  };
  [[nodiscard]] std::vector<Critical> critical(double size_floats, bool gather) const;
  [[nodiscard]] Terms sequential_cost(double size_floats) const;
  template <class F>
  void for_steps(F f) const;
  std::vector<PlacedSubPlan> placed_;  // children before parents; the last one is the root
  Resource busiest_;
  std::vector<Resource> handlers_;  // servers with messages to handle that are busiest for some length of a chunk
  BusyTimes busy_;
  double waiting_ = 0;        // of links, in chunks
  double first_sending_ = 0;  // mu of the messages of the first step, which leave when those of all chunks are handled
  std::int64_t num_chunks_ = 1;
  double max_excess_ = 0;
  bool has_scatter_ = true;
  bool has_gather_ = true;
};

/// Cost of any plan, from its per-rank programs, in lockstep by step number: the oracle for PricedPlan, and the pricing
/// of explicit plans.
Terms cost_of_programs(const Plan& plan, const Topology& topology, double size_floats,
                       const ModelOptions& options = {});

/// What no plan of a collective on this network can beat.
struct LowerBound {
  double alpha = 0;        ///< longest path, once
  double bandwidth = 0;    ///< strongest cut
  double calculation = 0;  ///< gamma and delta of Theorem 1, servers of different speed included; an AllGather has none
  std::string cut;         ///< the cut in words
  /// Holds for every plan. Not their sum: groups that run side by side, and chunks, can pay them at the same time.
  [[nodiscard]] double seconds() const { return std::max({alpha, bandwidth, calculation}); }
  /// What binds, in words: "link time of every server's own link".
  [[nodiscard]] std::string binding() const;
  /// For plans in which all ranks finish each stage before the next.
  [[nodiscard]] double sequential_seconds() const { return alpha + bandwidth + calculation; }
};
/// The lower bound for a vector of `size_floats` floats of 4 bytes, under the terms that the model knows.
LowerBound lower_bound(const Topology& topology, double size_floats, Collective collective = Collective::kAllReduce,
                       ModelKind kind = ModelKind::kGenModel);

/// The optimalities of the paper's Sections 2.2 and 3.3 for a plan on a network.
struct Optimality {
  bool bandwidth = false;        ///< no rank sends or receives more than 2 (N-1)/N of the vector
  bool latency = false;          ///< two steps
  bool incast = false;           ///< no link carries more than its threshold (Definition 1)
  bool memory_access = false;    ///< no rank moves more than (N+1)/N of the vector (Definition 2, Theorem 1)
  double max_traffic = 0;        ///< most that a rank sends or receives, as a fraction of the vector
  double max_memory_access = 0;  ///< most that a rank reads and writes while reducing, as a fraction of the vector
  double max_incast_excess = 0;  ///< most senders beyond the threshold on any link
  std::int64_t num_steps = 0;    ///< steps of the whole plan
};
/// Which optimalities a plan reaches on a network. Throws PlanError when the plan does not fit it.
Optimality optimality(const Plan& plan, const Topology& topology, IncastDegree degree = IncastDegree::kParticipants);

/// The parameters of N equal servers on one switch, for the closed forms below.
struct OneSwitch {
  double alpha = 0;                              ///< seconds of one whole path
  double beta = 0;                               ///< seconds per float
  double gamma = 0;                              ///< seconds per float added
  double delta = 0;                              ///< seconds per float read or written
  double epsilon = 0;                            ///< extra seconds per float and sender beyond the threshold
  double incast_threshold = 0;                   ///< w_t
  IncastDegree degree = IncastDegree::kSenders;  ///< what w counts
  double mu = 0;                                 ///< seconds per message, at each of its ends
};
/// The parameters of a one-switch topology with equal servers. Throws InvalidArgument for any other.
OneSwitch one_switch_params(const Topology& topology, IncastDegree degree = IncastDegree::kSenders);

/// Reduce-Broadcast, as derived. The derived forms correct the paper's tables where these err; see docs/model.md.
Terms closed_reduce_broadcast(std::int64_t n, double size_floats, const OneSwitch& p);
/// The ring, as derived.
Terms closed_ring(std::int64_t n, double size_floats, const OneSwitch& p);
/// Recursive halving and doubling, as derived.
Terms closed_rhd(std::int64_t n, double size_floats, const OneSwitch& p);
/// Co-located PS, as derived.
Terms closed_cps(std::int64_t n, double size_floats, const OneSwitch& p);
/// Hierarchical CPS, as derived; N is the product of the factors.
Terms closed_hcps(const std::vector<std::int64_t>& factors, double size_floats, const OneSwitch& p);
/// The multi-dimensional ring, as derived; N is the product of the factors.
Terms closed_hierarchical_ring(const std::vector<std::int64_t>& factors, double size_floats, const OneSwitch& p);
/// The gather of all vectors.
Terms closed_gather(std::int64_t n, double size_floats, const OneSwitch& p);
/// Recursive doubling, with the fold where N is no power of two.
Terms closed_recursive_doubling(std::int64_t n, double size_floats, const OneSwitch& p);
/// Recursive multiplying; where N is more than the product of the factors, with the fold.
Terms closed_recursive_multiplying(std::int64_t n, const std::vector<std::int64_t>& factors, double size_floats,
                                   const OneSwitch& p);
/// Reduction to one rank over a binomial tree, and the broadcast back.
Terms closed_binomial(std::int64_t n, double size_floats, const OneSwitch& p);

/// The closed form of an algorithm, by its name. Nothing when none is known, for uneven groups, or when factors are
/// missing.
std::optional<Terms> closed_form(const AlgorithmSpec& spec, std::int64_t n, double size_floats, const OneSwitch& p);
/// What an algorithm costs at least on any tree whose most favourable parameters are `p`.
struct ClosedBound {
  double seconds = 0;          ///< lower bound of its time
  std::int64_t num_steps = 0;  ///< steps of each half that follow from the factors; 0: not said
};
/// Nothing when no closed form is known: then there is no bound, and only pricing tells.
std::optional<ClosedBound> closed_bound(const AlgorithmSpec& spec, std::int64_t n, double size_floats,
                                        const OneSwitch& p);

/// What hcps in groups as even as possible (hcps:~...) costs at least on such a tree, or a half of it. Much closer than
/// closed_bound(), because it follows the groups: on one switch it is the cost, but for the incast of some stages.
/// `path` tells the least latency between two servers so many ranks apart. `has_equal_shares` says that every level is
/// known to leave each of its ranks an equal share, which makes it closer for three levels and more.
double uneven_hcps_bound(const std::vector<std::int64_t>& factors, std::int64_t n, double size_floats,
                         const OneSwitch& p, Collective collective,
                         const std::function<double(std::int64_t distance)>& path, bool has_equal_shares = false);

/// What digits (hcps, cps) cost at least on a network: what some ranks of it feel.
class DigitsBound {
 public:
  /// Counts as the options say, for an AllReduce or the half of it that they name.
  DigitsBound(const Topology& topology, const ModelOptions& options);
  /// `factors` multiply to the number of servers; `path` as for uneven_hcps_bound().
  [[nodiscard]] double seconds(const std::vector<std::int64_t>& factors, double size_floats,
                               const std::function<double(std::int64_t distance)>& path) const;

 private:
  struct LinkAbove {
    LinkParams link;
    std::int64_t first = 0;  // ranks below it
    std::int64_t last = 0;
  };
  struct Place {
    std::int64_t rank = 0;
    ServerParams server;
    std::vector<LinkAbove> above;
  };
  void add_places(const Topology& topology, NodeId id, std::int64_t first, std::vector<LinkAbove>& above,
                  std::vector<Place>& seen) const;
  ModelOptions options_;
  std::vector<Place> places_;
};

/// As printed in Table `tab:genmodel_on_exist` (f_{i-1} read as f_i where the index runs out of range).
Terms printed_reduce_broadcast(std::int64_t n, double size_floats, const OneSwitch& p);
/// Recursive halving and doubling, as printed there.
Terms printed_rhd(std::int64_t n, double size_floats, const OneSwitch& p);
/// Hierarchical CPS, as printed there (f_{i-1} read as f_i where the index runs out of range).
Terms printed_hcps(const std::vector<std::int64_t>& factors, double size_floats, const OneSwitch& p);
/// As printed in Table `tab:abcmodel_on_exist`: differs from the derived form in Reduce-Broadcast's gamma.
Terms printed_abc_reduce_broadcast(std::int64_t n, double size_floats, const OneSwitch& p);

}  // namespace gar
