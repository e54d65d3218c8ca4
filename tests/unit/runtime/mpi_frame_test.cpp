// What ranks of an MPI job send each other besides data, also when one of them runs wild.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gar/errors.hpp"
#include "runtime/transports/mpi/frame.hpp"

namespace gar {
namespace {

template <class T>
std::vector<std::byte> bytes_of(const T& frame) {
  std::vector<std::byte> out(sizeof frame);
  std::memcpy(out.data(), &frame, sizeof frame);
  return out;
}

Signature signature() {
  return {.sequence = 9,
          .collective = Collective::kReduceScatter,
          .count = 77,
          .type = DataType::kBfloat16,
          .op = ReduceOp::kMin,
          .plan = 5};
}

std::string refusal(std::span<const std::byte> bytes, int sender) {
  try {
    read_signature(bytes, sender);
    return "";
  } catch (const TransportError& error) {
    return error.what();
  }
}

TEST(MpiFrame, SignaturesArriveAsTheyWere) {
  EXPECT_EQ(read_signature(bytes_of(to_wire(signature(), 4)), 4), signature());
}

TEST(MpiFrame, SignaturesOfAnotherLengthAreRefused) {
  const std::vector<std::byte> whole = bytes_of(to_wire(signature(), 4));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    // Memory of exactly that length, so that the address sanitizer sees what is read beyond.
    const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(refusal(part, 4), "rank 4 has sent a message that no rank sends") << length;
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_NE(refusal(longer, 4), "");
}

TEST(MpiFrame, SignaturesWithoutAMeaningAreRefused) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  const std::vector<std::function<void(WireSignature&, std::int32_t)>> fields{
      [](WireSignature& wire, std::int32_t value) { wire.collective = value; },
      [](WireSignature& wire, std::int32_t value) { wire.type = value; },
      [](WireSignature& wire, std::int32_t value) { wire.op = value; },
      [](WireSignature& wire, std::int32_t value) { wire.rank = value; }};
  for (std::size_t field = 0; field < fields.size(); ++field) {
    for (const std::int32_t value : {-1, 12, 255, 256, kMost, kLeast}) {
      WireSignature wire = to_wire(signature(), 4);
      fields[field](wire, value);
      EXPECT_NE(refusal(bytes_of(wire), 4), "") << field << " " << value;
    }
  }
  WireSignature wire = to_wire(signature(), 4);
  wire.count = -1;
  EXPECT_NE(refusal(bytes_of(wire), 4), "");
  EXPECT_NE(refusal(bytes_of(to_wire(signature(), 4)), 3), "") << "a rank that pretends to be another";
}

TEST(MpiFrame, ReasonsArriveAsTheyWere) {
  const WireAbort abort = read_abort(bytes_of(make_abort(2, "rank 2 waited for rank 0")), 3, 5);
  EXPECT_EQ(describe(abort), "rank 2 gave up: rank 2 waited for rank 0");
  // Too long: its beginning.
  const WireAbort cut = read_abort(bytes_of(make_abort(2, std::string(10'000, 'x'))), 3, 5);
  EXPECT_EQ(describe(cut), "rank 2 gave up: " + std::string(507, 'x'));
}

TEST(MpiFrame, ReasonsWithoutAnEndEnd) {
  auto abort = std::make_unique<WireAbort>();
  abort->origin = 1;
  abort->text.fill('y');
  EXPECT_EQ(describe(*abort), "rank 1 gave up: " + std::string(508, 'y'));
  EXPECT_EQ(describe(read_abort(bytes_of(*abort), 3, 5)), "rank 1 gave up: " + std::string(507, 'y'));
}

TEST(MpiFrame, ReasonsMakeNoLinesOfTheirOwn) {
  const WireAbort abort = read_abort(bytes_of(make_abort(2, "a\n\x1b[31mb")), 3, 5);
  EXPECT_EQ(describe(abort), "rank 2 gave up: a\\x0a\\x1b[31mb");
}

TEST(MpiFrame, WhoSaysNothingOfUseHasStillGivenUp) {
  const std::string expected = "rank 3 gave up, and did not say why";
  EXPECT_EQ(describe(read_abort({}, 3, 5)), expected);
  const std::vector<std::byte> whole = bytes_of(make_abort(2, "a reason"));
  EXPECT_EQ(describe(read_abort(std::span(whole).first(whole.size() - 1), 3, 5)), expected);
  for (const int origin : {-1, 5, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    EXPECT_EQ(describe(read_abort(bytes_of(make_abort(origin, "a reason")), 3, 5)), expected) << origin;
  }
}

}  // namespace
}  // namespace gar
