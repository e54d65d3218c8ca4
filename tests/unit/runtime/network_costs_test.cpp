// What a network is said to cost, by probes that only pretend to send.
#include "runtime/network_costs.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>

namespace gar {
namespace {

constexpr std::chrono::milliseconds kRound{4};

/// The second of two ranks, which is late now and then: the next message is there already.
class LateProbe final : public NetworkProbe {
 public:
  [[nodiscard]] int rank() const override { return 1; }
  [[nodiscard]] int size() const override { return 2; }
  void barrier() override {}
  void shift(std::span<const Shift> messages, int bytes) override {
    const bool is_long = !messages.empty() && bytes > 1024;
    if (is_long && ++num_long_ % 2 == 0) std::this_thread::sleep_for(2 * kRound);
  }

 protected:
  void gather_bytes(std::span<const std::byte> in, std::span<std::byte> out) override {
    for (std::size_t r = 0; r < 2; ++r) std::memcpy(out.data() + r * in.size(), in.data(), in.size());
  }

 private:
  int num_long_ = 0;
};

TEST(MeasureNetwork, BelievesNoMessageThatWasThereAlready) {
  HostMap hosts;
  hosts.host_of = {0, 1};
  hosts.numa_of = {-1, -1};
  hosts.cores_of = {1, 1};
  hosts.num_hosts = 2;
  hosts.members = {1};
  LateProbe probe;
  const Topology network = measure_network("test", probe, hosts, false);
  const Node& host = network.node(network.node(network.root()).children.front().node);
  const double seconds = host.uplink.beta * NetworkProbe::kMostBytes / 4;
  EXPECT_GE(seconds, 0.4 * std::chrono::duration<double>(kRound).count());
}

}  // namespace
}  // namespace gar
