// What the ranks of an MPI communicator tell each other in addition to the data: what they are asked for, and that they
// give up.
//
// Signatures: short messages carry one (mpi_transport.hpp). Before the first long one of an operation a rank sends its
// signature to each rank that it sends to; no rank uses the data of another before that one's signature has arrived and
// is the same as its own. Messages between two ranks do not overtake each other, so the signature is there when the
// data are. A rank that waits for long tells its partners what it has called (tell); they may have finished that
// operation long before they hear of it, so the last ones are remembered for comparison.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/transport.hpp"
#include "runtime/transports/mpi/frame.hpp"
#include "runtime/transports/mpi/mpi_call.hpp"

namespace gar {

class MpiControl {
 public:
  MpiControl(MPI_Comm comm, int rank, int size, const MpiTags& tags);
  MpiControl(const MpiControl&) = delete;
  MpiControl& operator=(const MpiControl&) = delete;
  ~MpiControl();

  void begin(const Signature& signature);
  [[nodiscard]] const Signature& signature() const { return signature_; }
  /// Sends the signature to a peer, once for every operation.
  void announce(int peer);
  /// As announce, for a peer that need not be waiting for it.
  void tell(int peer);
  /// Throws TransportError when the peer has called something else.
  void compare(const Signature& theirs, int peer) const {
    if (theirs != signature_) mismatch(theirs, peer);
  }
  /// Has the peer's signature arrived? Throws TransportError when it is another one.
  bool is_agreed(int peer);
  /// Takes in what has arrived from any rank. Throws TransportError when that rank gives up, or has
  /// called something else. `is_exchange`: this rank itself gathers.
  void look(bool is_exchange);
  /// Throws TransportError when a rank has given up.
  void check_abort();
  /// Tells all ranks that this rank gives up, and why: for its own reason, or because another one did first. It must
  /// have no receive under way any more: the others take back their memory then.
  void give_up(std::string_view reason) noexcept;
  /// After giving up: takes a message that is not awaited any more, so that its sender gets rid of it. True when
  /// there was one.
  bool discard() noexcept;
  /// Have all ranks given up?
  [[nodiscard]] bool have_all_given_up() const;
  /// Tells a peer that this rank takes its memory back although the peer has not received what was sent out of it.
  void say_gone(int peer) noexcept;
  /// Takes what others have said of their calls, and compares what belongs to operations of this rank.
  void take_signatures();
  /// Has anything been left to MPI that will never complete?
  [[nodiscard]] bool is_clean() const { return is_clean_; }
  /// Completes what can be completed, and leaves the rest to MPI.
  void finish() noexcept;

 private:
  struct Outgoing {
    std::unique_ptr<WireSignature> wire;
    std::vector<MPI_Request> requests;
  };
  struct Peer {
    std::uint64_t announced = 0;  ///< sequence of the last operation that it was told of
    std::uint64_t agreed = 0;     ///< sequence of the last operation that it agreed to
    bool has_given_up = false;
    bool is_gone = false;
    std::deque<Signature> incoming;
  };

  bool take_abort(int source) noexcept;
  bool discard_from(int source) noexcept;
  void send_last(const void* data, std::size_t bytes, int peer, int tag) noexcept;
  void take_exchange();
  /// Compares with the operations before, and forgets what is over.
  void settle_old(Peer& peer, int rank);
  void send_signature(int peer, bool is_awaited);
  [[noreturn]] void mismatch(const Signature& theirs, int their_rank) const;
  [[nodiscard]] std::vector<std::byte> receive(MPI_Status& probed) const;
  static bool is_sent(std::vector<MPI_Request>& requests);

  MPI_Comm comm_;
  int rank_;
  int size_;
  MpiTags tags_;
  Signature signature_;
  static constexpr std::size_t kRemembered = 64;
  std::array<Signature, kRemembered> before_{};  ///< by sequence, the present one included
  std::vector<Peer> peers_;
  std::list<Outgoing> outgoing_;
  WireAbort heard_;                   ///< the first that was heard
  std::unique_ptr<WireAbort> abort_;  ///< what this rank says
  std::vector<MPI_Request> aborts_;
  MPI_Request discarded_ = MPI_REQUEST_NULL;
  std::unique_ptr<std::byte[]> waste_;  ///< where it goes
  bool is_clean_ = true;
};

}  // namespace gar
