#include "gar/quantity.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gar/errors.hpp"

namespace gar {
namespace {

std::string message_of_count(const std::string& text) {
  try {
    parse_count("--count", text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

std::string message_of_bytes(const std::string& text) {
  try {
    parse_bytes("--size", text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(ParseCount, TakesWholeNumbersHoweverWritten) {
  EXPECT_EQ(parse_count("--count", "0"), 0);
  EXPECT_EQ(parse_count("--count", "1"), 1);
  EXPECT_EQ(parse_count("--count", "007"), 7);
  EXPECT_EQ(parse_count("--count", "1e8"), 100'000'000);
  EXPECT_EQ(parse_count("--count", "1E8"), 100'000'000);
  EXPECT_EQ(parse_count("--count", "1e+8"), 100'000'000);
  EXPECT_EQ(parse_count("--count", "3.2e7"), 32'000'000);
  EXPECT_EQ(parse_count("--count", ".5e1"), 5);
  EXPECT_EQ(parse_count("--count", "5."), 5);
  EXPECT_EQ(parse_count("--count", "1200e-2"), 12);
  EXPECT_EQ(parse_count("--count", "2.50e1"), 25);
  EXPECT_EQ(parse_count("--count", "0e999999999999"), 0);
  EXPECT_EQ(parse_count("--count", "0.000e-5"), 0);
}

TEST(ParseCount, IsExactWhereDoublesAreNot) {
  EXPECT_EQ(parse_count("--count", "9007199254740993"), 9'007'199'254'740'993);  // 2^53 + 1
  EXPECT_EQ(parse_count("--count", "0.1e1"), 1);
  EXPECT_EQ(parse_count("--count", "4611686018427387904"), std::int64_t{1} << 62);
}

TEST(ParseCount, RejectsEverythingElse) {
  for (const char* text : {"1e8x",
                           "",
                           " ",
                           "1 ",
                           " 1",
                           "-1",
                           "-0",
                           "+1",
                           "nan",
                           "NaN",
                           "inf",
                           "1e",
                           "1e+",
                           "e8",
                           ".",
                           "1.5",
                           "1e-1",
                           "1..2",
                           "1.2.3",
                           "0x10",
                           "1_000",
                           "1,000",
                           "1e8 ",
                           "4611686018427387905",
                           "9223372036854775808",
                           "1e19",
                           "1e400",
                           "1e99999999999999999999",
                           "1e-99999999999",
                           "123456789012345678901234567890",
                           "1.00000000000000000000000000000000000001",
                           "400MB",
                           "1k",
                           "one"}) {
    const std::string message = message_of_count(text);
    EXPECT_NE(message.find("--count '" + std::string(text) + "'"), std::string::npos) << text << ": " << message;
    EXPECT_NE(message.find("expected"), std::string::npos) << text << ": " << message;
  }
}

TEST(ParseCount, SaysWhatIsWrong) {
  EXPECT_NE(message_of_count("1e8x").find("'x' after the number"), std::string::npos);
  EXPECT_NE(message_of_count("1.5").find("not a whole number of elements"), std::string::npos);
  EXPECT_NE(message_of_count("-3").find("negative"), std::string::npos);
  EXPECT_NE(message_of_count("1e30").find("too large"), std::string::npos);
  EXPECT_NE(message_of_count("nan").find("not a number"), std::string::npos);
}

TEST(ParseBytes, KnowsTheUnits) {
  EXPECT_EQ(parse_bytes("--size", "400"), 400);
  EXPECT_EQ(parse_bytes("--size", "400B"), 400);
  EXPECT_EQ(parse_bytes("--size", "4kB"), 4'000);
  EXPECT_EQ(parse_bytes("--size", "4KB"), 4'000);
  EXPECT_EQ(parse_bytes("--size", "400MB"), 400'000'000);
  EXPECT_EQ(parse_bytes("--size", "2GB"), 2'000'000'000);
  EXPECT_EQ(parse_bytes("--size", "1TB"), 1'000'000'000'000);
  EXPECT_EQ(parse_bytes("--size", "4KiB"), 4'096);
  EXPECT_EQ(parse_bytes("--size", "256MiB"), 268'435'456);
  EXPECT_EQ(parse_bytes("--size", "1.5GiB"), 1'610'612'736);
  EXPECT_EQ(parse_bytes("--size", "1TiB"), std::int64_t{1} << 40);
  EXPECT_EQ(parse_bytes("--size", "0.5KiB"), 512);
  EXPECT_EQ(parse_bytes("--size", "1e3MB"), 1'000'000'000);
  EXPECT_EQ(parse_bytes("--size", "4194304TiB"), kMaxVectorBytes);
}

TEST(ParseBytes, KnowsTheUnitsOfNcclTests) {
  EXPECT_EQ(parse_bytes("-b", "4K"), 4'096);
  EXPECT_EQ(parse_bytes("-b", "4k"), 4'096);
  EXPECT_EQ(parse_bytes("-e", "128M"), 134'217'728);
  EXPECT_EQ(parse_bytes("-e", "8G"), std::int64_t{8} << 30);
  EXPECT_EQ(parse_bytes("-e", "1T"), std::int64_t{1} << 40);
  EXPECT_EQ(parse_count("--count", "1M"), 1'048'576);
}

TEST(ParseLists, TakeSizesAndRanges) {
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(parse_bytes_list("--size", "1MB"), Sizes{1'000'000});
  EXPECT_EQ(parse_bytes_list("--size", "1kB,1K,0"), (Sizes{1000, 1024, 0}));
  EXPECT_EQ(parse_bytes_list("--size", "1kB..20kB"), (Sizes{1000, 4000, 16000}));
  EXPECT_EQ(parse_bytes_list("--size", "1kB..100kB", 10), (Sizes{1000, 10'000, 100'000}));
  EXPECT_EQ(parse_bytes_list("--size", "7,1..3,9", 2), (Sizes{7, 1, 2, 9}));
  EXPECT_EQ(parse_count_list("--count", "5..5"), Sizes{5});
  EXPECT_EQ(parse_count_list("--count", "1..4611686018427387904", 2).size(), 63U);
  for (const char* text : {"", ",", "1,", "1..", "..1", "2..1", "0..4", "1..2..3", "1...2", "1MB..x"}) {
    EXPECT_THROW((void)parse_bytes_list("--size", text), UsageError) << text;
  }
  std::string many = "1..1000000000000";
  for (int i = 0; i < 500; ++i) many += ",1..1000000000000";
  EXPECT_THROW((void)parse_bytes_list("--size", many, 2), UsageError);
  EXPECT_EQ(parse_size_factor("-f", "2"), 2);
  for (const char* text : {"", "1", "0", "1000001", "2.5", "1K", "-2", "99999999999999999999"}) {
    EXPECT_THROW((void)parse_size_factor("-f", text), UsageError) << text;
  }
}

TEST(ParseDtype, KnowsTheNamesOfC) {
  EXPECT_EQ(parse_dtype("-d", "half"), DataType::kFloat16);
  EXPECT_EQ(parse_dtype("-d", "float"), DataType::kFloat32);
  EXPECT_EQ(parse_dtype("-d", "double"), DataType::kFloat64);
}

TEST(ParseBytes, RejectsEverythingElse) {
  for (const char* text : {"", "MB", "400mb", "400Mi", "4 KB", "4KBB", "1e8x", "-4KB", "0.1KiB", "0.5B", "nanMB",
                           "4194305TiB", "1e18GB", "infGB", "4KiB "}) {
    const std::string message = message_of_bytes(text);
    EXPECT_NE(message.find("--size '" + std::string(text) + "'"), std::string::npos) << text << ": " << message;
    EXPECT_NE(message.find("KiB"), std::string::npos) << text << ": " << message;
  }
}

TEST(ParseDtype, KnowsAllArithmeticTypes) {
  EXPECT_EQ(size_of(parse_dtype("--dtype", "float32")), 4);
  EXPECT_EQ(size_of(parse_dtype("--dtype", "float64")), 8);
  EXPECT_EQ(size_of(parse_dtype("--dtype", "float16")), 2);
  EXPECT_EQ(size_of(parse_dtype("--dtype", "bfloat16")), 2);
  for (const std::string sign : {"", "u"}) {
    for (const int bits : {8, 16, 32, 64}) {
      EXPECT_EQ(size_of(parse_dtype("--dtype", sign + "int" + std::to_string(bits))), bits / 8);
    }
  }
  EXPECT_THROW(parse_dtype("--dtype", "float31"), UsageError);
  EXPECT_THROW(parse_dtype("--dtype", ""), UsageError);
}

TEST(VectorSize, CountAndBytesAgree) {
  const DataType float32 = parse_dtype("--dtype", "float32");
  const VectorSize of_count = vector_size_of_count("--count", "1e8", float32);
  const VectorSize of_bytes = vector_size_of_bytes("--size", "400MB", float32);
  EXPECT_EQ(of_count.bytes, 400'000'000);
  EXPECT_EQ(of_bytes.count, 100'000'000);
  EXPECT_DOUBLE_EQ(of_count.floats(), 1e8);
  EXPECT_DOUBLE_EQ(vector_size_of_count("--count", "1e8", parse_dtype("--dtype", "float16")).floats(), 5e7);
}

TEST(VectorSize, RejectsPartsOfElementsAndTooManyBytes) {
  const DataType float64 = parse_dtype("--dtype", "float64");
  EXPECT_THROW(vector_size_of_bytes("--size", "12B", float64), UsageError);
  EXPECT_EQ(vector_size_of_count("--count", "576460752303423488", float64).bytes, kMaxVectorBytes);  // 2^59
  EXPECT_THROW(vector_size_of_count("--count", "576460752303423489", float64), UsageError);
}

TEST(ShareOf, NumbersAndPercentages) {
  EXPECT_EQ(share_of("0.05"), 0.05);
  EXPECT_EQ(share_of("5%"), 0.05);
  EXPECT_EQ(share_of("1e-3"), 1e-3);
  EXPECT_EQ(share_of("-1%"), -0.01);  // who asks says what is accepted
  for (const char* text : {"", "%", "5%%", "x", "+1", "0x1", "inf", "nan", "1e999", "5 %", "1-"}) {
    EXPECT_FALSE(share_of(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace gar
