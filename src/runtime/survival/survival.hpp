// What a rank needs to go on without those that are lost (on_failure = shrink): links to all others, an agreement that
// is driven over them, and something that connects the survivors anew. docs/failures.md has the protocol.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "runtime/survival/agreement.hpp"
#include "runtime/survival/control_links.hpp"
#include "runtime/survival/growth.hpp"
#include "runtime/transport.hpp"

namespace gar {

/// A group that is to be connected.
struct Regrouping {
  int rank = 0;                        ///< of this process in it
  std::vector<int> members;            ///< ranks of the first generation
  std::vector<std::string> addresses;  ///< what each of them has prepared
  std::uint64_t generation = 0;
  /// To be called now and then while waiting. Throws PeerLost when it will come to nothing.
  std::function<void()> look;
};

/// Connects survivors; one for each kind of transport.
class Rebuilder {
 public:
  Rebuilder() = default;
  Rebuilder(const Rebuilder&) = delete;
  Rebuilder& operator=(const Rebuilder&) = delete;
  virtual ~Rebuilder() = default;
  /// Before it is known who goes on: where others will find this rank, kMostAddressBytes at most.
  virtual std::string prepare() = 0;
  /// Collective among the members. Throws TransportError when that fails.
  virtual std::unique_ptr<Transport> rebuild(const Regrouping& group) = 0;
};

class Survival {
 public:
  struct Setup {
    int rank = 0;              ///< of the first generation
    std::vector<int> members;  ///< the same of all, ascending
    std::uint64_t generation = 0;
    double timeout_s = 30;
    /// See Agreement.
    bool closing_is_death = false;
  };
  /// How far this rank has come.
  struct Progress {
    std::uint64_t num_begun = 0;
    std::uint64_t num_done = 0;  ///< it has the results of
  };
  /// What a recovery leads to.
  struct Recovered {
    std::unique_ptr<Transport> transport;
    std::vector<int> kept;  ///< of the members before, by their ranks: those of the members now, ascending
    std::uint64_t num_standing = 0;
  };

  /// `links` by rank of the first generation. `grower`: null where nobody can be taken in.
  Survival(const Setup& setup, std::vector<File> links, std::unique_ptr<Rebuilder> rebuilder,
           std::unique_ptr<Grower> grower = nullptr);
  /// Tells the others that this rank has left, unless it has failed.
  ~Survival();
  Survival(const Survival&) = delete;
  Survival& operator=(const Survival&) = delete;

  /// Who belongs to the present generation.
  [[nodiscard]] std::shared_ptr<const Members> members() const { return members_; }
  /// This rank of the first generation.
  [[nodiscard]] int first_rank() const { return setup_.rank; }

  /// Collective among those who are left: agrees who they are and which operations stand, and connects them.
  /// `silent`: ranks of the present generation that were silent. The transport of before has failed on this rank. Where
  /// nobody can go on, but a rank that has left has returned from the operation under way, which this rank has the
  /// result of: without a transport. Throws TransportError when it is not to go on.
  Recovered recover(const std::vector<int>& silent, const Progress& progress);
  /// An operation has returned.
  void note_progress(std::uint64_t num_returned) {
    num_returned_ = num_returned;
    num_fruitless_ = 0;
  }
  /// This rank ends with an error that concerns all.
  void give_up(const std::string& reason) noexcept;

  /// Null: nobody can be taken in.
  [[nodiscard]] Grower* grower() const { return grower_.get(); }
  /// A growth begins; as many have begun on every member.
  void begin_growth() { ++num_growths_; }
  /// It cannot succeed: the other members need not wait.
  void call_off(const std::string& reason) noexcept;
  /// While members of this generation and newcomers connect with each other. Throws PeerLost when it will come to
  /// nothing.
  void look_growing(std::uint64_t generation);
  /// In a grown group, on a member: it has been decided that it goes on.
  void welcome();
  /// In a grown group, on a newcomer, which does nothing in it before this returns: waits for that. Throws
  /// TransportError when it was not decided so, or nobody says so until `limit_ns` of the steady clock.
  void await_welcome(int first_newcomer, std::int64_t limit_ns);

 private:
  /// False: nobody goes on.
  bool agree(const std::vector<int>& silent, std::uint64_t num_done);
  void post_letters();
  void take_events(int milliseconds);
  void watch(std::int64_t now);
  void show_life(std::int64_t now);
  void take_event(const ControlLinks::Event& event);
  void look();
  void end(const std::string& reason);
  [[nodiscard]] std::string hopeless_words() const;
  [[nodiscard]] std::vector<int> first_ranks(const std::vector<int>& ranks) const;
  [[nodiscard]] std::int64_t limit_ns() const { return static_cast<std::int64_t>(setup_.timeout_s * 1e9); }

  Setup setup_;
  pid_t process_ = getpid();
  ControlLinks links_;
  std::unique_ptr<Rebuilder> rebuilder_;
  std::unique_ptr<Grower> grower_;
  Agreement agreement_;
  std::shared_ptr<const Members> members_;
  std::string defect_;  ///< of a member
  bool has_failed_ = false;
  std::uint64_t num_returned_ = 0;   ///< operations, to the caller
  std::uint64_t num_confirmed_ = 0;  ///< that ranks which have left have returned from
  int num_fruitless_ = 0;            ///< generations in a row that have lost nobody and completed nothing
  std::int64_t began_ns_ = 0;
  std::int64_t shown_ns_ = 0;
  std::map<int, std::int64_t> accused_since_;
  std::int64_t num_growths_ = 0;
  std::int64_t off_ = 0;  ///< the last growth that another member has called off
  std::string off_reason_{};
  bool is_welcome_ = false;
};

}  // namespace gar
