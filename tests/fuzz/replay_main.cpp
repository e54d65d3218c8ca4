// A main() for a fuzz harness without libFuzzer: runs every file of a corpus through it, and then seeded random
// mutations of each, so that an ordinary test run covers what the fuzzer does, reproducibly.
//
//   fuzz_NAME CORPUS_DIRECTORY [MUTATIONS_PER_FILE]     or     fuzz_NAME FILE...
//
// A harness that crashes leaves the last input in the file fuzz_NAME.last.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr int kDefaultMutations = 200;

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void run(const Bytes& input, const std::string& last_input_path) {
  std::ofstream(last_input_path, std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

std::size_t below(std::size_t limit, std::mt19937_64& random) { return static_cast<std::size_t>(random() % limit); }

/// Text that readers of numbers and structure trip over.
const std::vector<std::string>& nasty_words() {
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
                                               "1000000000"};
  return kWords;
}

void replace(Bytes& bytes, std::size_t at, std::size_t length, const Bytes& by) {
  const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  const auto last = first + static_cast<std::ptrdiff_t>(length);
  const auto rest = bytes.erase(first, last);
  bytes.insert(rest, by.begin(), by.end());
}

/// One edit: flip a bit, change a byte, cut, repeat or insert a stretch, put a nasty word over a number.
void mutate(Bytes& bytes, std::mt19937_64& random) {
  const std::size_t at = below(bytes.size() + 1, random);
  const std::size_t room = bytes.size() - at;
  const std::size_t length = room == 0 ? 0 : below(std::min<std::size_t>(room, 64) + 1, random);
  switch (below(6, random)) {
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
      const auto first = std::find_if(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end(), is_digit);
      const auto last = std::find_if_not(first, bytes.end(), is_digit);
      replace(bytes, static_cast<std::size_t>(first - bytes.begin()), static_cast<std::size_t>(last - first),
              Bytes(word.begin(), word.end()));
      break;
    }
  }
}

std::vector<std::filesystem::path> corpus_files(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());  // the order of a directory is not reproducible
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " CORPUS_DIRECTORY [MUTATIONS_PER_FILE] | FILE...\n";
    return 2;
  }
  const std::string last_input_path = std::filesystem::path(argv[0]).filename().string() + ".last";
  if (!std::filesystem::is_directory(argv[1])) {
    for (int i = 1; i < argc; ++i) run(read_file(argv[i]), last_input_path);
    std::filesystem::remove(last_input_path);
    return 0;
  }
  const int mutations = argc > 2 ? std::atoi(argv[2]) : kDefaultMutations;
  const std::vector<std::filesystem::path> files = corpus_files(argv[1]);
  std::size_t runs = 0;
  for (std::size_t f = 0; f < files.size(); ++f) {
    const Bytes original = read_file(files[f]);
    run(original, last_input_path);
    std::mt19937_64 random(f + 1);
    for (int m = 0; m < mutations; ++m) {
      Bytes mutated = original;
      for (std::size_t edits = 1 + below(4, random); edits > 0; --edits) mutate(mutated, random);
      run(mutated, last_input_path);
    }
    runs += static_cast<std::size_t>(mutations) + 1;
  }
  std::filesystem::remove(last_input_path);
  std::cout << files.size() << " files, " << runs << " inputs\n";
  return files.empty() ? 1 : 0;
}
