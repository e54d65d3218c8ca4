// The flags of `gar fit`, checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/gar/bench_options.hpp"
#include "apps/gar/common.hpp"
#include "apps/gar/launch.hpp"
#include "gar/fit.hpp"
#include "gar/topology.hpp"

namespace gar::cli {

/// As typed.
struct FitArgs {
  std::string local;
  std::string output;
  std::string save;
  std::vector<std::string> from;
  std::string budget = "60s";
  std::string topology;
  std::string mpi;
  std::string device = "cpu";
  std::string transport = "auto";
  std::string sizes;
  std::string seed = "1";
  std::string timeout;
  bool validate = false;
};
void add_fit_options(CLI::App& verb, FitArgs& args);

struct FitConfig {
  std::optional<int> local;
  std::string output;
  std::string save;
  std::vector<std::string> from;
  double budget_s = 60;
  std::optional<Topology> topology;
  std::optional<MpiLibrary> mpi;
  Device device = Device::kCpu;
  BenchTransport transport = BenchTransport::kAuto;
  std::vector<double> sizes;  ///< floats, ascending; empty: chosen
  std::uint64_t seed = 1;
  double timeout_s = 30;
  bool is_validated = false;
};
/// Reads GAR_TOPOLOGY where -t is not given. Throws UsageError, and what reading a topology throws.
FitConfig parse_fit(const FitArgs& args);

/// "60s", "2min", "1.5h", "90" (seconds). Throws UsageError.
double parse_duration(std::string_view flag, const std::string& text);

/// Throws std::runtime_error when a file cannot be written: better now than after the measurement.
void check_writable(std::string_view flag, const std::string& path);

/// Reads measurements and puts them together. Throws ParseError, and InvalidArgument when they are of different
/// networks.
Measurements join_measurements(const std::vector<std::string>& paths);

}  // namespace gar::cli
