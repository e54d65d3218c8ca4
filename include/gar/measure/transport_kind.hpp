// What connects the ranks of a measurement, as people name it: "auto", "shm", "cuda-ipc".
#pragma once

#include <optional>
#include <string_view>

#include "gar/language.hpp"

namespace gar::measure {

/// kAuto is shared memory inside a host and messages between hosts; kShm and kMpi insist on one of them. kTcp and
/// kShmTcp need no MPI: TCP everywhere, or between hosts. kCudaIpc and kNccl are for ranks on GPUs.
enum class TransportKind { kAuto, kThreads, kShm, kMpi, kTcp, kShmTcp, kCudaIpc, kNccl };

/// "auto", "threads", "shm", "mpi", "tcp", "shm+tcp", "cuda-ipc", "nccl".
std::string_view to_string(TransportKind kind);
/// Nothing for a word that names none of them.
std::optional<TransportKind> parse_transport_kind(std::string_view word);

/// Does it run over TCP of our own?
bool is_tcp(TransportKind kind);
/// Is it for ranks whose vectors are on GPUs?
bool is_for_gpus(TransportKind kind);

}  // namespace gar::measure
