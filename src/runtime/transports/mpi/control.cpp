#include "runtime/transports/mpi/control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <span>
#include <thread>
#include <utility>

namespace gar {

namespace {

/// Bytes of a message that a probe has found; -1: more than MPI can say.
int length_of(const MPI_Status& probed) noexcept {
  int out = 0;
  return MPI_Get_count(&probed, MPI_BYTE, &out) == MPI_SUCCESS && out >= 0 ? out : -1;
}

}  // namespace

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
  const auto take_in = [&] {
    try {
      take_signatures();
    } catch (const std::exception&) {  // nobody is left to hear of it
      return;
    }
  };
  take_in();
  while (!all_done() && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    take_in();
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
  before_[signature.sequence % kRemembered] = signature;
  if (!outgoing_.empty()) std::erase_if(outgoing_, [](Outgoing& o) { return is_sent(o.requests); });
  // What a rank has been told without waiting for it.
  constexpr std::uint64_t kBetweenLooks = 16;
  if (signature.sequence % kBetweenLooks == 0) take_signatures();
}

void MpiControl::announce(int peer) { send_signature(peer, true); }

void MpiControl::tell(int peer) { send_signature(peer, false); }

void MpiControl::send_signature(int peer, bool is_awaited) {
  Peer& state = peers_[static_cast<std::size_t>(peer)];
  if (state.announced == signature_.sequence) return;
  state.announced = signature_.sequence;
  if (outgoing_.empty() || outgoing_.back().wire->sequence != signature_.sequence) {
    outgoing_.push_back({std::make_unique<WireSignature>(to_wire(signature_, rank_)), {}});
  }
  Outgoing& outgoing = outgoing_.back();
  MPI_Request request = MPI_REQUEST_NULL;
  // What the peer need not take counts as sent when it has: what is left in a communicator would turn up in another.
  const auto send = is_awaited ? &MPI_Isend : &MPI_Issend;
  check_mpi(send(outgoing.wire.get(), sizeof(WireSignature), MPI_BYTE, peer, tags_.signature(), comm_, &request),
            "MPI_Isend");
  outgoing.requests.push_back(request);
}

void MpiControl::settle_old(Peer& peer, int rank) {
  while (!peer.incoming.empty() && peer.incoming.front().sequence < signature_.sequence) {
    const Signature theirs = peer.incoming.front();
    peer.incoming.pop_front();
    const Signature& ours = before_[theirs.sequence % kRemembered];
    if (ours.sequence == theirs.sequence && ours != theirs) {
      throw TransportError(describe_mismatch(ours, rank_, theirs, rank));
    }
  }
}

bool MpiControl::is_agreed(int peer) {
  Peer& state = peers_[static_cast<std::size_t>(peer)];
  if (state.agreed == signature_.sequence) return true;
  settle_old(state, peer);
  if (state.incoming.empty()) take_signatures();
  if (state.incoming.empty()) return false;
  const Signature theirs = state.incoming.front();
  if (theirs != signature_) mismatch(theirs, peer);
  state.incoming.pop_front();
  state.agreed = signature_.sequence;
  return true;
}

void MpiControl::mismatch(const Signature& theirs, int their_rank) const {
  throw TransportError(describe_mismatch(signature_, rank_, theirs, their_rank));
}

/// The message that a probe has found, however long it is: one that does not fit would be an error of MPI's.
std::vector<std::byte> MpiControl::receive(MPI_Status& probed) const {
  const int bytes = length_of(probed);
  if (bytes < 0) throw TransportError(fmt::format("rank {} has sent a message without end", probed.MPI_SOURCE));
  std::vector<std::byte> out(static_cast<std::size_t>(bytes));
  check_mpi(MPI_Recv(out.data(), bytes, MPI_BYTE, probed.MPI_SOURCE, probed.MPI_TAG, comm_, MPI_STATUS_IGNORE),
            "MPI_Recv");
  return out;
}

void MpiControl::take_signatures() {
  while (true) {
    int is_there = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tags_.signature(), comm_, &is_there, &status), "MPI_Iprobe");
    if (is_there == 0) return;
    const Signature theirs = read_signature(receive(status), status.MPI_SOURCE);
    Peer& peer = peers_[static_cast<std::size_t>(status.MPI_SOURCE)];
    peer.incoming.push_back(theirs);
    settle_old(peer, status.MPI_SOURCE);
    // A rank that runs another plan may send to ranks that do not wait for it.
    if (theirs.sequence == signature_.sequence && theirs != signature_) mismatch(theirs, status.MPI_SOURCE);
  }
}

/// Takes one message of a rank that gives up, if there is one.
bool MpiControl::take_abort(int source) noexcept {
  int is_there = 0;
  MPI_Status status;
  if (MPI_Iprobe(source, tags_.abort(), comm_, &is_there, &status) != MPI_SUCCESS || is_there == 0) return false;
  const int bytes = length_of(status);
  if (bytes < 0) return false;
  const std::unique_ptr<std::byte[]> message(new (std::nothrow) std::byte[static_cast<std::size_t>(bytes)]);
  if (!message || MPI_Recv(message.get(), bytes, MPI_BYTE, status.MPI_SOURCE, tags_.abort(), comm_,
                           MPI_STATUS_IGNORE) != MPI_SUCCESS) {
    return false;
  }
  peers_[static_cast<std::size_t>(status.MPI_SOURCE)].has_given_up = true;
  const std::span<const std::byte> received(message.get(), static_cast<std::size_t>(bytes));
  if (heard_.origin < 0) heard_ = read_abort(received, status.MPI_SOURCE, size_);
  return true;
}

void MpiControl::check_abort() {
  take_abort(MPI_ANY_SOURCE);
  if (heard_.origin < 0) return;
  throw TransportError(describe(heard_));
}

/// A rank that gathers in this very operation is found by its own kind of message.
void MpiControl::take_exchange() {
  int is_there = 0;
  MPI_Status status;
  const int tag = tags_.exchange(signature_.sequence, 0);
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm_, &is_there, &status), "MPI_Iprobe");
  if (is_there == 0) return;
  const std::vector<std::byte> message = receive(status);
  // The sender's own block comes first, and begins with its signature.
  const auto head = std::span(message).first(std::min(message.size(), sizeof(WireSignature)));
  mismatch(read_signature(head, status.MPI_SOURCE), status.MPI_SOURCE);
}

void MpiControl::look(bool is_exchange) {
  check_abort();
  take_signatures();
  // What came while the operation before was under way.
  for (int peer = 0; peer < size_; ++peer) {
    const auto& incoming = peers_[static_cast<std::size_t>(peer)].incoming;
    if (incoming.empty() || incoming.front().sequence != signature_.sequence) continue;
    if (incoming.front() != signature_) mismatch(incoming.front(), peer);
  }
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
  abort_.reset(new (std::nothrow) WireAbort(heard_.origin >= 0 ? heard_ : make_abort(rank_, reason)));
  if (!abort_) return;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) send_last(abort_.get(), sizeof(WireAbort), peer, tags_.abort());
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
  const int bytes = length_of(status);
  if (bytes < 0) return false;
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
