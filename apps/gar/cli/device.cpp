// --device.
#include "apps/gar/cli/device.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

#include "gar/measure/launch.hpp"

namespace gar::cli {

void add_device_option(CLI::App& verb, std::string& device, const std::string& what) {
  verb.add_option("--device", device, what)
      ->type_name("D")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
}

Device parse_device(const std::string& text) { return text == "cuda" ? Device::kCuda : Device::kCpu; }

bool can_use_cuda() {
  const std::string path = (own_path().parent_path() / "gar-cuda").string();
  const bool has_program = is_built_with_cuda() || access(path.c_str(), X_OK) == 0;
  return has_program && access("/dev/nvidia0", R_OK | W_OK) == 0;
}

void become_program_of(Device device) {
  if (device == Device::kCpu || is_built_with_cuda()) return;
  const std::string path = (own_path().parent_path() / "gar-cuda").string();
  if (access(path.c_str(), X_OK) != 0) {
    throw std::runtime_error(
        fmt::format("--device cuda: built without CUDA; build with -DGAR_WITH_CUDA=ON where nvcc is, which makes the "
                    "program gar-cuda next to gar, in {}",
                    own_path().parent_path().string()));
  }
  std::vector<std::string> words = own_arguments();
  words.front() = path;
  become(words);
}

}  // namespace gar::cli
