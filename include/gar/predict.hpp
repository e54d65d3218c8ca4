// Which algorithm is fastest on a network, by how much, and where that choice changes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/plan.hpp"
#include "gar/topology.hpp"

namespace gar {

/// What one algorithm costs.
struct Prediction {
  AlgorithmSpec spec;                        ///< with factors: `hcps` has become its best factorisation
  Terms terms;                               ///< predicted cost
  std::shared_ptr<const PricedPlan> priced;  ///< what the terms were taken from; null when num_priced is 0
  std::int64_t num_considered = 1;           ///< factorisations that the best one was chosen from
  std::int64_t num_priced = 1;               ///< of these, how many had to be priced (the others are bounded by it)
  bool is_complete = true;                   ///< false when there were too many factorisations to settle them all
  [[nodiscard]] double seconds() const { return terms.total(); }  ///< predicted time
  /// The algorithm as on the command line: "hcps:8x3".
  [[nodiscard]] std::string algorithm() const { return to_string(spec); }
};

/// Where a choice changes, going away from where it was asked.
struct Flip {
  double at = 0;          ///< floats, or ranks
  std::string algorithm;  ///< what is best from there on
};

/// Where the choice changes on both sides of where it was asked.
struct Flips {
  std::optional<Flip> below;  ///< the nearest change towards smaller values; empty: none was found
  std::optional<Flip> above;  ///< the nearest change towards larger values; empty: none was found
  double searched_from = 0;   ///< the lower end of the range in which flips were looked for
  double searched_to = 0;     ///< the upper end of that range
  /// What is best between the two. Of numbers of ranks, whose ranges are those of all numbers but powers of two: around
  /// where it was asked. Empty for sizes.
  std::string around = {};
  /// Numbers of ranks of which that is not true, all of them powers of two: where, and what is best there.
  std::vector<Flip> exceptions = {};
  /// What is best at that number of ranks, as far as the ranges go.
  [[nodiscard]] const std::string& best_at(double ranks) const {
    if (below && ranks <= below->at) return below->algorithm;
    return above && ranks >= above->at ? above->algorithm : around;
  }
};

/// Prices that several parts of one answer share; src/planner/flat_prices.hpp.
class FlatPrices;

/// Prices algorithms on one network; plans are built once and kept for other sizes.
class Predictor {
 public:
  /// `hcps` without factors stands for all factorisations and uneven groupings. Throws InvalidArgument when factors do
  /// not fit the number of servers.
  Predictor(const Topology& topology, const std::vector<AlgorithmSpec>& algorithms, const ModelOptions& options = {});
  /// With prices that others of the same network and options have asked for (may be null), and room for more.
  Predictor(const Topology& topology, const std::vector<AlgorithmSpec>& algorithms, const ModelOptions& options,
            std::shared_ptr<FlatPrices> prices);
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;
  Predictor& operator=(Predictor&&) = delete;

  /// One prediction per algorithm, best first; ties keep the order of the algorithms.
  [[nodiscard]] std::vector<Prediction> at(double size_floats);
  /// Only those that take less than `seconds`, best first; cheaper than at(), since most of the others need not be
  /// priced.
  [[nodiscard]] std::vector<Prediction> below(double size_floats, double seconds);
  /// The name of the best algorithm, without its factors; cheaper than at().
  [[nodiscard]] std::string best_kind(double size_floats);
  /// The sizes at which another algorithm (or another factorisation) becomes best.
  [[nodiscard]] Flips size_flips(double size_floats);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The plain algorithms, as `--algo all` means them: cps hcps ring rhd reduce-broadcast.
std::vector<AlgorithmSpec> classic_algorithms();
/// "gentree+,hcps:8x3,ring", each once; "all" stands for classic_algorithms() and the tree planners. `name` says what
/// is parsed, for messages. Throws UsageError with the names that exist.
std::vector<AlgorithmSpec> parse_algorithm_list(std::string_view name, const std::string& text);

/// The same network with `servers` servers below each of its lowest switches, when these are all alike (every switch
/// that has servers has one run of equal servers, and equally many); empty otherwise.
std::optional<Topology> with_servers_per_switch(const Topology& topology, std::int64_t servers);
/// Servers below each lowest switch in that sense; 0 when they differ.
std::int64_t servers_per_switch(const Topology& topology);

/// The numbers of ranks (servers per lowest switch varied) at which another kind of algorithm becomes best, and the
/// powers of two at which something else is; empty when the lowest switches differ.
std::optional<Flips> rank_flips(const Topology& topology, const std::vector<AlgorithmSpec>& algorithms,
                                double size_floats, const ModelOptions& options = {});

/// What is to be compared.
struct PredictRequest {
  Topology topology;                      ///< the network
  double size_floats = 0;                 ///< of the vector
  std::vector<AlgorithmSpec> algorithms;  ///< flat ones and tree planners; at least one
  ModelOptions model = {};                ///< how costs are counted
  bool flips = true;                      ///< also look for where the choice changes, which takes most of the time
};
/// One algorithm of the answer. `terms` is what it costs as other verbs run it under its name: gentree+ in chunks, all
/// others in one piece.
struct PredictRow : Prediction {
  /// Parts of the vector that follow each other: as few as cost a thousandth more than the best number of them.
  std::int64_t num_chunks = 1;
  Terms whole;                       ///< predicted cost in one piece
  Terms chunked;                     ///< and in that many parts
  bool is_chunked = false;           ///< false: too many servers to price it in parts; `chunked` is `whole`
  std::string words;                 ///< tree planners: what was decided, as plan_words() has it
  std::string sentence;              ///< the same for people who do not know the algorithms' names
  std::shared_ptr<const Plan> plan;  ///< what `terms` is the cost of
  /// The cheaper one of the two, which is what algorithms are compared by.
  [[nodiscard]] const Terms& best_terms() const { return chunked.total() < whole.total() ? chunked : whole; }
  /// Predicted time of that.
  [[nodiscard]] double best_seconds() const { return best_terms().total(); }
  /// Parts of that.
  [[nodiscard]] std::int64_t best_chunks() const { return chunked.total() < whole.total() ? num_chunks : 1; }
};
/// What the algorithms cost, and where the choice among the flat ones changes.
struct PredictAnswer {
  std::vector<PredictRow> results;  ///< those with the least best_seconds() first; at least one
  std::string flat_best;  ///< best of the flat algorithms, for which flips are looked for; empty: not searched
  Flips size_flips;       ///< vector lengths, in floats, at which another flat algorithm becomes best
  std::optional<Flips> rank_flips;  ///< the same for numbers of ranks; nothing: not searched
  LowerBound bound;                 ///< for this network and size
};
/// Prices all of them. Throws InvalidArgument when an algorithm does not fit the network.
PredictAnswer predict(const PredictRequest& request);

}  // namespace gar
