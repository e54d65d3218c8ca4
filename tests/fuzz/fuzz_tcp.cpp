// What comes over a connection of the TCP transport or a store: heads of frames, handshakes, messages of stores, and
// what ranks say about themselves, letters of survivors. Whatever the bytes are, they are refused or mean something,
// nothing is read beyond them, and nobody comes in who does not know the secret.
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/harness.hpp"
#include "gar/errors.hpp"
#include "runtime/store/messages.hpp"
#include "runtime/survival/letters.hpp"
#include "runtime/transports/tcp/announcement.hpp"
#include "runtime/transports/tcp/connection.hpp"
#include "runtime/transports/tcp/handshake.hpp"
#include "runtime/transports/tcp/launchers.hpp"

namespace {

using gar::fuzz::require;

constexpr std::size_t kMostPayload = 1 << 16;

/// Takes small payloads into memory of exactly that length, so that the address sanitizer sees more.
class Sink final : public gar::FrameSink {
 public:
  std::byte* place(int /*peer*/, const gar::FrameHead& head) override {
    require(head.length > 0 && head.length <= static_cast<std::uint64_t>(gar::kMostExchangeBytes));
    if (head.length > kMostPayload) throw gar::TransportError("too long for this harness");
    payload_.assign(head.length, std::byte{0});
    payload_.shrink_to_fit();
    return payload_.data();
  }
  void arrived(int peer, const gar::FrameHead& /*head*/) override { require(peer == 3); }

 private:
  std::vector<std::byte> payload_;
};

void read_frames(std::span<const std::byte> input) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return;
  gar::File other(ends[0]);
  gar::Connection connection(3, gar::File(ends[1]));
  Sink sink;
  try {
    // In two pieces, which the first byte divides.
    const std::size_t cut = input.empty() ? 0 : std::to_integer<std::size_t>(input[0]) % (input.size() + 1);
    for (const auto& piece : {input.first(cut), input.subspan(cut)}) {
      if (!piece.empty() && send(other.fd, piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return;
      connection.note(1);  // EPOLLIN
      connection.receive(sink);
    }
    connection.withdraw();
    connection.discard();
  } catch (const gar::TransportError&) {
  }
}

void shake_hands(std::span<const std::byte> input) {
  const gar::Digest key = gar::derive_key("a secret that nobody guesses", "fuzz");
  gar::Nonce nonce{};
  gar::Handshake answerer = gar::Handshake::answerer(key, {gar::Purpose::kPeer, 0, 1, 4}, nonce);
  gar::Handshake caller = gar::Handshake::caller(key, {gar::Purpose::kPeer, 2, 1, 4}, nonce);
  for (gar::Handshake* one : {&answerer, &caller}) {
    std::span<const std::byte> left = input;
    while (!left.empty() && one->state() == gar::Handshake::State::kGoesOn) {
      one->sent(one->output().size());
      const std::size_t bytes = std::min(one->wanted(), left.size());
      require(one->wanted() <= gar::Handshake::kMostBytes);
      if (bytes == 0) break;
      one->take(left.first(bytes));
      left = left.subspan(bytes);
    }
    require(one->state() != gar::Handshake::State::kDone);
  }
}

void read_store(std::span<const std::byte> input) {
  gar::StoreReader reader;
  try {
    reader.take(input);
    while (const auto message = reader.next()) {
      std::vector<std::byte> again;
      gar::write_message(again, message->kind, message->key, message->value);
      require(again.size() == sizeof(gar::StoreHead) + message->key.size() + message->value.size());
    }
  } catch (const gar::TransportError&) {
  }
}

void read_words(std::string_view text) {
  if (const auto table = gar::read_table(text)) {
    const auto again = gar::read_table(gar::write_table(*table));
    require(again.has_value() && again->ranks.size() == table->ranks.size());
  }
  if (const auto address = gar::read_address(text)) require(gar::read_address(gar::to_string(*address)).has_value());
  if (const auto letter = gar::read_letter(text)) require(gar::write_letter(*letter) == text);
  require(gar::first_slurm_host(text).size() <= text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span input(reinterpret_cast<const std::byte*>(data), size);
  read_frames(input);
  // The same behind a real head, and inside of one.
  gar::FrameHead head = gar::make_head(gar::FrameKind::kData, 1, std::max<std::size_t>(size, 1));
  std::vector<std::byte> framed(sizeof head + size);
  std::memcpy(framed.data(), &head, sizeof head);
  std::copy(input.begin(), input.end(), framed.begin() + sizeof head);
  read_frames(framed);
  std::copy_n(input.begin(), std::min(size, sizeof head), framed.begin() + 4);
  read_frames(framed);
  shake_hands(input);
  read_store(input);
  read_words({reinterpret_cast<const char*>(data), size});
  return 0;
}
