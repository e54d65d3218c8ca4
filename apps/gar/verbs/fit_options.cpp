// The flags of `gar fit`.
#include "apps/gar/verbs/fit_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "apps/gar/cli/environment.hpp"
#include "gar/environment.hpp"
#include "gar/errors.hpp"
#include "gar/fit_design.hpp"
#include "gar/profile_io.hpp"
#include "gar/topology_io.hpp"

namespace gar::cli {
namespace {

constexpr int kMaxLocalRanks = 1024;
constexpr double kMaxBudget = 86400;

template <class T>
T parse_number(std::string_view flag, const std::string& text, T least, T most, const char* what) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most)) {
    throw UsageError(fmt::format("{} '{}': expected {}", flag, text, what));
  }
  return value;
}

std::vector<double> parse_fit_sizes(const FitArgs& args) {
  constexpr std::int64_t kLeastBytes = 400;
  constexpr std::size_t kMost = 8;
  const std::string given =
      args.counts.empty() ? fmt::format("--sizes '{}'", args.sizes) : fmt::format("--count '{}'", args.counts);
  std::vector<double> out;
  for (const std::int64_t bytes : float_vector_bytes(args.sizes, args.counts)) {
    if (bytes < kLeastBytes || bytes > (std::int64_t{1} << 31)) {
      throw UsageError(fmt::format("{}: expected sizes from {} bytes to 2 GiB", given, kLeastBytes));
    }
    out.push_back(std::floor(static_cast<double>(bytes) / 4));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  if (out.empty() || out.size() > kMost) {
    throw UsageError(fmt::format("{}: expected 1 to {} sizes, such as 80kB,400kB,1MB", given, kMost));
  }
  return out;
}

/// A run either measures or reads what was measured.
void check_sources(const FitArgs& args) {
  if (args.from.empty()) return;
  const auto refuse = [](const char* flag) {
    throw UsageError(
        fmt::format("--from cannot be combined with {}: nothing is measured; leave one of them out", flag));
  };
  if (!args.local.empty()) refuse("--local");
  if (!args.topology.empty()) refuse("-t");
  if (!args.sizes.empty()) refuse("--sizes");
  if (!args.counts.empty()) refuse("--count");
  if (!args.mpi.empty()) refuse("--mpi");
  if (args.device != "cpu") refuse("--device");
}

}  // namespace

void add_fit_options(CLI::App& verb, FitArgs& args) {
  verb.add_option(
          "--local", args.local,
          "Start this many processes on this host (default: one per core, at least 2; with --device cuda one, for "
          "its memory alone)")
      ->type_name("N");
  verb.add_option("-o,--output", args.output, "Write the profile to this file")->type_name("profile.json");
  add_html_option(verb, args.html);
  verb.add_option("--save", args.save, "Write what was measured to this file")->type_name("measurements.json");
  verb.add_option("--from", args.from, "Fit what was measured before, instead of measuring; may be given several times")
      ->type_name("measurements.json")
      ->expected(1)
      ->take_all();
  verb.add_flag("--validate", args.validate,
                "Also measure what is not fitted, and print how well it is predicted and what the choices cost");
  verb.add_option("--budget", args.budget, "Time to measure for: 60s, 5min, 1h")
      ->type_name("TIME")
      ->capture_default_str();
  verb.add_option("-t,--topology", args.topology,
                  "The network, one server per rank or per host; its parameters are ignored (default: GAR_TOPOLOGY, or "
                  "hosts and their ranks)")
      ->type_name("T");
  verb.add_option("--size,--sizes", args.sizes, "Lengths of the vectors (default: chosen by a probe and the budget)")
      ->type_name("SIZE[,SIZE...]");
  verb.add_option("--count", args.counts, "The same in floats: 1e5 or 2e4,1e5,2.5e5")->type_name("N[,N...]");
  add_device_option(verb, args.device,
                    "Whose memory is measured; cuda: a GPU's, and with --local what connects ranks on the GPUs of this "
                    "host");
  verb.add_option("--transport", args.transport,
                  "What connects the ranks; auto: shared memory, MPI between hosts; tcp and shm+tcp: without MPI; "
                  "cuda-ipc (auto "
                  "there) and nccl with --device cuda")
      ->type_name("T")
      ->check(CLI::IsMember({"auto", "shm", "mpi", "tcp", "shm+tcp", "cuda-ipc", "nccl"}))
      ->capture_default_str();
  verb.add_option("--mpi", args.mpi, "Which MPI --local starts when --validate or --transport mpi needs one")
      ->type_name("M")
      ->check(CLI::IsMember({"openmpi", "mpich"}));
  verb.add_option("--seed", args.seed, "Seed of the random numbers behind the intervals")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--timeout", args.timeout, "Seconds after which a silent rank is an error (default 30)")
      ->type_name("S");
}

double parse_duration(std::string_view flag, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const double factor = unit.empty() || unit == "s" ? 1
                        : unit == "ms"              ? 1e-3
                        : unit == "min"             ? 60
                        : unit == "h"               ? 3600
                                                    : 0;
  value *= factor;
  if (error != std::errc() || !std::isfinite(value) || value <= 0 || value > kMaxBudget) {
    throw UsageError(fmt::format("{} '{}': expected a time such as 500ms, 60s, 5min or 1h, up to a day", flag, text));
  }
  return value;
}

namespace {

/// What is read must not be overwritten, nor one file with the other.
void check_different_files(const FitConfig& config) {
  const auto is_same = [](const std::string& a, const std::string& b) {
    std::error_code ignored;
    return !a.empty() && !b.empty() && (a == b || std::filesystem::equivalent(a, b, ignored));
  };
  std::vector<std::pair<std::string, std::string>> others{{"--save", config.save}};
  for (const std::string& path : config.from) others.emplace_back("--from", path);
  for (const auto& [flag, path] : others) {
    if (is_same(config.output, path))
      throw UsageError(
          fmt::format("-o {} and {} {} are the same file; expected different ones", config.output, flag, path));
    if (flag == "--from" && is_same(config.save, path))
      throw UsageError(
          fmt::format("--save {} and --from {} are the same file; expected different ones", config.save, path));
  }
}

void check_cuda_flags(const FitArgs& args, const FitConfig& config) {
  if (config.mpi) throw UsageError("--mpi cannot be combined with --device cuda");
  if (config.local.value_or(1) > 1) return;
  // One process has reductions alone.
  for (const auto& [flag, is_given] :
       {std::pair{"--validate", args.validate}, std::pair{"--sizes", !args.sizes.empty()},
        std::pair{"--count", !args.counts.empty()}, std::pair{"--transport", args.transport != "auto"}}) {
    if (is_given) throw UsageError(fmt::format("{} is for several ranks; accepted with --local 2 or more", flag));
  }
}

}  // namespace

FitConfig parse_fit(const FitArgs& args) {
  check_sources(args);
  FitConfig out;
  if (!args.local.empty()) {
    out.local = parse_number<int>("--local", args.local, 1, kMaxLocalRanks, "a whole number from 2 to 1,024");
    if (*out.local < 2 && args.device != "cuda") {
      throw UsageError("--local 1: a network has at least two ends; expected a whole number from 2 to 1,024");
    }
  }
  out.output = args.output;
  out.save = args.save;
  out.from = args.from;
  out.budget_s = parse_duration("--budget", args.budget);
  if (!args.sizes.empty() || !args.counts.empty()) out.sizes = parse_fit_sizes(args);
  out.device = parse_device(args.device);
  out.transport = parse_transport(args.transport, out.device);
  if (!args.mpi.empty()) out.mpi = args.mpi == "mpich" ? MpiLibrary::kMpich : MpiLibrary::kOpenMpi;
  if (out.device == Device::kCuda) check_cuda_flags(args, out);
  if (is_tcp(out.transport) && out.mpi) {
    throw UsageError(fmt::format("--mpi cannot be combined with --transport {}, which is without MPI", args.transport));
  }
  out.seed = parse_number<std::uint64_t>("--seed", args.seed, 0, ~std::uint64_t{0}, "a whole number from 0");
  if (!args.timeout.empty()) out.timeout_s = parse_timeout(args.timeout);
  out.is_validated = args.validate;
  check_different_files(out);
  if (!out.from.empty()) return out;
  check_environment([&](const EnvironmentVariable& variable) {
    return is_read_by_ranks(variable) && (args.topology.empty() || variable.name != environment::kTopology.name);
  });
  const std::string topology = args.topology.empty() ? environment::text(environment::kTopology) : args.topology;
  if (!topology.empty()) out.topology = load_topology(topology);
  return out;
}

Measurements join_measurements(const std::vector<std::string>& paths) {
  Measurements out = read_measurements_file(paths.front());
  for (std::size_t i = 1; i < paths.size(); ++i) {
    try {
      join(out, read_measurements_file(paths[i]));
    } catch (const InvalidArgument& e) {
      throw InvalidArgument(fmt::format("--from {}, after {}: {}", paths[i], paths.front(), e.what()));
    }
  }
  return out;
}

}  // namespace gar::cli
