// What a communicator does, one operation after the other.
//
// Operations run in the order of the calls. A blocking call runs in the caller's thread, unless others are under way. A
// non-blocking one runs in a thread of the communicator, which is started with the first of them; where the transport
// does not allow that (an MPI without thread support), all such communicators of the process make progress inside any
// call to test or wait, so that ranks may wait in different orders.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

#include "gar/communicator.hpp"
#include "gar/movement.hpp"
#include "runtime/choice.hpp"
#include "runtime/executor.hpp"
#include "runtime/exploration.hpp"
#include "runtime/process.hpp"
#include "runtime/survival/survival.hpp"
#include "runtime/transport.hpp"

namespace gar {

class PeerLost;

/// "all_reduce", ...
std::string_view name_of(Collective collective);

/// How a call runs.
struct Path {
  std::shared_ptr<const Schedule> schedule;  ///< null: the transport gathers by itself, or runs it in a way of its own
  bool is_reproducible = false;              ///< built from several calls
  bool is_native = false;                    ///< the MPI library's own
  std::shared_ptr<ExploredClass> explored;   ///< which way it takes is decided when it runs
  std::shared_ptr<const MovementCall> moving;  ///< it is no collective, but this
  std::shared_ptr<const PlanReport> report;
  std::shared_ptr<const Members> members;  ///< whom a surviving communicator's call was made for; no more is known then
  std::uint64_t last_use = 0;
};

class Engine {
 public:
  Engine(std::unique_ptr<Transport> transport, const CommunicatorOptions& options, const Topology& default_topology,
         Exploration exploration = {}, std::optional<Topology> short_network = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  /// From now on operations go on without ranks that are lost (engine_surviving.cpp). `algorithm`: as the options of
  /// the first members say, though it may be nothing for this number of ranks. Throws InvalidArgument where the
  /// transport does not allow that.
  void survive(std::unique_ptr<Survival> survival, const std::string& algorithm);
  /// Takes newcomers in (engine_growing.cpp). Throws InvalidArgument where that is not possible.
  Growth grow();
  /// As the caller knows them: they change only when an operation is given to the caller.
  [[nodiscard]] int visible_rank() const;
  [[nodiscard]] int visible_size() const;
  [[nodiscard]] Members visible_members() const;
  /// False in a child that was forked after the communicator was made: what is under way belongs to the parent, and the
  /// worker's locks will never be free.
  [[nodiscard]] bool is_own_process() const { return process_number() == process_; }
  /// Every call asks this before anything else. Throws InvalidArgument in a forked child.
  void check_process(std::string_view function) const;
  /// Throws InvalidArgument.
  void check(const CollectiveCall& call) const;
  void check_overlap(const CollectiveCall& call) const;
  /// Throws InvalidArgument when streams make no sense here.
  void check_stream(std::string_view function) const;
  /// Decides how a call runs; remembered per length and type, and logged once per size class. `explores`: false for
  /// what is not a call of the user's. `is_meeting`: nor a part of one, but a few bytes that ranks tell each other; for
  /// these nothing is planned where the transport can gather.
  Path path_of(const CollectiveCall& call, bool explores = true, bool is_meeting = false);
  /// The same for what is to run, now or later.
  Path path_to_run(const CollectiveCall& call, bool explores = true, bool is_meeting = false);
  /// What a call of this kind does now.
  PlanReport report_of(const CollectiveCall& call);
  /// On rank 0: what was measured, in the order of sizes.
  Decisions decisions();
  /// Puts that into the folder; says what went wrong.
  std::string keep();
  /// Is nothing left to be measured for such calls?
  bool is_settled(const CollectiveCall& call);

  /// With a stream (on a GPU) it returns when the operation is in the stream, otherwise when it is complete.
  void run(const CollectiveCall& call, std::optional<Stream> stream = std::nullopt);
  /// The same for a movement (engine_moving.cpp).
  void move(const MovementCall& call);
  /// No rank returns before every rank has called it.
  void barrier();
  /// On a GPU: returns when everything in the stream is done.
  void synchronize(Stream stream);

  /// A non-blocking or persistent operation.
  struct Task {
    CollectiveCall call;
    Path path;
    Completion on_complete;  ///< may be empty
    bool is_persistent = false;
    bool has_started = false;
    bool is_active = false;                  ///< queued or running; owned by the user's side
    bool has_run = false;                    ///< without a thread: all that is left is complete()
    bool is_done = false;                    ///< guarded by the engine's mutex
    std::exception_ptr error;                ///< guarded by the engine's mutex
    std::shared_ptr<const Members> members;  ///< that it has run between; guarded by the engine's mutex
  };
  void start(const std::shared_ptr<Task>& task);
  /// For a movement. Throws InvalidArgument.
  [[nodiscard]] std::shared_ptr<Task> task_of(const MovementCall& call) const;
  /// Between whom it has run.
  Members members_of(const Task& task);
  /// Completes what is under way; afterwards nothing can be started.
  void close();
  bool test(Task& task);
  void wait(Task& task);

 private:
  /// An operation that can be carried on a little at a time.
  class Advancing {
   public:
    Advancing() = default;
    Advancing(const Advancing&) = delete;
    Advancing& operator=(const Advancing&) = delete;
    virtual ~Advancing() = default;
    /// Does what can be done now. True when the operation is complete, as far as the caller wants to wait.
    virtual bool advance() = 0;
    /// Does it wait for something else than the transport?
    [[nodiscard]] virtual bool waits_elsewhere() const = 0;
  };
  class Running;
  class Explored;
  class Moving;

  void drain();
  /// An operation has failed here: tells the other ranks, and nothing runs any more.
  void give_up(std::string_view reason) noexcept;
  void run_path(const CollectiveCall& call, const Path& path, std::optional<Stream> stream = std::nullopt);
  /// An operation that is given up when a peer is lost.
  void run_once(const CollectiveCall& call, const Path& path, std::optional<Stream> stream = std::nullopt);
  void run_surviving(const CollectiveCall& call, const Path& path);
  void run_between_members(const CollectiveCall& call, const Members& layout);
  void meet();
  bool recover(const PeerLost& lost, const Survival::Progress& progress);
  void replace_transport(Survival::Recovered recovered);
  /// With choice_mutex_ locked: everything from now on runs over it, on another network.
  void install(std::unique_ptr<Transport> transport, const Topology& topology, std::optional<Topology> short_network);
  /// Nothing when a rank was lost meanwhile, or has nothing to say.
  std::optional<Growing> tell_invitation(std::string invitation);
  bool is_decided(bool is_connected, std::uint64_t generation);
  void adopt(Grown grown);
  void check_layout(const Task& task) const;
  [[nodiscard]] std::shared_ptr<const Members> visible() const;
  /// An operation between these members is given to the caller. Under the mutex.
  void see(const std::shared_ptr<const Members>& members);
  void run_call(const CollectiveCall& call, bool explores, std::optional<Stream> stream);
  /// Runs it when what is under way is complete.
  void dispatch(const CollectiveCall& call, const Path& path, std::optional<Stream> stream);
  void check(const MovementCall& call) const;
  /// A call of an explored class that carries no word runs at once, without being looked at from all sides. False: it
  /// is another one.
  bool run_plainly(const CollectiveCall& call);
  std::unique_ptr<Advancing> begin(const CollectiveCall& call, const Path& path);
  void run_reproducibly(const CollectiveCall& call);
  /// No elements, on a transport that cannot gather: still the same call on all ranks.
  void run_nothing(const CollectiveCall& call);
  Signature next_signature(const CollectiveCall& call, const Schedule* schedule);
  void work();
  /// The first task of the queue has run: calls its on_complete, then makes it complete for the user. Not to be called
  /// while anything is locked.
  void complete(Task& task, std::exception_ptr error) noexcept;
  /// Without a thread: takes part in poll_all from now on.
  void join_polled();
  /// Without a thread: a little progress on the first operation of the queue.
  void poll();
  static void poll_all();
  /// Without a thread: sleeps a moment; an error of the transport becomes that of the operation under way.
  void pause();
  Path make_path(const CollectiveCall& call, bool is_meeting);
  Path path_with(const CollectiveCall& call, const ChosenPlan& chosen);
  /// Null: calls like this one are not explored. With choice_mutex_ locked.
  std::shared_ptr<ExploredClass> explored_class(const CollectiveCall& call);
  std::shared_ptr<ExploredClass> make_class(int size_class, bool has_native);
  void fill(ExploredClass& explored);
  void wake(ExploredClass& explored);
  void add_candidates(ExploredClass& explored);
  /// How a call of the class runs with one of its candidates. With choice_mutex_ locked; valid until another is asked
  /// for.
  const Path& candidate_path(const CollectiveCall& call, const ExploredClass& explored, int candidate);
  Path make_candidate_path(const CollectiveCall& call, const ExploredCandidate& candidate);
  const Path& remember(const std::tuple<Collective, std::int64_t, std::int64_t, int, int>& key, Path path);
  [[nodiscard]] const Path* find_path(const std::tuple<Collective, std::int64_t, std::int64_t, int, int>& key);
  /// Is anything else known than what the file says, or was the communicator used for long?
  bool has_news();
  void log_settled(const ExploredClass& explored);
  PlanReport make_report(const CollectiveCall& call, const Schedule* schedule, const ChosenPlan* plan) const;
  void log_once(const CollectiveCall& call, const PlanReport& report);

  std::uint64_t process_ = process_number();
  pid_t pid_ = getpid();
  std::unique_ptr<Survival> survival_;  ///< null: a rank that is lost ends the communicator. Outlives the transport
  std::unique_ptr<Transport> transport_;
  std::atomic<int> rank_;
  std::atomic<int> size_;
  bool allows_threads_;  ///< of the transport
  DeviceSide* device_;   ///< of the transport; null on host memory
  OwnCollectives* own_;  ///< of the transport; null where plans run
  CommunicatorOptions options_;
  std::mutex choice_mutex_;
  Chooser chooser_;
  using Key = std::tuple<Collective, std::int64_t, std::int64_t, int, int>;  // count, element size, class, candidate
  std::map<Key, Path> paths_;
  std::array<std::pair<Key, Path*>, 4> recent_paths_{};  ///< null: none
  std::size_t next_recent_ = 0;
  std::uint64_t num_path_uses_ = 0;
  std::map<std::pair<Collective, int>, bool> has_logged_;
  std::function<void(std::string_view)> log_;
  std::function<void(std::string_view)> warn_;
  Exploration exploration_;
  std::map<std::pair<int, bool>, std::shared_ptr<ExploredClass>> classes_;  ///< size class, with a native candidate
  /// The same by has_native and size class, for calls that take no lock.
  std::array<std::array<std::atomic<ExploredClass*>, ToldWinners::kNumClasses>, 2> plain_classes_{};
  std::vector<std::byte> carrier_;  ///< a vector with rank 0's word

  std::uint64_t sequence_;
  std::uint64_t serial_ = 1;
  std::atomic<bool> has_failed_{false};
  std::optional<CollectiveCall> outer_;  ///< the operation that the one under way is a part of

  // Of surviving communicators. The first is the caller's, the others belong to whoever runs an operation.
  std::shared_ptr<const Members> visible_;
  std::shared_ptr<const Members> last_members_;  ///< that the last operation has run between
  std::uint64_t num_calls_ = 0;
  std::vector<std::byte> kept_input_;  ///< of an operation that writes over it

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> queue_;  ///< the first one is running, or its on_complete is
  std::atomic<std::int64_t> num_queued_{0};  ///< as many as in the queue
  std::thread worker_;
  bool is_ending_ = false;
  bool is_closed_ = false;
  bool is_blocked_ = false;            ///< without a thread: a call is inside an operation of its own
  std::unique_ptr<Advancing> polled_;  ///< without a thread: the operation under way
};

/// Numbers of operations below this are for setting a transport up.
inline constexpr std::uint64_t kFirstSequence = 1000;

}  // namespace gar
