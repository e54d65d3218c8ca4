// Ranks that share memory: threads of a process, or processes of a host.
//
// A sender copies what a step sends into its staging area of the chunk's slot, once however many receivers there are,
// and raises `published`; receivers reduce straight out of the senders' areas (all operands in one pass) and report
// when they need nothing of that chunk any more, so that the area can be used again. No rank waits for anything else.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/transport.hpp"
#include "runtime/transports/shared/segment.hpp"

namespace gar {

/// Which of a communicator's ranks share the segment.
struct Membership {
  int rank = 0;              ///< of the communicator
  int size = 1;              ///< of the communicator
  std::vector<int> members;  ///< rank of the communicator of each rank of the segment, ascending; empty: all of them
};

class SharedTransport final : public Transport {
 public:
  SharedTransport(std::shared_ptr<Segment> segment, const Membership& membership, double timeout_s);
  ~SharedTransport() override;
  SharedTransport(const SharedTransport&) = delete;
  SharedTransport& operator=(const SharedTransport&) = delete;

  [[nodiscard]] int rank() const override { return membership_.rank; }
  [[nodiscard]] int size() const override { return membership_.size; }
  [[nodiscard]] std::string_view name() const override { return segment_->kind(); }
  [[nodiscard]] TransportLimits limits() const override;
  [[nodiscard]] bool allows_threads() const override { return true; }

  void begin(const Signature& signature, const Operands& operands) override;
  bool try_open(Flight& flight) override;
  bool try_send(Flight& flight, int step) override;
  /// Leaves operands of ranks that are no members alone.
  bool try_receive(Flight& flight, int step, std::span<const std::byte*> operands) override;
  void consumed(Flight& flight, int step) override;
  bool try_close(Flight& flight) override;
  void wait() override;
  void progressed() override;
  void fail(std::string_view reason) noexcept override;
  [[nodiscard]] QuickGather quick_gather() const override;
  bool try_exchange(const void* in, std::int64_t bytes, std::span<const std::byte*> operands) override;

  /// Called now and then while this rank waits, for what makes progress only when it is called.
  void set_idle(std::function<void()> idle) { idle_ = std::move(idle); }
  [[nodiscard]] bool is_member(int rank) const { return local_of_[static_cast<std::size_t>(rank)] >= 0; }
  /// Throws when a peer has failed, died or left, or (has_limit) has been silent for too long; for callers that do not
  /// use wait().
  void check_peers(bool has_limit = true);

 private:
  struct Awaited {
    Signal* signal = nullptr;
    std::uint32_t target = 0;
    int peer = -1;  ///< local; -1: several
  };

  [[nodiscard]] int local(int rank) const { return local_of_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int global(int local_rank) const;
  bool await(Signal& signal, std::uint32_t target, int peer);
  /// Has the peer begun the same operation? Throws when it has begun another.
  bool agrees(int peer);
  [[noreturn]] void throw_failure(const std::string& text);
  /// The same for what survivors may go on after.
  [[noreturn]] void throw_lost(const std::string& text, std::vector<int> silent = {});
  /// Notes when the silence of the others began, and that this rank is alive.
  void note_time();
  void check_time();
  /// Those that have neither moved on nor waited since this rank began to wait.
  [[nodiscard]] std::vector<int> silent_ranks() const;
  [[nodiscard]] std::uint32_t num_receivers(const ChunkProgram& program) const;

  std::shared_ptr<Segment> segment_;
  Membership membership_;
  double timeout_s_;
  pid_t process_ = getpid();
  int self_ = 0;  ///< rank in the segment
  int num_local_ = 1;
  std::vector<int> local_of_;
  Patience patience_;
  std::function<void()> idle_;
  Signature signature_;
  std::uint64_t signature_hash_ = 0;
  std::vector<std::uint64_t> agreed_;  ///< per local rank: number of the last operation that was compared
  std::array<std::uint32_t, kMaxSlots> to_release_{};  ///< receivers of all chunks so far, per slot
  Awaited awaited_;
  std::vector<std::uint32_t> heartbeats_;  ///< of all local ranks, when this rank began to wait
  bool has_progressed_ = true;
  std::int64_t silent_since_ns_ = 0;
  std::uint32_t exchange_ = 0;
  std::uint64_t exchange_of_ = 0;  ///< operation that has published its exchange
  std::string failure_;
};

}  // namespace gar
