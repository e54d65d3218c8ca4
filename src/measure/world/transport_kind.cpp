#include "gar/measure/transport_kind.hpp"

#include <array>
#include <cstddef>

namespace gar::measure {
namespace {

constexpr std::array<std::string_view, 8> kWords{"auto", "threads", "shm", "mpi", "tcp", "shm+tcp", "cuda-ipc", "nccl"};

}  // namespace

std::string_view to_string(TransportKind kind) { return kWords[static_cast<std::size_t>(kind)]; }

std::optional<TransportKind> parse_transport_kind(std::string_view word) {
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    if (kWords[i] == word) return static_cast<TransportKind>(i);
  }
  return std::nullopt;
}

bool is_tcp(TransportKind kind) { return kind == TransportKind::kTcp || kind == TransportKind::kShmTcp; }

bool is_for_gpus(TransportKind kind) { return kind == TransportKind::kCudaIpc || kind == TransportKind::kNccl; }

}  // namespace gar::measure
