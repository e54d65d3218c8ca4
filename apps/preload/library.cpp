#include "apps/preload/library.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <numeric>
#include <thread>

#include "apps/preload/real.hpp"
#include "apps/preload/sign.hpp"
#include "gar/environment.hpp"
#include "gar/format.hpp"
#include "gar/mpi_library.hpp"
#include "runtime/choice.hpp"
#include "runtime/exploration.hpp"
#include "runtime/transports/mpi/network.hpp"
#include "runtime/transports/mpi/polite.hpp"
#include "topology/hash.hpp"
#include "topology/hosts.hpp"

namespace gar::preload {

namespace {

constexpr int kMaxShadows = 128;
// Setting a communicator up costs some milliseconds; a call that is taken over saves some microseconds, or a part of
// what a long vector takes. Programs that make a communicator, use it once and free it shall not pay for that.
constexpr std::int64_t kCallsToSetUp = 16;
constexpr std::int64_t kBytesToSetUp = 4 << 20;
// What decides whether gar or MPI takes a call: it is the same on all ranks. GAR_COMPARE checks as well, so it comes
// first.
constexpr std::array<const char*, 10> kSameEverywhere{
    "GAR_DISABLE",   "GAR_COMPARE",    "GAR_CHECK",    "GAR_CHECK", "GAR_MIN_BYTES",
    "GAR_MIN_BYTES", "GAR_FAKE_HOSTS", "GAR_TOPOLOGY", "GAR_LIMIT", "GAR_EXPLORE"};
constexpr double kNoLimit = 1e9;  // ranks of a program may be as late as they like

/// Ranks of another job (MPI_Comm_spawn) have decided without us whether they take calls over. All ranks of `comm` come
/// to the same answer, because each of them sees those of the other job.
bool is_part_of_world(MPI_Comm comm) {
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int size = 0;
  MPI_Group_size(group, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> in_world(ranks.size(), MPI_UNDEFINED);
  MPI_Group_translate_ranks(group, size, ranks.data(), world, in_world.data());
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return std::find(in_world.begin(), in_world.end(), MPI_UNDEFINED) == in_world.end();
}

}  // namespace

Library& Library::instance() {
  static auto* const kInstance = new Library();  // never destroyed: a program may end without MPI_Finalize
  return *kInstance;
}

void Library::say(const std::string& text) {
  std::string lines;
  std::istringstream parts(text);
  for (std::string line; std::getline(parts, line);) lines += "gar: " + escaped(line) + "\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, lines.data(), lines.size());
}

void Library::set_version(const std::string& version) { mpi_name_ = mpi_library_name(version); }

bool Library::prepare() {
  try {
    settings_ = settings_from_environment();
  } catch (const Error& e) {
    trouble_ = e.what();
    settings_.is_disabled = true;
  }
  return !settings_.is_disabled;
}

void Library::start() {
  const Inside inside;
  int level = MPI_THREAD_SINGLE;
  int size = 1;
  MPI_Query_thread(&level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  is_alone_ = size == 1;
  allows_threads_ = level == MPI_THREAD_MULTIPLE;
  process_ = process_number();
  if (size == 1) return;
  std::string trouble = trouble_;
  if (!settings_.is_disabled) {
    try {
      options_.timeout_s = kNoLimit;
      options_.unbinds_thread = true;
      options_ = with_environment(options_, size, true);
      // What is compared with the MPI library's own function is not that function.
      if (settings_.compares && !options_.explores) options_.explores = false;
      num_fake_hosts_ = fake_hosts_from_environment();
      limit_ = environment::number(environment::kLimit).value_or(1);
    } catch (const std::exception& e) {
      trouble = e.what();
    }
  }
  try {
    agree(trouble);
    if (!is_active()) return;
    find_network();
    network_.all_reduce = real().all_reduce;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval_, nullptr);
    self_comm_ = duplicate_plainly(MPI_COMM_SELF).release();
    aliases_.find(self_comm_);
    // What fails for all ranks would also fail for fewer of them, and may take long to.
    Known& world = *know(MPI_COMM_WORLD).known;
    set_up(world);
    if (world.shadow == nullptr) is_active_ = false;
  } catch (const std::exception& e) {
    is_active_ = false;
    if (rank_ == 0) stand_aside(e.what());
  }
}

void Library::stand_aside(const std::string& why) const {
  say(fmt::format("{}; the program runs on its own library ({}){}", why, mpi_name_,
                  settings_.checks ? ", and GAR_CHECK compares nothing" : ""));
}

/// All ranks must take over the same calls. Of the ranks that have trouble the first one reports it.
void Library::agree(const std::string& trouble) {
  struct Vote {
    std::int64_t allows_threads;
    std::int64_t has_trouble;
    std::array<std::uint64_t, kSameEverywhere.size()> same;  // on all ranks
    Deviations deviations;
  };
  const Vote ours{
      static_cast<std::int64_t>(allows_threads_),
      trouble.empty() ? 0 : 1,
      {static_cast<std::uint64_t>(settings_.is_disabled), static_cast<std::uint64_t>(settings_.compares),
       static_cast<std::uint64_t>(settings_.checks),
       static_cast<std::uint64_t>(settings_.most_checked_bytes),  // GAR_COMPARE alone has a limit
       static_cast<std::uint64_t>(settings_.min_bytes),
       static_cast<std::uint64_t>(settings_.min_bytes_nonblocking),  // set to what is the default, or not set
       static_cast<std::uint64_t>(num_fake_hosts_), options_.topology ? hash_of(*options_.topology) : 0,
       std::bit_cast<std::uint64_t>(limit_), options_.explores ? (*options_.explores ? 1U : 0U) : 2U},
      settings_.is_disabled ? Deviations() : find_deviations()};
  const std::vector<Vote> all = all_gather_politely(MPI_COMM_WORLD, ours);
  allows_threads_ = std::all_of(all.begin(), all.end(), [](const Vote& vote) { return vote.allows_threads != 0; });
  for (const Vote& vote : all) deviations_.add(vote.deviations);
  const auto first = std::find_if(all.begin(), all.end(), [](const Vote& vote) { return vote.has_trouble != 0; });
  if (first != all.end()) {
    if (first - all.begin() == rank_) {
      stand_aside(trouble);
    }
    return;
  }
  for (std::size_t i = 0; i < kSameEverywhere.size(); ++i) {
    const auto other =
        std::find_if(all.begin(), all.end(), [&](const Vote& vote) { return vote.same[i] != all.front().same[i]; });
    if (other == all.end()) continue;
    throw InvalidArgument(fmt::format("{} is another one on rank {} than on rank 0; expected the same on all ranks",
                                      kSameEverywhere[i], other - all.begin()));
  }
  is_active_ = !settings_.is_disabled;
}

/// The job's network is given, or measured once for all its communicators.
void Library::find_network() {
  const Hosts hosts = find_hosts(MPI_COMM_WORLD, num_fake_hosts_);
  if (!options_.topology) {
    const bool is_shared = hosts.num_hosts < static_cast<int>(hosts.host_of.size());
    network_ = {measure_network(MPI_COMM_WORLD, hosts, is_shared), rank_};
    return;
  }
  try {
    const std::vector<std::int64_t> servers = servers_of_ranks(*options_.topology, hosts.host_of);
    network_ = {options_.topology, servers[static_cast<std::size_t>(rank_)]};
  } catch (const Error& e) {
    throw InvalidArgument(fmt::format("{} in the environment: {}", environment::kTopology.name, e.what()));
  }
}

Observer Library::make_observer(int size) {
  Observer out;
  if (settings_.reports) {
    out.on_run = [this, size](const Operation& operation, const PlanReport& report, double seconds) {
      statistics_.add(operation, size, report, seconds);
    };
  }
  if (settings_.closes) out.on_time = [this](double seconds) { statistics_.count_taken(seconds); };
  if (settings_.compares) {
    out.on_turns = [this, size](const Operation& operation, const Turns& turns) {
      statistics_.add_turns(operation, size, turns);
    };
  }
  out.most_checked_bytes = settings_.most_checked_bytes;
  out.on_check = [this] { ++num_checked_; };
  out.on_difference = [this, size](const Operation& operation, const Difference& difference) {
    ++num_differences_;
    const CollectiveCall& call = operation.call;
    say(fmt::format(
        "GAR_CHECK: {} of {} {}, {}, {} ranks, rank {} of the job: {} elements differ; the first is {}: {}, "
        "but {} says {}",
        name_of(operation), call.count, to_string(call.type),
        call.collective == Collective::kAllGather ? "gathered" : to_string(call.op), size, rank_, difference.num_wrong,
        difference.index, difference.ours, mpi_name_, difference.theirs));
  };
  out.on_error = [this](const std::string& text) { say(fmt::format("MPI_Iallreduce on rank {}: {}", rank_, text)); };
  return out;
}

std::unique_ptr<Shadow> Library::make_shadow(MPI_Comm comm) {
  try {
    Communicator communicator = mpi_communicator(comm, options_, MpiPath::kHierarchy, network_);
    const int size = communicator.size();
    OwnedComm check_comm;
    if (settings_.checks) check_comm = duplicate_plainly(comm);
    return std::make_unique<Shadow>(std::move(communicator), std::move(check_comm), make_observer(size));
  } catch (const std::exception& e) {
    report_refusal(comm, e);
    return nullptr;
  }
}

/// The first rank reports what all of them have found; what only one rank knows, that rank reports.
void Library::report_refusal(MPI_Comm comm, const std::exception& why) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const bool is_alike = dynamic_cast<const FoundAlike*>(&why) != nullptr;
  if (is_alike ? rank == 0 : why.what() != told_) {
    say(fmt::format("a communicator of the program is left to {}: {}", mpi_name_, why.what()));
  }
  told_ = why.what();
}

Known* Library::find(MPI_Comm comm) {
  const std::shared_lock lock(mutex_);
  const auto entry = known_.find(comm);
  return entry == known_.end() ? nullptr : entry->second;
}

KnownOrCode Library::know(MPI_Comm comm) {
  if (Known* known = find(comm)) return {known};
  const Inside inside;
#ifdef OPEN_MPI
  if (MPI_Comm_c2f(comm) == -1) return {};  // the one question about a handle that calls no error handler
#endif
  int is_inter = 0;
  if (const int code = MPI_Comm_test_inter(comm, &is_inter); code != MPI_SUCCESS) return {nullptr, code};
  auto known = std::make_unique<Known>();
  known->comm = comm;
  MPI_Comm_size(comm, &known->size);
  if (is_inter != 0) {
    known->reason = PassReason::kInter;
  } else if (known->size == 1) {
    known->reason = PassReason::kAlone;
  }
  if (MPI_Comm_set_attr(comm, keyval_, known.get()) != MPI_SUCCESS) return {};
  const std::unique_lock lock(mutex_);
  return {known_[comm] = known.release()};  // the communicator's from now on
}

Shadow* Library::shadow_for_call(Known& known, std::int64_t bytes) {
  if (known.shadow != nullptr || known.reason != PassReason::kNotReady) return known.shadow.get();
  ++known.num_calls;
  known.num_bytes += bytes;
  const bool is_used = known.num_calls >= kCallsToSetUp || known.num_bytes >= kBytesToSetUp;
  if (is_used || settings_.checks) set_up(known);
  return known.shadow.get();
}

void Library::set_up(Known& known) {
  const Inside inside;
  const auto begin = std::chrono::steady_clock::now();
  // MPI libraries have some thousand communicators, and each of ours costs several.
  int num_shadows = 0;
  {
    const std::shared_lock lock(mutex_);
    num_shadows = static_cast<int>(shadows_.size());
  }
  if (!is_part_of_world(known.comm)) {
    known.reason = PassReason::kForeign;
    return;
  }
  if (all_reduce_politely(known.comm, num_shadows, MPI_MAX) >= kMaxShadows) {
    known.reason = PassReason::kMany;
    return;
  }
  known.reason = PassReason::kRefused;
  known.shadow = make_shadow(known.comm);
  if (known.shadow == nullptr) return;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  statistics_.add_set_up(seconds.count());
  const std::unique_lock lock(mutex_);
  shadows_.push_back(&known);
  ++num_changes_;
}

bool Library::deviates(const Elements& elements, const char* function) {
  if (!deviations_.has(elements)) return false;
  if (rank_ == 0 && (settings_.checks || settings_.reports) && !has_told_deviation_.exchange(true)) {
    say(fmt::format("{}: {}; all such calls are left to it, whatever their length", function,
                    describe_deviation(elements, mpi_name_)));
  }
  return true;
}

/// The program has freed a communicator.
int Library::forget(MPI_Comm /*comm*/, int /*keyval*/, void* value, void* /*extra*/) {
  const Inside inside;
  auto* known = static_cast<Known*>(value);
  Library& library = instance();
  if (!library.is_own_process()) return MPI_SUCCESS;  // the parent goes on with it
  {
    const std::unique_lock lock(library.mutex_);
    library.known_.erase(known->comm);
    ++library.num_changes_;
    std::erase(library.shadows_, known);
  }
  if (library.settings_.reports && known->shadow != nullptr) {
    library.statistics_.add_decisions(known->shadow->decisions());
  }
  delete known;
  return MPI_SUCCESS;
}

namespace {

/// Waits until the launcher has read what was written to standard error, where that is a pipe: a launcher that is told
/// to abort throws away what it has not read. A launcher that reads nothing is not waited for for long.
void await_reader() {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  int num_unread = 0;
  while (ioctl(STDERR_FILENO, FIONREAD, &num_unread) == 0 && num_unread > 0 &&
         std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

bool Library::stop() {
  if (settings_.closes && is_alone_ && is_own_process()) say("warning: one rank alone: there is nothing to take over");
  if (!is_active() || !is_own_process()) return false;
  const Inside inside;
  is_active_ = false;
  std::vector<Known*> shadows;
  {
    const std::unique_lock lock(mutex_);
    shadows.swap(shadows_);
    ++num_changes_;
  }
  for (Known* known : shadows) {
    if (settings_.reports) statistics_.add_decisions(known->shadow->decisions());
    known->shadow.reset();  // MPI itself ends their communicators
  }
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (settings_.reports && rank_ == 0) say(statistics_.table(mpi_name_, size));
  const bool closes = settings_.closes && !settings_.reports && rank_ == 0;
  if (!settings_.checks) {
    if (closes) say(statistics_.closing_line(mpi_name_, false));
    return false;
  }
  const auto num_differences = all_reduce_politely(MPI_COMM_WORLD, num_differences_.load(), MPI_SUM);
  const auto num_checked = all_reduce_politely(MPI_COMM_WORLD, num_checked_.load(), MPI_SUM);
  if (num_checked > 0) leave_sign(Sign::kCompared);
  if (settings_.compares && num_checked > 0 && rank_ == 0) say(statistics_.turns_table(mpi_name_));
  if (closes) say(statistics_.closing_line(mpi_name_, settings_.compares));
  if (rank_ == 0) {
    say(num_checked > 0 ? fmt::format("GAR_CHECK: {} calls compared on {} ranks, {} differences", num_checked, size,
                                      num_differences)
                        : fmt::format("warning: GAR_CHECK: nothing was compared on {} ranks", size));
    if (num_differences > 0) await_reader();
  }
  barrier_politely(MPI_COMM_WORLD);  // no rank ends the job before that is written
  return num_differences > 0;
}

}  // namespace gar::preload
