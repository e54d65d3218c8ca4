// What the machine and other programs say: the kernel's counters, an MPI library's version, a launcher's variables (in
// lines NAME=VALUE). Nothing is refused; what is not understood is not there.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>

#include "fuzz/harness.hpp"
#include "gar/measure/launch.hpp"
#include "gar/mpi_library.hpp"
#include "measure/fit/counters.hpp"

namespace {

using gar::fuzz::require;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const double count = gar::measure::parse_retransmits(text);
  require(std::isfinite(count) && (count == -1 || count >= 0));
  (void)gar::measure::is_pause_counter(text);
  (void)gar::mpi_library_of(text);
  require(gar::mpi_library_name(text).find('\n') == std::string::npos);

  std::map<std::string, std::string> variables;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t sign = line.find('=');
    if (sign != std::string::npos) variables[line.substr(0, sign)] = line.substr(sign + 1);
  }
  (void)gar::measure::mpi_job([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
  return 0;
}
