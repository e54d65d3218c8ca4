// The table of a growth as text, and what a member and a newcomer say over their line.
#include "runtime/transports/tcp/tcp_growth.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "gar/errors.hpp"
#include "runtime/transports/tcp/line.hpp"
#include "runtime/transports/tcp/tcp_transport.hpp"

namespace gar {
namespace {

GrowthTable some_table() {
  GrowthTable out;
  out.generation = 7;
  out.first_newcomer = 12;
  out.ranks = {0, 3, 12, 13};
  out.table.nonce.fill(std::byte{0xa5});
  for (int i = 0; i < 4; ++i) {
    Announcement one;
    one.address = *read_address(i % 2 == 0 ? "10.77.0.1:29500" : "[fd00::1]:80");
    one.host = 1000U + static_cast<std::uint64_t>(i);
    one.num_cores = i + 1;
    out.table.ranks.push_back(one);
  }
  out.path = TcpPath::kMessages;
  out.num_fakes = 2;
  out.door.next_seat = 5;
  out.door.algorithm = "hcps:4x2";
  out.door.latency_bytes = -1;
  out.door.is_reproducible = true;
  out.door.overlap = 1.25;
  return out;
}

TEST(TcpGrowthTable, IsReadAsItWasWritten) {
  const GrowthTable table = some_table();
  const std::string text = write_growth(table);
  const std::optional<GrowthTable> read = read_growth(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(write_growth(*read), text);
  EXPECT_EQ(read->ranks, table.ranks);
  EXPECT_EQ(read->door.algorithm, "hcps:4x2");
  EXPECT_EQ(read->door.latency_bytes, -1);
  EXPECT_EQ(read->door.overlap, 1.25);
  EXPECT_EQ(to_string(read->table.ranks[3].address), "[fd00::1]:80");
}

TEST(TcpGrowthTable, NothingElseIsOne) {
  const std::string text = write_growth(some_table());
  // Cut anywhere; what is left of the last number may be another number.
  const std::size_t last = text.rfind(' ');
  for (std::size_t length = 0; length < last; ++length) EXPECT_FALSE(read_growth(text.substr(0, length))) << length;
  const auto with = [&](const std::string& old, const std::string& fresh) {
    std::string out = text;
    out.replace(out.find(old), old.size(), fresh);
    return out;
  };
  EXPECT_FALSE(read_growth(with("0 3 c d", "0 3 c c")));
  EXPECT_FALSE(read_growth(with("0 3 c d", "0 c 3 d")));
  EXPECT_FALSE(read_growth(with("0 3 c d", "0 3 c")));
  EXPECT_FALSE(read_growth(with("0 3 c d", "0 3 c ffffffffffffffff")));
  EXPECT_FALSE(read_growth(with("gar-grow-1", "gar-grow-2")));
}

TEST(TcpGrowthLine, SaysTextsUntilItEnds) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, static_cast<int*>(ends)), 0);
  const std::int64_t later = now_ns() + 300'000'000'000;
  Line one{File(ends[0])};
  {
    Line other{File(ends[1])};
    one.say("place", "3", later);
    one.say("table", std::string(30'000, 't'), later);
    EXPECT_EQ(other.hear("place", later), "3");
    EXPECT_EQ(other.hear("table", later), std::string(30'000, 't'));
    EXPECT_THROW(other.hear("place", now_ns()), TransportError);
    EXPECT_FALSE(one.has_ended());
    other.say("else", "", later);
    EXPECT_THROW(one.hear("application", later), TransportError);
  }
  EXPECT_TRUE(one.has_ended());
  EXPECT_THROW(one.hear("application", later), TransportError);
}

}  // namespace
}  // namespace gar
