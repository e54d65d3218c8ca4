// AllReduce after AllReduce, until it fails. Writes DIRECTORY/rank-R.running after the first, and
// DIRECTORY/rank-R.failed with the error when it comes.
#pragma once

#include <cstdio>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gar/communicator.hpp"

namespace gar::test {

inline void run_endlessly(const std::string& directory, int rank, const std::function<Communicator()>& make) {
  const auto note = [&](const std::string& what, const std::string& text) {
    const std::string name = directory + "/rank-" + std::to_string(rank) + "." + what;
    std::ofstream(name + ".part") << text << '\n';
    std::rename((name + ".part").c_str(), name.c_str());
  };
  try {
    Communicator communicator = make();
    std::vector<float> values(100'000);
    for (int i = 0; i < 10'000; ++i) {
      communicator.all_reduce(std::span(values));
      if (i == 0) note("running", "");
    }
    note("failed", "never failed");
  } catch (const TransportError& error) {
    note("failed", error.what());
  }
}

}  // namespace gar::test
