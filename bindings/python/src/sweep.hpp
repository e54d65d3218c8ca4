// Many networks, algorithms, sizes and what-ifs at once, on several threads. Nothing here knows Python.
//
// An algorithm that is the same plan for every size is built and priced once for a network; a size then costs no more
// than the sum over its stages. Those that find their plan anew for every size (gentree, gentree+, hcps without
// factors) are asked for every size. A simulation is one case each: nothing is interpolated.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/plan.hpp"
#include "gar/simulate.hpp"
#include "gar/topology.hpp"
#include "gar/what_if.hpp"

namespace gar::python {

/// An algorithm, or a plan.
struct Contender {
  AlgorithmSpec spec;
  std::shared_ptr<const Plan> plan;  ///< if not null, this instead of `spec`
};

/// What is to be found out.
struct SweepRequest {
  std::vector<std::shared_ptr<const Topology>> topologies;
  std::vector<Contender> contenders;
  std::vector<double> sizes_floats;
  std::vector<WhatIf> what_ifs;  ///< each is simulated; empty: nothing is simulated
  ModelOptions model;
  SimulationOptions simulation;  ///< without conditions
  int num_threads = 1;
};

/// Arrays in the order of the request: topology, contender, (what-if,) size; the last one varies fastest.
struct SweepAnswer {
  std::vector<double> terms;            ///< predicted seconds, kTerms.size() for each case
  std::vector<double> predicted_s;      ///< their sums
  std::vector<std::int64_t> chunks;     ///< parts of the vector that follow each other
  std::vector<std::int32_t> plan_name;  ///< index in `names`
  std::vector<std::string> names;       ///< algorithms with their factors
  std::vector<double> simulated_s;      ///< with the what-if conditions
};

/// A sweep that is under way.
class Sweep {
 public:
  /// Checks the conditions and starts the threads. Throws InvalidArgument.
  explicit Sweep(SweepRequest request);
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;
  /// Stops what is still running.
  ~Sweep();

  /// Waits at most this long; true when all threads have ended.
  bool wait_for(double seconds);
  /// Asks all threads to stop soon.
  void stop() { is_stopping_ = true; }
  /// Cases that are priced, and those that are simulated.
  [[nodiscard]] std::int64_t num_done() const { return num_done_; }
  [[nodiscard]] std::int64_t num_cases() const { return num_cases_; }
  /// When all threads have ended. Throws what a thread threw first.
  SweepAnswer take();

 private:
  /// Work that is done by one thread in one go: a topology and a contender, for some sizes.
  struct PriceItem {
    std::size_t pair = 0;
    std::size_t first_size = 0;
    std::size_t end_size = 0;
  };
  /// What one case came to.
  struct Priced {
    Terms terms;
    std::int64_t chunks = 1;
    std::int32_t name = 0;             // index in SweepAnswer::names
    std::shared_ptr<const Plan> plan;  // may be null where nothing is simulated
  };
  void list_work();
  void run();
  void price(const PriceItem& item);
  void price_as_function(const PriceItem& item);
  void price_each(const PriceItem& item);
  void store(std::size_t pair, std::size_t size, const Priced& priced);
  void simulate_case(std::size_t item);
  std::int32_t index_of(const std::string& name);
  [[nodiscard]] std::size_t num_sizes() const { return request_.sizes_floats.size(); }
  [[nodiscard]] const Topology& topology_of(std::size_t pair) const {
    return *request_.topologies[pair / request_.contenders.size()];
  }
  [[nodiscard]] const Contender& contender_of(std::size_t pair) const {
    return request_.contenders[pair % request_.contenders.size()];
  }

  SweepRequest request_;
  SweepAnswer answer_;
  std::vector<std::vector<SimulationOptions>> conditions_;  // of every topology and what-if
  std::vector<PriceItem> items_;
  std::vector<std::shared_ptr<const Plan>> plans_;  // of every topology, contender and size; for simulations
  std::int64_t num_cases_ = 0;

  std::atomic<std::size_t> next_item_{0};
  std::atomic<std::size_t> next_simulation_{0};
  std::atomic<std::int64_t> num_done_{0};
  std::atomic<bool> is_stopping_{false};
  std::mutex mutex_;
  std::condition_variable change_;
  std::size_t num_items_done_ = 0;
  int num_running_ = 0;
  std::exception_ptr failure_;
  std::map<std::string, std::int32_t> name_index_;
  std::vector<std::thread> threads_;
};

}  // namespace gar::python
