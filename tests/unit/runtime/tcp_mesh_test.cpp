// How ranks come to be connected: who is called again, who waits, and who is not waited for.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/survival/peer_lost.hpp"
#include "runtime/transports/tcp/mesh.hpp"

namespace gar {
namespace {

constexpr double kMostPatience = 300;
constexpr std::uint32_t kMeshSize = 2;

Address loopback() { return *read_address("127.0.0.1:0"); }
Digest key() { return derive_key("the secret of the job", "mesh"); }

Reception reception_of(int rank) {
  return {listen_on(loopback()), key(), {Purpose::kPeer, 0, static_cast<std::uint32_t>(rank), kMeshSize}};
}

/// Rank 1 of 2, which calls rank 0 there.
MeshMember caller_of(const Address& there) {
  MeshMember out;
  out.rank = 1;
  out.key = key();
  out.own = loopback();
  out.addresses = {there, loopback()};
  out.timeout_s = kMostPatience;
  return out;
}

/// Waits for the next one who calls.
File next_caller(const File& listening) {
  pollfd entry{listening.fd, POLLIN, 0};
  if (poll(&entry, 1, static_cast<int>(kMostPatience * 1000)) != 1) return File();
  return File(accept4(listening.fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

/// An end of a handshake that goes on until the condition holds, or it is over.
void advance_until(Greeter& greeter, const std::function<bool()>& condition) {
  while (!condition() && !greeter.advance()) {
    pollfd entry{greeter.fd(), POLLIN, 0};
    poll(&entry, 1, 20);
  }
}

Greeter answer(File socket) {
  return {std::move(socket), Handshake::answerer(key(), {Purpose::kPeer, 0, 0, kMeshSize}, random_nonce())};
}

TEST(TcpMesh, CallsAgainWhereNobodyAnswers) {
  const File listening = listen_on(loopback());
  MeshMember member = caller_of(bound_address(listening.fd));
  member.answer_s = 0.01;
  Reception reception = reception_of(1);
  File connected;
  std::thread caller([&] { connected = std::move(connect_mesh(member, reception).front()); });
  const File silent = next_caller(listening);  // nobody says anything here
  EXPECT_GE(silent.fd, 0);
  while (true) {  // an answer may come too late for a call, too
    Greeter greeter = answer(next_caller(listening));
    advance_until(greeter, [] { return false; });
    if (!greeter.is_welcome()) continue;
    caller.join();
    break;
  }
  EXPECT_GE(connected.fd, 0);
}

// The answerer may have let it in already: it would not hear that it is called again.
TEST(TcpMesh, WaitsWhereItHasProvedItself) {
  const File listening = listen_on(loopback());
  MeshMember member = caller_of(bound_address(listening.fd));
  Reception reception = reception_of(1);
  member.answer_s = 0.2;
  File connected;
  std::thread caller([&] { connected = std::move(connect_mesh(member, reception).front()); });
  bool is_welcome = false;
  while (!is_welcome) {
    Greeter greeter = answer(next_caller(listening));
    // On a busy machine the challenge may come too late: then it calls again.
    advance_until(greeter, [&] { return greeter.handshake().has_heard() && !greeter.wants_to_write(); });
    char proof = 0;
    pollfd entry{greeter.fd(), POLLIN, 0};
    poll(&entry, 1, static_cast<int>(kMostPatience * 1000));
    if (recv(greeter.fd(), &proof, 1, MSG_PEEK) != 1) continue;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // it has proved itself, and hears nothing
    char more[64];
    EXPECT_EQ(recv(greeter.fd(), more, sizeof more, MSG_PEEK), static_cast<ssize_t>(sizeof(Digest)));
    advance_until(greeter, [] { return false; });
    is_welcome = greeter.is_welcome();
    ASSERT_TRUE(is_welcome);
    caller.join();
    EXPECT_EQ(recv(greeter.fd(), more, sizeof more, MSG_DONTWAIT), -1) << "it has hung up";
  }
  EXPECT_GE(connected.fd, 0);
  pollfd entry{listening.fd, POLLIN, 0};
  EXPECT_EQ(poll(&entry, 1, 0), 0) << "it has called again";
}

TEST(TcpSockets, ACallerKeepsNobodyFromListeningOnItsPort) {
  const File listening = listen_on(loopback());
  const File caller = start_connecting(bound_address(listening.fd), std::nullopt);
  const File answerer = next_caller(listening);
  const Address own = bound_address(caller.fd);
  EXPECT_NE(own.port(), 0);
  const File another = listen_on(own);
  EXPECT_EQ(to_string(bound_address(another.fd)), to_string(own));
}

TEST(TcpMesh, DoesNotWaitForARankThatHasEnded) {
  const Address there = bound_address(listen_on(loopback()).fd);  // nobody listens any more
  MeshMember member = caller_of(there);
  Reception reception = reception_of(1);
  try {
    connect_mesh(member, reception);
    FAIL() << "connected with nobody";
  } catch (const PeerLost& lost) {
    const std::string text = lost.what();
    EXPECT_NE(text.find("rank 0 at " + to_string(there) + " has ended, or given up"), std::string::npos) << text;
    EXPECT_EQ(lost.silent(), std::vector<int>{0});
  }
}

bool is_over(ssize_t got) { return got == 0 || (got < 0 && errno != EAGAIN); }

/// A member says hello; then 300 others come and say nothing. Is it still let in?
bool is_let_in() {
  File listening = listen_on(loopback());
  const Address at = bound_address(listening.fd);
  Reception reception(std::move(listening), key(), {Purpose::kPeer, 0, 0, kMeshSize});
  const auto connected = [&] {
    File out(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(out.fd, at.get(), at.length), 0);
    return out;
  };
  const File socket_of_member = connected();
  Handshake member = Handshake::caller(key(), {Purpose::kPeer, 1, 0, kMeshSize}, random_nonce());
  const auto say = [&] {
    const auto sent = send(socket_of_member.fd, member.output().data(), member.output().size(), MSG_NOSIGNAL);
    if (sent > 0) member.sent(static_cast<std::size_t>(sent));
  };
  say();
  std::array<std::byte, Handshake::kMostBytes> in{};
  while (!member.has_heard()) {
    EXPECT_TRUE(reception.serve().empty());
    const ssize_t got = recv(socket_of_member.fd, in.data(), member.wanted(), MSG_DONTWAIT);
    if (is_over(got)) return false;
    if (got > 0) member.take(std::span(in).first(static_cast<std::size_t>(got)));
  }
  std::vector<File> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(connected());
    if (i % 20 == 0) {
      EXPECT_TRUE(reception.serve().empty());
    }
    EXPECT_LE(reception.num_strangers(), 128U);
  }
  say();
  while (true) {
    for (const Guest& guest : reception.serve()) return guest.rank == 1;
    if (is_over(recv(socket_of_member.fd, in.data(), in.size(), MSG_DONTWAIT))) return false;
  }
}

TEST(TcpReception, KeepsWhoHasSaidHello) {
  // Nobody keeps a place for more than 5 s, and a busy machine may need them.
  bool is_in = false;
  for (int attempt = 0; attempt < 5 && !is_in; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    is_in = is_let_in();
    if (std::chrono::steady_clock::now() - begin < std::chrono::seconds(4)) break;
  }
  EXPECT_TRUE(is_in);
}

}  // namespace
}  // namespace gar
