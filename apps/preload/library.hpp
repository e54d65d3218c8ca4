// The preload library as a whole: whether it takes part, and which communicators have a shadow.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "apps/preload/aliases.hpp"
#include "apps/preload/real.hpp"
#include "apps/preload/settings.hpp"
#include "apps/preload/shadow.hpp"
#include "apps/preload/statistics.hpp"
#include "apps/preload/types.hpp"
#include "runtime/process.hpp"
#include "runtime/transports/mpi/placement.hpp"

namespace gar::preload {

/// What is known of one of the program's communicators; kept as an attribute of it.
struct Known {
  MPI_Comm comm = MPI_COMM_NULL;
  int size = 1;
  std::unique_ptr<Shadow> shadow;             ///< takes over its calls
  PassReason reason = PassReason::kNotReady;  ///< why there is no shadow; kNotReady: not yet
  std::int64_t num_calls = 0;                 ///< that a shadow would have taken over
  std::int64_t num_bytes = 0;                 ///< of these
};

/// The answer to a communicator that a program calls with.
struct KnownOrCode {
  Known* known = nullptr;  ///< null: MPI's own function shall judge, unless there is a code
  int code = MPI_SUCCESS;  ///< MPI has judged already
};

class Library {
 public:
  /// Lives until the process ends.
  static Library& instance();

  /// What MPI_Get_library_version says.
  void set_version(const std::string& version);
  /// Before MPI_Init: does the environment ask for us? Trouble with it is told by start().
  bool prepare();
  [[nodiscard]] bool upgrades_threads() const { return settings_.upgrades_threads; }
  /// After MPI_Init, collective: from now on calls are taken over, if all ranks agree.
  void start();
  /// Before MPI_Finalize, collective. True when a comparison has failed on a rank.
  bool stop();

  /// Are calls taken over at all? Cheap.
  [[nodiscard]] bool is_active() const { return is_active_.load(std::memory_order_acquire); }
  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] bool reports() const { return settings_.reports; }
  [[nodiscard]] bool allows_threads() const { return allows_threads_; }

  /// Another number whenever what find() and Known say of a communicator may have changed. Cheap.
  [[nodiscard]] std::uint64_t num_changes() const { return num_changes_.load(std::memory_order_acquire); }

  /// False in a child that was forked after start(): it must not pass for its parent.
  [[nodiscard]] bool is_own_process() const { return process_number() == process_; }

  /// Null: nothing is known of `comm` yet. Calls nothing of MPI.
  Known* find(MPI_Comm comm);
  /// Looks at `comm` when it is called with for the first time. Not collective.
  KnownOrCode know(MPI_Comm comm);
  /// Collective: a blocking call of `bytes` bytes that can be taken over. Makes the shadow when the communicator has
  /// been called with often enough for that to pay; all ranks count alike.
  Shadow* shadow_for_call(Known& known, std::int64_t bytes);
  /// Does the MPI library combine this type with this operator in a way of its own? The same on all ranks. `function`
  /// is what the program has called: with GAR_CHECK or GAR_DEBUG=INFO the first such call is reported.
  bool deviates(const Elements& elements, const char* function);
  /// Calls MPI with a communicator of this rank alone, errors as codes; one thread at a time.
  template <class F>
  int alone(const F& call) {
    const Inside inside;
    const std::lock_guard lock(self_mutex_);
    return call(self_comm_);
  }

  [[nodiscard]] const Aliases& aliases() const { return aliases_; }
  Statistics& statistics() { return statistics_; }
  /// One line on standard error, "gar: ...".
  static void say(const std::string& text);

 private:
  Library() = default;
  void agree(const std::string& trouble);
  void find_network();
  void stand_aside(const std::string& why) const;
  std::unique_ptr<Shadow> make_shadow(MPI_Comm comm);
  void report_refusal(MPI_Comm comm, const std::exception& why);
  Observer make_observer(int size);
  /// Makes the shadow, or finds out why there can be none. Collective.
  void set_up(Known& known);
  static int forget(MPI_Comm comm, int keyval, void* value, void* extra);

  Settings settings_;
  std::string trouble_;   ///< found by prepare(), to be told after MPI_Init
  std::string mpi_name_;  ///< "Open MPI 4.1.4"
  std::atomic<bool> is_active_{false};
  bool allows_threads_ = false;
  bool is_alone_ = false;  ///< one rank
  int rank_ = 0;
  std::string told_;  ///< why the last communicator was left alone
  std::uint64_t process_ = 0;
  int keyval_ = MPI_KEYVAL_INVALID;
  std::mutex self_mutex_;
  MPI_Comm self_comm_ = MPI_COMM_NULL;
  Aliases aliases_;
  Deviations deviations_;
  std::atomic<bool> has_told_deviation_{false};
  CommunicatorOptions options_;
  JobNetwork network_;
  int num_fake_hosts_ = 1;
  double limit_ = 1;
  Statistics statistics_;
  std::atomic<std::int64_t> num_checked_{0};
  std::atomic<std::int64_t> num_differences_{0};
  std::atomic<std::uint64_t> num_changes_{1};
  std::shared_mutex mutex_;
  std::unordered_map<MPI_Comm, Known*> known_;  ///< guarded
  std::vector<Known*> shadows_;                 ///< those with one, in the order in which they were made; guarded
};

}  // namespace gar::preload
