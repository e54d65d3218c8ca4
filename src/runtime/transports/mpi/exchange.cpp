#include "runtime/transports/mpi/exchange.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "runtime/transports/mpi/frame.hpp"

namespace gar {

namespace {

constexpr int kCancelAttempts = 1000;
constexpr std::int64_t kExchangeAlignment = 16;
constexpr std::int64_t kHeader = (static_cast<std::int64_t>(sizeof(WireSignature)) + kExchangeAlignment - 1) /
                                 kExchangeAlignment * kExchangeAlignment;

}  // namespace

MpiExchange::MpiExchange(MPI_Comm comm, int rank, int size, const MpiTags& tags)
    : comm_(comm),
      rank_(rank),
      size_(size),
      tags_(tags),
      max_bytes_(static_cast<std::int64_t>(message_gather(size).max_bytes)) {
  // Twice the room: a rank whose blocks are longer than ours must be recognised, not cut off.
  num_bytes_ = 2 * size * (max_bytes_ + kHeader);
  blocks_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(num_bytes_));
}

MpiExchange::~MpiExchange() { cancel(); }

void MpiExchange::cancel() noexcept {
  if (receive_ != MPI_REQUEST_NULL) MPI_Cancel(&receive_);
  sends_.push_back(receive_);
  receive_ = MPI_REQUEST_NULL;
  awaited_ = -1;
  int is_done = 0;
  for (int attempt = 0; attempt < kCancelAttempts && is_done == 0; ++attempt) {
    if (MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &is_done, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
      break;
    if (is_done == 0) sched_yield();
  }
  if (is_done == 0) {  // MPI may still use the memory, so it stays
    for (MPI_Request& request : sends_) {
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
    static_cast<void>(blocks_.release());
  }
  sends_.clear();
}

bool MpiExchange::start(const Signature& signature, const void* in, std::int64_t bytes) {
  int is_done = 1;
  if (!sends_.empty()) {
    check_mpi(MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &is_done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    if (is_done == 0) return false;
    sends_.clear();
  }
  sequence_ = signature.sequence;
  stride_ = kHeader + (bytes + kExchangeAlignment - 1) / kExchangeAlignment * kExchangeAlignment;
  round_ = 0;
  const WireSignature wire = to_wire(signature, rank_);
  std::memcpy(blocks_.get(), &wire, sizeof wire);
  if (bytes > 0) std::memcpy(blocks_.get() + kHeader, in, static_cast<std::size_t>(bytes));
  if (size_ > 1) start_round();
  return true;
}

void MpiExchange::start_round() {
  const int held = distance();
  const int tag = tags_.exchange(sequence_, round_);
  std::byte* into = blocks_.get() + held * stride_;
  const auto room = static_cast<int>(blocks_.get() + num_bytes_ - into);
  awaited_ = (rank_ + held) % size_;
  check_mpi(MPI_Irecv(into, room, MPI_BYTE, awaited_, tag, comm_, &receive_), "MPI_Irecv");
  const auto bytes = static_cast<int>(std::min(held, size_ - held) * stride_);
  MPI_Request send = MPI_REQUEST_NULL;
  check_mpi(MPI_Isend(blocks_.get(), bytes, MPI_BYTE, (rank_ - held + size_) % size_, tag, comm_, &send), "MPI_Isend");
  sends_.push_back(send);
}

bool MpiExchange::poll() {
  if (awaited_ < 0) return false;
  int is_done = 0;
  MPI_Status status;
  check_mpi(MPI_Test(&receive_, &is_done, &status), "MPI_Test");
  if (is_done == 0) return false;
  awaited_ = -1;
  int bytes = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  received_ = bytes;
  return true;
}

bool MpiExchange::finish_round(const Signature& signature) {
  if (awaited_ >= 0 && !poll()) return false;
  const int held = distance();
  // The sender's own block comes first; when it agrees, the others are as long as ours.
  const int sender = (rank_ + held) % size_;
  const int end = std::min(2 * held, size_);
  std::int64_t left = received_;
  for (int i = held; i < end; ++i, left -= stride_) {
    const int owner = (rank_ + i) % size_;
    const std::int64_t length = std::clamp<std::int64_t>(left, 0, sizeof(WireSignature));
    const Signature theirs = read_signature({blocks_.get() + i * stride_, static_cast<std::size_t>(length)}, owner);
    if (theirs != signature) throw TransportError(describe_mismatch(signature, rank_, theirs, owner));
  }
  if (left != 0) throw TransportError(fmt::format("rank {} has sent a message of the wrong length", sender));
  ++round_;
  return true;
}

bool MpiExchange::advance(const Signature& signature, const void* in, std::int64_t bytes,
                          std::span<const std::byte*> operands) {
  if (sequence_ != signature.sequence && !start(signature, in, bytes)) return false;
  while (distance() < size_) {
    if (!finish_round(signature)) return false;
    if (distance() < size_) start_round();
  }
  for (int i = 0; i < size_; ++i) {
    operands[static_cast<std::size_t>((rank_ + i) % size_)] = blocks_.get() + i * stride_ + kHeader;
  }
  return true;
}

}  // namespace gar
