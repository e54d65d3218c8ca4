// What launchers say in the environment. Needs no OpenSSL.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "gar/environment.hpp"
#include "gar/errors.hpp"
#include "gar/format.hpp"
#include "gar/tcp.hpp"
#include "runtime/transports/tcp/launchers.hpp"

namespace gar {

namespace {

struct LauncherNames {
  const char* rank;
  const char* size;
};
// What starts processes closest to us comes first: mpirun may run inside of a Slurm job.
constexpr std::array<LauncherNames, 4> kLauncherNames{{{"RANK", "WORLD_SIZE"},
                                                       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                       {"PMI_RANK", "PMI_SIZE"},
                                                       {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}}};
constexpr int kMostRanks = 4096;

std::string value_of(const EnvironmentLookup& lookup, const char* name) {
  const char* value = lookup(name);
  return value == nullptr ? std::string() : std::string(value);
}

int whole(const EnvironmentLookup& lookup, const char* name, int least, int most) {
  const std::string text = value_of(lookup, name);
  int out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || out < least || out > most) {
    throw InvalidArgument(fmt::format("{}={} in the environment: expected a whole number from {} to {}", name,
                                      escaped(text), least, most));
  }
  return out;
}

/// Rank 0 of a Slurm job runs on the first host of the list; jobs have ports of their own.
std::string slurm_store(const EnvironmentLookup& lookup) {
  std::string list = value_of(lookup, "SLURM_STEP_NODELIST");
  if (list.empty()) list = value_of(lookup, "SLURM_JOB_NODELIST");
  const std::string host = first_slurm_host(list);
  if (host.empty()) return {};
  std::uint64_t job = 0;
  std::uint64_t step = 0;
  const auto read = [&](const char* name, std::uint64_t& out) {
    const std::string text = value_of(lookup, name);
    std::from_chars(text.data(), text.data() + text.size(), out);
  };
  read("SLURM_JOB_ID", job);
  read("SLURM_STEP_ID", step);
  constexpr std::uint64_t kFirstPort = 20000;
  constexpr std::uint64_t kNumPorts = 10000;
  return fmt::format("tcp://{}:{}", host, kFirstPort + (job * 16 + step) % kNumPorts);
}

}  // namespace

std::string first_slurm_host(std::string_view list) {
  const std::size_t end = std::min(list.find_first_of(",["), list.size());
  std::string out(list.substr(0, end));
  if (end < list.size() && list[end] == '[') {
    const std::string_view numbers = list.substr(end + 1);
    out += numbers.substr(0, std::min(numbers.find_first_of(",-]"), numbers.size()));
  }
  return out;
}

std::string environment_store(const EnvironmentLookup& lookup) {
  if (std::string given = value_of(lookup, environment::kStore.name); !given.empty()) return given;
  const std::string host = value_of(lookup, "MASTER_ADDR");
  if (host.empty()) return {};
  const bool is_bare_ipv6 = host.find(':') != std::string::npos && host.front() != '[';
  const int port = whole(lookup, "MASTER_PORT", 1, 65535);
  return is_bare_ipv6 ? fmt::format("tcp://[{}]:{}", host, port) : fmt::format("tcp://{}:{}", host, port);
}

std::optional<EnvironmentJob> environment_job(const EnvironmentLookup& lookup) {
  for (const LauncherNames& names : kLauncherNames) {
    if (lookup(names.rank) == nullptr || lookup(names.size) == nullptr) continue;
    EnvironmentJob out;
    out.size = whole(lookup, names.size, 1, kMostRanks);
    out.rank = whole(lookup, names.rank, 0, out.size - 1);
    out.store = environment_store(lookup);
    if (!out.store.empty()) {
      out.may_serve = value_of(lookup, environment::kStore.name).empty();
    } else if (std::strcmp(names.rank, "SLURM_PROCID") == 0) {
      out.store = slurm_store(lookup);
      out.may_serve = true;
    }
    return out;
  }
  return std::nullopt;
}

std::optional<EnvironmentJob> environment_job() {
  return environment_job([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace gar
