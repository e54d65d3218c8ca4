// --device: whose memory the vectors are in.
#pragma once

#include <string>

#include "apps/gar/cli/common.hpp"
#include "gar/measure/cuda_session.hpp"

namespace gar::cli {

void add_device_option(CLI::App& verb, std::string& device, const std::string& what);
Device parse_device(const std::string& text);

/// For kCuda in a program without CUDA: becomes gar-cuda, with this process's arguments. Throws std::runtime_error when
/// that is not beside this program.
void become_program_of(Device device);

inline constexpr const char* kNoGpusUnderMpirun =
    "--device cuda cannot be combined with mpirun; expected --local N, processes of this host";

/// Has this host a GPU that this program, or gar-cuda beside it, can use?
bool can_use_cuda();

}  // namespace gar::cli
