// The flags of `gar bench`, checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/gar/cli/common.hpp"
#include "apps/gar/cli/device.hpp"
#include "apps/gar/cli/network.hpp"
#include "gar/measure/bench_config.hpp"

namespace gar::cli {

/// As typed.
struct BenchArgs {
  std::string begin;
  std::string end;
  std::string factor;
  std::string increment;
  std::string sizes;
  std::string counts;
  std::string iterations = "20";
  std::string warmup = "5";
  std::string check = "1";
  std::string batch = "auto";
  std::string dtype = "float32";
  std::string op = "sum";
  std::string collective = "allreduce";
  std::string device = "cpu";
  std::string transport = "auto";
  std::string algo;
  std::string plan;
  NetworkArgs network;
  std::string timeout;
  std::string local;
  std::string gpus;
  std::string mpi;
  std::string json_file;
  std::string html;  ///< page that is written, too; empty: none
  bool in_place = false;
  bool reproducible = false;
};
void add_bench_options(CLI::App& verb, BenchArgs& args);

/// Throws UsageError for what a device does not have. On GPUs auto is cuda-ipc.
TransportKind parse_transport(const std::string& text, Device device);
/// Throws UsageError, and what reading the plan and the topology throws.
BenchConfig parse_bench(const BenchArgs& args);
/// That the plan, the topology and every algorithm are for this number of ranks. Throws UsageError, PlanError or
/// InvalidArgument.
void check_ranks(const BenchConfig& config, int num_ranks);

/// The sweep: begin, begin * factor, ... (or + increment) up to end.
std::vector<std::int64_t> bench_sizes(std::int64_t begin, std::int64_t end, std::int64_t factor,
                                      std::int64_t increment);

}  // namespace gar::cli
