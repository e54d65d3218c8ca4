// Seeded random mutations of files, as bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace gar::fuzz {

using Bytes = std::vector<std::uint8_t>;

inline Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::size_t below(std::size_t limit, std::mt19937_64& random) {
  return static_cast<std::size_t>(random() % limit);
}

/// Text that readers of numbers and structure trip over.
inline const std::vector<std::string>& nasty_words() {
  static const std::vector<std::string> kWords{"-1",
                                               "0",
                                               "1e400",
                                               "-0.0",
                                               "NaN",
                                               "null",
                                               "true",
                                               "[]",
                                               "{}",
                                               "\"\"",
                                               "9223372036854775808",
                                               "1e-400",
                                               "\\u0000",
                                               "[[[[[[[[",
                                               ",",
                                               ":",
                                               "}",
                                               "]",
                                               "18446744073709551615",
                                               "0.5",
                                               "\"\xff\"",
                                               "1000000000",
                                               "1e308",
                                               "1e300",
                                               "1e30",
                                               "1e18",
                                               "1e9",
                                               "1000000",
                                               "1e-9",
                                               "1e-30",
                                               "1e-300",
                                               "5e-324",
                                               "100000000",
                                               "\"\x1b[2J\"",
                                               "\"\\u001b]0;x\\u0007\""};
  return kWords;
}

inline void replace(Bytes& bytes, std::size_t at, std::size_t length, const Bytes& by) {
  const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  const auto last = first + static_cast<std::ptrdiff_t>(length);
  const auto rest = bytes.erase(first, last);
  bytes.insert(rest, by.begin(), by.end());
}

/// One edit: flip a bit, change a byte, cut, repeat or insert a stretch, put a nasty word over a number.
inline void mutate(Bytes& bytes, std::mt19937_64& random) {
  const std::size_t at = below(bytes.size() + 1, random);
  const std::size_t room = bytes.size() - at;
  const std::size_t length = room == 0 ? 0 : below(std::min<std::size_t>(room, 64) + 1, random);
  switch (below(8, random)) {  // numbers most of all
    case 0:
      if (room > 0) bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ (1U << below(8, random)));
      break;
    case 1:
      if (room > 0) bytes[at] = static_cast<std::uint8_t>(random());
      break;
    case 2:
      replace(bytes, at, length, {});
      break;
    case 3: {
      const Bytes stretch(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                          bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
      replace(bytes, below(bytes.size() + 1, random), 0, stretch);
      break;
    }
    case 4:
      bytes.resize(at);
      break;
    default: {
      const std::string& word = nasty_words()[below(nasty_words().size(), random)];
      const auto is_digit = [](std::uint8_t c) { return c >= '0' && c <= '9'; };
      const auto is_of_number = [&](std::uint8_t c) {
        return is_digit(c) || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-';
      };
      const auto first = std::find_if(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end(), is_digit);
      const auto last = std::find_if_not(first, bytes.end(), is_of_number);
      replace(bytes, static_cast<std::size_t>(first - bytes.begin()), static_cast<std::size_t>(last - first),
              Bytes(word.begin(), word.end()));
      break;
    }
  }
}

inline std::vector<std::filesystem::path> corpus_files(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());  // the order of a directory is not reproducible
  return files;
}

}  // namespace gar::fuzz
