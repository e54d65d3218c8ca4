// The runtime beside the MPI libraries that are installed, on this host.
//
//   bench_runtime_peers              both of these
//   bench_runtime_peers --shm        shared memory, 2, 4 and 8 processes, 4 KiB to 256 MiB
//   bench_runtime_peers --messages   our plans over MPI messages, 4 and 8 processes, from 1 MiB
//   ... --quick                      fewer sizes and iterations
//
// Every line is one `gar bench --algo auto,native`: both run in the same processes, in turns, and their results are
// checked. The ratio is the library's median over ours; "quiet" is the same of the tenth percentiles, which suffer less
// from whatever else runs. The bound is the memory traffic that nothing can avoid: each rank reads its input once and
// writes its result once, 2 S N bytes, at the best bandwidth of a streaming copy on all cores in this run.
// Smaller vectors live in the caches and have no such bound.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gar/reduction.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;

struct Size {
  std::int64_t bytes;
  const char* text;
  int iterations;
  bool is_quick;
};
constexpr std::array<Size, 6> kSizes{{{4 * kKiB, "4KiB", 50, true},
                                      {64 * kKiB, "64KiB", 50, false},
                                      {1 * kMiB, "1MiB", 30, true},
                                      {16 * kMiB, "16MiB", 15, true},
                                      {64 * kMiB, "64MiB", 9, false},
                                      {256 * kMiB, "256MiB", 5, false}}};

/// How much faster than the library we want to be; nothing: no aim at this size.
std::optional<double> aim_for(int num_ranks, std::int64_t bytes, bool is_messages) {
  if (bytes < kMiB) return bytes == 4 * kKiB && !is_messages ? std::optional(1.0) : std::nullopt;
  if (is_messages) return 1.0;
  return num_ranks >= 4 && bytes >= 16 * kMiB ? 2.5 : 1.5;
}

int num_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/// Bytes per second, read and written, of copies on all cores: the best of several, with cached and streaming stores.
double memory_bandwidth() {
  constexpr std::int64_t kBytes = 128 * kMiB;
  const int cores = num_cores();
  std::vector<std::vector<char>> from;
  std::vector<std::vector<char>> to;
  for (int i = 0; i < cores; ++i) {
    from.emplace_back(kBytes, 'x');
    to.emplace_back(kBytes, 'y');
  }
  double best = 0;
  for (int run = 0; run < 12; ++run) {
    const gar::Stores stores = run % 2 == 0 ? gar::Stores::kStreaming : gar::Stores::kCached;
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < from.size(); ++i) {
      threads.emplace_back([&, i] { gar::copy(to[i].data(), from[i].data(), kBytes, stores); });
    }
    for (std::thread& thread : threads) thread.join();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, 2.0 * static_cast<double>(kBytes) * cores / seconds);
  }
  return best;
}

struct Times {
  double ours = 0;
  double native = 0;
  double ours_p10 = 0;
  double native_p10 = 0;
  std::int64_t wrong = 0;
  std::string plan;
};

/// Nothing: this library is not there, or the run failed (and has said why).
std::optional<Times> run_bench(const std::string& gar, const std::string& arguments) {
  const std::string command = fmt::format("'{}' bench {} --algo auto,native --json", gar, arguments);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw std::runtime_error("cannot start " + command);
  std::string text;
  std::array<char, 4096> part{};
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe.get())) > 0;) text.append(part.data(), n);
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded()) return std::nullopt;
  Times out;
  for (const auto& result : document["results"]) {
    const bool is_native = result["algorithm"] == "native";
    (is_native ? out.native : out.ours) = result["seconds"].get<double>();
    (is_native ? out.native_p10 : out.ours_p10) = result["p10"].get<double>();
    out.wrong += result["wrong"].get<std::int64_t>();
    if (!is_native) out.plan = result["plan"].get<std::string>();
  }
  if (out.ours <= 0 || out.native <= 0) return std::nullopt;
  return out;
}

struct Tally {
  int num_aims = 0;
  int num_met = 0;
  int num_failed = 0;
  std::int64_t wrong = 0;
};

struct Part {
  std::string mpi;
  bool is_messages = false;
  std::vector<int> ranks;
  bool is_quick = false;
};

std::string time_text(double s) {
  return s < 1e-3 ? fmt::format("{:.1f} us", 1e6 * s)
         : s < 1  ? fmt::format("{:.2f} ms", 1e3 * s)
                  : fmt::format("{:.2f} s", s);
}

void print_row(int ranks, const Size& size, const Times& times, std::optional<double> aim, double bandwidth) {
  const double ratio = times.native / times.ours;
  const double bound = 2.0 * static_cast<double>(size.bytes) * ranks / bandwidth;
  const char* met = !aim ? "" : ratio >= *aim ? "met" : "no";
  fmt::print("{:>5}  {:>7}  {:>10}  {:>10}  {:>6.2f}x  {:>6.2f}x  {:>5}  {:<4}  {:>8}  {}{}\n", ranks, size.text,
             time_text(times.ours), time_text(times.native), ratio, times.native_p10 / times.ours_p10,
             aim ? fmt::format("{:.1f}x", *aim) : "", met,
             size.bytes < 16 * kMiB ? "" : fmt::format("{:.0f}%", 100 * bound / times.ours), times.plan,
             times.wrong > 0 ? fmt::format("  WRONG: {} elements", times.wrong) : "");
  std::fflush(stdout);
}

/// `bandwidth` is the best so far; every part measures it anew, because something else may have run before.
void run_part(const std::string& gar, const Part& part, double& bandwidth, Tally& tally) {
  bandwidth = std::max(bandwidth, memory_bandwidth());
  fmt::print("\n{} against {}'s own AllReduce (float32, sum); memory: {:.1f} GB/s read and written\n",
             part.is_messages ? "our plans over its messages" : "shared memory",
             part.mpi == "openmpi" ? "Open MPI" : "MPICH", bandwidth / 1e9);
  fmt::print("{:>5}  {:>7}  {:>10}  {:>10}  {:>7}  {:>7}  {:>5}  {:<4}  {:>8}  {}\n", "ranks", "size", "ours", "theirs",
             "ratio", "quiet", "aim", "", "of bound", "plan");
  for (const int ranks : part.ranks) {
    for (const Size& size : kSizes) {
      if ((part.is_quick && !size.is_quick) || (part.is_messages && size.bytes < kMiB)) continue;
      const int iterations = part.is_quick ? std::max(size.iterations / 3, 3) : size.iterations;
      const std::string arguments =
          fmt::format("--local {} --mpi {} -b {} -e {} -n {} -w {} --transport {}", ranks, part.mpi, size.text,
                      size.text, iterations, size.bytes < 64 * kMiB ? 5 : 1, part.is_messages ? "mpi" : "shm");
      const std::optional<double> aim = aim_for(ranks, size.bytes, part.is_messages);
      if (aim) ++tally.num_aims;
      const std::optional<Times> times = run_bench(gar, arguments);
      if (!times) {
        ++tally.num_failed;
        fmt::print("{:>5}  {:>7}  failed: gar bench {} --algo auto,native\n", ranks, size.text, arguments);
        continue;
      }
      if (aim && times->native / times->ours >= *aim) ++tally.num_met;
      tally.wrong += times->wrong;
      print_row(ranks, size, *times, aim, bandwidth);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool is_quick = false;
  bool only_shm = false;
  bool only_messages = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quick") {
      is_quick = true;
    } else if (word == "--shm") {
      only_shm = true;
    } else if (word == "--messages") {
      only_messages = true;
    } else {
      fmt::print(stderr, "bench_runtime_peers: unknown '{}'; accepted: --shm --messages --quick\n", word);
      return 2;
    }
  }
  // Polling ranks would keep each other from the cores.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  try {
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
    const std::filesystem::path bin = own.parent_path().parent_path() / "bin";
    fmt::print("{} cores, {}; the bound is that of a streaming copy on all cores\n", num_cores(), gar::simd_name());
    double bandwidth = 0;
    Tally tally;
    bool has_mpi = false;
    for (const char* mpi : {"openmpi", "mpich"}) {
      if (!std::filesystem::exists(bin / fmt::format("gar-{}", mpi))) continue;
      has_mpi = true;
      const std::string gar = (bin / "gar").string();
      if (!only_messages) run_part(gar, {mpi, false, {2, 4, 8}, is_quick}, bandwidth, tally);
      if (!only_shm) run_part(gar, {mpi, true, {4, 8}, is_quick}, bandwidth, tally);
    }
    if (!has_mpi) {
      fmt::print("no MPI to compare with: neither gar-openmpi nor gar-mpich is in {}\n", bin.string());
      return 0;
    }
    fmt::print("\n{} of {} aims met\n", tally.num_met, tally.num_aims);
    return tally.wrong == 0 && tally.num_failed == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_runtime_peers: {}\n", error.what());
    return 4;
  }
}
