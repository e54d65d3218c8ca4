#include "runtime/mailbox_protocol.hpp"

#include <set>

namespace gar {

namespace {

std::uint32_t number(std::int32_t step) { return static_cast<std::uint32_t>(step) + 1; }

}  // namespace

void MailboxProtocol::send(int step, std::vector<BoxAction>& out) const {
  std::set<std::int32_t> receivers;
  for (const ChunkSend& send : step_at(step).sends) receivers.insert(send.peer);
  for (const std::int32_t peer : receivers) {
    out.push_back({{peer, Box::Kind::kPublished, rank_}, false, number(step)});
  }
}

void MailboxProtocol::receive(int step, std::vector<BoxAction>& out) const {
  const ChunkStep& s = step_at(step);
  std::set<std::int32_t> senders;
  for (const ChunkRecv& recv : s.recvs) {
    // All messages of a step have the same number in the plan, so a peer sends them in one of its steps.
    if (senders.insert(recv.peer).second) {
      out.push_back({own(Box::Kind::kPublished, recv.peer), true, number(recv.peer_step)});
    }
  }
  for (const PeerStep& reader : s.readers) {
    out.push_back({own(Box::Kind::kConsumed, reader.peer), true, number(reader.step)});
  }
}

void MailboxProtocol::consume(int step, std::vector<BoxAction>& out) const {
  std::set<std::int32_t> senders;
  for (const ChunkRecv& recv : step_at(step).recvs) {
    senders.insert(recv.peer);
    if (recv.is_last_of_peer) out.push_back({own(Box::Kind::kPublished, recv.peer), false, 0});
  }
  for (const std::int32_t peer : senders) {
    out.push_back({{peer, Box::Kind::kConsumed, rank_}, false, number(step)});
  }
}

void MailboxProtocol::close(std::vector<BoxAction>& out) const {
  for (const PeerStep& reader : program_.last_readers) {
    out.push_back({own(Box::Kind::kConsumed, reader.peer), true, number(reader.step)});
  }
  std::set<std::int32_t> receivers;
  for (const ChunkStep& step : program_.steps) {
    for (const ChunkSend& send : step.sends) receivers.insert(send.peer);
  }
  for (const std::int32_t peer : receivers) out.push_back({own(Box::Kind::kConsumed, peer), false, 0});
}

}  // namespace gar
