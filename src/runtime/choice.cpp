// gentree+ on the network that the options, a file or a measurement gives. Sizes are planned per power of two, at the
// middle of the class, so that the choice does not depend on which size came first.
#include "runtime/choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "gar/algorithms.hpp"
#include "gar/io.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "gar/verify.hpp"

namespace gar {

namespace {

constexpr std::int64_t kDefaultLatencyBytes = 16 << 10;
constexpr std::string_view kLatency = "latency";  // an algorithm of the transports

/// hcps and hring without factors: the model finds them.
bool is_open(const AlgorithmSpec& spec) {
  return spec.factors.empty() && (spec.name == "hcps" || spec.name == "hring");
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): only read
  return value == nullptr ? std::string() : std::string(value);
}

double number_from(const char* name, const std::string& text, double smallest, const char* accepted,
                   double largest = 1e9) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < smallest ||
      value > largest) {
    throw InvalidArgument(fmt::format("{}={} in the environment: accepted is {}", name, text, accepted));
  }
  return value;
}

/// Says which variable a complaint is about.
template <class Body>
void blaming(const char* variable, const Body& body) {
  try {
    body();
  } catch (const Error& e) {
    throw InvalidArgument(fmt::format("{} in the environment: {}", variable, e.what()));
  }
}

/// A wrong name, or factors that do not fit, shall be noticed when the communicator is made.
void check_algorithm(const std::string& algorithm, int num_ranks) {
  if (algorithm.empty() || algorithm == kLatency) return;
  const AlgorithmSpec spec = parse_algorithm(algorithm);
  if (!is_tree_planner(spec) && !is_open(spec)) build_plan(spec, num_ranks);
}

void check_topology(const Topology& topology, int num_ranks) {
  if (topology.num_servers() == num_ranks) return;
  throw InvalidArgument(fmt::format(
      "the topology '{}' has {} servers, but the communicator has {} ranks; accepted is one server per rank",
      topology.name(), topology.num_servers(), num_ranks));
}

void check_numbers(const CommunicatorOptions& options) {
  if (!(options.timeout_s > 0) || !std::isfinite(options.timeout_s)) {
    throw InvalidArgument(fmt::format("timeout_s = {}: accepted is a number of seconds above 0", options.timeout_s));
  }
  if (options.staging_bytes < 0 || options.staging_bytes > 1'000'000'000'000) {
    throw InvalidArgument(
        fmt::format("staging_bytes = {}: accepted is 0 (chosen) or a number of bytes for each rank, up to 1e12",
                    options.staging_bytes));
  }
  if (options.latency_bytes < -1) {
    throw InvalidArgument(
        fmt::format("latency_bytes = {}: accepted is -1 (chosen) or a number of bytes", options.latency_bytes));
  }
}

std::string reason_of(const TreePlan& tree, const Topology& topology) {
  std::string where;
  for (const SwitchChoice& choice : tree.switches) {
    if (tree.switches.size() > 1) {
      where += fmt::format("{} {} {}; ", choice.name, choice.algorithm, fmt::join(choice.factors, "x"));
    }
  }
  where += fmt::format("least predicted time on '{}'", topology.name());
  for (const PlanCandidate& other : tree.considered) {
    // The same plan may be there under several names.
    const double excess = other.seconds / tree.considered.front().seconds - 1;
    if (excess > 1e-3) return fmt::format("{}; next is {}, {:.1f}% longer", where, other.algorithm, 100 * excess);
  }
  return where;
}

std::string name_of(const TreePlan& tree) {
  if (tree.switches.size() != 1 || tree.plan.algorithm != "gentree+") return tree.plan.algorithm;
  const SwitchChoice& choice = tree.switches.front();
  if (choice.factors.size() < 2) return choice.algorithm;
  return fmt::format("{}:{}", choice.algorithm, fmt::join(choice.factors, "x"));
}

bool has_incast(const Topology& topology) {
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    if (id != topology.root() && topology.node(id).uplink.epsilon > 0) return true;
  }
  return false;
}

/// Deviation from least predicted time: where senders that meet lose data, a stage that begins with another sender than
/// the stage before also costs what the model does not know (a connection that has been idle starts slowly, and ranks
/// are not equally late). In a ring nobody ever meets another sender; so it is taken where it is predicted to be nearly
/// as good.
constexpr double kRingMargin = 0.05;

struct RingInstead {
  Plan plan;
  double excess = 0;  ///< of its predicted time
};
std::optional<RingInstead> ring_instead(const TreePlan& tree, const Topology& topology, double size_floats) {
  if (!has_incast(topology) || tree.plan.num_ranks < 3 || name_of(tree) == "ring") return std::nullopt;
  RingInstead out{build_plan(parse_algorithm("ring"), tree.plan.num_ranks)};
  out.excess = PricedPlan(out.plan, topology).cost(size_floats).total() / tree.considered.front().seconds - 1;
  if (out.excess > kRingMargin) return std::nullopt;
  return out;
}

}  // namespace

CommunicatorOptions with_environment(CommunicatorOptions options, int num_ranks, bool has_hosts) {
  if (options.algorithm == "auto") options.algorithm.clear();
  if (options.algorithm.empty() && !options.plan) {
    options.algorithm = environment("GAR_ALGO");
    if (options.algorithm == "auto") options.algorithm.clear();
    blaming("GAR_ALGO", [&] { check_algorithm(options.algorithm, num_ranks); });
  }
  if (const std::string text = environment("GAR_TIMEOUT"); !text.empty()) {
    options.timeout_s = number_from("GAR_TIMEOUT", text, 1e-3, "a number of seconds, 0.001 to 1e9");
  }
  if (const std::string text = environment("GAR_STAGING"); !text.empty() && options.staging_bytes == 0) {
    options.staging_bytes = static_cast<std::int64_t>(
        number_from("GAR_STAGING", text, 1024, "a number of bytes for each rank, 1024 to 1e12", 1e12));
  }
  if (const std::string text = environment("GAR_TOPOLOGY"); !text.empty() && !options.topology) {
    blaming("GAR_TOPOLOGY", [&] {
      options.topology = load_topology(text);
      if (!has_hosts) check_topology(*options.topology, num_ranks);
    });
  }
  check_numbers(options);
  const std::string debug = environment("GAR_DEBUG");
  if (!debug.empty() && debug != "INFO" && debug != "0") {
    throw InvalidArgument(fmt::format("GAR_DEBUG={} in the environment: accepted is INFO, or 0 for nothing", debug));
  }
  return options;
}

Chooser::Chooser(const CommunicatorOptions& options, const Topology& default_topology, int num_ranks,
                 std::int64_t least_chunk_bytes)
    : algorithm_(options.algorithm),
      plan_(options.plan),
      latency_bytes_(options.latency_bytes),
      topology_(options.topology ? *options.topology : default_topology),
      num_ranks_(num_ranks),
      least_chunk_bytes_(least_chunk_bytes) {
  check_topology(topology_, num_ranks);
  check_algorithm(algorithm_, num_ranks);
  if (plan_) {
    if (plan_->num_ranks != num_ranks) {
      throw PlanError(
          fmt::format("the plan is for {} ranks, but the communicator has {}", plan_->num_ranks, num_ranks));
    }
    if (plan_->collective != Collective::kAllReduce) throw PlanError("accepted is the plan of an AllReduce");
    const VerifyReport report = verify(*plan_);
    if (!report.ok) throw PlanError("the plan is wrong: " + report.problem);
  }
}

bool Chooser::takes_latency_path(std::int64_t bytes, std::int64_t max_bytes) const {
  if (bytes > max_bytes || max_bytes == 0) return false;
  if (algorithm_ == kLatency) return true;
  if (!algorithm_.empty() || plan_) return false;
  return bytes <= (latency_bytes_ >= 0 ? latency_bytes_ : kDefaultLatencyBytes);
}

ChosenPlan Chooser::make(double size_floats) const {
  ChosenPlan out;
  Plan plan;
  const std::string algorithm = algorithm_.empty() || algorithm_ == kLatency ? "gentree+" : algorithm_;
  if (plan_) {
    plan = *plan_;
    out.reason = "the plan that was given";
  } else if (const AlgorithmSpec spec = parse_algorithm(algorithm); spec.name == "gentree+") {
    ModelOptions options;
    options.max_chunks = std::max<std::int64_t>(1, static_cast<std::int64_t>(4 * size_floats) / least_chunk_bytes_);
    TreePlan tree = gentree_plus(topology_, size_floats, options);
    if (std::optional<RingInstead> ring = ring_instead(tree, topology_, size_floats)) {
      out.name = "ring";
      out.reason = fmt::format(
          "predicted to take {:.1f}% longer than {} on '{}', but nobody meets a second sender; up to {:.0f}% that "
          "counts",
          100 * ring->excess, name_of(tree), topology_.name(), 100 * kRingMargin);
      plan = std::move(ring->plan);
    } else {
      out.reason = reason_of(tree, topology_);
      out.name = name_of(tree);
      plan = std::move(tree.plan);
    }
  } else if (is_tree_planner(spec)) {
    plan = gentree(topology_, size_floats, {spec.name == "gentree", {}}).plan;
    out.reason = "the algorithm that was asked for";
  } else if (is_open(spec)) {
    plan = build_plan(Predictor(topology_, {spec}).at(size_floats).front().spec, num_ranks_);
    out.reason = "the algorithm that was asked for, with the best factors";
  } else {
    plan = build_plan(spec, num_ranks_);
    out.reason = "the algorithm that was asked for";
  }
  if (out.name.empty()) out.name = plan.algorithm;
  if (!plan.is_explicit()) {
    ModelOptions options;
    options.overlap = plan.num_chunks > 1;
    out.priced = std::make_shared<PricedPlan>(plan, topology_, options);
  }
  out.plan = std::make_shared<IndexedPlan>(std::move(plan));
  return out;
}

const ChosenPlan& Chooser::choose(Collective collective, std::int64_t bytes) {
  const int size_class = std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1)));
  const auto known = plans_.find({collective, size_class});
  if (known != plans_.end()) return known->second;
  if (collective == Collective::kAllReduce) {
    const double middle = 1.5 * std::ldexp(1.0, size_class - 1) / 4;
    return plans_[{collective, size_class}] = make(middle);
  }
  ChosenPlan half = choose(Collective::kAllReduce, bytes);
  if (half.plan->plan.is_explicit()) {
    half.plan = std::make_shared<IndexedPlan>(gentree_plus(topology_, static_cast<double>(bytes) / 4).plan);
    half.reason = "the plan that was given is for AllReduce only";
  }
  const Plan& whole = half.plan->plan;
  half.plan = std::make_shared<IndexedPlan>(collective == Collective::kReduceScatter ? as_reduce_scatter(whole)
                                                                                     : as_all_gather(whole));
  ModelOptions options;
  options.overlap = half.plan->plan.num_chunks > 1;
  half.priced =
      half.plan->plan.is_explicit() ? nullptr : std::make_shared<PricedPlan>(half.plan->plan, topology_, options);
  return plans_[{collective, size_class}] = std::move(half);
}

}  // namespace gar
