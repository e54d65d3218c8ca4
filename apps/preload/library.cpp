#include "apps/preload/library.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "apps/preload/real.hpp"
#include "gar/io.hpp"
#include "runtime/choice.hpp"
#include "runtime/mpi/polite.hpp"

namespace gar::preload {

namespace {

#ifdef OPEN_MPI
constexpr const char* kFamily = "Open MPI";
#else
constexpr const char* kFamily = "MPICH";
#endif

constexpr double kNoLimit = 1e9;  // ranks of a program may come as late as they like

/// "Open MPI v4.1.4, package: ..." and "MPICH Version:\t4.0.2\n..." as a name and a number.
std::string short_name(const std::string& version) {
  const std::size_t digit = version.find_first_of("0123456789");
  if (digit == std::string::npos) return kFamily;
  return fmt::format("{} {}", kFamily, version.substr(digit, version.find_first_not_of("0123456789.", digit) - digit));
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
    } catch (const std::exception& e) {
      trouble = e.what();
    }
  }
  try {
    agree(std::move(trouble));
    if (!is_active()) return;
    if (options_.topology) find_place(size);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval_, nullptr);
    self_comm_ = duplicate_plainly(MPI_COMM_SELF).release();
    beside(MPI_COMM_WORLD, true);
  } catch (const std::exception& e) {
    is_active_ = false;
    if (rank_ == 0) say(fmt::format("{}; the program runs on its own library ({})", e.what(), mpi_name_));
  }
}

/// All ranks must take over the same calls. Who has trouble says so, the first of them for all.
void Library::agree(std::string trouble) {
  const auto no = static_cast<std::int64_t>(settings_.is_disabled);
  const std::array<std::int64_t, 5> ours{trouble.empty() ? 0 : 1, no, static_cast<std::int64_t>(settings_.checks),
                                         settings_.min_bytes, options_.topology ? options_.topology->num_servers() : 0};
  const auto all = all_gather_politely(MPI_COMM_WORLD, ours);
  const auto first = std::find_if(all.begin(), all.end(), [](const auto& one) { return one[0] != 0; });
  if (first != all.end()) {
    if (first - all.begin() == rank_)
      say(fmt::format("{}; the program runs on its own library ({})", trouble, mpi_name_));
    return;
  }
  if (std::any_of(all.begin(), all.end(), [&](const auto& one) { return one != all.front(); })) {
    throw InvalidArgument(
        "GAR_DISABLE, GAR_CHECK, GAR_MIN_BYTES or GAR_TOPOLOGY differ between ranks; accepted is the same everywhere");
  }
  is_active_ = !settings_.is_disabled;
}

void Library::find_place(int world_size) {
  const Hosts hosts = find_hosts(MPI_COMM_WORLD, fake_hosts_from_environment());
  try {
    const std::vector<std::int64_t> servers = servers_of(*options_.topology, hosts);
    place_ = JobPlace{*options_.topology, servers[static_cast<std::size_t>(rank_)]};
  } catch (const Error& e) {
    throw InvalidArgument(fmt::format("GAR_TOPOLOGY in the environment: {}", e.what()));
  }
  static_cast<void>(world_size);
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

Library::Entry* Library::make_entry(MPI_Comm comm) {
  auto* entry = new Entry();  // belongs to the communicator, as an attribute
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  try {
    Communicator communicator = place_ ? mpi_communicator(comm, options_, MpiPath::kHierarchy, *place_)
                                       : mpi_communicator(comm, options_, MpiPath::kHierarchy);
    const int size = communicator.size();
    MPI_Comm check_comm = MPI_COMM_NULL;
    if (settings_.checks) check_comm = duplicate_plainly(comm).release();
    entry->shadow = std::make_unique<Shadow>(std::move(communicator), check_comm, make_observer(size));
  } catch (const std::exception& e) {
    if (rank == 0) say(fmt::format("a communicator of the program is left to {}: {}", mpi_name_, e.what()));
  }
  MPI_Comm_set_attr(comm, keyval_, entry);
  const std::lock_guard lock(mutex_);
  entries_.push_back(entry);
  return entry;
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
  return {entry->shadow.get(), Left::kRefused};
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
  if (settings_.reports && rank_ == 0) say(statistics_.table(mpi_name_, size, settings_.min_bytes));
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
