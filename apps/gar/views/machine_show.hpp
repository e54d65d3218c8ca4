// This machine: its processors, memory, network interfaces and GPUs, as the kernel tells of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gar::cli {

/// A NUMA node.
struct MachineNode {
  int number = 0;
  int socket = 0;  ///< -1: no processors
  int num_cores = 0;
  int num_threads = 0;
  std::int64_t memory_bytes = 0;
};
struct MachineLink {
  std::string name;       ///< "eth0", "mlx5_0"
  double bits_per_s = 0;  ///< 0: the kernel does not say
  bool is_infiniband = false;
};
struct Machine {
  std::string name;
  std::vector<MachineNode> nodes;
  std::vector<MachineLink> links;
  int num_gpus = 0;
};

/// Reads /sys and /proc below `root`. What cannot be read is left out.
Machine read_machine(const std::filesystem::path& root = "/");
/// The drawing, and how to get a network out of it that can be planned for.
std::string draw_machine(const Machine& machine, bool color);
/// Schema "gar.machine/1".
std::string machine_document(const Machine& machine);

}  // namespace gar::cli
