// --device: whose memory the vectors are in.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "gar/measure/cuda_session.hpp"

namespace gar::cli {

void add_device_option(CLI::App& verb, std::string& device, const std::string& what);
measure::Device parse_device(const std::string& text);

/// For kCuda in a program without CUDA: becomes gar-cuda, with this process's arguments. Throws std::runtime_error when
/// that is not beside this program.
void become_program_of(measure::Device device);

inline constexpr const char* kNoGpusUnderMpirun =
    "--device cuda does not go with mpirun; accepted: --local N, processes of this host";

}  // namespace gar::cli
