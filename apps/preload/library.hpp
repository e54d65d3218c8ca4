// The preload library as a whole: whether it takes part, and which communicators have a shadow.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/preload/settings.hpp"
#include "apps/preload/shadow.hpp"
#include "apps/preload/statistics.hpp"
#include "runtime/transports/mpi/placement.hpp"

namespace gar::preload {

/// What takes over a communicator's calls, or why nothing does.
struct ShadowOrReason {
  Shadow* shadow = nullptr;
  PassReason reason = PassReason::kNotReady;
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

  /// The shadow of `comm`. `may_make`: the call is collective and may wait, so a shadow can be made now.
  ShadowOrReason shadow_of(MPI_Comm comm, bool may_make);

  Statistics& statistics() { return statistics_; }
  /// This rank alone; errors as codes.
  [[nodiscard]] MPI_Comm self_comm() const { return self_comm_; }
  /// One line on standard error, "gar: ...".
  static void say(const std::string& text);
  /// "Open MPI 4.1.4"
  [[nodiscard]] const std::string& mpi_name() const { return mpi_name_; }

 private:
  /// Kept as an attribute of the program's communicator.
  struct Entry {
    std::unique_ptr<Shadow> shadow;            ///< null: could not be made, or is gone
    PassReason reason = PassReason::kRefused;  ///< why it could not
  };

  Library() = default;
  void agree(const std::string& trouble);
  void find_network();
  void stand_aside(const std::string& why) const;
  int num_live();
  std::unique_ptr<Shadow> make_shadow(MPI_Comm comm);
  void report_refusal(MPI_Comm comm, const std::exception& why);
  Entry* make_entry(MPI_Comm comm);
  Observer make_observer(int size);
  static int forget(MPI_Comm comm, int keyval, void* value, void* extra);

  Settings settings_;
  std::string trouble_;  ///< found by prepare(), to be told after MPI_Init
  std::string mpi_name_;
  std::atomic<bool> is_active_{false};
  bool allows_threads_ = false;
  int rank_ = 0;
  std::string told_;  ///< why the last communicator was left alone
  int keyval_ = MPI_KEYVAL_INVALID;
  MPI_Comm self_comm_ = MPI_COMM_NULL;
  CommunicatorOptions options_;
  JobNetwork network_;
  int num_fake_hosts_ = 1;
  Statistics statistics_;
  std::atomic<std::int64_t> num_taken_{0};
  std::atomic<std::int64_t> num_checked_{0};
  std::atomic<std::int64_t> num_differences_{0};
  std::mutex mutex_;
  std::vector<Entry*> entries_;  ///< in the order in which they were made; guarded
};

}  // namespace gar::preload
