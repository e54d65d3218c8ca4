// The public face of the engine, and the communicators that need no MPI.
#include "gar/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "gar/stats.hpp"
#include "runtime/arguments.hpp"
#include "runtime/caches.hpp"
#include "runtime/calibrate.hpp"
#include "runtime/engine.hpp"
#include "runtime/transports/shared/exchange_once.hpp"
#include "runtime/transports/shared/shared_survival.hpp"
#include "runtime/transports/shared/shared_transport.hpp"

namespace gar {

namespace {

/// In a forked child nothing of an engine can be ended properly; the memory goes with the process.
void leak(std::shared_ptr<Engine> engine) { static_cast<void>(new std::shared_ptr<Engine>(std::move(engine))); }

}  // namespace

struct Communicator::Impl {
  explicit Impl(std::shared_ptr<Engine> e) : engine(std::move(e)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (engine->is_own_process()) {
      engine->close();
    } else {
      leak(std::move(engine));
    }
  }

  std::shared_ptr<Engine> engine;  ///< requests keep it as well
};

struct Request::Impl {
  std::shared_ptr<Engine> engine;
  std::shared_ptr<Engine::Task> task;
};

Request::Request(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Request::Request(Request&&) noexcept = default;

Request& Request::operator=(Request&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

Request::~Request() {
  if (impl_ != nullptr && !impl_->engine->is_own_process()) {
    leak(std::move(impl_->engine));
    return;
  }
  try {
    wait();
  } catch (...) {  // NOLINT(bugprone-empty-catch): a caller that wants to know calls wait
  }
}

void Request::start() {
  if (impl_ == nullptr) throw InvalidArgument("start: this request belongs to no operation");
  impl_->engine->start(impl_->task);
}

bool Request::test() { return impl_ == nullptr || impl_->engine->test(*impl_->task); }

void Request::wait() {
  if (impl_ != nullptr) impl_->engine->wait(*impl_->task);
}

Members Request::members() const {
  if (impl_ == nullptr) throw InvalidArgument("members: this request belongs to no operation");
  return impl_->engine->members_of(*impl_->task);
}

void Request::detach() { impl_.reset(); }

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

int Communicator::rank() const { return impl_->engine->visible_rank(); }
int Communicator::size() const { return impl_->engine->visible_size(); }
Members Communicator::members() const { return impl_->engine->visible_members(); }
Growth Communicator::grow() { return impl_->engine->grow(); }

void Communicator::run(const CollectiveCall& call) { impl_->engine->run(call); }
void Communicator::run(const CollectiveCall& call, Stream stream) { impl_->engine->run(call, stream); }
void Communicator::move(const MovementCall& call) { impl_->engine->move(call); }
void Communicator::barrier() { impl_->engine->barrier(); }
void Communicator::synchronize(Stream stream) { impl_->engine->synchronize(stream); }

Request Communicator::prepare(const CollectiveCall& call, Completion on_complete) {
  Request request = make_request(call, std::move(on_complete));
  request.impl_->task->is_persistent = true;
  return request;
}

Request Communicator::start(const CollectiveCall& call, Completion on_complete) {
  Request request = make_request(call, std::move(on_complete));
  request.start();
  return request;
}

Request Communicator::start_move(const MovementCall& call, Completion on_complete) {
  auto task = impl_->engine->task_of(call);
  task->on_complete = std::move(on_complete);
  Request request(std::make_shared<Request::Impl>(Request::Impl{impl_->engine, std::move(task)}));
  request.start();
  return request;
}

void Communicator::check_lengths(Collective what, std::size_t in, std::size_t out) const {
  const auto ranks = static_cast<std::size_t>(size());
  const std::string lengths = fmt::format("`in` has {} elements and `out` has {}; expected", in, out);
  if (what == Collective::kReduceScatter && in != out * ranks) {
    throw InvalidArgument(
        fmt::format("reduce_scatter: {} {} in `in`, {} for each of the {} ranks", lengths, out * ranks, out, ranks));
  }
  if (what == Collective::kAllGather && out != in * ranks) {
    throw InvalidArgument(
        fmt::format("all_gather: {} {} in `out`, {} from each of the {} ranks", lengths, in * ranks, in, ranks));
  }
  if (what == Collective::kAllReduce && in != out) {
    throw InvalidArgument(fmt::format("all_reduce: {} the same number", lengths));
  }
}

Request Communicator::make_request(const CollectiveCall& call, Completion on_complete) {
  Engine& engine = *impl_->engine;
  engine.check(call);
  engine.check_overlap(call);
  auto task = std::make_shared<Engine::Task>();
  task->call = call;
  task->path = engine.path_to_run(call);
  task->on_complete = std::move(on_complete);
  return Request(std::make_shared<Request::Impl>(Request::Impl{impl_->engine, std::move(task)}));
}

PlanReport Communicator::report(Collective collective, std::int64_t count, DataType type, ReduceOp op) {
  CollectiveCall call{.collective = collective, .count = count, .type = type, .op = op};
  call.in = call.out = &call;  // never read
  impl_->engine->check(call);
  return impl_->engine->report_of(call);
}

Decisions Communicator::decisions() const { return impl_->engine->decisions(); }

std::string Communicator::keep_decisions() { return impl_->engine->keep(); }

bool Communicator::is_settled(std::int64_t count, DataType type) const {
  CollectiveCall call{.count = count, .type = type};
  call.in = call.out = &call;  // never read
  impl_->engine->check(call);
  return impl_->engine->is_settled(call);
}

Communicator make_communicator(std::unique_ptr<Transport> transport, const CommunicatorOptions& options,
                               const Topology& default_topology) {
  return make_communicator(std::move(transport), options, default_topology, Exploration());
}

Communicator make_communicator(std::unique_ptr<Transport> transport, const CommunicatorOptions& options,
                               const Topology& default_topology, Exploration exploration,
                               std::optional<Topology> short_network) {
  return make_communicator(std::move(transport), options, default_topology, std::move(exploration),
                           std::move(short_network), nullptr);
}

Communicator make_communicator(std::unique_ptr<Transport> transport, const CommunicatorOptions& options,
                               const Topology& default_topology, Exploration exploration,
                               std::optional<Topology> short_network, std::unique_ptr<Survival> survival) {
  const bool is_newcomer = survival != nullptr && survival->members()->generation > 0;
  const int size = transport->size();
  auto engine = std::make_shared<Engine>(std::move(transport), is_newcomer ? options_between(options, size) : options,
                                         default_topology, std::move(exploration), std::move(short_network));
  if (options.on_failure != OnFailure::kReport) engine->survive(std::move(survival), options.algorithm);
  return Communicator(std::make_unique<Communicator::Impl>(std::move(engine)));
}

namespace {

constexpr std::uint64_t kTellSequence = 100;  // behind all of agree_on_costs and measure_caches
constexpr std::uint64_t kSurvivalSequence = 200;

/// Afterwards `values` are those of rank 0. The time that this takes is what a synchronisation costs.
template <class T>
void share(Transport& transport, std::uint64_t sequence, T& values) {
  values = exchange_once(transport, sequence, values).front();
}

/// Rank 0 measures its kernels while the others wait; then all ranks take part in some exchanges for the latency. Every
/// rank hears of all others in one: what these messages cost is no part of the latency.
LocalCosts agree_on_costs(Transport& transport) {
  LocalCosts costs;
  if (transport.size() == 1) return costs;
  if (transport.rank() == 0) costs = measure_costs();
  share(transport, 1, costs);
  constexpr std::uint64_t kExchanges = 24;
  std::vector<double> times;
  for (std::uint64_t i = 0; i < kExchanges; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    int token = 0;
    share(transport, 2 + i, token);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    times.push_back(time.count());
  }
  const double cores = std::max(1U, std::thread::hardware_concurrency());
  const double crowding = std::max(1.0, transport.size() / cores);
  const MessageCosts messages = split_step(median(std::move(times)), transport.size() - 1, costs.mu * crowding);
  costs.alpha = messages.alpha;
  costs.mu = messages.mu / crowding;
  share(transport, 2 + kExchanges, costs);
  return costs;
}

}  // namespace

void check_size(int size, const char* function) {
  constexpr int kMostRanks = 4096;
  if (size < 1 || size > kMostRanks) {
    throw InvalidArgument(fmt::format("{}: {} ranks; expected 1 to {}", function, size, kMostRanks));
  }
}

void check_membership(std::string_view name, int rank, int size, const char* function) {
  check_size(size, function);
  const auto is_fine = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  constexpr const char* kAccepted = "expected 1 to 100 letters, digits, '-', '_' and '.'";
  if (name.empty() || name.size() > 100) {
    throw InvalidArgument(
        fmt::format("{}: the name '{}' has {} characters; {}", function, name.substr(0, 100), name.size(), kAccepted));
  }
  const auto wrong = std::find_if_not(name.begin(), name.end(), is_fine);
  if (wrong != name.end()) {
    throw InvalidArgument(fmt::format("{}: the name '{}' has a '{}', its character {}; {}", function, name, *wrong,
                                      wrong - name.begin() + 1, kAccepted));
  }
  if (rank < 0 || rank >= size) {
    throw InvalidArgument(fmt::format("{}: rank {} of {}; expected 0 to {}", function, rank, size, size - 1));
  }
}

std::vector<Communicator> thread_communicators(int num_ranks, const CommunicatorOptions& options) {
  check_size(num_ranks, "thread_communicators");
  const CommunicatorOptions complete = with_environment(options, num_ranks);
  const std::shared_ptr<Segment> segment = make_private_segment(suitable_shape(num_ranks, complete.staging_bytes));
  const Topology topology = host_topology(num_ranks, num_ranks == 1 ? LocalCosts() : measure_costs());
  std::vector<Communicator> out;
  const bool explores = num_ranks > 1 && is_exploring(complete, false);
  ToldWinners told;
  std::vector<std::unique_ptr<Survival>> survivals(static_cast<std::size_t>(num_ranks));
  if (complete.on_failure != OnFailure::kReport) survivals = survivals_of_threads(num_ranks, complete);
  for (int rank = 0; rank < num_ranks; ++rank) {
    Exploration exploration;
    exploration.is_on = explores;
    if (explores && rank == 0) {
      exploration.place = place_on_this_host(complete, "threads", num_ranks);
      load(exploration, complete);
      told = exploration.told;
    }
    exploration.told = told;
    out.push_back(make_communicator(
        std::make_unique<SharedTransport>(segment, Membership{rank, num_ranks, {}}, complete.timeout_s), complete,
        topology, std::move(exploration), std::nullopt, std::move(survivals[static_cast<std::size_t>(rank)])));
  }
  return out;
}

Communicator shared_memory_communicator(std::string_view name, int rank, int size, const CommunicatorOptions& options) {
  check_membership(name, rank, size, "shared_memory_communicator");
  const CommunicatorOptions complete = with_environment(options, size);
  const std::shared_ptr<Segment> segment =
      join_segment(name, rank, suitable_shape(size, complete.staging_bytes), complete.timeout_s);
  auto transport = std::make_unique<SharedTransport>(segment, Membership{rank, size, {}}, complete.timeout_s);
  const Topology topology = host_topology(size, agree_on_costs(*transport));
  std::optional<Topology> short_network = measure_caches(*transport, topology);
  try {
    Exploration exploration;
    exploration.is_on = size > 1 && is_exploring(complete, false);
    if (exploration.is_on && rank == 0) {
      exploration.place = place_on_this_host(complete, "shm", size);
      load(exploration, complete);
    }
    // With very many ranks there is little room for exchanges, and nothing is told.
    const bool can_tell = transport->max_exchange_bytes() >= static_cast<std::int64_t>(sizeof(ToldWinners));
    if (!can_tell) exploration.told = {};
    if (exploration.is_on && can_tell) share(*transport, kTellSequence, exploration.told);
    std::unique_ptr<Survival> survival;
    if (complete.on_failure != OnFailure::kReport) {
      survival = survival_of_processes(*transport, name, complete, kSurvivalSequence);
    }
    return make_communicator(std::move(transport), complete, topology, std::move(exploration), std::move(short_network),
                             std::move(survival));
  } catch (const std::exception& e) {
    segment->set_failure(e.what());
    throw;
  }
}

}  // namespace gar
