// How `gather` runs with short vectors: every rank's bytes to every rank in ceil(log2 N) rounds (Bruck).
//
// After k rounds a rank holds the blocks of the 2^k ranks that start with itself, in that order; in a round it sends
// what it holds to the rank 2^k before it and receives as much from the rank 2^k after it. A block is the signature of
// its rank and its bytes, so all ranks compare all signatures without a further message. N log2 N messages, N (bytes +
// signature) received per rank.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/transport.hpp"
#include "runtime/transports/mpi/mpi_call.hpp"

namespace gar {

class MpiExchange {
 public:
  MpiExchange(MPI_Comm comm, int rank, int size, const MpiTags& tags);
  MpiExchange(const MpiExchange&) = delete;
  MpiExchange& operator=(const MpiExchange&) = delete;
  ~MpiExchange();

  [[nodiscard]] std::int64_t max_bytes() const { return max_bytes_; }
  /// As Transport::try_exchange; the signature is new for every operation. Throws TransportError when a rank's differs.
  bool advance(const Signature& signature, const void* in, std::int64_t bytes, std::span<const std::byte*> operands);
  /// Has the message come that is awaited now? Gives MPI a chance to bring it.
  bool poll();
  /// The rank whose message is awaited now; -1: none.
  [[nodiscard]] int awaited() const { return awaited_; }
  /// Gives up what is under way.
  void cancel() noexcept;

 private:
  bool start(const Signature& signature, const void* in, std::int64_t bytes);
  void start_round();
  bool finish_round(const Signature& signature);
  [[nodiscard]] int distance() const { return 1 << round_; }

  MPI_Comm comm_;
  int rank_;
  int size_;
  MpiTags tags_;
  std::int64_t max_bytes_ = 0;
  std::int64_t num_bytes_ = 0;
  std::unique_ptr<std::byte[]> blocks_;
  std::vector<MPI_Request> sends_;
  MPI_Request receive_ = MPI_REQUEST_NULL;
  std::uint64_t sequence_ = 0;  ///< of the operation that is under way or was the last
  std::int64_t stride_ = 0;     ///< bytes of a block
  int round_ = 0;
  int awaited_ = -1;
  std::int64_t received_ = 0;  ///< bytes of the message that was awaited last
};

}  // namespace gar
