// Frames of the TCP transport: what no rank sends is refused before a byte of its payload is read; and what a
// connection makes of bytes that come in any pieces.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "gar/errors.hpp"
#include "runtime/transports/mpi/frame.hpp"
#include "runtime/transports/tcp/connection.hpp"
#include "runtime/transports/tcp/frames.hpp"

namespace gar {
namespace {

template <class T>
std::span<const std::byte> raw_bytes(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::vector<FrameHead> sound_heads() {
  return {make_head(FrameKind::kStatus, 7, sizeof(WireSignature)),
          make_head(FrameKind::kAbort, 7, sizeof(WireAbort)),
          make_head(FrameKind::kData, 7, 1),
          make_head(FrameKind::kData, 7, kMostFrameBytes),
          make_head(FrameKind::kExchange, 7, 16),
          make_head(FrameKind::kAdmit, 7, 0),
          make_head(FrameKind::kBye, 7, 0)};
}

TEST(TcpFrames, HeadsArriveAsTheyWere) {
  for (const FrameHead& head : sound_heads()) {
    const auto read = read_head(raw_bytes(head));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(std::memcmp(&*read, &head, sizeof head), 0);
  }
}

TEST(TcpFrames, LengthsThatNoRankSendsAreRefused) {
  constexpr std::uint64_t kHuge[] = {std::uint64_t{1} << 63U, std::numeric_limits<std::uint64_t>::max(),
                                     std::uint64_t{1} << 32U, static_cast<std::uint64_t>(kMostExchangeBytes) + 1};
  for (FrameHead head : sound_heads()) {
    for (const std::uint64_t length : kHuge) {
      head.length = length;
      EXPECT_FALSE(read_head(raw_bytes(head)).has_value()) << static_cast<int>(head.kind) << " " << length;
    }
  }
  EXPECT_FALSE(read_head(raw_bytes(make_head(FrameKind::kData, 7, 0))).has_value());
  EXPECT_FALSE(read_head(raw_bytes(make_head(FrameKind::kData, 7, kMostFrameBytes + 1))).has_value());
  EXPECT_FALSE(read_head(raw_bytes(make_head(FrameKind::kBye, 7, 1))).has_value());
  EXPECT_FALSE(read_head(raw_bytes(make_head(FrameKind::kStatus, 7, 0))).has_value());
}

TEST(TcpFrames, OtherBytesAreRefused) {
  FrameHead head = make_head(FrameKind::kBye, 7, 0);
  EXPECT_FALSE(read_head(raw_bytes(head).first(sizeof head - 1)).has_value());
  head.magic ^= 1U;
  EXPECT_FALSE(read_head(raw_bytes(head)).has_value());
  head = make_head(static_cast<FrameKind>(0), 7, 0);
  EXPECT_FALSE(read_head(raw_bytes(head)).has_value());
  head = make_head(static_cast<FrameKind>(99), 7, 0);
  EXPECT_FALSE(read_head(raw_bytes(head)).has_value());
}

/// Keeps what comes; can refuse to take data for a while.
class Recorder final : public FrameSink {
 public:
  std::byte* place(int /*peer*/, const FrameHead& head) override {
    if (is_closed) return nullptr;
    payload.assign(head.length, std::byte{0});
    return payload.data();
  }
  void arrived(int peer, const FrameHead& head) override {
    EXPECT_EQ(peer, 3);
    heads.push_back(head);
    payloads.push_back(payload);
    payload.clear();
  }
  bool is_closed = false;
  std::vector<std::byte> payload;
  std::vector<FrameHead> heads;
  std::vector<std::vector<std::byte>> payloads;
};

class TcpConnection : public ::testing::Test {
 protected:
  TcpConnection() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    other_ = File(ends[0]);
    connection_ = std::make_unique<Connection>(3, File(ends[1]));
  }
  void say(std::span<const std::byte> bytes) {
    ASSERT_EQ(send(other_.fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    connection_->note(1);  // EPOLLIN
  }

  File other_;
  std::unique_ptr<Connection> connection_;
  Recorder recorder_;
};

std::vector<std::byte> frame_bytes(const FrameHead& head, std::size_t length) {
  std::vector<std::byte> out(sizeof head + length);
  std::memcpy(out.data(), &head, sizeof head);
  for (std::size_t i = 0; i < length; ++i) out[sizeof head + i] = static_cast<std::byte>(i * 7);
  return out;
}

TEST_F(TcpConnection, PutsPiecesTogether) {
  const std::vector<std::byte> one = frame_bytes(make_head(FrameKind::kData, 1, 300), 300);
  for (std::size_t piece : {1U, 47U, 48U, 49U, 100U, 348U}) {
    recorder_.heads.clear();
    recorder_.payloads.clear();
    for (std::size_t at = 0; at < one.size(); at += piece) {
      say(std::span(one).subspan(at, std::min(piece, one.size() - at)));
      connection_->receive(recorder_);
    }
    ASSERT_EQ(recorder_.payloads.size(), 1U) << piece;
    EXPECT_TRUE(
        std::equal(recorder_.payloads[0].begin(), recorder_.payloads[0].end(), one.begin() + sizeof(FrameHead)));
  }
}

TEST_F(TcpConnection, TakesSeveralFramesAtOnce) {
  std::vector<std::byte> all;
  for (const std::size_t length : {5U, 40000U, 1U}) {
    const auto one = frame_bytes(make_head(FrameKind::kData, length, length), length);
    all.insert(all.end(), one.begin(), one.end());
  }
  const auto bye = frame_bytes(make_head(FrameKind::kBye, 9, 0), 0);
  all.insert(all.end(), bye.begin(), bye.end());
  say(all);
  connection_->receive(recorder_);
  ASSERT_EQ(recorder_.heads.size(), 4U);
  EXPECT_EQ(recorder_.payloads[1].size(), 40000U);
  EXPECT_EQ(recorder_.payloads[1][39999], static_cast<std::byte>(39999 * 7 & 0xff));
  EXPECT_EQ(recorder_.heads[3].kind, FrameKind::kBye);
  EXPECT_FALSE(connection_->has_ended());
}

TEST_F(TcpConnection, WaitsUntilAFrameCanBeTaken) {
  recorder_.is_closed = true;
  say(frame_bytes(make_head(FrameKind::kData, 1, 10), 10));
  connection_->receive(recorder_);
  EXPECT_TRUE(recorder_.heads.empty());
  EXPECT_FALSE(connection_->may_receive());
  recorder_.is_closed = false;
  connection_->resume();
  ASSERT_TRUE(connection_->may_receive());
  connection_->receive(recorder_);
  ASSERT_EQ(recorder_.heads.size(), 1U);
  EXPECT_EQ(recorder_.payloads[0].size(), 10U);
}

TEST_F(TcpConnection, RefusesNonsense) {
  const std::vector<std::byte> nonsense(sizeof(FrameHead), std::byte{0x41});
  say(nonsense);
  EXPECT_THROW(connection_->receive(recorder_), TransportError);
  EXPECT_THROW(connection_->discard(), TransportError);
}

TEST_F(TcpConnection, NoticesTheEnd) {
  say(frame_bytes(make_head(FrameKind::kBye, 1, 0), 0));
  other_ = File();
  connection_->note(1);
  connection_->receive(recorder_);
  EXPECT_EQ(recorder_.heads.size(), 1U);
  while (!connection_->has_ended()) {
    connection_->note(1);
    connection_->receive(recorder_);
  }
}

TEST_F(TcpConnection, SendsOutOfSeveralPlaces) {
  std::vector<std::byte> first(100'000, std::byte{1});
  std::vector<std::byte> second(50, std::byte{2});
  connection_->queue(make_head(FrameKind::kData, 1, first.size()), first.data(), {2, 5});
  connection_->queue_copy(make_head(FrameKind::kData, 2, second.size()), second);
  Connection other(3, std::move(other_));
  std::vector<SendToken> left;
  while (connection_->is_sending()) {
    connection_->note(4);  // EPOLLOUT
    connection_->flush(left);
    other.note(1);
    other.receive(recorder_);
  }
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].slot, 2);
  EXPECT_EQ(left[0].index, 5);
  ASSERT_EQ(recorder_.payloads.size(), 2U);
  EXPECT_EQ(recorder_.payloads[0], first);
  EXPECT_EQ(recorder_.payloads[1], second);
}

}  // namespace
}  // namespace gar
