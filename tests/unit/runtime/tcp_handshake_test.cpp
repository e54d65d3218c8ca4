// The handshake: who knows the secret comes in, and nobody else, whatever he has recorded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/transports/tcp/handshake.hpp"

namespace gar {
namespace {

using State = Handshake::State;

Nonce nonce_of(int value) {
  Nonce out{};
  out.fill(static_cast<std::byte>(value));
  return out;
}

struct Spoken {
  std::vector<std::vector<std::byte>> by_caller;
  std::vector<std::vector<std::byte>> by_answerer;
};

/// Carries bytes between the two in pieces of this size until nothing moves.
Spoken talk(Handshake& caller, Handshake& answerer, std::size_t piece) {
  Spoken out;
  const auto carry = [&](Handshake& from, Handshake& to, std::vector<std::vector<std::byte>>& said) {
    bool has_moved = false;
    while (!from.output().empty()) {
      const auto part = from.output().first(std::min(piece, from.output().size()));
      said.emplace_back(part.begin(), part.end());
      to.take(part);
      from.sent(part.size());
      has_moved = true;
    }
    return has_moved;
  };
  while (carry(caller, answerer, out.by_caller) || carry(answerer, caller, out.by_answerer)) {
  }
  return out;
}

const Introduction kCaller{Purpose::kPeer, 2, 1, 4};
const Introduction kAnswerer{Purpose::kPeer, 0, 1, 4};

TEST(TcpHandshake, LetsInWhoKnowsTheSecret) {
  for (const std::size_t piece : {1U, 3U, 64U}) {
    Handshake caller = Handshake::caller(derive_key("the secret of the job", "x"), kCaller, nonce_of(1));
    Handshake answerer = Handshake::answerer(derive_key("the secret of the job", "x"), kAnswerer, nonce_of(2));
    talk(caller, answerer, piece);
    EXPECT_EQ(caller.state(), State::kDone);
    EXPECT_EQ(answerer.state(), State::kDone);
    EXPECT_EQ(answerer.introduction().rank, 2U);
  }
}

TEST(TcpHandshake, RefusesAnotherSecretOnBothSides) {
  Handshake caller = Handshake::caller(derive_key("one secret of a job", "x"), kCaller, nonce_of(1));
  Handshake answerer = Handshake::answerer(derive_key("another secret of it", "x"), kAnswerer, nonce_of(2));
  const Spoken spoken = talk(caller, answerer, 64);
  EXPECT_EQ(answerer.state(), State::kRefused);
  EXPECT_EQ(caller.state(), State::kGoesOn) << "nobody has answered it";
  EXPECT_EQ(spoken.by_answerer.size(), 1U) << "the challenge and nothing else";
}

TEST(TcpHandshake, RefusesWhoWantsSomethingElse) {
  const Digest key = derive_key("the secret of the job", "x");
  const Introduction wrong[] = {{Purpose::kStore, 2, 1, 4},
                                {Purpose::kPeer, 4, 1, 4},
                                {Purpose::kPeer, 2, 0, 4},
                                {Purpose::kPeer, 2, 1, 5},
                                {Purpose::kPeer, 0xffffffffU, 1, 4}};
  for (const Introduction& one : wrong) {
    Handshake caller = Handshake::caller(key, one, nonce_of(1));
    Handshake answerer = Handshake::answerer(key, kAnswerer, nonce_of(2));
    talk(caller, answerer, 64);
    EXPECT_EQ(answerer.state(), State::kRefused) << one.rank << " " << one.to << " " << one.size;
  }
}

TEST(TcpHandshake, WhatWasRecordedProvesNothing) {
  const Digest key = derive_key("the secret of the job", "x");
  Handshake caller = Handshake::caller(key, kCaller, nonce_of(1));
  Handshake answerer = Handshake::answerer(key, kAnswerer, nonce_of(2));
  const Spoken spoken = talk(caller, answerer, 64);
  ASSERT_EQ(answerer.state(), State::kDone);
  // The same words once more, to the same rank with its next nonce.
  Handshake again = Handshake::answerer(key, kAnswerer, nonce_of(3));
  for (const std::vector<std::byte>& words : spoken.by_caller) {
    again.take(words);
    again.sent(again.output().size());
  }
  EXPECT_EQ(again.state(), State::kRefused);
  // And what the rank has said, to a caller with another nonce.
  Handshake other = Handshake::caller(key, kCaller, nonce_of(4));
  for (const std::vector<std::byte>& words : spoken.by_answerer) {
    other.sent(other.output().size());
    other.take(words);
  }
  EXPECT_EQ(other.state(), State::kRefused);
}

TEST(TcpHandshake, AProofCannotBeSentBack) {
  const Digest key = derive_key("the secret of the job", "x");
  Handshake caller = Handshake::caller(key, kCaller, nonce_of(1));
  Handshake answerer = Handshake::answerer(key, kAnswerer, nonce_of(2));
  const auto carry = [](Handshake& from, Handshake& to) {
    const std::vector<std::byte> words(from.output().begin(), from.output().end());
    from.sent(words.size());
    to.take(words);
    return words;
  };
  carry(caller, answerer);
  carry(answerer, caller);
  const std::vector<std::byte> proof(caller.output().begin(), caller.output().end());
  caller.sent(proof.size());
  caller.take(proof);  // instead of the welcome
  EXPECT_EQ(caller.state(), State::kRefused);
}

TEST(TcpHandshake, NeverWantsMoreThanAMessage) {
  const Digest key = derive_key("the secret of the job", "x");
  Handshake answerer = Handshake::answerer(key, kAnswerer, nonce_of(2));
  EXPECT_GT(answerer.wanted(), 0U);
  EXPECT_LE(answerer.wanted(), Handshake::kMostBytes);
  const std::vector<std::byte> flood(10'000, std::byte{'G'});
  answerer.take(flood);
  EXPECT_EQ(answerer.state(), State::kRefused);
  EXPECT_EQ(answerer.wanted(), 0U);
  EXPECT_TRUE(answerer.output().empty()) << "a stranger gets no answer";
}

TEST(TcpSecret, AKeyIsForOnePurpose) {
  EXPECT_FALSE(is_same(derive_key("a secret of the job", "one"), derive_key("a secret of the job", "two")));
  EXPECT_TRUE(is_same(derive_key("a secret of the job", "one"), derive_key("a secret of the job", "one")));
  // Case 1 of RFC 4231: key 20 times 0x0b, "Hi There".
  const std::vector<std::byte> key(20, std::byte{0x0b});
  const std::string text = "Hi There";
  EXPECT_EQ(to_hex(hmac(key, {std::as_bytes(std::span(text))})),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

}  // namespace
}  // namespace gar
