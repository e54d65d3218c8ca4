#include "runtime/transports/mpi/control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

namespace gar {

WireSignature to_wire(const Signature& signature, int rank) {
  return {signature.sequence,
          signature.count,
          signature.plan,
          static_cast<std::int32_t>(signature.collective),
          static_cast<std::int32_t>(signature.type),
          static_cast<std::int32_t>(signature.op),
          rank};
}

Signature from_wire(const WireSignature& wire) {
  Signature out;
  out.sequence = wire.sequence;
  out.collective = static_cast<Collective>(wire.collective);
  out.count = wire.count;
  out.type = static_cast<DataType>(wire.type);
  out.op = static_cast<ReduceOp>(wire.op);
  out.plan = wire.plan;
  return out;
}

MpiControl::MpiControl(MPI_Comm comm, int rank, int size, const MpiTags& tags)
    : comm_(comm), rank_(rank), size_(size), tags_(tags), peers_(static_cast<std::size_t>(size)) {}

MpiControl::~MpiControl() { finish(); }

void MpiControl::finish() noexcept {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  if (discarded_ != MPI_REQUEST_NULL) {
    MPI_Cancel(&discarded_);
    aborts_.push_back(std::exchange(discarded_, MPI_REQUEST_NULL));
  }
  const auto all_done = [&] {
    std::erase_if(outgoing_, [](Outgoing& o) { return is_sent(o.requests); });
    return outgoing_.empty() && is_sent(aborts_);
  };
  while (!all_done() && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  if (outgoing_.empty() && is_sent(aborts_)) return;
  // Short messages leave at once, unless their receiver hangs: then MPI keeps them, and the memory with them.
  is_clean_ = false;
  const auto release = [](std::vector<MPI_Request>& requests) {
    for (MPI_Request& request : requests) {
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
    requests.clear();
  };
  release(aborts_);
  static_cast<void>(abort_.release());
  static_cast<void>(waste_.release());
  for (Outgoing& outgoing : outgoing_) {
    release(outgoing.requests);
    static_cast<void>(outgoing.wire.release());
  }
  outgoing_.clear();
}

bool MpiControl::is_sent(std::vector<MPI_Request>& requests) {
  int is_done = 1;
  if (requests.empty()) return true;
  return MPI_Testall(static_cast<int>(requests.size()), requests.data(), &is_done, MPI_STATUSES_IGNORE) !=
             MPI_SUCCESS ||
         is_done != 0;
}

void MpiControl::begin(const Signature& signature) {
  signature_ = signature;
  std::erase_if(outgoing_, [](Outgoing& o) { return is_sent(o.requests); });
  outgoing_.push_back({std::make_unique<WireSignature>(to_wire(signature, rank_)), {}});
}

void MpiControl::announce(int peer) {
  Peer& state = peers_[static_cast<std::size_t>(peer)];
  if (state.announced == signature_.sequence) return;
  state.announced = signature_.sequence;
  Outgoing& outgoing = outgoing_.back();
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Isend(outgoing.wire.get(), sizeof(WireSignature), MPI_BYTE, peer, tags_.signature(), comm_, &request),
            "MPI_Isend");
  outgoing.requests.push_back(request);
}

bool MpiControl::is_agreed(int peer) {
  Peer& state = peers_[static_cast<std::size_t>(peer)];
  if (state.agreed == signature_.sequence) return true;
  if (state.incoming.empty()) take_signatures();
  if (state.incoming.empty()) return false;
  const WireSignature theirs = state.incoming.front();
  if (!(from_wire(theirs) == signature_)) mismatch(theirs);
  state.incoming.pop_front();
  state.agreed = signature_.sequence;
  return true;
}

void MpiControl::mismatch(const WireSignature& theirs) const {
  throw TransportError(describe_mismatch(signature_, rank_, from_wire(theirs), theirs.rank));
}

void MpiControl::take_signatures() {
  while (true) {
    int is_there = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tags_.signature(), comm_, &is_there, &status), "MPI_Iprobe");
    if (is_there == 0) return;
    WireSignature wire;
    check_mpi(MPI_Recv(&wire, sizeof wire, MPI_BYTE, status.MPI_SOURCE, tags_.signature(), comm_, MPI_STATUS_IGNORE),
              "MPI_Recv");
    peers_[static_cast<std::size_t>(status.MPI_SOURCE)].incoming.push_back(wire);
    // A rank that runs another plan may send to ranks that do not wait for it.
    if (wire.sequence == signature_.sequence && !(from_wire(wire) == signature_)) mismatch(wire);
  }
}

/// Takes one message of a rank that gives up, if there is one.
bool MpiControl::take_abort(int source) noexcept {
  int is_there = 0;
  MPI_Status status;
  if (MPI_Iprobe(source, tags_.abort(), comm_, &is_there, &status) != MPI_SUCCESS || is_there == 0) return false;
  Abort abort;
  if (MPI_Recv(&abort, sizeof abort, MPI_BYTE, status.MPI_SOURCE, tags_.abort(), comm_, MPI_STATUS_IGNORE) !=
      MPI_SUCCESS) {
    return false;
  }
  peers_[static_cast<std::size_t>(status.MPI_SOURCE)].has_given_up = true;
  if (heard_.origin < 0) heard_ = abort;
  return true;
}

void MpiControl::check_abort() {
  take_abort(MPI_ANY_SOURCE);
  if (heard_.origin < 0) return;
  throw TransportError(fmt::format("rank {} gave up: {}", heard_.origin, heard_.text.data()));
}

/// A rank that takes the latency path for this very operation is found by its own kind of message.
void MpiControl::take_exchange() {
  int is_there = 0;
  MPI_Status status;
  const int tag = tags_.exchange(signature_.sequence, 0);
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm_, &is_there, &status), "MPI_Iprobe");
  if (is_there == 0) return;
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  std::vector<std::byte> message(std::max(static_cast<std::size_t>(bytes), sizeof(WireSignature)));
  check_mpi(MPI_Recv(message.data(), static_cast<int>(message.size()), MPI_BYTE, status.MPI_SOURCE, tag, comm_,
                     MPI_STATUS_IGNORE),
            "MPI_Recv");
  WireSignature wire;
  std::copy_n(message.data(), sizeof wire, reinterpret_cast<std::byte*>(&wire));
  mismatch(wire);
}

void MpiControl::look(bool is_exchange) {
  check_abort();
  take_signatures();
  if (!is_exchange) take_exchange();
}

// --- giving up -------------------------------------------------------------------------------------------------------

void MpiControl::send_last(const void* data, std::size_t bytes, int peer, int tag) noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm_, &request) == MPI_SUCCESS) {
    aborts_.push_back(request);
  }
}

void MpiControl::give_up(std::string_view reason) noexcept {
  if (abort_) return;
  abort_.reset(new (std::nothrow) Abort);
  if (!abort_) return;
  if (heard_.origin >= 0) {
    *abort_ = heard_;
  } else {
    abort_->origin = rank_;
    std::copy_n(reason.data(), std::min(reason.size(), abort_->text.size() - 1), abort_->text.data());
  }
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) send_last(abort_.get(), sizeof(Abort), peer, tags_.abort());
  }
}

void MpiControl::say_gone(int peer) noexcept {
  is_clean_ = false;
  send_last(nullptr, 0, peer, tags_.gone());
}

bool MpiControl::have_all_given_up() const {
  int num_up = 0;
  for (const Peer& peer : peers_) num_up += peer.has_given_up ? 0 : 1;
  return num_up <= 1;  // this rank itself
}

bool MpiControl::discard_from(int source) noexcept {
  Peer& peer = peers_[static_cast<std::size_t>(source)];
  if (peer.is_gone) return false;
  if (take_abort(source)) return true;
  int is_there = 0;
  MPI_Status status;
  // Whoever has taken back its memory has said so after all that it sent.
  if (MPI_Iprobe(source, tags_.gone(), comm_, &is_there, &status) != MPI_SUCCESS || is_there != 0) {
    peer.is_gone = true;
    is_clean_ = false;
    return false;
  }
  if (MPI_Iprobe(source, MPI_ANY_TAG, comm_, &is_there, &status) != MPI_SUCCESS || is_there == 0) return false;
  if (status.MPI_TAG == tags_.abort()) return take_abort(source);
  if (status.MPI_TAG == tags_.gone()) return false;
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  waste_.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(std::max(bytes, 1))]);
  return waste_ && MPI_Irecv(waste_.get(), bytes, MPI_BYTE, source, status.MPI_TAG, comm_, &discarded_) == MPI_SUCCESS;
}

bool MpiControl::discard() noexcept {
  if (discarded_ != MPI_REQUEST_NULL) {
    int is_done = 0;
    return MPI_Test(&discarded_, &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS;
  }
  for (int source = 0; source < size_; ++source) {
    if (source != rank_ && discard_from(source)) return true;
  }
  return false;
}

}  // namespace gar
