// A main() for a fuzz harness without libFuzzer: runs every file of a corpus through it, and then seeded random
// mutations of each, so that an ordinary test run covers what the fuzzer does, reproducibly.
//
//   fuzz_NAME CORPUS_DIRECTORY [MUTATIONS_PER_FILE]     or     fuzz_NAME FILE...
//
// GAR_TEST_SEED=N in the environment gives other mutations. A harness that crashes leaves the last input in the file
// fuzz_NAME.last.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "fuzz/mutations.hpp"
#include "support/seed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using namespace gar::fuzz;  // NOLINT(google-build-using-namespace)

constexpr int kDefaultMutations = 200;

void run(const Bytes& input, const std::string& last_input_path) {
  std::ofstream(last_input_path, std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
  LLVMFuzzerTestOneInput(input.data(), input.size());
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
    std::mt19937_64 random(gar::test::seed(f + 1));
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
