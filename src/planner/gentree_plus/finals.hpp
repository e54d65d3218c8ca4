// Whole plans priced exactly, of which GenTree+ takes the cheapest.
//
// The price of chunks is what a schedule without idle time takes. Chunks that follow each other through stages of which
// each has other links may wait for each other, and how long depends on which rank is late where: that is simulated. A
// simulation takes longer than a price, so it is done for the plans that it can matter for: as long as the cheapest
// plan is one in chunks that has not been simulated, it is, and costs what that says if it is more.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gar/planner.hpp"
#include "planner/flat_prices.hpp"

namespace gar::plus {

/// Are there few enough servers for simulations while planning?
bool may_simulate(const Topology& topology);

class Finals {
 public:
  /// `prices` of flat plans that are known already, or null.
  Finals(const Topology& topology, double size_floats, const ModelOptions& options,
         std::shared_ptr<FlatPrices> prices = nullptr);

  /// Prices a plan in few chunks (PricedPlan::few_chunks), and keeps it if it is cheaper than all before.
  void offer(Plan plan, std::vector<SwitchChoice> switches);
  /// The same for the plan of a flat algorithm, whose price may be known.
  void offer_flat(Plan plan, const AlgorithmSpec& spec, SwitchChoice choice);
  /// As offer(), but a plan that is not cheaper is not even listed among those that were compared.
  void offer_if_better(Plan plan, std::vector<SwitchChoice> switches);
  /// Seconds of a plan for the collective that is planned, in its best number of chunks; it is not kept.
  [[nodiscard]] double seconds_of(const Plan& plan) const;
  /// Does the cheapest plan so far take the vector in one piece, because cutting it would not pay?
  [[nodiscard]] bool is_short();
  /// Seconds of the cheapest plan so far.
  [[nodiscard]] double least();
  /// The same by what is known already, without any more simulations.
  [[nodiscard]] double least_price() const;
  /// The cheapest plan with its price and everything that it was compared with.
  TreePlan take();

 private:
  /// A plan in some number of chunks.
  struct Offer {
    Plan plan;
    std::vector<SwitchChoice> switches;
    std::shared_ptr<PricedPlan> priced;
    Terms terms;
    bool is_settled = false;          // simulated, or there is nothing to simulate
    bool is_alternative = false;      // of another offer, in another number of chunks
    bool wants_alternatives = false;  // it waits much, and others may be better
  };
  [[nodiscard]] Offer priced(const Plan& plan, std::vector<SwitchChoice> switches,
                             const AlgorithmSpec* flat = nullptr) const;
  [[nodiscard]] bool is_settled_by_price(std::int64_t chunks) const;
  void add(Offer offer);
  void settle();
  void simulate(std::size_t nth);
  [[nodiscard]] double simulated_seconds(const Offer& offer);
  [[nodiscard]] double run_seconds(Plan plan, std::int64_t chunks, double size_floats);
  void add_alternative(std::size_t nth, std::int64_t chunks);
  [[nodiscard]] std::size_t best() const;

  const Topology& topology_;
  double size_;
  ModelOptions options_;
  std::shared_ptr<FlatPrices> prices_;
  std::int64_t most_chunks_ = 1;  // that the size allows
  std::int64_t limit_ = 1;        // of the chunks
  bool simulates_ = false;
  double messages_of_one_ = 0;  // simulation
  double messages_left_ = 0;    // that may be simulated
  int last_few_ = 4;            // plans that may be simulated after that
  double worst_ratio_ = 1;      // simulated time over price
  double last_messages_ = 1;    // of the last run, those of classes once
  std::vector<Offer> offers_;
};

/// One plan as the finals price it: in the number of chunks that is best when their waiting for each other counts.
TreePlan settled(const Plan& plan, const Topology& topology, double size_floats, const ModelOptions& options);

}  // namespace gar::plus
