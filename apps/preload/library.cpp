#include "apps/preload/library.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "apps/preload/real.hpp"
#include "gar/environment.hpp"
#include "runtime/choice.hpp"
#include "runtime/transports/mpi/network.hpp"
#include "runtime/transports/mpi/polite.hpp"
#include "topology/hash.hpp"
#include "topology/hosts.hpp"

namespace gar::preload {

namespace {

#ifdef OPEN_MPI
constexpr const char* kFamily = "Open MPI";
#else
constexpr const char* kFamily = "MPICH";
#endif

constexpr int kMaxShadows = 128;
constexpr double kNoLimit = 1e9;  // ranks of a program may come as late as they like

/// "Open MPI v4.1.4, package: ..." and "MPICH Version:\t4.0.2\n..." as a name and a number.
std::string short_name(const std::string& version) {
  const std::size_t digit = version.find_first_of("0123456789");
  if (digit == std::string::npos) return kFamily;
  return fmt::format("{} {}", kFamily, version.substr(digit, version.find_first_not_of("0123456789.", digit) - digit));
}

/// Ranks of another job (MPI_Comm_spawn) have made up their minds without us. Everybody sees a stranger then.
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

void Library::set_version(const std::string& version) { mpi_name_ = short_name(version); }

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
      options_ = with_environment(options_, size, true);
      num_fakes_ = fake_hosts_from_environment();
    } catch (const std::exception& e) {
      trouble = e.what();
    }
  }
  try {
    agree(trouble);
    if (!is_active()) return;
    find_place();
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval_, nullptr);
    self_comm_ = duplicate_plainly(MPI_COMM_SELF).release();
    // What fails for all ranks would fail for fewer, and may take its time to.
    if (beside(MPI_COMM_WORLD, true).shadow == nullptr) is_active_ = false;
  } catch (const std::exception& e) {
    is_active_ = false;
    if (rank_ == 0) stand_aside(e.what());
  }
}

void Library::stand_aside(const std::string& why) const {
  say(fmt::format("{}; the program runs on its own library ({}){}", why, mpi_name_,
                  settings_.checks ? ", and GAR_CHECK compares nothing" : ""));
}

/// All ranks must take over the same calls. Who has trouble says so, the first of them for all.
void Library::agree(const std::string& trouble) {
  struct Vote {
    std::int64_t allows_threads;
    std::int64_t has_trouble;
    std::array<std::uint64_t, 5> same;  // on all ranks
  };
  const Vote ours{static_cast<std::int64_t>(allows_threads_),
                  trouble.empty() ? 0 : 1,
                  {static_cast<std::uint64_t>(settings_.is_disabled), static_cast<std::uint64_t>(settings_.checks),
                   static_cast<std::uint64_t>(settings_.min_bytes), static_cast<std::uint64_t>(num_fakes_),
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
void Library::find_place() {
  const Hosts hosts = find_hosts(MPI_COMM_WORLD, num_fakes_);
  if (!options_.topology) {
    const bool is_shared = hosts.num_hosts < static_cast<int>(hosts.host_of.size());
    place_ = {measure_network(MPI_COMM_WORLD, hosts, is_shared), rank_};
    return;
  }
  try {
    const std::vector<std::int64_t> servers = servers_of_ranks(*options_.topology, hosts.host_of);
    place_ = {options_.topology, servers[static_cast<std::size_t>(rank_)]};
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
    if (number == settings_.corrupted_call && rank_ == 0 && operation.count > 0) {
      static_cast<std::byte*>(operation.out)[size_of(operation.type) - 1] ^= std::byte{0x20};
    }
    if (settings_.checks) ++num_checked_;
  };
  out.on_difference = [this, size](const Operation& operation, const Difference& difference) {
    ++num_differences_;
    say(fmt::format(
        "GAR_CHECK: {} of {} {}, {}, {} ranks, rank {} of the job: {} elements differ; the first is {}: {}, "
        "but {} says {}",
        name_of(operation), operation.count, to_string(operation.type),
        operation.collective == Collective::kAllGather ? "gathered" : to_string(operation.op), size, rank_,
        difference.num_wrong, difference.index, difference.ours, mpi_name_, difference.theirs));
  };
  out.on_error = [this](const std::string& text) { say(fmt::format("MPI_Iallreduce on rank {}: {}", rank_, text)); };
  return out;
}

std::unique_ptr<Shadow> Library::make_shadow(MPI_Comm comm) {
  try {
    Communicator communicator = mpi_communicator(comm, options_, MpiPath::kHierarchy, place_);
    const int size = communicator.size();
    MPI_Comm check_comm = MPI_COMM_NULL;
    if (settings_.checks) check_comm = duplicate_plainly(comm).release();
    return std::make_unique<Shadow>(std::move(communicator), check_comm, make_observer(size));
  } catch (const std::exception& e) {
    // What all ranks have found says the first of them, what only one knows that one.
    const std::string text = e.what();
    const bool is_common = text.starts_with("mpi_communicator:") || text.starts_with("the topology");
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    if (is_common ? rank == 0 : text != told_) {
      say(fmt::format("a communicator of the program is left to {}: {}", mpi_name_, text));
    }
    told_ = text;
    return nullptr;
  }
}

Library::Entry* Library::make_entry(MPI_Comm comm) {
  auto* entry = new Entry();  // belongs to the communicator, as an attribute
  // MPI libraries have some thousand communicators, and each of ours costs several.
  const bool is_ours = is_part_of_world(comm);
  const bool is_one_too_many = is_ours && all_reduce_politely(comm, num_live(), MPI_MAX) >= kMaxShadows;
  if (is_ours && !is_one_too_many) entry->shadow = make_shadow(comm);
  if (!is_ours) entry->reason = Left::kForeign;
  if (is_one_too_many) entry->reason = Left::kMany;
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

Library::Beside Library::beside(MPI_Comm comm, bool may_make) {
  const Inside inside;
  Entry* entry = nullptr;
  int is_there = 0;
  MPI_Comm_get_attr(comm, keyval_, static_cast<void*>(&entry), &is_there);
  if (is_there == 0) {
    int is_inter = 0;
    int size = 1;
    MPI_Comm_test_inter(comm, &is_inter);
    if (is_inter != 0) return {nullptr, Left::kInter};
    MPI_Comm_size(comm, &size);
    if (size == 1) return {nullptr, Left::kAlone};
    if (!may_make) return {nullptr, Left::kNotReady};
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
  barrier_politely(MPI_COMM_WORLD);  // nobody ends the job before that is written
  return num_differences > 0;
}

}  // namespace gar::preload
