#include "runtime/transports/tcp/handshake.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace gar {

namespace {

// Also tells machines of another byte order apart, and versions of these messages.
constexpr std::uint64_t kMagic = 0x3170637472616721U;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

Handshake Handshake::caller(const Digest& key, const Introduction& own, const Nonce& nonce) {
  Handshake out;
  out.key_ = key;
  out.hello_ = {kMagic, own, nonce};
  out.expected_ = own;
  out.say(out.hello_);
  return out;
}

Handshake Handshake::answerer(const Digest& key, const Introduction& own, const Nonce& nonce) {
  Handshake out;
  out.key_ = key;
  out.is_caller_ = false;
  out.expected_ = own;
  out.own_nonce_ = nonce;
  return out;
}

template <class Message>
void Handshake::say(const Message& message) {
  static_assert(sizeof message <= kMostBytes);
  std::memcpy(out_.data(), &message, sizeof message);
  num_out_ = sizeof message;
  sent_ = 0;
}

std::size_t Handshake::wanted() const {
  if (state_ != State::kGoesOn || sent_ < num_out_) return 0;
  const std::size_t first = is_caller_ ? sizeof(Challenge) : sizeof(Hello);
  return (num_taken_ == 0 ? first : sizeof(Digest)) - num_in_;
}

void Handshake::take(std::span<const std::byte> bytes) {
  const std::size_t most = wanted();
  const std::size_t count = std::min(bytes.size(), most);
  if (count == 0) return;
  std::copy_n(bytes.begin(), count, in_.begin() + static_cast<std::ptrdiff_t>(num_in_));
  num_in_ += count;
  if (count < most) return;
  turn();
  num_in_ = 0;
  ++num_taken_;
}

/// A message is complete.
void Handshake::turn() {
  if (!is_caller_ && num_taken_ == 0) return answer_hello();
  if (is_caller_ && num_taken_ == 0) {
    std::memcpy(&challenge_, in_.data(), sizeof challenge_);
    if (challenge_.magic != kMagic) {
      state_ = State::kRefused;
    } else {
      say(proof("caller"));
    }
    return;
  }
  Digest theirs{};
  std::memcpy(theirs.data(), in_.data(), theirs.size());
  if (!is_same(theirs, proof(is_caller_ ? "answerer" : "caller"))) {
    state_ = State::kRefused;
    return;
  }
  state_ = State::kDone;
  if (!is_caller_) say(proof("answerer"));
}

void Handshake::answer_hello() {
  std::memcpy(&hello_, in_.data(), sizeof hello_);
  const Introduction& who = hello_.who;
  if (hello_.magic != kMagic || who.purpose != expected_.purpose || who.size != expected_.size ||
      who.rank >= expected_.size || who.to != expected_.to) {
    state_ = State::kRefused;
    return;
  }
  challenge_ = {kMagic, own_nonce_};
  say(challenge_);
}

Digest Handshake::proof(const char* side) const {
  const std::string_view label(side);
  return hmac(key_, {std::as_bytes(std::span(label)), bytes_of(hello_), bytes_of(challenge_)});
}

Introduction Handshake::introduction() const { return hello_.who; }

}  // namespace gar
