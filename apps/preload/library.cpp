#include "apps/preload/library.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "apps/preload/real.hpp"
#include "gar/environment.hpp"
#include "gar/mpi_library.hpp"
#include "runtime/choice.hpp"
#include "runtime/transports/mpi/network.hpp"
#include "runtime/transports/mpi/polite.hpp"
#include "topology/hash.hpp"
#include "topology/hosts.hpp"

namespace gar::preload {

namespace {

constexpr int kMaxShadows = 128;
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
  std::string lines = "gar: ";
  for (const char c : text) lines += c == '\n' ? std::string("\ngar: ") : std::string(1, c);
  lines += '\n';
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
  allows_threads_ = level == MPI_THREAD_MULTIPLE;
  if (size == 1) return;
  std::string trouble = trouble_;
  if (!settings_.is_disabled) {
    try {
      options_.timeout_s = kNoLimit;
      options_.unbinds_thread = true;
      options_ = with_environment(options_, size, true);
      num_fake_hosts_ = fake_hosts_from_environment();
    } catch (const std::exception& e) {
      trouble = e.what();
    }
  }
  try {
    agree(trouble);
    if (!is_active()) return;
    find_network();
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval_, nullptr);
    self_comm_ = duplicate_plainly(MPI_COMM_SELF).release();
    // What fails for all ranks would also fail for fewer of them, and may take long to.
    if (shadow_of(MPI_COMM_WORLD, true).shadow == nullptr) is_active_ = false;
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
    std::array<std::uint64_t, 5> same;  // on all ranks
  };
  const Vote ours{static_cast<std::int64_t>(allows_threads_),
                  trouble.empty() ? 0 : 1,
                  {static_cast<std::uint64_t>(settings_.is_disabled), static_cast<std::uint64_t>(settings_.checks),
                   static_cast<std::uint64_t>(settings_.min_bytes), static_cast<std::uint64_t>(num_fake_hosts_),
                   options_.topology ? hash_of(*options_.topology) : 0}};
  const std::vector<Vote> all = all_gather_politely(MPI_COMM_WORLD, ours);
  allows_threads_ = std::all_of(all.begin(), all.end(), [](const Vote& vote) { return vote.allows_threads != 0; });
  const auto first = std::find_if(all.begin(), all.end(), [](const Vote& vote) { return vote.has_trouble != 0; });
  if (first != all.end()) {
    if (first - all.begin() == rank_) {
      stand_aside(trouble);
    }
    return;
  }
  if (std::any_of(all.begin(), all.end(), [&](const Vote& vote) { return vote.same != all.front().same; })) {
    throw InvalidArgument(
        "GAR_DISABLE, GAR_CHECK, GAR_MIN_BYTES, GAR_FAKE_HOSTS or GAR_TOPOLOGY differ between ranks; accepted are the "
        "same values everywhere");
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
  out.on_result = [this](const Operation& operation) {
    const std::int64_t number = ++num_taken_;
    if (number == settings_.corrupted_call && rank_ == 0 && operation.call.count > 0) {
      static_cast<std::byte*>(operation.call.out)[size_of(operation.call.type) - 1] ^= std::byte{0x20};
    }
    if (settings_.checks) ++num_checked_;
  };
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

Library::Entry* Library::make_entry(MPI_Comm comm) {
  auto* entry = new Entry();  // belongs to the communicator, as an attribute
  // MPI libraries have some thousand communicators, and each of ours costs several.
  const bool is_ours = is_part_of_world(comm);
  const bool is_one_too_many = is_ours && all_reduce_politely(comm, num_live(), MPI_MAX) >= kMaxShadows;
  if (is_ours && !is_one_too_many) entry->shadow = make_shadow(comm);
  if (!is_ours) entry->reason = PassReason::kForeign;
  if (is_one_too_many) entry->reason = PassReason::kMany;
  MPI_Comm_set_attr(comm, keyval_, entry);
  const std::lock_guard lock(mutex_);
  entries_.push_back(entry);
  return entry;
}

int Library::num_live() {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry* e) { return e->shadow != nullptr; }));
}

ShadowOrReason Library::shadow_of(MPI_Comm comm, bool may_make) {
  const Inside inside;
  Entry* entry = nullptr;
  int is_there = 0;
  MPI_Comm_get_attr(comm, keyval_, static_cast<void*>(&entry), &is_there);
  if (is_there == 0) {
    int is_inter = 0;
    int size = 1;
    MPI_Comm_test_inter(comm, &is_inter);
    if (is_inter != 0) return {nullptr, PassReason::kInter};
    MPI_Comm_size(comm, &size);
    if (size == 1) return {nullptr, PassReason::kAlone};
    if (!may_make) return {nullptr, PassReason::kNotReady};
    entry = make_entry(comm);
  }
  return {entry->shadow.get(), entry->reason};
}

/// The program has freed a communicator.
int Library::forget(MPI_Comm /*comm*/, int /*keyval*/, void* value, void* /*extra*/) {
  const Inside inside;
  auto* entry = static_cast<Entry*>(value);
  Library& library = instance();
  {
    const std::lock_guard lock(library.mutex_);
    std::erase(library.entries_, entry);
  }
  delete entry;
  return MPI_SUCCESS;
}

bool Library::stop() {
  if (!is_active()) return false;
  const Inside inside;
  is_active_ = false;
  std::vector<Entry*> entries;
  {
    const std::lock_guard lock(mutex_);
    entries = entries_;
  }
  for (Entry* entry : entries) entry->shadow.reset();  // MPI itself ends their communicators
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (settings_.reports && rank_ == 0) say(statistics_.table(mpi_name_, size));
  if (!settings_.checks) return false;
  const auto num_differences = all_reduce_politely(MPI_COMM_WORLD, num_differences_.load(), MPI_SUM);
  const auto num_checked = all_reduce_politely(MPI_COMM_WORLD, num_checked_.load(), MPI_SUM);
  if (rank_ == 0) {
    say(fmt::format("GAR_CHECK: {} calls compared on {} ranks, {} differences", num_checked, size, num_differences));
  }
  barrier_politely(MPI_COMM_WORLD);  // no rank ends the job before that is written
  return num_differences > 0;
}

}  // namespace gar::preload
