#include "runtime/peers.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "gar/errors.hpp"

namespace gar {

namespace {

/// A message of this rank that a peer reads out of its memory.
struct Lent {
  std::int32_t reader = 0;
  std::int32_t reader_step = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class PeerFinder {
 public:
  PeerFinder(const PlanIndex& index, std::int64_t rank, ChunkProgram& program)
      : index_(index), rank_(static_cast<std::int32_t>(rank)), program_(program) {}

  void find() {
    std::vector<Lent> lent;
    std::map<std::int32_t, std::int32_t> seen;  // of every peer: the last step that it is known to have begun
    for (ChunkStep& step : program_.steps) {
      for (const ChunkSend& send : step.sends) {
        lent.push_back({send.peer, reader_of(step, send), send.begin, send.end});
      }
      for (const ChunkRecv& recv : step.recvs) {
        std::int32_t& last = seen.try_emplace(recv.peer, -1).first->second;
        last = std::max(last, recv.peer_step);
      }
      step.readers = readers_before(step, lent, seen);
      for (const ChunkSend& send : step.sends) step.overwrites_lent = step.overwrites_lent || is_written(step, send);
      cut(step);
    }
    std::map<std::int32_t, std::int32_t> last;
    for (const Lent& l : lent) add_reader(last, l, seen);
    for (const auto& [peer, step] : last) program_.last_readers.push_back({peer, step});
  }

 private:
  const ChunkProgram& program_of(std::int32_t peer) {
    const auto [place, is_new] = programs_.try_emplace(peer);
    if (is_new) place->second = compile_chunk(index_, peer, program_.num_blocks, program_.block_count);
    return place->second;
  }

  [[noreturn]] void complain(const ChunkStep& step, std::int32_t peer) const {
    throw PlanError("step " + std::to_string(step.number) + ": ranks " + std::to_string(rank_) + " and " +
                    std::to_string(peer) + " do not agree on a message");
  }

  /// The step in which the receiver takes this message.
  std::int32_t reader_of(const ChunkStep& step, const ChunkSend& send) {
    const ChunkProgram& other = program_of(send.peer);
    for (std::size_t s = 0; s < other.steps.size(); ++s) {
      if (other.steps[s].number != step.number) continue;
      for (const ChunkRecv& recv : other.steps[s].recvs) {
        if (recv.peer == rank_ && recv.begin == send.begin && recv.end == send.end) {
          return static_cast<std::int32_t>(s);
        }
      }
    }
    complain(step, send.peer);
  }

  /// Where the sender has this message.
  const std::vector<Part>& source_of(const ChunkStep& step, const ChunkRecv& recv) {
    const ChunkProgram& other = program_of(recv.peer);
    for (const ChunkSend& send : other.steps[static_cast<std::size_t>(recv.peer_step)].sends) {
      if (send.peer == rank_ && send.begin == recv.begin && send.end == recv.end) return send.parts;
    }
    complain(step, recv.peer);
  }

  /// A peer that has begun a later step has read the message; otherwise it has to say so.
  static void add_reader(std::map<std::int32_t, std::int32_t>& readers, const Lent& lent,
                         const std::map<std::int32_t, std::int32_t>& seen) {
    const auto known = seen.find(lent.reader);
    if (known != seen.end() && known->second > lent.reader_step) return;
    std::int32_t& step = readers.try_emplace(lent.reader, -1).first->second;
    step = std::max(step, lent.reader_step);
  }

  template <class Interval>
  static bool is_written(const ChunkStep& step, const Interval& interval) {
    return std::any_of(step.recvs.begin(), step.recvs.end(),
                       [&](const ChunkRecv& recv) { return recv.begin < interval.end && interval.begin < recv.end; });
  }

  static std::vector<PeerStep> readers_before(const ChunkStep& step, const std::vector<Lent>& lent,
                                              const std::map<std::int32_t, std::int32_t>& seen) {
    std::map<std::int32_t, std::int32_t> readers;
    for (const Lent& l : lent) {
      // Input and work space may be the same memory.
      if (is_written(step, l)) add_reader(readers, l, seen);
    }
    std::vector<PeerStep> out;
    for (const auto& [peer, reader_step] : readers) out.push_back({peer, reader_step});
    return out;
  }

  /// One message per part of the sender's memory, and reductions that take each operand out of one message.
  void cut(ChunkStep& step) {
    std::vector<ChunkRecv> recvs;
    std::vector<std::int32_t> first(step.recvs.size());  // of the messages that one was cut into
    for (std::size_t i = 0; i < step.recvs.size(); ++i) {
      const ChunkRecv& whole = step.recvs[i];
      first[i] = static_cast<std::int32_t>(recvs.size());
      ChunkRecv piece = whole;
      for (const Part& part : source_of(step, whole)) {
        piece.end = piece.begin + part.count;
        piece.source = part;
        piece.target.offset = whole.target.offset + (piece.begin - whole.begin);
        piece.target.count = part.count;
        piece.is_last_of_peer = whole.is_last_of_peer && piece.end == whole.end;
        recvs.push_back(piece);
        piece.begin = piece.end;
      }
    }
    std::vector<Reduction> reductions;
    for (const Reduction& whole : step.reductions) cut(whole, step.recvs, recvs, first, reductions);
    step.recvs = std::move(recvs);
    step.reductions = std::move(reductions);
  }

  static void cut(const Reduction& whole, const std::vector<ChunkRecv>& before, const std::vector<ChunkRecv>& recvs,
                  const std::vector<std::int32_t>& first, std::vector<Reduction>& out) {
    for (std::int64_t done = 0; done < whole.out.count;) {
      Reduction piece = whole;
      piece.out.offset += done;
      piece.out.count -= done;
      for (Operand& operand : piece.operands) {
        const auto message = static_cast<std::size_t>(operand.recv);
        const std::int64_t element = before[message].begin + operand.offset + done;
        auto i = static_cast<std::size_t>(first[message]);
        while (recvs[i].end <= element) ++i;
        operand = {static_cast<std::int32_t>(i), element - recvs[i].begin};
        piece.out.count = std::min(piece.out.count, recvs[i].end - element);
      }
      done += piece.out.count;
      out.push_back(std::move(piece));
    }
  }

  const PlanIndex& index_;
  std::int32_t rank_;
  ChunkProgram& program_;
  std::map<std::int32_t, ChunkProgram> programs_;
};

}  // namespace

void find_peer_memory(const PlanIndex& index, std::int64_t rank, ChunkProgram& program) {
  PeerFinder(index, rank, program).find();
}

}  // namespace gar
