// Words for people: what costs, plans and profiles mean. Everything is plain text without colour or width, and nothing
// is printed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gar/format.hpp"
#include "gar/model.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"

namespace gar {

/// A term of the cost model, or gamma and delta together.
enum class CostTerm { kLatency, kLinkTime, kAdding, kMemoryAccess, kIncast, kHandling, kCalculation };

/// By how much one term differs between two costs.
struct TermDifference {
  CostTerm term = CostTerm::kLatency;                              ///< which term
  double before = 0;                                               ///< seconds in the first cost
  double after = 0;                                                ///< seconds in the second cost
  [[nodiscard]] double seconds() const { return after - before; }  ///< after - before
};

/// What the share that makes a difference notable is a share of.
enum class NotableShare {
  kOfLargest,  ///< the largest difference of any term
  kOfTotal,    ///< the difference between the two whole costs
  kOfCost,     ///< the larger one of the two whole costs
};

/// How a difference is put.
enum class DifferenceStyle {
  kMoreLess,  ///< "8.26 ms more latency (alpha), 3.10 ms less incast (epsilon)"
  kSigned,    ///< "+8.26 ms latency, -3.10 ms incast"
  kRelative,  ///< "latency +8.26 ms (+12%), incast -3.10 ms (-40%)"
};

/// Which differences are told, and how.
struct DifferenceOptions {
  DifferenceStyle style = DifferenceStyle::kMoreLess;  ///< how a difference is worded
  NotableShare share = NotableShare::kOfLargest;       ///< what `notable` is a share of
  double notable = 0.02;                               ///< differences below this share are left out
  bool joins_calculation = false;                      ///< adding and memory access are one: calculation
  std::size_t max_terms = 6;                           ///< the largest ones only
  bool with_letters = true;                            ///< "latency (alpha)", not "latency"
};

/// The terms in which two costs differ notably, the largest difference first.
std::vector<TermDifference> term_differences(const Terms& before, const Terms& after,
                                             const DifferenceOptions& options = {});
/// The same in words: what `after` costs more and what it costs less than `before`.
std::string difference_words(const Terms& before, const Terms& after, const DifferenceOptions& options = {});
/// One of two plans that are compared.
struct Contestant {
  std::string name;             ///< as it is named in the answer
  Terms terms;                  ///< of the critical path
  std::int64_t num_chunks = 1;  ///< parts of the vector that follow each other
};
/// Who wins, by what factor and why: "gentree+ is 1.53x as fast as gentree: 130 ms less link time, 5.94 ms less incast
/// on the critical path, where its 98 chunks overlap". Chunks hide work, they do not save it: both had better be priced
/// in chunks, or none of them.
std::string winner_words(const Contestant& better, const Contestant& other, bool with_letters = false);
/// A row as it is compared: in one piece or in chunks, whichever takes less time.
Contestant contestant_of(const PredictRow& row);
/// Over whom the first of the rows wins: the next one that takes notably longer. Null when all of them are as fast.
const PredictRow* rival_of(const std::vector<PredictRow>& rows);

/// How a simulation was run, as far as it explains differences.
struct RunKind {
  bool has_chunks = false;  ///< the vector was cut into several chunks
  bool barrier = false;     ///< as SimulationOptions::barrier
};
/// Which terms make the difference between the model's cost and that of the simulated critical path, largest first, and
/// where each comes from: "incast -120 ms (-40%): senders start and finish at different times, so fewer meet on a
/// link".
std::string why_simulated_differs(const Terms& predicted, const Terms& simulated, const RunKind& kind);
/// Which terms changed when something was wrong with the network: "link time +1.2 s (+50%), incast +80.0 ms (+8%)".
std::string what_grew(const Terms& without, const Terms& with);

/// Which part of an AllReduce a stage belongs to: "reduce-scatter", "all-gather", "exchange"; of an explicit plan
/// "step".
std::string_view phase_word(bool is_explicit, bool is_exchange, bool is_gather);
/// Where the time of one stage goes: "rack level, 8-way exchange (ReduceScatter): 19.7 ms of latency; the uplink of
/// ...".
std::string stage_words(const StageCost& stage, double size_floats, bool is_explicit);

/// Where the choice changes, in bytes: "ring up to 40 kB, cps up to 4 MB, hcps:8x3 above"; `here` is what is best where
/// it was asked.
std::string size_words(const Flips& flips, const std::string& here);
/// The same for the number of servers, or why it was not varied.
std::string rank_words(const Topology& topology, const PredictAnswer& answer);

}  // namespace gar
