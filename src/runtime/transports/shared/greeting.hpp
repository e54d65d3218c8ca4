// What rank 0 tells every process that comes to its meeting place, and the check on the other side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/transports/shared/segment.hpp"

namespace gar {

class Greeting {
 public:
  Greeting() = default;
  /// With a failure there is no memory, and the text says why.
  Greeting(std::string_view name, const SegmentShape& shape, std::string_view failure = {});

  /// What came out of a meeting place: these bytes, and a descriptor or -1. Nothing when they are for a communicator of
  /// another name. Throws TransportError with rank 0's failure, and when the bytes are not those of a greeting or do
  /// not fit the memory.
  static std::optional<Greeting> read(std::string_view bytes, int fd, std::string_view name);

  [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_bytes(std::span(&fields_, 1)); }
  [[nodiscard]] const SegmentShape& shape() const { return fields_.shape; }

 private:
  struct Fields {
    std::uint64_t magic = 0;
    SegmentShape shape;
    std::int64_t total_bytes = 0;
    std::array<char, 128> name{};
    std::array<char, 1024> failure{};
  };
  Fields fields_;
};

}  // namespace gar
