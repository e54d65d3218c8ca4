// How two ends of a connection prove to each other that they know the secret of the job.
//
//   caller -> answerer   Hello       what it wants, who it says it is, a nonce
//   answerer -> caller   Challenge   a nonce
//   caller -> answerer   Proof       HMAC(key, "caller", Hello, Challenge)
//   answerer -> caller   Welcome     HMAC(key, "answerer", Hello, Challenge)
//
// The caller proves itself first, so that nobody can make a member compute anything about the key. Both nonces are in
// both proofs: what was recorded once proves nothing later. Neither proof can be sent back as the other.
//
// All messages have a fixed length. The state of a stranger is this object and nothing else; it knows no sockets, so
// that tests and fuzzers drive it with bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/transports/tcp/secret.hpp"

namespace gar {

/// What a connection is for.
enum class Purpose : std::uint32_t { kPeer = 1, kStore = 2, kNewcomer = 3 };

/// Who calls whom: a rank of a job another one, or a client a store, or a member a newcomer (both are 0 of 1).
struct Introduction {
  Purpose purpose = Purpose::kPeer;
  std::uint32_t rank = 0;  ///< of the caller
  std::uint32_t to = 0;    ///< rank of the answerer
  std::uint32_t size = 1;
};

class Handshake {
 public:
  enum class State { kGoesOn, kDone, kRefused };

  static Handshake caller(const Digest& key, const Introduction& own, const Nonce& nonce);
  /// Takes those who name the purpose, the size and the answerer (`to`) of `own`, and a rank below the size.
  static Handshake answerer(const Digest& key, const Introduction& own, const Nonce& nonce);

  [[nodiscard]] State state() const { return state_; }
  /// What is to be sent now, and how much of it was.
  [[nodiscard]] std::span<const std::byte> output() const { return {out_.data() + sent_, num_out_ - sent_}; }
  void sent(std::size_t bytes) { sent_ += bytes; }
  /// How many bytes may be read for it now: never more than belong to it. 0: first the output must leave.
  [[nodiscard]] std::size_t wanted() const;
  /// No more than wanted().
  void take(std::span<const std::byte> bytes);
  /// Has the other end said something that fits? A caller has proved itself then, or is about to: from there on the
  /// answerer may take it for connected.
  [[nodiscard]] bool has_heard() const { return num_taken_ > 0; }
  /// Who has called whom.
  [[nodiscard]] Introduction introduction() const;

  /// The longest message.
  static constexpr std::size_t kMostBytes = 64;

 private:
  struct Hello {
    std::uint64_t magic = 0;
    Introduction who;
    Nonce nonce{};
  };
  struct Challenge {
    std::uint64_t magic = 0;
    Nonce nonce{};
  };

  template <class Message>
  void say(const Message& message);
  void turn();
  void answer_hello();
  [[nodiscard]] Digest proof(const char* side) const;

  Digest key_{};
  bool is_caller_ = true;
  State state_ = State::kGoesOn;
  Introduction expected_;
  Nonce own_nonce_{};
  Hello hello_;
  Challenge challenge_;
  int num_taken_ = 0;  ///< messages
  std::array<std::byte, kMostBytes> in_{};
  std::size_t num_in_ = 0;
  std::array<std::byte, kMostBytes> out_{};
  std::size_t num_out_ = 0;
  std::size_t sent_ = 0;
};

}  // namespace gar
