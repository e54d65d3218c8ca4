// Threads take work from two lists: first what is priced, then what is simulated.
#include "sweep.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "gar/errors.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"

namespace gar::python {
namespace {

constexpr std::size_t kSizesAtOnce = 4096;  // that one thread prices before it says how far it is

/// Is its plan another one for every size?
bool depends_on_size(const Contender& contender) {
  return !contender.plan && (is_tree_planner(contender.spec) || needs_factors(contender.spec));
}

/// The plan of a flat algorithm whose factors are known.
std::shared_ptr<const Plan> flat_plan(const AlgorithmSpec& spec, std::int64_t num_ranks) {
  // One rank has nothing to do, whatever the algorithm is.
  return std::make_shared<const Plan>(num_ranks == 1 ? cps(1) : build_plan(spec, num_ranks));
}

}  // namespace

Sweep::Sweep(SweepRequest request) : request_(std::move(request)) {
  for (const auto& topology : request_.topologies) {
    std::vector<SimulationOptions>& conditions = conditions_.emplace_back();
    for (const WhatIf& what_if : request_.what_ifs) {
      SimulationOptions options = request_.simulation;
      options.keep_path = false;
      options.progress = [this](const SimulationProgress& /*now*/) { return !is_stopping_; };
      apply(what_if, *topology, options);
      conditions.push_back(std::move(options));
    }
    for (const Contender& contender : request_.contenders) {
      if (!contender.plan) {
        check_algorithm(contender.spec, topology->num_servers());
      } else if (contender.plan->num_ranks != topology->num_servers()) {
        throw PlanError("the plan '" + contender.plan->algorithm + "' is for " +
                        std::to_string(contender.plan->num_ranks) + " ranks, but " + topology->name() + " has " +
                        std::to_string(topology->num_servers()) + " servers; expected a plan for that many");
      }
    }
  }
  list_work();
  const int num_threads = std::max(1, request_.num_threads);
  num_running_ = num_threads;
  try {
    for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { run(); });
  } catch (...) {
    is_stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    throw;
  }
}

Sweep::~Sweep() {
  is_stopping_ = true;
  for (std::thread& thread : threads_) thread.join();
}

void Sweep::list_work() {
  const std::size_t num_pairs = request_.topologies.size() * request_.contenders.size();
  for (std::size_t pair = 0; pair < num_pairs; ++pair) {
    const Contender& contender = contender_of(pair);
    // hcps keeps what it has priced for other sizes, so one thread does all of them; so do plans that stay the same.
    const bool is_split = !contender.plan && is_tree_planner(contender.spec);
    for (std::size_t first = 0; first < num_sizes(); first += is_split ? 1 : num_sizes()) {
      items_.push_back({pair, first, is_split ? first + 1 : num_sizes()});
    }
  }
  const std::size_t num_priced = num_pairs * num_sizes();
  const std::size_t num_simulated = num_priced * request_.what_ifs.size();
  answer_.terms.resize(num_priced * kTerms.size());
  answer_.predicted_s.resize(num_priced);
  answer_.chunks.resize(num_priced);
  answer_.plan_name.resize(num_priced);
  answer_.simulated_s.resize(num_simulated);
  if (num_simulated > 0) plans_.resize(num_priced);
  num_cases_ = static_cast<std::int64_t>(num_priced + num_simulated);
}

void Sweep::run() {
  try {
    for (std::size_t i = next_item_++; i < items_.size() && !is_stopping_; i = next_item_++) {
      price(items_[i]);
      const std::lock_guard lock(mutex_);
      ++num_items_done_;
      change_.notify_all();
    }
    if (!answer_.simulated_s.empty()) {
      // A simulation may need a plan that another thread is still making.
      std::unique_lock lock(mutex_);
      while (num_items_done_ < items_.size() && !is_stopping_) change_.wait_for(lock, std::chrono::milliseconds(50));
    }
    for (std::size_t i = next_simulation_++; i < answer_.simulated_s.size() && !is_stopping_; i = next_simulation_++) {
      simulate_case(i);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    is_stopping_ = true;
  }
  const std::lock_guard lock(mutex_);
  --num_running_;
  change_.notify_all();
}

void Sweep::price(const PriceItem& item) {
  if (depends_on_size(contender_of(item.pair))) {
    price_each(item);
  } else {
    price_as_function(item);
  }
}

void Sweep::price_as_function(const PriceItem& item) {
  const Contender& contender = contender_of(item.pair);
  const Topology& topology = topology_of(item.pair);
  Priced out;
  out.plan = contender.plan ? contender.plan : flat_plan(contender.spec, topology.num_servers());
  out.name = index_of(contender.plan ? contender.plan->algorithm : to_string(contender.spec));
  out.chunks = out.plan->num_chunks;
  const PricedPlan priced(*out.plan, topology, request_.model);
  for (std::size_t first = item.first_size; first < item.end_size && !is_stopping_; first += kSizesAtOnce) {
    const std::size_t end = std::min(item.end_size, first + kSizesAtOnce);
    for (std::size_t size = first; size < end; ++size) {
      out.terms = priced.cost(request_.sizes_floats[size]);
      store(item.pair, size, out);
    }
    num_done_ += static_cast<std::int64_t>(end - first);
  }
}

void Sweep::price_each(const PriceItem& item) {
  const AlgorithmSpec& spec = contender_of(item.pair).spec;
  const Topology& topology = topology_of(item.pair);
  std::unique_ptr<Predictor> predictor;
  if (!is_tree_planner(spec)) {
    predictor = std::make_unique<Predictor>(topology, std::vector<AlgorithmSpec>{spec}, request_.model);
  }
  std::map<std::int32_t, std::shared_ptr<const Plan>> plans;
  for (std::size_t size = item.first_size; size < item.end_size && !is_stopping_; ++size) {
    Priced out;
    if (predictor) {
      const Prediction best = predictor->at(request_.sizes_floats[size]).front();
      out.terms = best.terms;
      out.name = index_of(best.algorithm());
      if (!plans_.empty()) {
        std::shared_ptr<const Plan>& known = plans[out.name];
        if (!known) known = flat_plan(best.spec, topology.num_servers());
        out.plan = known;
      }
    } else {
      PlanAnswer answer = gar::plan({.topology = topology,
                                     .size_floats = request_.sizes_floats[size],
                                     .algorithms = {spec},
                                     .model = request_.model});
      out.terms = answer.terms;
      out.chunks = answer.plan.num_chunks;
      out.name = index_of(to_string(answer.spec));
      if (!plans_.empty()) out.plan = std::make_shared<const Plan>(std::move(answer.plan));
    }
    store(item.pair, size, out);
    ++num_done_;
  }
}

void Sweep::store(std::size_t pair, std::size_t size, const Priced& priced) {
  const std::size_t at = pair * num_sizes() + size;
  for (std::size_t i = 0; i < kTerms.size(); ++i) {
    answer_.terms[at * kTerms.size() + i] = priced.terms.*kTerms[i].seconds;
  }
  answer_.predicted_s[at] = priced.terms.total();
  answer_.chunks[at] = priced.chunks;
  answer_.plan_name[at] = priced.name;
  if (!plans_.empty()) plans_[at] = priced.plan;
}

void Sweep::simulate_case(std::size_t item) {
  const std::size_t size = item % num_sizes();
  const std::size_t what_if = item / num_sizes() % request_.what_ifs.size();
  const std::size_t pair = item / num_sizes() / request_.what_ifs.size();
  const SimulationOptions& options = conditions_[pair / request_.contenders.size()][what_if];
  const Simulation done =
      simulate(*plans_[pair * num_sizes() + size], topology_of(pair), request_.sizes_floats[size], options);
  answer_.simulated_s[item] = done.seconds;
  ++num_done_;
}

std::int32_t Sweep::index_of(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = name_index_.try_emplace(name, static_cast<std::int32_t>(answer_.names.size()));
  if (is_new) answer_.names.push_back(name);
  return known->second;
}

bool Sweep::wait_for(double seconds) {
  std::unique_lock lock(mutex_);
  return change_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return num_running_ == 0; });
}

SweepAnswer Sweep::take() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  if (failure_) std::rethrow_exception(failure_);
  return std::move(answer_);
}

}  // namespace gar::python
