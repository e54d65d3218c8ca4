// Takes texts apart that ranks tell each other: lines of words, and numbers in hexadecimal digits.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace gar {

/// Takes the next word off a line.
inline std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view out = text.substr(0, end);
  text.remove_prefix(end);
  return out;
}

inline bool take_number(std::string_view& text, std::uint64_t& out) {
  const std::string_view word = take_word(text);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out, 16);
  return !word.empty() && error == std::errc() && end == word.data() + word.size();
}

inline std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view out = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return out;
}

}  // namespace gar
