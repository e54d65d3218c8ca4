// gar topo show without a network: what it reads of /sys and /proc, and what it makes of machines that tell little.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/gar/views/machine_show.hpp"
#include "apps/gar/views/page.hpp"
#include "support/temp_folder.hpp"

namespace gar::cli {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// Two sockets of two cores with two threads each, a NUMA node without processors, Ethernet and InfiniBand.
void make_machine(const std::filesystem::path& root) {
  write(root / "proc/sys/kernel/hostname", "node7\n");
  const std::filesystem::path system = root / "sys/devices/system";
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::filesystem::path topology = system / "cpu" / ("cpu" + std::to_string(cpu)) / "topology";
    write(topology / "physical_package_id", std::to_string(cpu % 4 / 2) + "\n");
    write(topology / "core_id", std::to_string(cpu % 2) + "\n");
  }
  write(system / "node/node0/cpulist", "0-1,4-5\n");
  write(system / "node/node0/meminfo", "Node 0 MemTotal:       1048576 kB\n");
  write(system / "node/node1/cpulist", "2-3,6-7\n");
  write(system / "node/node1/meminfo", "Node 1 MemFree: 1 kB\nNode 1 MemTotal:       2097152 kB\n");
  write(system / "node/node2/cpulist", "\n");
  write(system / "node/node2/meminfo", "Node 2 MemTotal:       4194304 kB\n");
  write(root / "sys/class/net/eth0/speed", "25000\n");
  write(root / "sys/class/net/eth0/device/vendor", "0\n");
  write(root / "sys/class/net/lo/speed", "1\n");
  write(root / "sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
  write(root / "proc/driver/nvidia/gpus/0000:01:00.0/information", "\n");
}

TEST(MachineShow, ReadsWhatTheKernelTells) {
  const test::TempFolder folder;
  make_machine(folder.path());
  const Machine machine = read_machine(folder.path());
  EXPECT_EQ(machine.name, "node7");
  ASSERT_EQ(machine.nodes.size(), 3U);
  EXPECT_EQ(machine.nodes[1].socket, 1);
  EXPECT_EQ(machine.nodes[1].num_cores, 2);
  EXPECT_EQ(machine.nodes[1].num_threads, 4);
  EXPECT_EQ(machine.nodes[1].memory_bytes, std::int64_t{2} << 30);
  EXPECT_EQ(machine.nodes[2].socket, -1);
  ASSERT_EQ(machine.links.size(), 2U);
  EXPECT_EQ(machine.links[0].bits_per_s, 25e9);
  EXPECT_TRUE(machine.links[1].is_infiniband);
  EXPECT_EQ(machine.num_gpus, 1);

  const std::string text = draw_machine(machine, false);
  for (const char* part :
       {"node7: 4 cores, 8 threads in 2 sockets, 7 GiB of memory", "NUMA node 1: 2 cores, 4 threads, 2 GiB",
        "NUMA node 2: memory alone, 4 GiB", "eth0 25 Gbit/s", "mlx5_0:1 200 Gbit/s InfiniBand", "1 GPU",
        "gar fit --local 4", "-t star:16@25Gbit/s,2us"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  }
  const auto json = nlohmann::json::parse(machine_document(machine));
  EXPECT_EQ(json["schema"], "gar.machine/1");
  EXPECT_EQ(json["numa_nodes"].size(), 3U);
  EXPECT_EQ(json["interfaces"][0]["bits_per_s"], 25e9);
}

TEST(MachineShow, AMachineThatTellsNothingHasNoLinks) {
  const test::TempFolder folder;
  write(std::filesystem::path(folder.path()) / "sys/devices/system/cpu/online", "0-999999999,x,3-1\n");
  const Machine machine = read_machine(folder.path());
  ASSERT_EQ(machine.nodes.size(), 1U);
  EXPECT_EQ(machine.nodes[0].num_threads, 0);
  EXPECT_TRUE(machine.links.empty());
  EXPECT_NE(draw_machine(machine, false).find("this machine"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(machine_document(machine))["gpus"], 0);
}

TEST(MachineShow, WhatAReportSaysAboutTheMachine) {
  const test::TempFolder folder;
  const std::filesystem::path root = folder.path();
  make_machine(root);
  write(root / "sys/class/net/eth0/mtu", "9000\n");
  write(root / "sys/class/net/lo/mtu", "65536\n");
  write(root / "proc/sys/net/ipv4/tcp_congestion_control", "cubic\n");
  write(root / "proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n");
  write(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  const Origin origin = this_machine("Open MPI 4.1.4", root);
  const auto fact = [&](const std::string& name) {
    for (const auto& [key, value] : origin.facts) {
      if (key == name) return value;
    }
    return std::string("missing");
  };
  EXPECT_EQ(fact("MTU"), "eth0 9000");
  EXPECT_EQ(fact("TCP congestion control"), "cubic");
  EXPECT_EQ(fact("TCP receive buffer (least, usual, most)"), "4096 131072 6291456");
  EXPECT_EQ(fact("TCP send buffer (least, usual, most)"), "missing");
  EXPECT_EQ(fact("processor governor"), "performance");
  EXPECT_EQ(fact("MPI"), "Open MPI 4.1.4");
  EXPECT_EQ(origin.commands.size(), 1U);
}

}  // namespace
}  // namespace gar::cli
