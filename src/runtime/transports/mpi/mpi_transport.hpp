// Ranks that exchange messages through MPI.
//
// Sends leave straight from the user's memory when they are contiguous there, receives go straight into it when the
// message ends there unchanged; the rest passes through a buffer of the chunk's slot. Receives into such buffers are
// posted when the chunk is opened, so that data find their place whenever they come. A receive into the user's memory
// is posted when its step starts, and not before the chunk's earlier sends out of that memory have left; what the same
// step still sends out of it is reason to use the buffer instead (two ranks that swap would wait for each other).
// Waiting for *earlier* steps only cannot end in a circle.
//
// Short messages carry the signature of their operation in front of the data (a frame): one message instead of two, and
// what is checked has come with what is used. They pass through buffers on both sides. Long ones are announced by a
// message of their own (control.hpp).
//
// Tags are made of the operation, slot and step number; chunks of one slot follow each other in the same order on all
// ranks, and MPI keeps the order between two ranks, so messages of different chunks never mix.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/courtesy.hpp"
#include "runtime/transports/hybrid/hybrid_transport.hpp"
#include "runtime/transports/mpi/admission.hpp"
#include "runtime/transports/mpi/control.hpp"
#include "runtime/transports/mpi/exchange.hpp"
#include "runtime/transports/mpi/mpi_call.hpp"
#include "runtime/transports/mpi/request_cache.hpp"

namespace gar {

struct MpiTransportOptions {
  double timeout_s = 30;
  /// Ranks that something else carries messages to (shared memory); empty: none. Their messages are left alone.
  std::vector<bool> has_other_way;
  int num_slots = 0;             ///< 0: chosen
  std::int64_t chunk_bytes = 0;  ///< 0: chosen
  /// Plans that overlap their stages may cut chunks down to this; 0: they do not.
  std::int64_t least_chunk_bytes = 0;
  /// Receivers admit this many senders at a time (admission.hpp); 0: they do not admit, but take what is sent.
  int max_senders = 0;
};

class MpiTransport final : public MessageTransport {
 public:
  /// Collective; duplicates `comm`.
  MpiTransport(MPI_Comm comm, const MpiTransportOptions& options);
  ~MpiTransport() override;
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] std::string_view name() const override { return "mpi"; }
  [[nodiscard]] TransportLimits limits() const override;
  [[nodiscard]] bool allows_threads() const override { return allows_threads_; }

  void begin(const Signature& signature, const Operands& operands) override;
  bool try_open(Flight& flight) override;
  bool try_send(Flight& flight, int step) override;
  bool try_receive(Flight& flight, int step, std::span<const std::byte*> operands) override;
  void consumed(Flight& flight, int step) override;
  bool try_close(Flight& flight) override;
  void wait() override;
  void progressed() override;
  void fail(std::string_view reason) noexcept override;
  [[nodiscard]] QuickGather quick_gather() const override { return message_gather(size_); }
  bool try_exchange(const void* in, std::int64_t bytes, std::span<const std::byte*> operands) override;

  /// Takes in what has arrived. True when a message has.
  bool poll();
  [[nodiscard]] bool is_waiting() const override {
    return !active_.empty() || admission_->is_waiting() || exchange_->awaited() >= 0;
  }
  [[nodiscard]] const RequestCache& requests() const { return *requests_; }

 private:
  struct Range {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    [[nodiscard]] bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
  };
  /// A send out of the user's memory.
  struct UserSend {
    Range range;
    int step = 0;
    int num_pending = 0;  ///< messages; 0: has left
  };
  enum class RecvState : std::uint8_t { kElsewhere, kDeferred, kPosted };
  struct Recv {
    RecvState state = RecvState::kElsewhere;
    bool is_direct = false;
    bool is_admitted = false;  ///< its sender waits for our permission
    bool is_framed = false;    ///< `memory` begins with the sender's signature
    std::byte* memory = nullptr;
    int num_pending = 0;
  };
  struct StepState {
    std::vector<Recv> recvs;         ///< as ChunkStep::recvs
    std::vector<std::byte*> packed;  ///< as ChunkStep::sends; null: straight out of the user's memory
    int num_deferred = 0;
  };
  struct Slot {
    Arena arena;
    std::vector<StepState> steps;
    std::vector<UserSend> user_sends;
    int num_pending = 0;  ///< messages of any kind
    bool is_posted_early = true;
  };
  /// Whom a message under way belongs to.
  struct Owner {
    MpiMessage message;
    int slot = 0;
    int step = -1;
    bool is_once = false;  ///< its request is not kept
    int index = -1;        ///< receive: in StepState::recvs; send: in user_sends, or -1
  };

  /// A message that has not been admitted yet.
  struct Held {
    int peer = 0;
    std::byte* memory = nullptr;
    std::int64_t bytes = 0;
    Owner owner;
    std::vector<Held> followers{};  // later ones of the step for the same rank, which it expects in this order
  };

  struct Failed {
    MpiMessage message;
    int code = MPI_SUCCESS;
  };

  [[nodiscard]] bool is_mine(int peer) const {
    return has_other_way_.empty() || !has_other_way_[static_cast<std::size_t>(peer)];
  }
  Slot& slot_of(const Flight& flight) { return slots_[static_cast<std::size_t>(flight.slot)]; }
  bool look_for_aborts();
  int start(bool is_send, int peer, std::byte* memory, std::int64_t bytes, const Owner& owner);
  void lay_out(const Flight& flight, Slot& slot);
  /// Do messages of that many bytes carry the signature? Sender and receiver get the same answer.
  [[nodiscard]] bool is_framed(std::int64_t bytes) const;
  [[nodiscard]] bool has_come(const Recv& recv, int peer);
  [[nodiscard]] bool is_direct(const Flight& flight, const ChunkStep& step, std::size_t message) const;
  [[nodiscard]] bool swaps(const Flight& flight, const ChunkStep& step, const Part& target) const;
  static Range range_of(const Flight& flight, const Part& part);
  void post(const Flight& flight, int step, std::size_t message);
  void post_deferred(const Flight& flight, int step);
  void send(const Flight& flight, int step, std::size_t message);
  void send_or_hold(const Held& message, int admission_tag);
  int send_in_order(const Held& message);
  /// The last message of a step that waits to be admitted by a rank; null: none does.
  Held* last_held(int peer, int tag);
  Held release(std::int64_t id);
  bool send_admitted();
  void expect(const Flight& flight);
  [[nodiscard]] bool may_write(const Flight& flight, int step);
  /// A request has ended as it should: keeps it for the next message of its kind.
  void complete(std::size_t i);
  /// A request has failed, or was taken back.
  void drop(std::size_t i) noexcept;
  /// Takes a request out of the lists. The sender of an admitted message that is complete now, otherwise -1.
  [[nodiscard]] int remove(std::size_t i) noexcept;
  [[noreturn]] void message_failed(const Failed& failed);
  void tell_partners();
  void check_time(std::int64_t silent_ns) const;
  [[nodiscard]] std::string awaited() const;
  void cancel_receives() noexcept;
  void complete_some() noexcept;
  void abandon() noexcept;

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  bool allows_threads_ = false;
  MpiTransportOptions options_;
  std::vector<bool> has_other_way_;
  MpiTags tags_{32767};
  std::unique_ptr<RequestCache> requests_;
  std::unique_ptr<MpiControl> control_;
  std::unique_ptr<MpiExchange> exchange_;
  std::unique_ptr<MpiAdmission> admission_;
  std::map<std::int64_t, Held> held_;
  std::int64_t num_held_ = 0;  ///< ever
  std::uint64_t operation_hash_ = 0;
  WireSignature frame_;        ///< of the operation under way
  std::vector<int> partners_;  ///< with whom this rank exchanges frames in it; some several times
  bool has_told_ = false;      ///< has told them what it has called
  std::vector<Slot> slots_;
  std::vector<MPI_Request> active_;
  std::vector<Owner> owners_;  ///< as active_
  std::vector<int> done_;
  std::vector<int> order_;
  std::vector<MPI_Status> statuses_;
  bool has_progressed_ = true;
  std::int64_t silent_since_ns_ = 0;  ///< nothing has happened since
  Courtesy courtesy_;
  std::int64_t sleep_ns_ = 0;
  std::int64_t last_begin_ns_ = 0;
  bool is_exchanging_ = false;
  bool has_failed_ = false;
  std::string failure_;
};

}  // namespace gar
