#include "runtime/store/messages.hpp"

#include <cstring>

#include "gar/errors.hpp"

namespace gar {

namespace {

constexpr std::uint32_t kStoreMagic = 0x31747367U;

bool is_sound(const StoreHead& head) {
  return head.magic == kStoreMagic && head.kind >= StoreKind::kSet && head.kind <= StoreKind::kKinds &&
         head.key_bytes <= kMostKeyBytes && head.value_bytes <= kMostValueBytes;
}

}  // namespace

void write_message(std::vector<std::byte>& out, StoreKind kind, std::string_view key, std::string_view value) {
  if (key.size() > kMostKeyBytes || value.size() > kMostValueBytes) {
    throw InvalidArgument("a store takes keys of up to 512 bytes and values of up to 1 MiB");
  }
  const StoreHead head{kStoreMagic, kind, static_cast<std::uint32_t>(key.size()),
                       static_cast<std::uint32_t>(value.size())};
  for (const auto& part :
       {std::as_bytes(std::span(&head, 1)), std::as_bytes(std::span(key)), std::as_bytes(std::span(value))}) {
    out.insert(out.end(), part.begin(), part.end());
  }
}

std::optional<StoreMessage> StoreReader::next() {
  StoreHead head;
  if (bytes_.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes_.data(), sizeof head);
  if (!is_sound(head)) throw TransportError("a message that no store sends");
  const std::size_t total = sizeof head + head.key_bytes + head.value_bytes;
  if (bytes_.size() < total) return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(bytes_.data() + sizeof head);
  StoreMessage out{head.kind, std::string(text, head.key_bytes), std::string(text + head.key_bytes, head.value_bytes)};
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(total));
  return out;
}

}  // namespace gar
