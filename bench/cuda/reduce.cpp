// n-ary sums on a GPU against a device-to-device copy, chained sums of two, and PyTorch; all in this run.
//
//   bench_cuda_reduce [--count 150000000] [--dtype float32] [--json] [--torch-script FILE]
//
// A sum of x operands moves (x + 1) times the vector; a copy moves it twice. "of copy" compares these bandwidths, with
// the faster of a copy before and a copy after all sums. "chained" is what a library without n-ary kernels does: x - 1
// of our own sums of two, each of which reads the partial result again. "torch.add" chains torch.add(..., out=...);
// "sum(list)" is Python's sum of tensors, which allocates every partial result. The fit is the model's
// T = (x - 1) gamma S + (x + 1) delta S. Times are medians of kNumRuns launches between CUDA events. The exit code is 1
// when a sum does not reach the bandwidth of the copy or is wrong, and 4 without a GPU.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "gar/cuda.hpp"
#include "gar/errors.hpp"
#include "gar/fit.hpp"
#include "gar/profile_io.hpp"
#include "runtime/transports/cuda/cuda_call.hpp"
#include "runtime/transports/cuda/kernels.hpp"

namespace {

using gar::DataType;
using gar::ReduceOp;

constexpr int kMaxFanIn = 16;
constexpr int kNumRuns = 21;
constexpr int kNumWarmUps = 5;
constexpr std::int64_t kPatternBytes = 16 << 20;
constexpr std::int64_t kCheckedElements = 4096;
constexpr int kExitNoGpu = 4;

struct Options {
  std::int64_t count = 150'000'000;
  DataType type = DataType::kFloat32;
  bool is_json = false;
  std::string torch_script = GAR_TORCH_SCRIPT;
};

/// One number of operands.
struct Row {
  int fan_in = 0;
  double nary_s = 0;
  double chained_s = 0;
  std::optional<double> paper_s;      ///< on the paper's GPU, scaled to so many elements
  std::optional<double> torch_s;      ///< chained torch.add
  std::optional<double> torch_sum_s;  ///< sum() of a list of tensors
  bool is_right = false;
};

struct Fit {
  double gamma = 0;  ///< seconds per element
  double delta = 0;
  double r2 = 0;
};

struct Report {
  Options options;
  std::string gpu;
  double copy_before_s = 0;
  double copy_after_s = 0;
  std::vector<Row> rows;
  Fit fit;
  std::string torch;  ///< its version, or why there is none

  [[nodiscard]] double bytes() const {
    return static_cast<double>(options.count) * static_cast<double>(gar::size_of(options.type));
  }
  [[nodiscard]] double copy_bytes_per_s() const { return 2 * bytes() / std::min(copy_before_s, copy_after_s); }
  [[nodiscard]] double bytes_per_s(const Row& row) const { return (row.fan_in + 1) * bytes() / row.nary_s; }
  [[nodiscard]] double share_of_copy(const Row& row) const { return bytes_per_s(row) / copy_bytes_per_s(); }
};

/// Numbers of the type that sum up without overflow.
std::vector<std::byte> random_pattern(DataType type, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<std::byte> bytes(kPatternBytes);
  const auto size = static_cast<std::size_t>(gar::size_of(type));
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    std::uint64_t bits = random();
    const float value = uniform(random);
    if (type == DataType::kFloat32) std::memcpy(&bits, &value, sizeof(value));
    if (type == DataType::kFloat16) bits = gar::to_float16(value).bits;
    if (type == DataType::kBfloat16) bits = gar::to_bfloat16(value).bits;
    if (type == DataType::kFloat64) {
      const double wide = value;
      std::memcpy(&bits, &wide, sizeof(wide));
    }
    std::memcpy(&bytes[i], &bits, size);
  }
  return bytes;
}

/// A vector in the memory of the GPU.
class Vector {
 public:
  explicit Vector(std::int64_t bytes) : bytes_(bytes) {
    gar::check_cuda(cudaMalloc(&data_, static_cast<std::size_t>(bytes)),
                    [&] { return "cudaMalloc of " + gar::bytes_text(static_cast<double>(bytes)); });
  }
  Vector(const Vector&) = delete;
  Vector& operator=(const Vector&) = delete;
  ~Vector() { cudaFree(data_); }
  void fill(const std::vector<std::byte>& pattern) {
    for (std::int64_t begin = 0; begin < bytes_; begin += kPatternBytes) {
      const auto part = static_cast<std::size_t>(std::min(kPatternBytes, bytes_ - begin));
      gar::check_cuda(cudaMemcpy(static_cast<std::byte*>(data_) + begin, pattern.data(), part, cudaMemcpyHostToDevice),
                      "filling a vector");
    }
  }
  [[nodiscard]] void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  std::int64_t bytes_;
};

/// Median seconds of what `launch` puts into the default stream.
double measure(const std::function<void()>& launch) {
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  gar::check_cuda(cudaEventCreate(&start), "cudaEventCreate");
  gar::check_cuda(cudaEventCreate(&stop), "cudaEventCreate");
  std::vector<double> seconds;
  for (int run = -kNumWarmUps; run < kNumRuns; ++run) {
    gar::check_cuda(cudaEventRecord(start), "cudaEventRecord");
    launch();
    gar::check_cuda(cudaEventRecord(stop), "cudaEventRecord");
    gar::check_cuda(cudaEventSynchronize(stop), "waiting for the kernels");
    float ms = 0;
    gar::check_cuda(cudaEventElapsedTime(&ms, start, stop), "cudaEventElapsedTime");
    if (run >= 0) seconds.push_back(1e-3 * ms);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::nth_element(seconds.begin(), seconds.begin() + kNumRuns / 2, seconds.end());
  return seconds[kNumRuns / 2];
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), bytes_(options.count * gar::size_of(options.type)) {
    for (int k = 0; k < kMaxFanIn; ++k) {
      operands_.push_back(std::make_unique<Vector>(bytes_));
      operands_.back()->fill(random_pattern(options.type, static_cast<std::uint64_t>(k) + 1));
    }
  }

  double copy() const {
    return measure([&] {
      gar::check_cuda(cudaMemcpyAsync(out_.data(), operands_[0]->data(), static_cast<std::size_t>(bytes_),
                                      cudaMemcpyDeviceToDevice),
                      "device-to-device copy");
    });
  }

  Row row(int fan_in) const {
    Row row;
    row.fan_in = fan_in;
    row.nary_s = measure([&] { sum(fan_in); });
    row.is_right = is_right(fan_in);
    row.chained_s = measure([&] {
      for (int k = 1; k < fan_in; ++k) {
        const std::array<const void*, 2> pair = {k == 1 ? operands_[0]->data() : out_.data(),
                                                 operands_[static_cast<std::size_t>(k)]->data()};
        reduce(pair);
      }
    });
    return row;
  }

 private:
  void reduce(std::span<const void* const> operands) const {
    gar::cuda_reduce(options_.type, ReduceOp::kSum, out_.data(), operands, options_.count, gar::Stream{});
  }
  [[nodiscard]] std::vector<const void*> first_operands(int fan_in) const {
    std::vector<const void*> pointers;
    for (int k = 0; k < fan_in; ++k) pointers.push_back(operands_[static_cast<std::size_t>(k)]->data());
    return pointers;
  }
  void sum(int fan_in) const { reduce(first_operands(fan_in)); }

  /// The first and the last elements, against the CPU.
  [[nodiscard]] bool is_right(int fan_in) const {
    const std::int64_t count = std::min(kCheckedElements, options_.count);
    return is_right_at(fan_in, 0, count) && is_right_at(fan_in, options_.count - count, count);
  }
  [[nodiscard]] bool is_right_at(int fan_in, std::int64_t begin, std::int64_t count) const {
    const std::int64_t size = gar::size_of(options_.type);
    const auto download = [&](const void* from) {
      std::vector<std::byte> to(static_cast<std::size_t>(count * size));
      gar::check_cuda(
          cudaMemcpy(to.data(), static_cast<const std::byte*>(from) + begin * size, to.size(), cudaMemcpyDeviceToHost),
          "downloading a part of a vector");
      return to;
    };
    std::vector<std::vector<std::byte>> parts;
    std::vector<const void*> pointers;
    for (const void* operand : first_operands(fan_in)) parts.push_back(download(operand));
    for (const auto& part : parts) pointers.push_back(part.data());
    std::vector<std::byte> expected(static_cast<std::size_t>(count * size));
    gar::reduce(options_.type, ReduceOp::kSum, expected.data(), pointers, count);
    return download(out_.data()) == expected;
  }

  Options options_;
  std::int64_t bytes_;
  std::vector<std::unique_ptr<Vector>> operands_;
  Vector out_{bytes_};
};

/// Least squares.
Fit fit(const std::vector<Row>& rows, std::int64_t count) {
  double aa = 0, ab = 0, bb = 0, at = 0, bt = 0, mean = 0;
  for (const Row& row : rows) {
    const double a = (row.fan_in - 1) * static_cast<double>(count);
    const double b = (row.fan_in + 1) * static_cast<double>(count);
    aa += a * a;
    ab += a * b;
    bb += b * b;
    at += a * row.nary_s;
    bt += b * row.nary_s;
    mean += row.nary_s / static_cast<double>(rows.size());
  }
  const double determinant = aa * bb - ab * ab;
  Fit fit{.gamma = (at * bb - bt * ab) / determinant, .delta = (bt * aa - at * ab) / determinant, .r2 = 0};
  double residual = 0, spread = 0;
  for (const Row& row : rows) {
    const double predicted = ((row.fan_in - 1) * fit.gamma + (row.fan_in + 1) * fit.delta) * static_cast<double>(count);
    residual += std::pow(row.nary_s - predicted, 2);
    spread += std::pow(row.nary_s - mean, 2);
  }
  fit.r2 = 1 - residual / spread;
  return fit;
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// Runs the script, which prints {"torch": version, "add": {"2": seconds, ...}, "sum": {...}} or {"error": why}.
void add_torch(Report& report) {
  const Options& options = report.options;
  const std::string command =
      fmt::format("python3 {} --count {} --dtype {} --max {} 2>/dev/null", quoted(options.torch_script), options.count,
                  gar::to_string(options.type), kMaxFanIn);
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> child(popen(command.c_str(), "r"), pclose);
  std::string output;
  std::array<char, 4096> buffer{};
  while (child != nullptr && std::fgets(buffer.data(), buffer.size(), child.get()) != nullptr) output += buffer.data();
  const nlohmann::json result = nlohmann::json::parse(output, nullptr, false);
  if (!result.is_object()) {
    report.torch = fmt::format("no answer from: {}", command);
    return;
  }
  if (result.contains("error")) {
    report.torch = result.at("error").get<std::string>();
    return;
  }
  report.torch = "torch " + result.at("torch").get<std::string>();
  for (Row& row : report.rows) {
    const std::string x = std::to_string(row.fan_in);
    row.torch_s = result.at("add").at(x).get<double>();
    row.torch_sum_s = result.at("sum").at(x).get<double>();
  }
}

/// The points of the paper's figure (its K40c, float32).
void add_paper(Report& report) {
  if (report.options.type != gar::DataType::kFloat32) return;
  const gar::Measurements paper = gar::read_measurements_file(GAR_PAPER_POINTS);
  for (Row& row : report.rows) {
    for (const gar::Observation& point : paper.observations) {
      if (point.fan_in != row.fan_in) continue;
      row.paper_s = point.seconds.front() / point.size_floats * static_cast<double>(report.options.count);
    }
  }
}

void print_table(const Report& report) {
  const Options& options = report.options;
  fmt::print("sums of {} {} on {}, medians of {} launches\n", options.count, gar::to_string(options.type), report.gpu,
             kNumRuns);
  for (const auto& [when, seconds] :
       {std::pair{"before", report.copy_before_s}, std::pair{"after", report.copy_after_s}}) {
    fmt::print("device-to-device copy, {:<6}  {:.3f} ms  {:.3f} TB/s\n", when, 1e3 * seconds,
               2e-12 * report.bytes() / seconds);
  }
  fmt::print("{}\n\n", report.torch);
  fmt::print("{:>4}{:>11}{:>9}{:>10}{:>13}{:>15}{:>13}{:>9}{:>15}{:>9}{:>15}  {}\n", "x", "n-ary ms", "TB/s", "of copy",
             "T/(x-1) ms", "paper's K40c", "chained ms", "saves", "torch.add ms", "saves", "sum(list) ms", "right");
  const auto optional_text = [](std::optional<double> value, const std::string& unit = "") {
    return value ? fmt::format("{:.3f}{}", *value, unit) : std::string("-");
  };
  for (const Row& row : report.rows) {
    const auto times = [&](std::optional<double> seconds, double factor) {
      return seconds ? std::optional(*seconds * factor) : std::nullopt;
    };
    fmt::print("{:>4}{:>11.3f}{:>9.3f}{:>9.1f}%{:>13.3f}{:>15}{:>13.3f}{:>8.2f}x{:>15}{:>9}{:>15}  {}\n", row.fan_in,
               1e3 * row.nary_s, 1e-12 * report.bytes_per_s(row), 100 * report.share_of_copy(row),
               1e3 * row.nary_s / (row.fan_in - 1), optional_text(times(row.paper_s, 1e3 / (row.fan_in - 1))),
               1e3 * row.chained_s, row.chained_s / row.nary_s, optional_text(times(row.torch_s, 1e3)),
               optional_text(times(row.torch_s, 1 / row.nary_s), "x"), optional_text(times(row.torch_sum_s, 1e3)),
               row.is_right ? "yes" : "NO");
  }
  fmt::print("\nT(x) = (x-1) gamma S + (x+1) delta S: gamma {:.3g} s, delta {:.3g} s per element, R2 {:.6f}\n",
             report.fit.gamma, report.fit.delta, report.fit.r2);
}

void print_json(const Report& report) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Row& row : report.rows) {
    nlohmann::json entry = {{"x", row.fan_in},
                            {"nary_s", row.nary_s},
                            {"bytes_per_s", report.bytes_per_s(row)},
                            {"of_copy", report.share_of_copy(row)},
                            {"chained_s", row.chained_s},
                            {"is_right", row.is_right}};
    if (row.paper_s) entry["paper_s"] = *row.paper_s;
    if (row.torch_s) entry["torch_add_s"] = *row.torch_s;
    if (row.torch_sum_s) entry["torch_sum_s"] = *row.torch_sum_s;
    rows.push_back(entry);
  }
  const nlohmann::json document = {
      {"version", 1},
      {"gpu", report.gpu},
      {"dtype", gar::to_string(report.options.type)},
      {"count", report.options.count},
      {"copy_before_s", report.copy_before_s},
      {"copy_after_s", report.copy_after_s},
      {"torch", report.torch},
      {"rows", rows},
      {"fit", {{"gamma_s", report.fit.gamma}, {"delta_s", report.fit.delta}, {"r2", report.fit.r2}}}};
  fmt::print("{}\n", document.dump(2));
}

Report run(const Options& options) {
  Report report;
  report.options = options;
  cudaDeviceProp properties{};
  gar::check_cuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  report.gpu = properties.name;
  {
    const Bench bench(options);
    report.copy_before_s = bench.copy();
    for (int x = 2; x <= kMaxFanIn; ++x) report.rows.push_back(bench.row(x));
    report.copy_after_s = bench.copy();
  }
  report.fit = fit(report.rows, options.count);
  add_paper(report);
  add_torch(report);
  return report;
}

/// Exit code.
int judge(const Report& report) {
  int status = 0;
  for (const Row& row : report.rows) {
    if (!row.is_right) {
      fmt::print(stderr, "x = {}: the result is not that of the CPU\n", row.fan_in);
      status = 1;
    }
    if (report.share_of_copy(row) < 1) {
      fmt::print(stderr, "x = {}: {:.1f}% of the copy's bandwidth; aim: 100%\n", row.fan_in,
                 100 * report.share_of_copy(row));
      status = 1;
    }
  }
  return status;
}

constexpr const char* kUsage =
    "usage: bench_cuda_reduce [--count N] [--dtype T] [--json] [--torch-script FILE] [--help]\n"
    "  --count N            elements of each vector (150000000)\n"
    "  --dtype T            float32 float64 float16 bfloat16 int8 uint8 int32 uint32 int64 uint64 (float32)\n"
    "  --json               one JSON document instead of the table\n"
    "  --torch-script FILE  how PyTorch is measured (bench/cuda/torch_add.py)\n"
    "exit codes: 0, 1 a sum is slower than the copy or wrong, 2 bad arguments, 4 no GPU\n";

/// Nothing: --help.
std::optional<Options> parse(std::span<char*> words) {
  Options options;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string word = words[i];
    const auto value = [&]() -> std::string {
      if (++i == words.size()) throw gar::InvalidArgument(word + " needs a value");
      return words[i];
    };
    if (word == "--help") return std::nullopt;
    if (word == "--json") {
      options.is_json = true;
    } else if (word == "--dtype") {
      options.type = gar::parse_data_type(value());
    } else if (word == "--torch-script") {
      options.torch_script = value();
    } else if (word == "--count") {
      const std::string text = value();
      char* end = nullptr;
      options.count = std::strtoll(text.c_str(), &end, 10);
      if (*end != '\0' || options.count < 1) throw gar::InvalidArgument("--count " + text + "; accepted: 1 and more");
    } else {
      throw gar::InvalidArgument(fmt::format("unknown '{}'\n{}", word, kUsage));
    }
  }
  if (!gar::is_supported_on_cuda(options.type, ReduceOp::kSum)) {
    throw gar::InvalidArgument(
        fmt::format("--dtype {} has no kernels on GPUs\n{}", gar::to_string(options.type), kUsage));
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::optional<Options> options = parse(std::span(argv, static_cast<std::size_t>(argc)));
    if (!options) {
      fmt::print("{}", kUsage);
      return 0;
    }
    std::string why;
    if (gar::num_cuda_devices(&why) == 0) {
      fmt::print(stderr, "bench_cuda_reduce: no GPU to measure: {}\n", why);
      return kExitNoGpu;
    }
    const Report report = run(*options);
    options->is_json ? print_json(report) : print_table(report);
    return judge(report);
  } catch (const gar::InvalidArgument& error) {
    fmt::print(stderr, "bench_cuda_reduce: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_cuda_reduce: {}\n", error.what());
    return 1;
  }
}
