// The n-ary reduction against the bandwidth of the machine's memory, both measured in this run.
//
// Bandwidth: loops in the manner of McCalpin's STREAM (read, copy, add, triad, and sums of 4, 8 and 16 arrays into
// one), each tuned: unrolled by 2 or 4 registers, with and without software prefetch, with ordinary and with streaming
// stores; the best variant counts. A loop that reads x arrays and writes one moves (x + 1) times the array; with
// ordinary stores the hardware reads the written array as well, which is stated separately and never counted as
// achieved.
//
// All loops and all reductions take turns, slice by slice, in every round, and the fastest round of each slice counts,
// so that what else the machine does hits them alike. One thread: its CPU time. All cores: time between two barriers.
//
// Always ends with 0; the last lines say whether the aim is met: at least 90% of the best loop with the same mix of
// reads and writes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "gar/reduction.hpp"
#include "runtime/kernels/kernel.hpp"

namespace {

using gar::DataType;
using gar::KernelSet;
using gar::ReduceOp;
using gar::Stores;

constexpr std::int64_t kCount = std::int64_t{1}
                                << 24;  // floats of an array: 64 MiB, a multiple of any cache with three of them
constexpr std::int64_t kSlice = std::int64_t{1} << 20;
constexpr int kNumArrays = 17;
constexpr int kNumRounds = 7;
constexpr double kAim = 0.9;
constexpr std::array<int, 4> kFanIns = {2, 4, 8, 16};

// ---- loops in the manner of STREAM, compiled for this machine

using Wide = float __attribute__((vector_size(64), aligned(64), may_alias));
constexpr std::int64_t kLanes = 16;

template <bool kStreaming>
inline void store(float* to, const Wide& value) {
#if defined(__AVX512F__)
  if constexpr (kStreaming) {
    _mm512_stream_ps(to, (__m512)value);
    return;
  }
#elif defined(__AVX__)
  if constexpr (kStreaming) {
    const auto* halves = reinterpret_cast<const __m256*>(&value);
    _mm256_stream_ps(to, halves[0]);
    _mm256_stream_ps(to + kLanes / 2, halves[1]);
    return;
  }
#endif
  *reinterpret_cast<Wide*>(to) = value;
}

struct LoopShape {
  int reads;
  int unroll;
  bool is_streaming;
  bool prefetches;
  bool scales = false;  ///< triad: a + 3 b
};

template <LoopShape kShape>
void stream_loop(float* out, const float* const* in, std::int64_t count) {
  constexpr std::int64_t kStep = kShape.unroll * kLanes;
  for (std::int64_t i = 0; i < count; i += kStep) {
    Wide sums[kShape.unroll];
#pragma GCC unroll 16
    for (int k = 0; k < kShape.reads; ++k) {
      const float* p = in[k] + i;
#pragma GCC unroll 4
      for (int u = 0; u < kShape.unroll; ++u) {
        const Wide x = *reinterpret_cast<const Wide*>(p + u * kLanes);
        sums[u] = k == 0 ? x : (kShape.scales ? sums[u] + 3 * x : sums[u] + x);
        if constexpr (kShape.prefetches) __builtin_prefetch(p + u * kLanes + 4 * kLanes);
      }
    }
#pragma GCC unroll 4
    for (int u = 0; u < kShape.unroll; ++u) store<kShape.is_streaming>(out + i + u * kLanes, sums[u]);
  }
}

template <bool kPrefetches>
void read_loop(float* out, const float* const* in, std::int64_t count) {
  Wide sums[4] = {};
  for (std::int64_t i = 0; i < count; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      sums[u] += *reinterpret_cast<const Wide*>(in[0] + i + u * kLanes);
      if constexpr (kPrefetches) __builtin_prefetch(in[0] + i + (u + 8) * kLanes);
    }
  }
  *reinterpret_cast<Wide*>(out) = sums[0] + sums[1] + sums[2] + sums[3];
}

// ---- measuring

/// Something that reads `reads` arrays and writes `writes` of them.
struct Loop {
  std::string name;
  int reads = 0;
  int writes = 1;
  Stores stores = Stores::kCached;
  std::function<void(float* out, const float* const* in, std::int64_t count)> run;
  std::vector<double> slice_s;  ///< fastest of each slice
  [[nodiscard]] double seconds() const {
    double sum = 0;
    for (const double s : slice_s) sum += s;
    return sum;
  }
  [[nodiscard]] double bytes_per_s() const { return 4.0 * (reads + writes) * kCount / seconds(); }
};

struct Arrays {
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::vector<std::unique_ptr<float, Free>> owned;
  std::array<float*, kNumArrays> data{};
  Arrays() {
    for (float*& array : data) {
      owned.emplace_back(static_cast<float*>(std::aligned_alloc(4096, kCount * sizeof(float))));
      array = owned.back().get();
      if (array == nullptr) throw std::bad_alloc();
      std::fill_n(array, kCount, 1.0F);
    }
  }
};

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void run_part(const Loop& loop, const Arrays& arrays, std::int64_t begin, std::int64_t count) {
  std::array<const float*, kNumArrays> in{};
  for (std::size_t k = 0; k < in.size(); ++k) in[k] = arrays.data[k] + begin;
  loop.run(arrays.data.back() + begin, in.data(), count);
}

void measure_alone(std::vector<Loop>& loops, const Arrays& arrays) {
  for (Loop& loop : loops) loop.slice_s.assign(kCount / kSlice, std::numeric_limits<double>::infinity());
  for (int round = 0; round < kNumRounds; ++round) {
    for (Loop& loop : loops) {
      for (std::int64_t s = 0; s < kCount / kSlice; ++s) {
        const double start = thread_seconds();
        run_part(loop, arrays, s * kSlice, kSlice);
        double& best = loop.slice_s[static_cast<std::size_t>(s)];
        best = std::min(best, thread_seconds() - start);
      }
    }
  }
}

/// Every thread has its share of each part of the arrays. The parts are small, so that now and then all threads run
/// undisturbed.
void measure_together(std::vector<Loop>& loops, const Arrays& arrays, int num_threads) {
  constexpr std::int64_t kParts = 16;
  for (Loop& loop : loops) loop.slice_s.assign(kParts, std::numeric_limits<double>::infinity());
  std::barrier barrier(num_threads);
  const auto work = [&](int thread) {
    const std::int64_t share = kCount / kParts / num_threads / 1024 * 1024;
    for (int round = 0; round < 2 * kNumRounds; ++round) {
      for (Loop& loop : loops) {
        for (std::int64_t part = 0; part < kParts; ++part) {
          const std::int64_t begin = part * (kCount / kParts) + thread * share;
          const bool is_last = thread + 1 == num_threads;
          barrier.arrive_and_wait();
          const double start = wall_seconds();
          run_part(loop, arrays, begin, is_last ? (part + 1) * (kCount / kParts) - begin : share);
          barrier.arrive_and_wait();
          if (thread > 0) continue;
          double& best = loop.slice_s[static_cast<std::size_t>(part)];
          best = std::min(best, wall_seconds() - start);
        }
      }
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < num_threads; ++t) threads.emplace_back(work, t);
  work(0);
  for (std::thread& t : threads) t.join();
}

// ---- what is measured

template <int kReads, bool kScales = false>
void add_variants(std::vector<Loop>& loops, const std::string& name) {
  const auto add = [&]<LoopShape kShape>() {
    loops.push_back({fmt::format("{}, unrolled {}x{}", name, kShape.unroll, kShape.prefetches ? ", prefetch" : ""),
                     kReads,
                     1,
                     kShape.is_streaming ? Stores::kStreaming : Stores::kCached,
                     stream_loop<kShape>,
                     {}});
  };
  add.template operator()<LoopShape{kReads, 2, false, false, kScales}>();
  add.template operator()<LoopShape{kReads, 2, false, true, kScales}>();
  add.template operator()<LoopShape{kReads, 4, false, false, kScales}>();
  add.template operator()<LoopShape{kReads, 4, false, true, kScales}>();
  add.template operator()<LoopShape{kReads, 2, true, false, kScales}>();
  add.template operator()<LoopShape{kReads, 2, true, true, kScales}>();
  add.template operator()<LoopShape{kReads, 4, true, false, kScales}>();
  add.template operator()<LoopShape{kReads, 4, true, true, kScales}>();
}

std::vector<Loop> stream_loops() {
  std::vector<Loop> loops;
  loops.push_back({"read", 1, 0, Stores::kCached, read_loop<false>, {}});
  loops.push_back({"read, prefetch", 1, 0, Stores::kCached, read_loop<true>, {}});
  add_variants<1>(loops, "copy");
  add_variants<2>(loops, "add");
  add_variants<2, true>(loops, "triad");
  add_variants<4>(loops, "sum of 4");
  add_variants<8>(loops, "sum of 8");
  add_variants<16>(loops, "sum of 16");
  return loops;
}

std::vector<Loop> reductions() {
  std::vector<Loop> loops;
  for (const int x : kFanIns) {
    for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
      loops.push_back({"gar::reduce",
                       x,
                       1,
                       stores,
                       [x, stores](float* out, const float* const* in, std::int64_t count) {
                         std::array<const void*, kNumArrays> operands{};
                         std::copy_n(in, x, operands.begin());
                         gar::reduce(DataType::kFloat32, ReduceOp::kSum, out,
                                     std::span(operands).first(static_cast<std::size_t>(x)), count, stores);
                       },
                       {}});
    }
  }
  return loops;
}

const char* to_text(Stores stores) { return stores == Stores::kCached ? "cached" : "streaming"; }

const Loop& fastest(const std::vector<Loop>& loops, const std::function<bool(const Loop&)>& is_wanted) {
  const Loop* best = nullptr;
  for (const Loop& loop : loops) {
    if (is_wanted(loop) && (best == nullptr || loop.bytes_per_s() > best->bytes_per_s())) best = &loop;
  }
  return *best;
}

void print_stream(const std::vector<Loop>& loops) {
  fmt::print("  {:<10}{:>7}{:>8}  {:<11}{:>10}{:>24}   {}\n", "loop", "reads", "writes", "stores", "GB/s",
             "with write-allocate", "best variant");
  for (const auto& [name, reads] : std::vector<std::pair<std::string, int>>{
           {"read", 1}, {"copy", 1}, {"add", 2}, {"triad", 2}, {"sum of 4", 4}, {"sum of 8", 8}, {"sum of 16", 16}}) {
    for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
      if (name == "read" && stores == Stores::kStreaming) continue;
      const Loop& best = fastest(loops, [&, n = name](const Loop& l) {
        return l.stores == stores && l.name.starts_with(n) && (n.ends_with("16") || !l.name.starts_with(n + "6"));
      });
      const bool allocates = stores == Stores::kCached && best.writes > 0;
      fmt::print("  {:<10}{:>7}{:>8}  {:<11}{:>10.1f}{:>24}   {}\n", name, reads, best.writes, to_text(stores),
                 1e-9 * best.bytes_per_s(),
                 allocates ? fmt::format("{:.1f}", 4e-9 * (best.reads + 2) * kCount / best.seconds()) : "-",
                 best.name.substr(std::min(best.name.size(), name.size() + 2)));
    }
  }
}

/// Prints the reductions next to the loops; is the aim met?
bool print_reductions(const std::vector<Loop>& ours, const std::vector<Loop>& stream) {
  const Loop& any = fastest(stream, [](const Loop&) { return true; });
  fmt::print("\n  {:<8}{:<11}{:>8}{:>24}{:>22}{:>22}{:>22}\n", "fan-in", "stores", "GB/s", "with write-allocate",
             "of same mix, stores", "of same mix, any", "of the best loop");
  bool is_met = true;
  for (const int x : kFanIns) {
    const Loop& same_mix = fastest(stream, [x](const Loop& l) { return l.reads == x && l.writes == 1; });
    double best_share = 0;
    for (const Loop& our : ours) {
      if (our.reads != x) continue;
      const Loop& same =
          fastest(stream, [&](const Loop& l) { return l.reads == x && l.writes == 1 && l.stores == our.stores; });
      const double rate = our.bytes_per_s();
      best_share = std::max(best_share, rate / same_mix.bytes_per_s());
      is_met = is_met && rate >= kAim * same.bytes_per_s();
      fmt::print("  {:<8}{:<11}{:>8.1f}{:>24}{:>21.0f}%{:>21.0f}%{:>21.0f}%\n", x, to_text(our.stores), 1e-9 * rate,
                 our.stores == Stores::kCached ? fmt::format("{:.1f}", 4e-9 * (x + 2) * kCount / our.seconds()) : "-",
                 100 * rate / same.bytes_per_s(), 100 * rate / same_mix.bytes_per_s(), 100 * rate / any.bytes_per_s());
    }
    is_met = is_met && best_share >= kAim;
  }
  fmt::print("  best loop: {} ({} stores), {:.1f} GB/s\n", any.name, to_text(any.stores), 1e-9 * any.bytes_per_s());
  return is_met;
}

// ---- all types, and plain loops

using Run = std::function<void(char* out, const char* const* in, std::int64_t bytes)>;

/// CPU seconds of one pass over kCount * 4 bytes per array, the fastest round of each slice.
std::vector<double> measure_types(const std::vector<Run>& runs, const Arrays& arrays) {
  std::vector<Loop> loops;
  for (const Run& run : runs) {
    loops.push_back({"",
                     1,
                     1,
                     Stores::kCached,
                     [&run](float* out, const float* const* in, std::int64_t count) {
                       std::array<const char*, kNumArrays> bytes{};
                       for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = reinterpret_cast<const char*>(in[k]);
                       run(reinterpret_cast<char*>(out), bytes.data(), 4 * count);
                     },
                     {}});
  }
  measure_alone(loops, arrays);
  std::vector<double> seconds;
  for (const Loop& loop : loops) seconds.push_back(loop.seconds());
  return seconds;
}

void print_types(const Arrays& arrays) {
  const KernelSet plain = gar::portable_kernels();
  fmt::print(
      "\nall types, sum, one thread, streaming stores; against plain loops over two operands, one after the other:\n");
  fmt::print("  {:<10}{:>16}{:>12}{:>16}{:>12}\n", "type", "fan-in 2, GB/s", "x plain", "fan-in 8, GB/s", "x plain");
  for (int t = 0; t < gar::kNumDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    const auto at_once = [type](int x) -> Run {
      return [type, x](char* out, const char* const* in, std::int64_t bytes) {
        std::array<const void*, kNumArrays> operands{};
        std::copy_n(in, x, operands.begin());
        gar::reduce(type, ReduceOp::kSum, out, std::span(operands).first(static_cast<std::size_t>(x)),
                    bytes / gar::size_of(type), Stores::kStreaming);
      };
    };
    const auto in_pairs = [type, plain](int x) -> Run {
      return [type, plain, x](char* out, const char* const* in, std::int64_t bytes) {
        const gar::Kernel add = plain.kernel(type, ReduceOp::kSum);
        for (int k = 1; k < x; ++k) {
          const std::array<const void*, 2> operands = {k == 1 ? in[0] : out, in[k]};
          add({out, operands.data(), 2, bytes / gar::size_of(type), false});
        }
      };
    };
    const std::vector<double> s = measure_types({at_once(2), in_pairs(2), at_once(8), in_pairs(8)}, arrays);
    fmt::print("  {:<10}{:>16.1f}{:>12.2f}{:>16.1f}{:>12.2f}\n", gar::to_string(type), 4e-9 * 3 * kCount / s[0],
               s[1] / s[0], 4e-9 * 9 * kCount / s[2], s[3] / s[2]);
  }
}

void print_cached(const Arrays& arrays) {
  fmt::print("\nin the caches, sum of float32, one thread, cached stores, GB/s read and written:\n  {:<14}", "vector");
  for (const int x : kFanIns) fmt::print("{:>12}", fmt::format("fan-in {}", x));
  fmt::print("\n");
  for (const std::int64_t count : {256, 1024, 4096, 16384, 65536}) {
    fmt::print("  {:>10} KiB", count / 256);
    for (const int x : kFanIns) {
      std::array<const void*, kNumArrays> operands{};
      std::copy_n(arrays.data.begin(), x, operands.begin());
      const std::int64_t repeats = (std::int64_t{1} << 22) / (count * x) + 1;
      double best = std::numeric_limits<double>::infinity();
      for (int round = 0; round < 5 * kNumRounds; ++round) {
        const double start = thread_seconds();
        for (std::int64_t r = 0; r < repeats; ++r) {
          gar::reduce(DataType::kFloat32, ReduceOp::kSum, arrays.data.back(),
                      std::span(operands).first(static_cast<std::size_t>(x)), count);
        }
        best = std::min(best, (thread_seconds() - start) / static_cast<double>(repeats));
      }
      fmt::print("{:>12.0f}", 4e-9 * static_cast<double>(count * (x + 1)) / best);
    }
    fmt::print("\n");
  }
}

}  // namespace

int main() {
  const int num_cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  fmt::print("n-ary sums of float32 ({}), {} arrays of {} MiB, against loops in the manner of STREAM in the same run\n",
             gar::simd_name(), kNumArrays, kCount * 4 >> 20);
  const Arrays arrays;
  std::string verdict;
  for (const int num_threads : num_cores > 1 ? std::vector<int>{1, num_cores} : std::vector<int>{1}) {
    std::vector<Loop> loops = stream_loops();
    const std::size_t num_stream = loops.size();
    for (Loop& loop : reductions()) loops.push_back(std::move(loop));
    if (num_threads == 1) {
      measure_alone(loops, arrays);
    } else {
      measure_together(loops, arrays, num_threads);
    }
    const auto middle = loops.begin() + static_cast<std::ptrdiff_t>(num_stream);
    const std::vector<Loop> stream(loops.begin(), middle);
    const std::vector<Loop> ours(middle, loops.end());
    fmt::print("\n{} thread{}:\n", num_threads, num_threads == 1 ? ", CPU time" : "s, wall time");
    print_stream(stream);
    const bool is_met = print_reductions(ours, stream);
    verdict += fmt::format(
        "{} thread{}: every fan-in reaches {:.0f}% of the best loop with the same mix and stores, and its better "
        "stores of the best with the same mix: {}\n",
        num_threads, num_threads == 1 ? "" : "s", 100 * kAim, is_met ? "yes" : "NO");
  }
  print_types(arrays);
  print_cached(arrays);
  fmt::print("\n{}", verdict);
}
