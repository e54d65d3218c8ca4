// gentree+ on the network that the options, a file or a measurement gives. Sizes are planned per power of two, at the
// middle of the class, so that the choice does not depend on which size came first.
#include "runtime/choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "gar/algorithms.hpp"
#include "gar/environment.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "gar/profile_io.hpp"
#include "gar/topology_io.hpp"
#include "gar/verify.hpp"
#include "runtime/contest.hpp"

namespace gar {

namespace {

constexpr std::string_view kGather = "gather";
constexpr const char* kRing = "ring";
constexpr double kMostOverlap = 1.5;  // a ring further behind is not worth a look: overlapping stages cost less
constexpr double kWordBytes = 8.0 * kTurnBits;  // behind a vector, where the communicator explores
constexpr double kFarOff = 8;                   // times the predicted time of the model's choice: not worth a look

int size_class_of(std::int64_t bytes) {
  return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1)));
}

constexpr double kChunkSeconds = 5e-3;
constexpr std::int64_t kLeastOnSlowLinks = 16 << 10;

/// Bytes of a chunk at least: what the transport says, which is for the links of usual networks. Where all links are so
/// slow that this takes long, what the fastest of them carries in some milliseconds is worth a chunk.
std::int64_t least_chunk(const Topology& topology, std::int64_t bytes) {
  if (bytes == std::numeric_limits<std::int64_t>::max()) return bytes;  // chunks gain nothing here
  double fastest = std::numeric_limits<double>::infinity();
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    if (topology.node(id).is_server()) fastest = std::min(fastest, topology.node(id).uplink.beta);
  }
  if (!(fastest > 0)) return bytes;
  const double in_time = std::min(4 / fastest * kChunkSeconds, static_cast<double>(bytes));
  return std::min(bytes, std::max(kLeastOnSlowLinks, static_cast<std::int64_t>(in_time)));
}

/// Floats of a vector in the middle of a class.
double middle_of(int size_class) { return 1.5 * std::ldexp(1.0, size_class - 1) / 4; }

/// Bytes above all of a class whose middle has this many floats.
double end_of(double middle_floats) { return 4 * middle_floats * 2 / 1.5; }

/// Equal for plans that do the same, whatever they are called.
std::uint64_t nameless_fingerprint(const ChosenPlan& chosen) {
  Plan plan = chosen.plan->plan;
  if (chosen.quick) plan.num_units += 1;  // it runs in another way than its messages
  plan.algorithm.clear();
  return IndexedPlan(std::move(plan)).fingerprint;
}

bool has_incast(const Topology& topology) {
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    if (id != topology.root() && topology.node(id).uplink.epsilon > 0) return true;
  }
  return false;
}

/// Says which variable a complaint is about.
template <class Body>
void blaming(const EnvironmentVariable& variable, const Body& body) {
  try {
    body();
  } catch (const Error& e) {
    throw InvalidArgument(fmt::format("{} in the environment: {}", variable.name, e.what()));
  }
}

/// Is there a ReduceScatter of this algorithm?
bool has_half(const std::string& algorithm, std::int64_t num_ranks) {
  if (algorithm.empty()) return true;
  AlgorithmSpec spec = parse_algorithm(algorithm);
  if (is_tree_planner(spec) || num_ranks == 1) return true;
  if (needs_factors(spec)) spec.factors = {num_ranks};
  return has_halves(build_plan(spec, num_ranks));
}

/// A wrong name, or factors that do not fit, shall be noticed when the communicator is made.
void check_algorithm_text(const std::string& algorithm, int num_ranks) {
  if (algorithm.empty()) return;
  check_algorithm(parse_algorithm(algorithm), num_ranks);
}

void check_topology(const Topology& topology, int num_ranks) {
  if (topology.num_servers() == num_ranks) return;
  throw InvalidArgument(
      fmt::format("the topology '{}' has {} servers, but the communicator has {} ranks; expected one server per rank",
                  topology.name(), topology.num_servers(), num_ranks));
}

void check_numbers(const CommunicatorOptions& options) {
  if (!(options.timeout_s > 0) || !std::isfinite(options.timeout_s)) {
    throw InvalidArgument(fmt::format("timeout_s = {}: expected a number of seconds above 0", options.timeout_s));
  }
  if (options.staging_bytes < 0 || options.staging_bytes > 1'000'000'000'000) {
    throw InvalidArgument(
        fmt::format("staging_bytes = {}: expected 0 (chosen) or a number of bytes for each rank, up to 1e12",
                    options.staging_bytes));
  }
  if (options.latency_bytes < -1) {
    throw InvalidArgument(
        fmt::format("latency_bytes = {}: expected -1 (chosen) or a number of bytes", options.latency_bytes));
  }
  if (!(options.overlap > 0) || !std::isfinite(options.overlap)) {
    throw InvalidArgument(fmt::format("overlap = {}: expected a factor above 0", options.overlap));
  }
  if (!(options.explore_share >= 0 && options.explore_share <= 1)) {
    throw InvalidArgument(fmt::format("explore_share = {}: expected a share from 0 to 1", options.explore_share));
  }
}

}  // namespace

CommunicatorOptions with_environment(CommunicatorOptions options, int num_ranks, bool has_hosts) {
  if (options.algorithm == "auto") options.algorithm.clear();
  if (options.algorithm.empty() && !options.plan) {
    options.algorithm = environment::text(environment::kAlgo);
    if (options.algorithm == "auto") options.algorithm.clear();
    if (options.algorithm == "latency") options.algorithm = kGather;
    blaming(environment::kAlgo, [&] { check_algorithm_text(options.algorithm, num_ranks); });
  }
  if (options.algorithm == "latency") options.algorithm = kGather;  // what it was called before
  options.timeout_s = environment::number(environment::kTimeout).value_or(options.timeout_s);
  if (options.staging_bytes == 0) {
    options.staging_bytes = static_cast<std::int64_t>(environment::number(environment::kStaging).value_or(0));
  }
  if (const std::string text = environment::text(environment::kTopology); !text.empty() && !options.topology) {
    blaming(environment::kTopology, [&] {
      if (const std::optional<Profile> profile = find_profile(text)) {
        options.topology = profile->topology;
        options.overlap = overlap_of(*profile);
      } else {
        options.topology = load_topology(text);
      }
      if (!has_hosts) check_topology(*options.topology, num_ranks);
    });
  }
  if (!options.explores) options.explores = environment::flag(environment::kExplore);
  check_numbers(options);
  const std::string debug = environment::text(environment::kDebug);
  if (!debug.empty() && debug != "INFO" && debug != "WARN" && debug != "0")
    environment::refuse(environment::kDebug, debug);
  return options;
}

CommunicatorOptions options_between(CommunicatorOptions options, int num_ranks) {
  options.topology.reset();
  options.plan.reset();
  try {
    if (!options.algorithm.empty()) check_algorithm(parse_algorithm(options.algorithm), num_ranks);
  } catch (const Error&) {
    options.algorithm.clear();
  }
  return options;
}

double ChosenPlan::seconds(Collective collective, double floats) const {
  if (priced == nullptr) return -1;
  const Terms terms = quick ? cost_of(*quick, *priced, plan->plan.num_ranks, collective, floats) : priced->cost(floats);
  return terms.total();
}

Chooser::Chooser(const CommunicatorOptions& options, const Topology& default_topology, int num_ranks,
                 std::int64_t least_chunk_bytes, const ShortVectors& short_vectors)
    : algorithm_(options.algorithm),
      plan_(options.plan),
      latency_bytes_(options.latency_bytes),
      quick_(short_vectors.quick),
      most_quick_(short_vectors.quick.max_bytes),
      overlap_(options.overlap),
      topology_(options.topology ? *options.topology : default_topology),
      near_(!options.topology && short_vectors.network ? *short_vectors.network : topology_),
      least_chunk_bytes_(least_chunk(topology_, least_chunk_bytes)) {
  check_topology(topology_, num_ranks);
  check_algorithm_text(algorithm_, num_ranks);
  const bool has_choice = latency_bytes_ < 0 && !plan_ && (algorithm_.empty() || algorithm_ == kGather);
  quick_.max_bytes = has_choice ? std::max(most_quick_ - kWordBytes, 0.0) : 0;
  if (plan_) {
    if (plan_->num_ranks != num_ranks) {
      throw PlanError(
          fmt::format("the plan is for {} ranks, but the communicator has {}", plan_->num_ranks, num_ranks));
    }
    if (plan_->collective != Collective::kAllReduce) throw PlanError("expected the plan of an AllReduce");
    const VerifyReport report = verify(*plan_);
    if (!report.ok) throw PlanError("the plan is wrong: " + report.problem);
  }
}

bool Chooser::is_told_to_gather(std::int64_t bytes) const {
  return latency_bytes_ >= bytes && static_cast<double>(bytes) <= most_quick_ && algorithm_.empty() && !plan_;
}

ChosenPlan Chooser::gathered() const {
  ChosenPlan out;
  out.name = kGather;
  out.reason = "all vectors at once; so short that nothing was compared";
  out.quick = quick_;
  out.plan = std::make_shared<IndexedPlan>(gather(topology_.num_servers()));
  out.priced = std::make_shared<PricedPlan>(out.plan->plan, topology_);
  return out;
}

ChosenPlan Chooser::make(double size_floats, const std::string& algorithm) const {
  if (plan_) {
    ChosenPlan out;
    out.name = plan_->algorithm;
    out.reason = "the plan that was given";
    if (!plan_->is_explicit()) out.priced = std::make_shared<PricedPlan>(*plan_, topology_);
    out.plan = std::make_shared<IndexedPlan>(*plan_);
    return out;
  }
  return planned(size_floats, algorithm, Collective::kAllReduce);
}

ChosenPlan Chooser::planned(double size_floats, const std::string& algorithm, Collective collective) const {
  ChosenPlan out;
  const AlgorithmSpec spec = parse_algorithm(algorithm.empty() ? "gentree+" : algorithm);
  const bool is_near = end_of(size_floats) <= most_quick_;
  PlanRequest request{.topology = is_near ? near_ : topology_,
                      .size_floats = size_floats,
                      .algorithms = {spec},
                      .collective = collective,
                      .policy = Policy::kRuntime,
                      .overlap = overlap_};
  if (end_of(size_floats) <= quick_.max_bytes) request.quick_gather = quick_;
  request.model.max_chunks = std::max<std::int64_t>(1, static_cast<std::int64_t>(4 * size_floats) / least_chunk_bytes_);
  PlanAnswer answer = gar::plan(request);
  const bool has_found_factors = answer.spec.factors != spec.factors;
  out.name = plan_name(answer);
  if (answer.is_quick) out.quick = quick_;
  out.reason = spec.name == "gentree+" ? choice_words(answer, topology_)
               : answer.is_quick       ? "the algorithm that was asked for, all vectors at once"
               : has_found_factors     ? "the algorithm that was asked for, with the best factors"
                                       : "the algorithm that was asked for";
  for (const PlanCandidate& other : answer.considered) out.others.push_back(other.algorithm);
  out.priced = std::move(answer.priced);
  out.plan = std::make_shared<IndexedPlan>(std::move(answer.plan));
  return out;
}

int Chooser::num_special(std::int64_t bytes) const {
  const bool can_gather = end_of(middle_of(size_class_of(bytes))) <= quick_.max_bytes;
  return (can_gather ? 1 : 0) + (has_incast(topology_) ? 1 : 0);
}

std::vector<ChosenPlan> Chooser::others(std::int64_t bytes, int most, const std::string& wanted) {
  const ChosenPlan& first = choose(Collective::kAllReduce, bytes);
  const double floats = middle_of(size_class_of(bytes));
  std::vector<std::string> names;
  if (!wanted.empty() && wanted != first.name) names.push_back(wanted);
  // What the model knows least about is worth a look: the gather of the transport, plans that end in exchanges, and
  // where links suffer from incast a ring, in which no rank has a second sender.
  if (end_of(floats) <= quick_.max_bytes) names.emplace_back(kGather);
  if (has_incast(topology_)) names.emplace_back(kRing);
  names.insert(names.end(), {"recursive-doubling", "recursive-multiplying"});
  names.insert(names.end(), first.others.begin(), first.others.end());
  const double nearest = first.seconds(Collective::kAllReduce, floats);
  const double longest = first.priced ? kFarOff * nearest : std::numeric_limits<double>::infinity();
  std::vector<ChosenPlan> out;
  std::vector<std::uint64_t> known{nameless_fingerprint(first)};
  for (const std::string& name : names) {
    if (std::cmp_greater_equal(out.size(), most)) break;
    try {
      ChosenPlan plan = make(floats, name);
      const double seconds = plan.seconds(Collective::kAllReduce, floats);
      if (name != wanted && seconds > longest) continue;
      if (name == kRing && name != wanted && seconds > kMostOverlap * nearest) continue;
      const std::uint64_t fingerprint = nameless_fingerprint(plan);
      const auto has_its_name = [&](const ChosenPlan& other) { return other.name == plan.name; };
      if (std::find(known.begin(), known.end(), fingerprint) != known.end() || has_its_name(first) ||
          std::any_of(out.begin(), out.end(), has_its_name)) {
        continue;
      }
      known.push_back(fingerprint);
      out.push_back(std::move(plan));
    } catch (const Error&) {
      continue;  // a tree that has no name on the command line, or a name from a file that says nothing here
    }
  }
  return out;
}

// A plan for a ReduceScatter or an AllGather of its own, unless what was asked for has no halves.
ChosenPlan Chooser::half(double size_floats, Collective collective) const {
  if (plan_ ? has_halves(*plan_) : has_half(algorithm_, topology_.num_servers())) {
    if (!plan_) return planned(size_floats, algorithm_, collective);
    ChosenPlan out = make(size_floats, algorithm_);
    out.plan = std::make_shared<IndexedPlan>(as_collective(*plan_, collective));
    out.priced = std::make_shared<PricedPlan>(out.plan->plan, topology_);
    return out;
  }
  ChosenPlan out = planned(size_floats, {}, collective);
  out.reason =
      plan_ ? "the plan that was given is for AllReduce only" : fmt::format("'{}' is for AllReduce only", algorithm_);
  return out;
}

const ChosenPlan& Chooser::choose(Collective collective, std::int64_t bytes) {
  const int size_class = size_class_of(bytes);
  const auto known = plans_.find({collective, size_class});
  if (known != plans_.end()) return known->second;
  if (collective == Collective::kAllReduce) {
    return plans_[{collective, size_class}] = make(middle_of(size_class), algorithm_);
  }
  const double floats = middle_of(size_class);
  ChosenPlan out = half(floats, collective);
  if (gathers(out, collective, floats)) {
    const std::string instead_of = out.name;
    out = gathered();
    out.reason = fmt::format("all vectors at once; predicted to take no longer than {}", instead_of);
  }
  return plans_[{collective, size_class}] = std::move(out);
}

bool Chooser::gathers(const ChosenPlan& half, Collective collective, double floats) const {
  const auto n = static_cast<double>(topology_.num_servers());
  const double most_bytes = end_of(floats) / (collective == Collective::kAllGather ? n : 1);
  if (most_bytes > quick_.max_bytes || n < 2) return false;
  const double seconds = gathered().seconds(collective, floats);
  return half.priced == nullptr || seconds <= half.seconds(collective, floats) + quick_.plan_seconds;
}

}  // namespace gar
