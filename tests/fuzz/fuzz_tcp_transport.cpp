// Ranks that run wild, as a rank over TCP meets them: rank 0 of three runs exchanges and chunks of a ring, while the
// others send what the input says: sound heads with numbers near those that are expected, and bytes. Whatever comes, it
// is used or refused, and what is handed out can be read.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "fuzz/harness.hpp"
#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "runtime/transports/tcp/tcp_transport.hpp"

namespace {

using gar::fuzz::require;

constexpr int kRanks = 3;
constexpr std::int64_t kCount = 1000;
constexpr std::int64_t kBytes = kCount * 4;
constexpr int kAttempts = 6;

/// The bytes of the input, one after the other; zeros follow.
class WildInput {
 public:
  explicit WildInput(std::span<const std::byte> bytes) : left_(bytes) {}
  [[nodiscard]] bool is_empty() const { return left_.empty(); }
  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const auto out = std::to_integer<std::uint8_t>(left_.front());
    left_ = left_.subspan(1);
    return out;
  }
  void take(std::span<std::byte> out) {
    const std::size_t count = std::min(out.size(), left_.size());
    std::copy_n(left_.begin(), count, out.begin());
    left_ = left_.subspan(count);
  }

 private:
  std::span<const std::byte> left_;
};

/// The other ends of rank 0's connections.
class WildRanks {
 public:
  explicit WildRanks(WildInput& input) : input_(input) {}

  std::vector<gar::File> connect() {
    std::vector<gar::File> out(kRanks);
    for (std::size_t rank = 1; rank < kRanks; ++rank) {
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return {};
      out[rank] = gar::File(ends[0]);
      ends_[rank] = gar::File(ends[1]);
    }
    return out;
  }
  /// All of them end: rank 0 waits for nobody.
  void end() {
    for (gar::File& end : ends_) end = gar::File();
  }

  void say_something(const gar::Signature& signature, std::uint32_t serial) {
    if (input_.is_empty()) return;
    const std::uint8_t what = input_.byte();
    const std::size_t rank = 1 + what % 2;
    switch (what / 2 % 8) {
      case 0:
        return say_bytes(rank);
      case 1:
        return say_status(rank, signature);
      case 2:
        ends_[rank] = gar::File();
        return;
      default:
        return say_frame(rank, static_cast<gar::FrameKind>(what / 2 % 8 - 1), signature, serial);
    }
  }

 private:
  void send_all(std::size_t rank, std::span<const std::byte> bytes) {
    if (ends_[rank].fd >= 0) send(ends_[rank].fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  void say_bytes(std::size_t rank) {
    std::vector<std::byte> bytes(input_.byte());
    input_.take(bytes);
    send_all(rank, bytes);
  }
  /// What it has called: the same as rank 0, but for one byte perhaps.
  void say_status(std::size_t rank, gar::Signature signature) {
    signature.sequence += input_.byte() % 3;
    gar::WireSignature wire = gar::to_wire(signature, static_cast<int>(rank));
    const std::size_t at = input_.byte();
    if (at < sizeof wire) reinterpret_cast<std::uint8_t*>(&wire)[at] = input_.byte();
    say(rank, gar::make_head(gar::FrameKind::kStatus, signature.sequence, sizeof wire),
        std::as_bytes(std::span(&wire, 1)));
  }
  void say_frame(std::size_t rank, gar::FrameKind kind, const gar::Signature& signature, std::uint32_t serial) {
    const bool has_payload = kind == gar::FrameKind::kData || kind == gar::FrameKind::kExchange;
    std::size_t length = 0;
    if (has_payload) length = 4 * (1 + input_.byte() + std::size_t{256} * (input_.byte() % 8));
    if (kind == gar::FrameKind::kAbort) length = sizeof(gar::WireAbort);
    gar::FrameHead head = gar::make_head(kind, signature.sequence + input_.byte() % 3 - 1, length);
    head.serial = serial + input_.byte() % 3 - 1;
    if (kind == gar::FrameKind::kExchange) head.serial = input_.byte() % 3;
    head.step = input_.byte() % 5;
    head.index = input_.byte() % 2;
    head.offset = std::size_t{4} * input_.byte();
    std::vector<std::byte> payload(length);
    input_.take(std::span(payload).first(std::min<std::size_t>(length, input_.byte())));
    say(rank, head, payload);
  }
  void say(std::size_t rank, const gar::FrameHead& head, std::span<const std::byte> payload) {
    send_all(rank, std::as_bytes(std::span(&head, 1)));
    send_all(rank, payload);
  }

  WildInput& input_;
  std::array<gar::File, kRanks> ends_;
};

/// The address sanitizer looks.
void read_all(const std::byte* begin, std::int64_t bytes) {
  volatile std::uint8_t sum = 0;
  for (std::int64_t i = 0; i < bytes; ++i) sum = sum ^ std::to_integer<std::uint8_t>(begin[i]);
}

/// Rank 0, which does everything right.
class WildRun {
 public:
  WildRun(gar::TcpTransport& transport, WildRanks& others) : transport_(transport), others_(others) {}

  /// False: it has come to nothing.
  bool run() {
    for (std::uint64_t sequence = 1; sequence <= 6; ++sequence) {
      signature_ = {.sequence = sequence, .count = kCount};
      transport_.begin(signature_, {});
      const bool is_done = sequence % 2 == 0 ? exchange() : run_chunk(static_cast<std::uint32_t>(sequence));
      if (!is_done) return false;
    }
    return true;
  }

 private:
  template <class Condition>
  bool await(const Condition& is_there) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (is_there()) return true;
      others_.say_something(signature_, serial_);
      transport_.look();
      transport_.progressed();
    }
    return false;
  }

  bool exchange() {
    std::array<float, kCount> in{};
    std::array<const std::byte*, kRanks> operands{};
    if (!await([&] { return transport_.try_exchange(in.data(), kBytes, operands); })) return false;
    for (const std::byte* operand : operands) read_all(operand, kBytes);
    return true;
  }

  bool run_chunk(std::uint32_t serial) {
    static const gar::Plan kPlan = gar::ring(kRanks);
    static const gar::PlanIndex kIndex(kPlan);
    static const gar::ChunkProgram kProgram = gar::compile_chunk(kIndex, 0, 1, kCount);
    serial_ = serial;
    data_ = std::vector<float>(kCount);
    gar::Flight flight{.program = &kProgram,
                       .serial = serial,
                       .slot = static_cast<int>(serial % 2),
                       .input = {reinterpret_cast<std::byte*>(data_.data()), kBytes},
                       .work = {reinterpret_cast<std::byte*>(data_.data()), kBytes},
                       .element_size = sizeof(float)};
    bool is_done = await([&] { return transport_.try_open(flight); });
    for (int step = 0; is_done && step < static_cast<int>(kProgram.steps.size()); ++step) {
      const std::vector<gar::ChunkRecv>& recvs = kProgram.steps[static_cast<std::size_t>(step)].recvs;
      std::vector<const std::byte*> operands(recvs.size());
      require(transport_.try_send(flight, step));
      is_done = await([&] { return transport_.try_receive(flight, step, operands); });
      for (std::size_t i = 0; is_done && i < recvs.size(); ++i) {
        read_all(operands[i], (recvs[i].end - recvs[i].begin) * static_cast<std::int64_t>(sizeof(float)));
      }
      transport_.consumed(flight, step);
    }
    return is_done && await([&] { return transport_.try_close(flight); });
  }

  gar::TcpTransport& transport_;
  WildRanks& others_;
  gar::Signature signature_;
  std::uint32_t serial_ = 0;
  std::vector<float> data_;  ///< what has not left points to them
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  WildInput input(std::as_bytes(std::span(data, size)));
  gar::TcpTransportOptions options;
  options.timeout_s = 60;
  options.max_senders = input.byte() % 2;
  WildRanks others(input);
  std::vector<gar::File> sockets = others.connect();
  if (sockets.empty()) return 0;
  gar::TcpTransport transport(0, std::move(sockets), options);
  WildRun run(transport, others);
  try {
    if (!run.run()) throw gar::TransportError("the others say nothing more");
  } catch (const gar::TransportError& error) {
    require(std::strlen(error.what()) > 0 && std::strlen(error.what()) < 4096);
    others.end();
    transport.fail(error.what());
  }
  others.end();
  return 0;
}
