// The door of the planner: algorithms by name, and the policy that decides between plans that are nearly as good.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "planner/flat.hpp"
#include "planner/flat_prices.hpp"

namespace gar {

namespace {

/// Does the model know what messages cost? Without that it finds the many messages of an exchange too cheap.
bool knows_messages(const PlanRequest& request) {
  if (!has_handling(request.model.kind)) return false;
  for (NodeId id = 0; id < request.topology.num_nodes(); ++id) {
    const Node& node = request.topology.node(id);
    if (node.is_server() && node.server.mu <= 0) return false;
  }
  return true;
}

/// May gentree+ end a plan in exchanges? These have no halves. And what a communicator measures of the cost of a
/// message when it is made is rough, so that it could take those of many messages where they are slower: it considers
/// those that depend least on it (decide_as_communicators_do), and tries others when it explores.
bool may_exchange(const PlanRequest& request) {
  return request.model.exchanges && request.collective == Collective::kAllReduce &&
         request.policy != Policy::kRuntime && knows_messages(request);
}

/// Plans with one of the tree planners.
PlanAnswer plan_tree(const AlgorithmSpec& spec, const PlanRequest& request, const std::shared_ptr<FlatPrices>& prices) {
  ModelOptions plus = request.model;
  plus.exchanges = may_exchange(request);
  plus.simulates = plus.simulates && request.policy == Policy::kModel;
  plus.collective = request.collective;
  TreePlan tree = spec.name == "gentree+" ? gentree_plus(request.topology, request.size_floats, plus, prices)
                                          : gentree(request.topology, request.size_floats,
                                                    {.rearrange = spec.name == "gentree", .model = request.model});
  PlanAnswer out;
  out.spec = spec;
  out.plan =
      tree.plan.collective == request.collective ? std::move(tree.plan) : as_collective(tree.plan, request.collective);
  out.priced =
      tree.priced ? tree.priced : std::make_shared<const PricedPlan>(out.plan, request.topology, request.model);
  out.switches = std::move(tree.switches);
  out.considered = std::move(tree.considered);
  return out;
}

/// Plans with a flat algorithm; hcps and hring without factors get the best ones.
PlanAnswer plan_flat(const AlgorithmSpec& spec, const PlanRequest& request) {
  ModelOptions model = request.model;
  model.collective = request.collective;
  Prediction best = Predictor(request.topology, {spec}, model).at(request.size_floats).front();
  const std::int64_t n = request.topology.num_servers();
  PlanAnswer out;
  out.spec = std::move(best.spec);
  out.plan = as_collective(n == 1 ? cps(1) : build_plan(out.spec, n), request.collective);
  out.priced = std::move(best.priced);
  if (n > 1) out.switches.push_back(flat_choice(request.topology, out.spec, best.terms));
  out.num_considered = best.num_considered;
  return out;
}

PlanAnswer plan_with(const AlgorithmSpec& spec, const PlanRequest& request,
                     const std::shared_ptr<FlatPrices>& prices = nullptr) {
  PlanAnswer out = is_tree_planner(spec) ? plan_tree(spec, request, prices) : plan_flat(spec, request);
  out.terms = out.priced->cost(request.size_floats);
  return out;
}

PlanAnswer best_of(const PlanRequest& request, const std::shared_ptr<FlatPrices>& prices) {
  std::vector<AlgorithmSpec> algorithms = request.algorithms;
  if (algorithms.empty()) algorithms.push_back(parse_algorithm("gentree+"));
  PlanAnswer best;
  std::vector<PlanCandidate> asked;
  for (const AlgorithmSpec& spec : algorithms) {
    PlanAnswer one = plan_with(spec, request, prices);
    asked.push_back({to_string(one.spec), one.plan.num_chunks, one.terms});
    if (asked.size() == 1 || one.seconds() < best.seconds()) best = std::move(one);
  }
  best.asked = std::move(asked);
  return best;
}

/// Where ranks hear from others in one stage than in the next, a stage also costs what the model does not know: early
/// senders meet late ones of the stage before. In a ring every rank hears from one other rank only. How much it is was
/// measured, or nothing is known of it.
void prefer_ring(const PlanRequest& request, PlanAnswer& answer) {
  if (request.overlap <= 1 || answer.plan.num_ranks < 3 || plan_name(answer) == "ring") return;
  PlanAnswer ring = plan_with(parse_algorithm("ring"), request);
  const double excess = ring.seconds() / answer.seconds() - 1;
  if (excess > request.overlap - 1) return;
  ring.passed_over = PassedOver{plan_name(answer), excess, request.overlap};
  ring.asked = std::move(answer.asked);
  ring.considered = std::move(answer.considered);
  answer = std::move(ring);
}

/// What one more sender than the threshold costs, over what a float takes: the most of all links.
double incast_share(const Topology& topology) {
  double out = 0;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    const LinkParams& link = topology.node(id).uplink;
    if (id != topology.root() && link.beta > 0) out = std::max(out, link.epsilon / link.beta);
  }
  return out;
}

/// In chunks several stages are under way at once, so senders of one meet those of another at a port, at least one more
/// than each stage has by itself. The price of chunks does not have that: it is added here, and the vector stays whole
/// where that is then predicted to take no longer.
void prefer_whole(const PlanRequest& request, PlanAnswer& answer) {
  const double share = incast_share(request.topology);
  if (share <= 0 || answer.plan.num_chunks < 2) return;
  PlanRequest whole = request;
  whole.model.max_chunks = 1;
  PlanAnswer other = plan_with(answer.spec, whole);
  PlanAnswer own = answer;
  own.plan.num_chunks = 1;
  own.priced = std::make_shared<const PricedPlan>(own.plan, request.topology, whole.model);
  own.terms = own.priced->cost(request.size_floats);
  // Of plans that differ by rounding alone this one, so that the choice does not change from size to size.
  constexpr double kRounding = 1e-9;
  if (own.seconds() <= (1 + kRounding) * other.seconds()) other = std::move(own);
  if (other.seconds() > answer.seconds() + share * answer.terms.beta) return;
  other.asked = std::move(answer.asked);
  answer = std::move(other);
}

/// Lets another plan take the place of the answer if it is predicted to take less time; a quick one also if it is
/// longer by no more than what plans take beyond their stages.
void offer(PlanAnswer other, const QuickGather& quick, PlanAnswer& answer) {
  const auto is_longer = [&](const PlanCandidate& known) { return known.seconds() > other.seconds(); };
  answer.considered.insert(std::find_if(answer.considered.begin(), answer.considered.end(), is_longer),
                           {to_string(other.spec), other.plan.num_chunks, other.terms});
  const bool is_less =
      other.is_quick ? other.seconds() <= answer.seconds() + quick.plan_seconds : other.seconds() < answer.seconds();
  if (!is_less) return;
  other.asked = std::move(answer.asked);
  other.considered = std::move(answer.considered);
  answer = std::move(other);
}

/// The gather as the transport runs it, where the vector is short enough.
std::optional<PlanAnswer> quick_gather(const PlanRequest& request) {
  if (4 * request.size_floats > request.quick_gather.max_bytes) return std::nullopt;
  const std::int64_t n = request.topology.num_servers();
  PlanAnswer out;
  out.spec = parse_algorithm("gather");
  out.plan = gather(n);
  out.priced = std::make_shared<const PricedPlan>(out.plan, request.topology, request.model);
  out.terms = cost_of(request.quick_gather, *out.priced, n, request.collective, request.size_floats);
  out.switches.push_back(flat_choice(request.topology, out.spec, out.terms));
  out.is_quick = true;
  return out;
}

/// Policy::kRuntime, for what gentree+ has found.
void decide_as_communicators_do(const PlanRequest& request, PlanAnswer& answer) {
  const bool has_exchanges = request.collective == Collective::kAllReduce && answer.plan.num_ranks > 1;
  if (has_exchanges && answer.spec.name == "gather") {
    if (std::optional<PlanAnswer> quick = quick_gather(request)) {
      quick->asked = std::move(answer.asked);
      answer = std::move(*quick);
    }
  }
  if (answer.spec.name != "gentree+") return;
  prefer_whole(request, answer);
  prefer_ring(request, answer);
  if (!has_exchanges || !request.model.exchanges) return;
  // In one memory all ranks see a vector as early as one of them does, so there is nothing to double.
  const QuickGather& quick_way = request.quick_gather;
  if (quick_way.num_rounds > 0 && !quick_way.is_read_in_place) {
    offer(plan_with(parse_algorithm("recursive-doubling"), request), quick_way, answer);
  }
  if (std::optional<PlanAnswer> quick = quick_gather(request)) offer(std::move(*quick), quick_way, answer);
}

}  // namespace

SwitchChoice flat_choice(const Topology& topology, const AlgorithmSpec& spec, const Terms& terms) {
  SwitchChoice out;
  out.node = topology.root();
  out.name = topology.node(topology.root()).name;
  out.algorithm = spec.name == "hring" ? "ring" : spec.name;
  out.factors = spec.factors.empty() ? std::vector<std::int64_t>{topology.num_servers()} : spec.factors;
  out.is_uneven = spec.uneven;
  out.terms = terms;
  return out;
}

QuickGather message_gather(std::int64_t num_ranks) {
  // Room for what is worth asking the model about; beyond 128 ranks all plans are better. With a vector goes the word
  // of a communicator that explores.
  constexpr double kWord = 64;
  constexpr double kHeader = 64;
  QuickGather out;
  out.num_rounds = 1;
  out.max_bytes = num_ranks < 2 ? 0 : num_ranks <= 32 ? 4096 + kWord : num_ranks <= 128 ? 512 + kWord : 0;
  while ((std::int64_t{1} << out.num_rounds) < num_ranks) ++out.num_rounds;
  // Every message has a header, here and in plans; but here each vector brings its own.
  out.header_bytes =
      kHeader * (1 - static_cast<double>(out.num_rounds) / std::max(static_cast<double>(num_ranks - 1), 1.0));
  return out;
}

Terms cost_of(const QuickGather& quick, const PricedPlan& gather, std::int64_t num_ranks, Collective collective,
              double size_floats) {
  const auto n = static_cast<double>(num_ranks);
  const double floats = collective == Collective::kAllGather ? size_floats / n : size_floats;
  Terms out = gather.cost(floats);
  out.beta = gather.cost(floats + quick.header_bytes / 4).beta;
  if (quick.num_rounds > 1) {
    out.alpha *= quick.num_rounds;
    out.mu *= quick.num_rounds / (n - 1);
    out.epsilon = 0;  // one sender at a time
  }
  if (quick.is_read_in_place) out.beta /= n - 1;
  if (collective == Collective::kReduceScatter) {
    out.gamma /= n;
    out.delta /= n;
  }
  if (collective == Collective::kAllGather) out.gamma = 0;
  return out;
}

PlanAnswer plan(const PlanRequest& request) { return plan(request, nullptr); }

PlanAnswer plan(const PlanRequest& request, const std::shared_ptr<FlatPrices>& prices) {
  if (!(request.size_floats >= 0 && request.size_floats <= kMaxFloats)) {
    throw InvalidArgument(fmt::format("a vector of {} floats cannot be planned; expected a number from 0 to {:g}",
                                      request.size_floats, kMaxFloats));
  }
  PlanAnswer out = best_of(request, prices);
  if (request.policy == Policy::kRuntime) decide_as_communicators_do(request, out);
  out.bound = lower_bound(request.topology, request.size_floats, request.collective, request.model.kind);
  require_finite(out.seconds(), fmt::format("the cost of {}", to_string(out.spec)));
  require_finite(out.bound.seconds(), "the lower bound");
  if (request.with_optimality && request.collective == Collective::kAllReduce) {
    out.optimality = optimality(out.plan, request.topology);
  }
  return out;
}

void check_algorithm(const AlgorithmSpec& spec, std::int64_t num_ranks) {
  if (is_tree_planner(spec)) return;
  if (spec.factors.empty() && (needs_factors(spec) || num_ranks == 1)) return;
  (void)build_plan(spec, num_ranks);  // the builder checks the factors; what it builds is small
}

}  // namespace gar
