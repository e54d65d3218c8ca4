// Stores: a directory, a server, and the caller's functions behave alike; who has no secret gets nothing.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gar/errors.hpp"
#include "gar/store.hpp"
#include "gar/tcp.hpp"
#include "runtime/store/messages.hpp"
#include "runtime/transports/tcp/announcement.hpp"
#include "runtime/transports/tcp/launchers.hpp"
#include "runtime/transports/tcp/sockets.hpp"
#include "support/temp_folder.hpp"

namespace gar {
namespace {

constexpr double kSoon = 0.05;
constexpr double kLong = 300;
const char* const kSecret = "0123456789abcdef";

std::string message_of(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// What any store does.
void check_store(Store& store, Store& other) {
  store.set("gar/a/rank/0", "zero");
  EXPECT_EQ(other.get("gar/a/rank/0", kLong), "zero");
  const std::string large(200'000, 'x');
  other.set("large \n key/with..strange%signs", large);
  EXPECT_EQ(store.get("large \n key/with..strange%signs", kLong), large);
  EXPECT_NE(message_of([&] { store.get("nobody sets this", kSoon); }).find("nobody sets this"), std::string::npos);
  // One that waits gets it when it comes.
  std::thread setter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    other.set("late", "here");
  });
  EXPECT_EQ(store.get("late", kLong), "here");
  setter.join();
  EXPECT_EQ(other.look("late"), "here");
  EXPECT_EQ(store.look("nobody sets this"), std::nullopt);
  EXPECT_TRUE(store.claim("seat", "first"));
  EXPECT_FALSE(other.claim("seat", "second"));
  EXPECT_FALSE(store.claim("late", "third"));
  EXPECT_EQ(other.get("seat", kLong), "first");
  EXPECT_EQ(other.get("late", kLong), "here");
  store.remove("late");
  EXPECT_NE(message_of([&] { store.get("late", kSoon); }), "");
}

TEST(TcpStore, ADirectoryIsOne) {
  const test::TempFolder folder;
  const std::string path = folder.file("store");
  const auto store = directory_store(path);
  const auto other = directory_store(path);
  check_store(*store, *other);
  EXPECT_EQ(store->secret(), "");
}

// Also between processes with the same number, as those of containers have; here they are threads.
TEST(TcpStore, OneOfManyGetsTheSeat) {
  constexpr std::size_t kClaimers = 6;
  const test::TempFolder folder;
  const std::string path = folder.file("store");
  const auto judge = directory_store(path);
  for (int round = 0; round < 100; ++round) {
    const std::string seat = "seat/" + std::to_string(round);
    std::array<bool, kClaimers> has_got{};
    std::vector<std::thread> claimers;
    for (std::size_t i = 0; i < kClaimers; ++i) {
      claimers.emplace_back([&, i] { has_got[i] = directory_store(path)->claim(seat, std::to_string(i)); });
    }
    for (std::thread& claimer : claimers) claimer.join();
    ASSERT_EQ(std::count(has_got.begin(), has_got.end(), true), 1) << seat;
    const std::optional<std::string> owner = judge->look(seat);
    ASSERT_TRUE(owner.has_value());
    EXPECT_TRUE(has_got.at(static_cast<std::size_t>(std::stoi(*owner)))) << seat << " is of " << *owner;
  }
}

TEST(TcpStore, ADirectoryIsForItsUserAlone) {
  const test::TempFolder folder;
  const std::string path = folder.file("open");
  ASSERT_EQ(mkdir(path.c_str(), 0755), 0);
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  EXPECT_NE(message_of([&] { directory_store(path); }).find("expected mode 0700"), std::string::npos);
  EXPECT_NE(message_of([&] { directory_store(folder.file("none/of/it")); }), "");
}

TEST(TcpStore, AServerIsOne) {
  const StoreServer server("127.0.0.1:0", kSecret);
  const auto store = tcp_store(server.address(), kSecret, kLong);
  const auto other = tcp_store(server.address(), kSecret, kLong);
  check_store(*store, *other);
  EXPECT_EQ(store->secret(), kSecret);
  EXPECT_EQ(store->server(), server.address());
}

TEST(TcpStore, AServerOverIpv6) {
  std::unique_ptr<StoreServer> server;
  const std::string why = message_of([&] { server = std::make_unique<StoreServer>("[::1]:0", kSecret); });
  if (!why.empty()) GTEST_SKIP() << why;
  const auto store = tcp_store(server->address(), kSecret, kLong);
  store->set("a", "b");
  EXPECT_EQ(store->get("a", kLong), "b");
}

TEST(TcpStore, TheCallersFunctionsAreOne) {
  std::map<std::string, std::string> values;
  const auto store = callback_store({[&](const std::string& key, const std::string& value) { values[key] = value; },
                                     [&](const std::string& key, double) {
                                       if (values.count(key) == 0) throw TransportError("no " + key);
                                       return values[key];
                                     },
                                     {}});
  store->set("a", "b");
  EXPECT_EQ(store->get("a", kLong), "b");
  store->remove("a");
  EXPECT_EQ(message_of([&] { store->get("c", kSoon); }), "no c");
  EXPECT_NE(message_of([] { callback_store({}); }), "");
}

TEST(TcpStore, AServerLetsNobodyElseIn) {
  const StoreServer server("127.0.0.1:0", kSecret);
  EXPECT_NE(
      message_of([&] { tcp_store(server.address(), "another secret of it", 10 * kSoon); }).find("has another secret"),
      std::string::npos);
  EXPECT_NE(message_of([&] { tcp_store(server.address(), "short", kSoon); }).find("expected 16 to"), std::string::npos);
  // Garbage, half a hello, and silence; more of them than there is room for.
  std::vector<File> strangers;
  for (int i = 0; i < 300; ++i) {
    File stranger(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const Address at = resolve(server.address(), "the server");
    ASSERT_EQ(connect(stranger.fd, at.get(), at.length), 0);
    const std::string garbage = i % 3 == 0 ? "GET / HTTP/1.0\r\n\r\n" + std::string(100, 'x') : i % 3 == 1 ? "gar" : "";
    if (!garbage.empty()) send(stranger.fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
    strangers.push_back(std::move(stranger));
  }
  const auto store = tcp_store(server.address(), kSecret, kLong);
  store->set("a", "b");
  EXPECT_EQ(store->get("a", kLong), "b");
}

TEST(TcpStore, NobodyAnswers) {
  std::string address;
  {
    const StoreServer server("127.0.0.1:0", kSecret);
    address = server.address();
  }
  EXPECT_NE(message_of([&] { tcp_store(address, kSecret, kSoon); }).find("no store answers at " + address),
            std::string::npos);
  EXPECT_NE(message_of([&] { StoreServer("127.0.0.1", kSecret); }).find("expected HOST:PORT"), std::string::npos);
}

TEST(TcpStore, MessagesHaveLimits) {
  StoreReader reader;
  std::vector<std::byte> bytes;
  write_message(bytes, StoreKind::kSet, "key", "value");
  for (const std::byte& one : bytes) {
    EXPECT_FALSE(reader.next().has_value());
    reader.take({&one, 1});
  }
  const auto message = reader.next();
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->key + "=" + message->value, "key=value");
  StoreHead head;
  std::memcpy(&head, bytes.data(), sizeof head);
  head.value_bytes = 0xffffffffU;
  reader.take(std::as_bytes(std::span(&head, 1)));
  EXPECT_THROW(reader.next(), TransportError);
  EXPECT_THROW(write_message(bytes, StoreKind::kSet, std::string(600, 'k'), ""), InvalidArgument);
}

// --- what ranks say there --------------------------------------------------------------------------------------------

TEST(TcpTable, ArrivesAsItWas) {
  JobTable table;
  table.nonce.fill(std::byte{0xA5});
  for (int rank = 0; rank < 3; ++rank) {
    Announcement one;
    one.address = resolve(rank == 1 ? "[::1]:7" : "10.77.0.1:29500", "here");
    one.host = 0xfedcba9876543210U + static_cast<std::uint64_t>(rank);
    one.num_cores = rank + 1;
    one.options = {1, 2, 3, 4, 5, 6, 7, 0xffffffffffffffffU};
    table.ranks.push_back(one);
  }
  const auto read = read_table(write_table(table));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(write_table(*read), write_table(table));
  EXPECT_EQ(to_string(read->ranks[1].address), "[::1]:7");
  EXPECT_EQ(read->nonce, table.nonce);
  JobTable failed;
  failed.failure = "rank 3 did not come";
  EXPECT_EQ(read_table(write_table(failed))->failure, failed.failure);
  for (const char* wrong : {"", "gar-tcp-2", "gar-tcp-1 abc\n", "other\n"}) EXPECT_FALSE(read_table(wrong)) << wrong;
  std::string options;
  for (std::size_t i = 0; i < kNumSharedOptions; ++i) options += " 0";
  ASSERT_TRUE(read_announcement("10.0.0.1:1 1 1" + options).has_value());
  for (const std::string& wrong :
       {std::string(), std::string("10.0.0.1:1"), "10.0.0.1:1 x 1" + options, "10.0.0.1:99999 1 1" + options,
        "10.0.0.1:1 1 0" + options, "10.0.0.1:1 1 1" + options + " 0", "10.0.0.1:1 1 1" + options.substr(2)}) {
    EXPECT_FALSE(read_announcement(wrong)) << wrong;
  }
}

TEST(TcpTable, SaysWhoIsWhere) {
  std::vector<Announcement> ranks(6);
  for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r].host = r % 2 == 0 ? 7 : 8;
  const HostMap two = map_hosts(ranks, 3, 1);
  EXPECT_EQ(two.host_of, (std::vector<int>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(two.members, (std::vector<int>{1, 3, 5}));
  EXPECT_EQ(two.num_hosts, 2);
  for (Announcement& one : ranks) one.host = 7;
  const HostMap fake = map_hosts(ranks, 0, 2);
  EXPECT_EQ(fake.host_of, (std::vector<int>{0, 0, 0, 1, 1, 1}));
}

TEST(TcpAddress, IsReadAndWritten) {
  EXPECT_EQ(to_string(*read_address("10.77.0.1:29500")), "10.77.0.1:29500");
  EXPECT_EQ(to_string(*read_address("[fd00::1]:1")), "[fd00::1]:1");
  for (const char* wrong : {"", ":", "10.0.0.1", "10.0.0.1:", "10.0.0.1:x", "10.0.0.1:65536", "fd00::1:5", "host:5"}) {
    EXPECT_FALSE(read_address(wrong).has_value()) << wrong;
  }
  EXPECT_EQ(to_string(local_address("127.0.0.0/8", std::nullopt)), "127.0.0.1:0");
  EXPECT_EQ(to_string(local_address("lo", std::nullopt)), "127.0.0.1:0");
  EXPECT_NE(message_of([] { local_address("nosuch0", std::nullopt); }).find("lo (127.0.0.1)"), std::string::npos);
}

// --- what launchers say ----------------------------------------------------------------------------------------------

std::optional<EnvironmentJob> job_of(const std::map<std::string, std::string>& variables) {
  return environment_job([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(TcpEnvironment, IsThatOfAnyLauncher) {
  EXPECT_FALSE(job_of({}).has_value());
  EXPECT_FALSE(job_of({{"RANK", "1"}}).has_value());
  const auto torch = job_of({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}});
  ASSERT_TRUE(torch.has_value());
  EXPECT_EQ(torch->rank, 1);
  EXPECT_EQ(torch->size, 4);
  EXPECT_EQ(torch->store, "tcp://node1:29500");
  EXPECT_TRUE(torch->may_serve);
  EXPECT_EQ(job_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "fd00::1"}, {"MASTER_PORT", "5"}})->store,
            "tcp://[fd00::1]:5");
  const auto ompi = job_of({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}, {"GAR_STORE", "file:///d"}});
  EXPECT_EQ(ompi->rank, 2);
  EXPECT_EQ(ompi->store, "file:///d");
  EXPECT_FALSE(ompi->may_serve);
  EXPECT_EQ(job_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}})->store, "");
  const auto slurm = job_of({{"SLURM_PROCID", "5"},
                             {"SLURM_STEP_NUM_TASKS", "8"},
                             {"SLURM_STEP_NODELIST", "node[03-07,12],other1"},
                             {"SLURM_JOB_ID", "10"},
                             {"SLURM_STEP_ID", "1"}});
  EXPECT_EQ(slurm->rank, 5);
  EXPECT_EQ(slurm->store, "tcp://node03:20161");
}

TEST(TcpEnvironment, NonsenseIsRefused) {
  EXPECT_NE(message_of([] { job_of({{"RANK", "4"}, {"WORLD_SIZE", "4"}}); }), "");
  EXPECT_NE(message_of([] { job_of({{"RANK", "x"}, {"WORLD_SIZE", "4"}}); }).find("RANK=x"), std::string::npos);
  EXPECT_NE(message_of([] {
              job_of({{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}});
            }).find("MASTER_PORT"),
            std::string::npos);
  EXPECT_EQ(first_slurm_host(""), "");
  EXPECT_EQ(first_slurm_host("a,b"), "a");
  EXPECT_EQ(first_slurm_host("n[1,3]"), "n1");
}

}  // namespace
}  // namespace gar
