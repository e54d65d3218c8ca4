// Ranks that exchange messages over TCP connections of our own, one between every two of them.
//
// Sends leave straight from the user's memory; receives go straight into it when the message ends there unchanged and
// nothing that lies there is still to be sent at the moment in which the message comes; otherwise into a buffer of the
// chunk's slot. So a rank always takes what comes for chunks that are under way, and two ranks that swap never wait for
// each other. What comes for a later chunk or operation waits in its connection: its sender has sent everything of the
// chunks before, so nothing that is needed first can be behind it.
//
// Before the first message of an operation a rank tells the receiver what it has called (a status); the receiver
// compares that before it uses anything. A rank that waits for long tells all others: that is its sign of life, and how
// ranks find out that they wait for each other in different calls.
//
// Faults. The kernel closes the connections of a process that dies. A rank that ends on purpose says so first. One that
// is silent (stopped, or behind a cable that was cut) is noticed by those that wait: they hear of each other meanwhile,
// so all name the rank from which nothing came. A rank that gives up tells all others, and why.
#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/admission.hpp"
#include "runtime/arena.hpp"
#include "runtime/courtesy.hpp"
#include "runtime/transports/hybrid/hybrid_transport.hpp"
#include "runtime/transports/mpi/frame.hpp"
#include "runtime/transports/tcp/connection.hpp"
#include "runtime/transports/tcp/tcp_exchange.hpp"

namespace gar {

/// Of the steady clock.
std::int64_t now_ns();

struct TcpTransportOptions {
  double timeout_s = 30;
  /// Ranks that something else carries messages to (shared memory); empty: none. Their messages are left alone, but
  /// they are connected all the same: for the latency path, and to notice when they die.
  std::vector<bool> has_other_way;
  /// Plans that overlap their stages may cut chunks down to this; 0: they do not.
  std::int64_t least_chunk_bytes = 0;
  /// Receivers admit this many senders at a time (runtime/admission.hpp); 0: they do not admit, but take what is sent.
  int max_senders = 0;
  /// Something else may happen meanwhile that does not wake this rank.
  bool sleeps_shortly = false;
  /// Looks before it sleeps; for ranks that have a core each.
  int num_looks = 0;
};

class TcpTransport final : public MessageTransport, private FrameSink {
 public:
  /// `sockets` by rank, connected to it; the own one is empty.
  TcpTransport(int rank, std::vector<File> sockets, TcpTransportOptions options);
  ~TcpTransport() override;
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] std::string_view name() const override { return "tcp"; }
  [[nodiscard]] TransportLimits limits() const override;
  [[nodiscard]] bool allows_threads() const override { return true; }

  void begin(const Signature& signature, const Operands& operands) override;
  bool try_open(Flight& flight) override;
  bool try_send(Flight& flight, int step) override;
  bool try_receive(Flight& flight, int step, std::span<const std::byte*> operands) override;
  void consumed(Flight& /*flight*/, int /*step*/) override { is_stale_ = true; }
  bool try_close(Flight& flight) override;
  void wait() override;
  void progressed() override {
    has_progressed_ = true;
    is_stale_ = true;
  }
  void fail(std::string_view reason) noexcept override;
  [[nodiscard]] QuickGather quick_gather() const override { return message_gather(size()); }
  bool try_exchange(const void* in, std::int64_t bytes, std::span<const std::byte*> operands) override;
  [[nodiscard]] bool is_waiting() const override { return num_missing_ > 0 || num_sending_ > 0 || is_exchanging_; }

  /// Takes in what has come and hands out what can leave; looks after the others. For callers that wait elsewhere.
  void look();
  /// What the set-up learned after the connections were made. Before the first operation of the user.
  void set_admission(int max_senders);
  void leave_to_others(std::vector<bool> has_other_way);

 private:
  struct Range {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    [[nodiscard]] bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
  };
  /// A part of a message that is sent out of the user's memory.
  struct UserSend {
    Range range;
    bool is_first = false;    ///< of its message
    bool is_pending = false;  ///< the first one speaks for the message
  };
  struct Recv {
    std::byte* memory = nullptr;  ///< null: chosen when it comes
    std::int64_t received = 0;
    std::int64_t expected = 0;  ///< 0: nothing comes this way
    bool is_admitted = false;   ///< its sender waits for our permission
  };
  struct StepState {
    std::vector<Recv> recvs;  ///< as ChunkStep::recvs
    int num_missing = 0;
  };
  struct Slot {
    bool is_open = false;
    Flight flight;
    int step = -1;  ///< whose sends were handed over last
    std::vector<StepState> steps;
    std::vector<UserSend> user_sends;
    int num_pending = 0;  ///< frames and held messages that have not left
    Arena arena;
    std::vector<std::unique_ptr<std::byte[]>> spare;  ///< for what could not go where it belongs
  };
  /// A message, seen from both of its ends.
  using MessageId = std::tuple<int, std::uint32_t, std::uint32_t, std::uint32_t>;  // peer, serial, step, index
  struct Ticket {
    std::uint32_t serial = 0;
    std::uint32_t step = 0;
    std::uint32_t index = 0;
  };
  /// A message that has not been admitted yet.
  struct Held {
    MessageId id;
    int slot = 0;
    std::vector<std::pair<FrameHead, const std::byte*>> frames;
    int user_send = -1;
  };
  struct Peer {
    Connection connection;
    std::uint64_t told = 0;       ///< sequence of the operation whose status was sent last
    std::uint64_t agreed = 0;     ///< of the last one that it has called as this rank has
    std::deque<Signature> ahead;  ///< what it has called after this rank's operation
    WireSignature status;         ///< where one arrives, and below
    WireAbort abort;
    std::int64_t heard_ns = 0;
    bool has_left = false;  ///< on purpose
    bool has_given_up = false;
    std::int64_t ended_ns = 0;  ///< 0: it is connected
  };

  // What comes (tcp_arrivals.cpp).
  std::byte* place(int peer, const FrameHead& head) override;
  void arrived(int peer, const FrameHead& head) override;
  std::byte* place_data(int peer, const FrameHead& head);
  std::byte* place_exchange(int peer, const FrameHead& head);
  Recv* find(Slot& slot, int peer, const FrameHead& head, int* step);
  Slot* open_slot(std::uint32_t serial);
  [[nodiscard]] bool may_go_home(const Slot& slot, int step, const ChunkRecv& recv) const;
  void data_arrived(int peer, const FrameHead& head);
  void status_arrived(int peer);
  void admission_arrived(int peer, const FrameHead& head);

  // What leaves (tcp_transport.cpp).
  void send(Slot& slot, int step, std::size_t message);
  void tell_status(int peer);
  void tell_admitted();
  void hand_over(Held& held);
  void left(const SendToken& token);
  void flush(int peer);
  [[nodiscard]] bool may_write(const Slot& slot, int step) const;
  [[nodiscard]] static bool is_leaving(const Slot& slot, const Range& range);

  // Waiting and failing (tcp_waiting.cpp).
  bool poll() { return wait_events(0); }
  /// Where there is other work to do than waiting: a look now and then keeps messages moving.
  bool poll_if_stale() { return is_stale_ && now_ns() - polled_ns_ > kBetweenLooksNs && poll(); }
  void add_to_epoll();
  void note_end(int rank);
  void check_peers(std::int64_t now);
  void check_ended(std::int64_t now);
  void check_silence(std::int64_t now);
  void show_life(std::int64_t now);
  [[nodiscard]] std::vector<int> awaited() const;
  [[nodiscard]] std::vector<int> silent_ranks() const;
  [[nodiscard]] static std::string words_of(std::vector<int> silent);
  void serve(int rank);
  bool wait_events(std::int64_t nanoseconds);
  [[nodiscard]] std::int64_t sleep_ns(std::int64_t now) const;
  [[nodiscard]] std::int64_t sign_interval() const;
  /// Sends what every rank is to hear last, and gives it this long to arrive.
  void farewell(const FrameHead& head, std::span<const std::byte> payload, double seconds) noexcept;

  [[nodiscard]] bool is_mine(int peer) const {
    return options_.has_other_way.empty() || !options_.has_other_way[static_cast<std::size_t>(peer)];
  }
  Peer& peer_of(int rank) { return *peers_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] static Range range_of(const Flight& flight, const Part& part);

  int rank_;
  int size_;
  pid_t process_ = getpid();
  TcpTransportOptions options_;
  File epoll_;
  std::vector<std::unique_ptr<Peer>> peers_;  ///< by rank; the own one is not connected
  std::vector<int> restless_;                 ///< peers that had more than one turn's worth to read
  std::vector<SendToken> has_left_;
  TcpExchange exchange_;
  AdmissionQueue<Ticket> admission_;
  std::vector<Held> held_;
  std::set<MessageId> admitted_;  ///< before this rank came to send them

  Signature signature_;
  static constexpr std::size_t kRemembered = 64;
  std::array<Signature, kRemembered> before_{};  ///< by sequence, the present one included
  bool is_exchanging_ = false;                   ///< waits in the latency path
  std::vector<Slot> slots_;
  int num_missing_ = 0;  ///< messages of open slots
  int num_sending_ = 0;  ///< frames that have a slot
  bool is_stale_ = true;
  static constexpr std::int64_t kBetweenLooksNs = 20'000;
  std::int64_t polled_ns_ = 0;
  bool has_come_ = false;  ///< in the last look
  bool has_progressed_ = true;
  Courtesy courtesy_;
  std::int64_t silent_since_ns_ = 0;
  std::int64_t shown_ns_ = 0;   ///< last sign of life to all
  WireAbort heard_;             ///< the first that was heard
  int first_ended_ = -1;        ///< a rank that has died
  bool has_lost_some_ = false;  ///< that have left on purpose
  bool has_failed_ = false;
  std::string failure_;
};

}  // namespace gar
