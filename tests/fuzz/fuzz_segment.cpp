// The words that ranks share: rank 0 runs operations while the input lies over the header and over what the other ranks
// show. Whatever they say, rank 0 gets addresses inside of the segment or an error in words.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/harness.hpp"
#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/plan.hpp"
#include "runtime/program.hpp"
#include "runtime/transports/shared/segment.hpp"
#include "runtime/transports/shared/shared_transport.hpp"

namespace {

using gar::fuzz::require;

constexpr int kRanks = 3;
constexpr std::int64_t kCount = 24;  // floats
constexpr std::int64_t kBytes = kCount * static_cast<std::int64_t>(sizeof(float));

gar::SegmentShape shape() {
  return {.num_ranks = kRanks, .num_slots = 2, .staging_bytes = 1024, .exchange_bytes = 1024};
}

/// Reads the input from its beginning to its end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::size_t take(void* to, std::size_t bytes) {
    const std::size_t count = std::min(bytes, size_);
    std::memcpy(to, data_, count);
    data_ += count;
    size_ -= count;
    return count;
  }
  std::uint8_t byte() {
    std::uint8_t out = 0;
    take(&out, 1);
    return out;
  }
  [[nodiscard]] bool is_empty() const { return size_ == 0; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

/// Edits of the header (0) or the block of a rank: whose, at which word, how many words, and the words.
void scribble(const gar::Segment& segment, Input& input) {
  for (int edits = input.byte() % 8; edits > 0 && !input.is_empty(); --edits) {
    const int whose = input.byte() % (kRanks + 1);
    auto* words = reinterpret_cast<std::byte*>(whose == 0 ? static_cast<void*>(&segment.header())
                                                          : static_cast<void*>(&segment.block(whose - 1)));
    const std::size_t bytes = whose == 0 ? sizeof(gar::SegmentHeader) : sizeof(gar::RankBlock);
    const std::size_t at = (input.byte() + std::size_t{256} * input.byte()) * 4 % bytes;
    input.take(words + at, std::min<std::size_t>(bytes - at, 4 * (1 + input.byte() % 8)));
  }
}

/// Are these addresses of the segment, with room for what is read there?
void require_inside(const gar::Segment& segment, const std::byte* begin, std::int64_t bytes) {
  const auto* base = reinterpret_cast<const std::byte*>(&segment.header());
  require(begin >= base && begin + bytes <= base + gar::Segment::total_bytes(segment.shape()));
}

void exchange(gar::SharedTransport& transport, const gar::Segment& segment, Input& input) {
  std::array<float, kCount> in{};
  std::array<const std::byte*, kRanks> operands{};
  for (int attempt = 0; attempt < 4; ++attempt) {
    scribble(segment, input);
    if (transport.try_exchange(in.data(), kBytes, operands)) {
      for (const std::byte* operand : operands) require_inside(segment, operand, kBytes);
      return;
    }
    transport.check_peers();
  }
}

void run_chunk(gar::SharedTransport& transport, const gar::Segment& segment, Input& input, std::uint32_t serial) {
  static const gar::Plan kPlan = gar::ring(kRanks);
  static const gar::PlanIndex kIndex(kPlan);
  static const gar::ChunkProgram kProgram = gar::compile_chunk(kIndex, 0, 1, kCount);
  std::array<float, kCount> data{};
  gar::Flight flight{.program = &kProgram,
                     .serial = serial,
                     .slot = static_cast<int>(serial % 2),
                     .input = {reinterpret_cast<std::byte*>(data.data()), kBytes},
                     .work = {reinterpret_cast<std::byte*>(data.data()), kBytes},
                     .element_size = sizeof(float)};
  const auto await = [&](const auto& is_there) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      if (is_there()) return true;
      transport.check_peers();
      scribble(segment, input);
    }
    return false;
  };
  if (!await([&] { return transport.try_open(flight); })) return;
  for (int step = 0; step < static_cast<int>(kProgram.steps.size()); ++step) {
    const std::vector<gar::ChunkRecv>& recvs = kProgram.steps[static_cast<std::size_t>(step)].recvs;
    std::vector<const std::byte*> operands(recvs.size());
    scribble(segment, input);
    require(transport.try_send(flight, step));
    if (!await([&] { return transport.try_receive(flight, step, operands); })) return;
    for (std::size_t i = 0; i < recvs.size(); ++i) {
      const std::int64_t count = recvs[i].end - recvs[i].begin;
      require_inside(segment, operands[i], count * static_cast<std::int64_t>(sizeof(float)));
    }
    transport.consumed(flight, step);
    transport.progressed();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::shared_ptr<gar::Segment> segment = gar::make_private_segment(shape());
  gar::SharedTransport transport(segment, {.rank = 0, .size = kRanks, .members = {}}, /*timeout_s=*/60);
  try {
    for (std::uint64_t sequence = 1; sequence <= 6; ++sequence) {
      transport.begin({.sequence = sequence, .count = kCount}, {});
      if (sequence % 2 == 0) {
        exchange(transport, *segment, input);
      } else {
        run_chunk(transport, *segment, input, static_cast<std::uint32_t>(sequence));
      }
    }
  } catch (const gar::TransportError& error) {
    require(std::strlen(error.what()) > 0 && std::strlen(error.what()) < 4096);
  }
  return 0;
}
