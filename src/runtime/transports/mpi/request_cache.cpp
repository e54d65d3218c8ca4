#include "runtime/transports/mpi/request_cache.hpp"

#include <bit>

#include "base/hash.hpp"
#include "runtime/transports/mpi/mpi_call.hpp"

namespace gar {

std::size_t RequestCache::Hash::operator()(const MpiMessage& message) const {
  auto hash = static_cast<std::uint64_t>(std::bit_cast<std::uintptr_t>(message.memory));
  for (const int value : {message.peer, message.tag, message.bytes, message.is_send ? 1 : 0}) {
    hash = mix_in(hash, value);
  }
  return hash;
}

MPI_Request RequestCache::start(const MpiMessage& message) {
  MPI_Request request = MPI_REQUEST_NULL;
  const auto found = by_message_.find(message);
  if (found != by_message_.end()) {
    request = found->second->request;
    idle_.erase(found->second);
    by_message_.erase(found);
    ++num_restarted_;
  } else {
    if (message.is_send) {
      check_mpi(MPI_Send_init(message.memory, message.bytes, MPI_BYTE, message.peer, message.tag, comm_, &request),
                "MPI_Send_init");
    } else {
      check_mpi(MPI_Recv_init(message.memory, message.bytes, MPI_BYTE, message.peer, message.tag, comm_, &request),
                "MPI_Recv_init");
    }
    ++num_built_;
  }
  const int code = MPI_Start(&request);
  if (code != MPI_SUCCESS) {
    MPI_Request_free(&request);
    check_mpi(code, "MPI_Start");
  }
  return request;
}

void RequestCache::give_back(const MpiMessage& message, MPI_Request request) {
  if (idle_.size() >= capacity_) {
    const auto oldest = std::prev(idle_.end());
    for (auto [i, end] = by_message_.equal_range(oldest->message); i != end; ++i) {
      if (i->second == oldest) {
        by_message_.erase(i);
        break;
      }
    }
    MPI_Request_free(&oldest->request);
    idle_.erase(oldest);
  }
  idle_.push_front({message, request});
  by_message_.emplace(message, idle_.begin());
}

void RequestCache::clear() noexcept {
  for (Idle& idle : idle_) MPI_Request_free(&idle.request);
  idle_.clear();
  by_message_.clear();
}

}  // namespace gar
