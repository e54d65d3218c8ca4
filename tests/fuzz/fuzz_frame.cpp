// What another rank of an MPI job sends besides data: a signature is refused with a TransportError or means something,
// and a message that its sender gives up is always words that fit a line, whatever the bytes are. The input stands for
// the whole message, and for what lies over the beginning of a real one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "fuzz/harness.hpp"
#include "gar/errors.hpp"
#include "runtime/transports/mpi/frame.hpp"

namespace {

using gar::fuzz::require;

constexpr int kRanks = 5;
constexpr int kSender = 3;
constexpr std::size_t kMostWords = 4096;

gar::Signature real_signature() {
  return {.sequence = 7, .count = 1000, .type = gar::DataType::kInt16, .op = gar::ReduceOp::kMax, .plan = 12};
}

void require_words(const std::string& text) {
  require(!text.empty() && text.size() < kMostWords);
  require(std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x20; }));
}

void read_signature(std::span<const std::byte> bytes) {
  try {
    const gar::Signature theirs = gar::read_signature(bytes, kSender);
    require(theirs.count >= 0 && static_cast<int>(theirs.type) < gar::kNumDataTypes);
    require_words(gar::describe_mismatch(real_signature(), 0, theirs, kSender));
    const gar::WireSignature again = gar::to_wire(theirs, kSender);
    require(std::memcmp(&again, bytes.data(), sizeof again) == 0);
  } catch (const gar::TransportError& error) {
    require_words(error.what());
  }
}

void read_abort(std::span<const std::byte> bytes) {
  const gar::WireAbort abort = gar::read_abort(bytes, kSender, kRanks);
  require(abort.origin >= 0 && abort.origin < kRanks);
  require_words(gar::describe(abort));
}

template <class T>
std::vector<std::byte> changed(const T& real, std::span<const std::byte> input) {
  std::vector<std::byte> out(sizeof real);
  std::memcpy(out.data(), &real, sizeof real);
  std::copy_n(input.begin(), std::min(input.size(), out.size()), out.begin());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span input(reinterpret_cast<const std::byte*>(data), size);
  read_signature(input);
  read_signature(changed(gar::to_wire(real_signature(), kSender), input));
  read_abort(input);
  read_abort(changed(gar::make_abort(1, "rank 1 waited 30 s for rank 4"), input));
  return 0;
}
