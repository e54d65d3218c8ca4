// --device.
#include "apps/gar/device.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "apps/gar/launch.hpp"

namespace gar::cli {

std::string_view word(CudaPath path) { return path == CudaPath::kIpc ? "cuda-ipc" : "nccl"; }

void add_device_option(CLI::App& verb, std::string& device, const std::string& what) {
  verb.add_option("--device", device, what)
      ->type_name("D")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
}

Device parse_device(const std::string& text) { return text == "cuda" ? Device::kCuda : Device::kCpu; }

void become_program_of(Device device) {
  if (device == Device::kCpu || is_built_with_cuda()) return;
  const std::string path = (own_path().parent_path() / "gar-cuda").string();
  if (access(path.c_str(), X_OK) != 0) {
    throw std::runtime_error(
        fmt::format("--device cuda: built without CUDA; build with -DGAR_WITH_CUDA=ON where nvcc is, which makes the "
                    "program gar-cuda beside gar, in {}",
                    own_path().parent_path().string()));
  }
  std::vector<std::string> words = own_arguments();
  words.front() = path;
  become(words);
}

double copy_bytes_per_s(CudaSession& session, std::int64_t bytes) {
  constexpr int kWarmUp = 3;
  constexpr int kRounds = 7;
  constexpr int kCopies = 5;
  const DeviceMemory in = session.allocate(bytes);
  const DeviceMemory out = session.allocate(bytes);
  const auto copy = [&] { session.copy(out.get(), in.get(), bytes); };
  (void)session.time(copy, kWarmUp);
  double seconds = session.time(copy, kCopies);
  for (int round = 1; round < kRounds; ++round) seconds = std::min(seconds, session.time(copy, kCopies));
  return 2 * static_cast<double>(bytes) / seconds;
}

std::string format_memory_bandwidth(double bytes_per_s) {
  return bytes_per_s >= 1e12 ? fmt::format("{:.2f} TB/s", bytes_per_s / 1e12)
                             : fmt::format("{:.1f} GB/s", bytes_per_s / 1e9);
}

}  // namespace gar::cli
