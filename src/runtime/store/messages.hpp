// What a store's server and its clients send each other once they know each other: a head of a fixed length, the key,
// and the value. One request at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gar {

enum class StoreKind : std::uint32_t {
  kSet = 1,     ///< answered by kDone
  kGet = 2,     ///< answered by kValue, when there is one
  kRemove = 3,  ///< answered by kDone
  kDone = 4,
  kValue = 5,
  kFull = 6,   ///< there is no room for it
  kLook = 7,   ///< answered at once, by kValue, or by kNone when there is none
  kClaim = 8,  ///< answered by kDone, or by kTaken when it is set already
  kNone = 9,
  kTaken = 10,
  kKinds = kTaken
};

struct StoreHead {
  std::uint32_t magic = 0;
  StoreKind kind = StoreKind::kDone;
  std::uint32_t key_bytes = 0;
  std::uint32_t value_bytes = 0;
};
inline constexpr std::uint32_t kMostKeyBytes = 512;
inline constexpr std::uint32_t kMostValueBytes = 1U << 20U;

struct StoreMessage {
  StoreKind kind = StoreKind::kDone;
  std::string key;
  std::string value;
};

/// Appends it.
void write_message(std::vector<std::byte>& out, StoreKind kind, std::string_view key, std::string_view value);

/// Takes messages out of bytes as they come.
class StoreReader {
 public:
  void take(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  /// The next whole message. Throws TransportError when it is none.
  std::optional<StoreMessage> next();

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace gar
