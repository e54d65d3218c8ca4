// Whole plans priced exactly, and simulated where that can matter.
#include "planner/gentree_plus/finals.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "gar/errors.hpp"
#include "gar/simulate.hpp"
#include "planner/gentree_plus/search.hpp"

namespace gar::plus {

namespace {

constexpr std::int64_t kMostSimulated = 512;  // servers
// Messages that are simulated of one plan as a whole, and for all of them; fewer where more servers make each of them
// take longer.
constexpr double kMessagesOfOne = 16'000;
constexpr double kMessagesOfAll = 64'000;
constexpr double kManyServers = 32;
constexpr std::int64_t kFewestChunks = 8;  // that are simulated of a long plan
constexpr double kFewFactor = 4;           // these may have this many times more messages
constexpr double kNotable = 0.02;          // of its price: a plan is also tried in other numbers of chunks
constexpr double kRounding = 1e-9;

}  // namespace

bool may_simulate(const Topology& topology) { return topology.num_servers() <= kMostSimulated; }

Finals::Finals(const Topology& topology, double size_floats, const ModelOptions& options,
               std::shared_ptr<FlatPrices> prices)
    : topology_(topology), size_(size_floats), options_(options), prices_(std::move(prices)) {
  options_.overlap = true;
  most_chunks_ = most_chunks(topology, size_floats, options);
  limit_ = options.max_chunks > 0 ? std::min(most_chunks_, options.max_chunks) : most_chunks_;
  simulates_ = options.simulates && may_simulate(topology);
  const double scale = std::min(1.0, kManyServers / static_cast<double>(topology.num_servers()));
  messages_of_one_ = scale * kMessagesOfOne;
  messages_left_ = simulates_ ? scale * kMessagesOfAll : 0;
}

Finals::Offer Finals::priced(const Plan& plan, std::vector<SwitchChoice> switches, const AlgorithmSpec* flat) const {
  Offer out;
  out.plan = plan.collective != options_.collective ? as_collective(plan, options_.collective) : plan;
  out.switches = std::move(switches);
  out.priced = flat != nullptr && prices_
                   ? std::make_shared<PricedPlan>(*prices_->of(*flat, out.plan, topology_, options_))
                   : std::make_shared<PricedPlan>(out.plan, topology_, options_);
  out.plan.num_chunks = out.priced->few_chunks(size_, limit_);
  out.priced->set_num_chunks(out.plan.num_chunks);
  out.terms = out.priced->cost(size_);
  out.is_settled = is_settled_by_price(out.plan.num_chunks);
  return out;
}

// An AllReduce in one piece takes what its stages take. In one half of it ranks are not held together by the other one,
// so those that are ahead may meet those of another stage on a slow link.
bool Finals::is_settled_by_price(std::int64_t chunks) const {
  return chunks == 1 && (!simulates_ || options_.collective == Collective::kAllReduce);
}

// When little may be simulated any more, plans that have not been are taken to wait as much as the worst one so far.
std::size_t Finals::best() const {
  const double factor = messages_left_ > 0 ? 1 : worst_ratio_;
  const auto key = [&](const Offer& o) { return o.terms.total() * (o.is_settled ? 1 : factor); };
  const auto it =
      std::min_element(offers_.begin(), offers_.end(), [&](const Offer& a, const Offer& b) { return key(a) < key(b); });
  return static_cast<std::size_t>(it - offers_.begin());
}

void Finals::settle() {
  while (!offers_.empty()) {
    const std::size_t nth = best();
    if (offers_[nth].wants_alternatives) {
      offers_[nth].wants_alternatives = false;
      const std::int64_t chunks = offers_[nth].plan.num_chunks;
      for (const std::int64_t other : {chunks / 2, chunks * 2}) add_alternative(nth, other);
      continue;
    }
    const bool may_simulate = messages_left_ > 0 || (simulates_ && last_few_ > 0);
    if (offers_[nth].is_settled || !may_simulate) return;
    if (messages_left_ <= 0) --last_few_;
    simulate(nth);
  }
}

// Simulated times are never below the price here: what chunks gain by hiding latencies is not promised.
void Finals::simulate(std::size_t nth) {
  offers_[nth].is_settled = true;
  const double price = offers_[nth].terms.total();
  const double seconds = simulated_seconds(offers_[nth]);
  if (!(seconds > price * (1 + kRounding)) || !(size_ > 0)) return;
  // A plan has a price for each number of chunks: the priced plan of another one is shared until here.
  offers_[nth].priced = std::make_shared<PricedPlan>(*offers_[nth].priced);
  offers_[nth].priced->set_waiting((seconds - price) / size_);
  offers_[nth].terms = offers_[nth].priced->cost(size_);
  worst_ratio_ = std::max(worst_ratio_, seconds / price);
  if (seconds < price * (1 + kNotable) || offers_[nth].is_alternative) return;
  offers_[nth].wants_alternatives = true;
}

void Finals::add_alternative(std::size_t nth, std::int64_t chunks) {
  if (chunks < 1 || chunks > limit_ || chunks == offers_[nth].plan.num_chunks) return;
  Offer other = offers_[nth];
  other.plan.num_chunks = chunks;
  other.priced = std::make_shared<PricedPlan>(*other.priced);
  other.priced->set_waiting(0);
  other.priced->set_num_chunks(chunks);
  other.terms = other.priced->cost(size_);
  other.is_settled = is_settled_by_price(chunks);
  other.is_alternative = true;
  other.wants_alternatives = false;
  offers_.push_back(std::move(other));
}

// What cannot be simulated as a whole is simulated in two ways: its first chunks, all of them as long as they are (the
// others go on at the pace of the second half of these), and the whole vector in as many longer chunks. What they wait
// more counts. Returns 0 when even that takes too long.
double Finals::simulated_seconds(const Offer& offer) {
  const std::int64_t chunks = offer.plan.num_chunks;
  const double whole = run_seconds(offer.plan, chunks, size_);
  if (whole > 0) return whole;
  const double affordable = messages_of_one_ / last_messages_ * static_cast<double>(chunks);
  const std::int64_t many = std::max(kFewestChunks, static_cast<std::int64_t>(affordable));
  if (many >= chunks) return 0;
  const double chunk = size_ / static_cast<double>(chunks);
  const std::int64_t few = many / 2;
  const double half = run_seconds(offer.plan, few, chunk * static_cast<double>(few));
  const double both = half > 0 ? run_seconds(offer.plan, many, chunk * static_cast<double>(many)) : 0;
  if (both <= half) return 0;
  const double pace = (both - half) / static_cast<double>(many - few);
  const double longer = run_seconds(offer.plan, many, size_) - offer.priced->pipelined_cost(size_, many).total();
  return std::max(both + pace * static_cast<double>(chunks - many), offer.terms.total() + longer);
}

// 0 when that takes too long.
double Finals::run_seconds(Plan plan, std::int64_t chunks, double size_floats) {
  SimulationOptions options;
  options.model = options_.kind;
  options.degree = options_.degree;
  options.keep_path = false;
  bool is_begun = false;
  options.progress = [&](const SimulationProgress& p) {
    if (is_begun) return true;
    is_begun = true;
    const double simulated =
        std::max(p.flows * static_cast<double>(p.rank_classes) / static_cast<double>(topology_.num_servers()), 1.0);
    last_messages_ = simulated;
    if (simulated > (chunks > kFewestChunks ? 1 : kFewFactor) * messages_of_one_) return false;
    messages_left_ -= simulated;
    return true;
  };
  plan.num_chunks = chunks;
  try {
    const Simulation run = gar::simulate(plan, topology_, size_floats, options);
    return run.is_complete ? run.seconds : 0;
  } catch (const Error&) {  // so many messages that they are not even counted
    last_messages_ = std::numeric_limits<double>::infinity();
    return 0;
  }
}

void Finals::offer(Plan plan, std::vector<SwitchChoice> switches) { add(priced(plan, std::move(switches))); }

void Finals::offer_flat(Plan plan, const AlgorithmSpec& spec, SwitchChoice choice) {
  add(priced(plan, {std::move(choice)}, &spec));
}

// Whatever a simulation says of the chunks, the vector may also run in one piece, and that needs none.
void Finals::add(Offer offer) {
  offers_.push_back(std::move(offer));
  if (simulates_) add_alternative(offers_.size() - 1, 1);
}

void Finals::offer_if_better(Plan plan, std::vector<SwitchChoice> switches) {
  Offer offer = priced(plan, std::move(switches));
  if (offer.terms.total() < least()) add(std::move(offer));
}

// Not in few chunks: while shares move, the price must not jump where one chunk more becomes worth it.
double Finals::seconds_of(const Plan& plan) const {
  const bool is_half = plan.collective != options_.collective;
  const PricedPlan priced(is_half ? as_collective(plan, options_.collective) : plan, topology_, options_);
  return priced.pipelined_cost(size_, priced.best_chunks(size_, limit_)).total();
}

double Finals::least() {
  settle();
  return offers_.empty() ? std::numeric_limits<double>::infinity() : offers_[best()].terms.total();
}

double Finals::least_price() const {
  double least = std::numeric_limits<double>::infinity();
  for (const Offer& offer : offers_) least = std::min(least, offer.terms.total());
  return least;
}

bool Finals::is_short() {
  settle();
  return !offers_.empty() && offers_[best()].priced->few_chunks(size_, most_chunks_) == 1;
}

TreePlan Finals::take() {
  settle();
  TreePlan out;
  if (offers_.empty()) return out;
  const std::size_t chosen = best();
  for (std::size_t i = 0; i < offers_.size(); ++i) {
    const Offer& o = offers_[i];
    if (o.is_alternative && i != chosen) continue;
    Terms terms = o.terms;
    if (i != chosen && terms.total() < offers_[chosen].terms.total()) {  // it was taken to wait, see best()
      terms.beta += (worst_ratio_ - 1) * o.terms.total();
    }
    out.considered.push_back(
        {o.plan.algorithm == "gentree+" ? plan_words(o.switches) : o.plan.algorithm, o.plan.num_chunks, terms});
  }
  std::stable_sort(out.considered.begin(), out.considered.end(),
                   [](const PlanCandidate& a, const PlanCandidate& b) { return a.seconds() < b.seconds(); });
  out.plan = std::move(offers_[chosen].plan);
  out.switches = std::move(offers_[chosen].switches);
  out.priced = std::move(offers_[chosen].priced);
  return out;
}

TreePlan settled(const Plan& plan, const Topology& topology, double size_floats, const ModelOptions& options) {
  Finals finals(topology, size_floats, options);
  finals.offer(plan, {});
  return finals.take();
}

}  // namespace gar::plus
