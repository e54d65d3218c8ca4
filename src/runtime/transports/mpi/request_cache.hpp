// Persistent requests that are restarted when the same message comes again.
//
// An operation that is repeated with the same buffers sends and receives the same messages: the same peer, tag, memory
// and length. Their requests are kept, the most recently used ones, and MPI_Start replaces building them anew. O(1) per
// message.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

namespace gar {

/// What makes two messages the same.
struct MpiMessage {
  bool is_send = false;
  std::int32_t peer = 0;
  int tag = 0;
  int bytes = 0;
  std::byte* memory = nullptr;
  bool operator==(const MpiMessage&) const = default;
};

class RequestCache {
 public:
  /// `capacity`: requests that are kept while they are not in use.
  RequestCache(MPI_Comm comm, std::size_t capacity) : comm_(comm), capacity_(capacity) {}
  RequestCache(const RequestCache&) = delete;
  RequestCache& operator=(const RequestCache&) = delete;
  ~RequestCache() { clear(); }

  /// A started request. Throws TransportError.
  MPI_Request start(const MpiMessage& message);
  /// The request has completed.
  void give_back(const MpiMessage& message, MPI_Request request);
  void clear() noexcept;
  /// How many requests were built, how many restarted.
  [[nodiscard]] std::int64_t num_built() const { return num_built_; }
  [[nodiscard]] std::int64_t num_restarted() const { return num_restarted_; }

 private:
  struct Idle {
    MpiMessage message;
    MPI_Request request;
  };
  struct Hash {
    std::size_t operator()(const MpiMessage& message) const;
  };

  MPI_Comm comm_;
  std::size_t capacity_;
  std::list<Idle> idle_;  ///< most recently used first
  std::unordered_multimap<MpiMessage, std::list<Idle>::iterator, Hash> by_message_;
  std::int64_t num_built_ = 0;
  std::int64_t num_restarted_ = 0;
};

}  // namespace gar
