// The stream that protects readers: it changes nothing, and ends with an error where a text would take too much memory.
#include "io/guarded_stream.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <sstream>
#include <streambuf>
#include <string>

#include "gar/errors.hpp"

namespace gar {
namespace {

constexpr std::int64_t kPlenty = std::int64_t{1} << 30;
constexpr std::size_t kMaxString = std::size_t{1} << 20;
constexpr std::size_t kLongestNumber = 1024;

/// What comes through, or the error.
std::string passed(const std::string& text, std::int64_t max_bytes = kPlenty) {
  std::stringbuf from(text);
  GuardedBuffer guarded(from, "f.json", max_bytes);
  try {
    return {std::istreambuf_iterator<char>(&guarded), std::istreambuf_iterator<char>()};
  } catch (const ParseError& error) {
    return error.what();
  }
}

void expect_refused(const std::string& text, const std::string& what, std::int64_t max_bytes = kPlenty) {
  const std::string error = passed(text, max_bytes);
  EXPECT_EQ(error.find("f.json: "), 0U) << error.substr(0, 100);
  EXPECT_NE(error.find(what), std::string::npos) << error.substr(0, 100);
}

std::string repeated(std::size_t times, const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(GuardedStream, PassesOnWhatItIsGiven) {
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("a\0b\xff\n", 5), repeated(100'000, R"({"a": [1, "x\"y"]} )"),
        std::string(65'536, ' '), std::string(65'537, ' ')}) {
    EXPECT_TRUE(passed(text) == text) << text.size();
  }
}

TEST(GuardedStream, BoundsTheWhole) {
  const std::string text = repeated(50'000, "[1]");
  EXPECT_TRUE(passed(text, 150'000) == text);
  expect_refused(text, "149999", 149'999);
  expect_refused("12", "1", 1);
}

TEST(GuardedStream, BoundsStrings) {
  const auto quoted = [](std::size_t length) { return "[\"" + std::string(length, 'x') + "\"]"; };
  EXPECT_TRUE(passed(quoted(kMaxString)) == quoted(kMaxString));
  expect_refused(quoted(kMaxString + 1), "string");
  // Every string for itself; separators inside count.
  const std::string many = repeated(3, quoted(kMaxString - 1));
  EXPECT_TRUE(passed(many) == many);
  expect_refused("\"" + repeated(kMaxString, ", "), "string");
}

// An escaped quote does not end a string, an escaped backslash before a quote does.
TEST(GuardedStream, KnowsEscapes) {
  expect_refused("\"" + repeated(kMaxString, "\\\""), "string");
  const std::string short_strings = repeated(kMaxString, R"("\\",)");
  EXPECT_TRUE(passed(short_strings) == short_strings);
}

TEST(GuardedStream, BoundsNumbersAndWords) {
  const std::string longest = "[" + std::string(kLongestNumber, '1') + "]";
  EXPECT_TRUE(passed(longest) == longest);
  expect_refused("[" + std::string(kLongestNumber + 1, '1') + "]", "number or word");
  const std::string many = repeated(5000, "12345,");
  EXPECT_TRUE(passed(many) == many);
  for (const char separator : {',', ':', '[', ']', '{', '}', ' ', '\n', '\t', '\r'}) {
    const std::string two = std::string(kLongestNumber, 'n') + separator + std::string(kLongestNumber, 'n');
    EXPECT_TRUE(passed(two) == two) << separator;
  }
}

// A string or number is bounded across the borders of the pieces in which the text is read (65,536 bytes).
TEST(GuardedStream, BoundsAcrossPieces) {
  for (const std::size_t before : {65'000U, 65'535U, 65'536U, 130'000U}) {
    expect_refused(std::string(before, ' ') + std::string(kLongestNumber + 1, '7'), "number or word");
    const std::string good = std::string(before, ' ') + std::string(kLongestNumber, '7');
    EXPECT_TRUE(passed(good) == good) << before;
  }
}

}  // namespace
}  // namespace gar
