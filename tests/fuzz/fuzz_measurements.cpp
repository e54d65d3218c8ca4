// The measurements reader on arbitrary bytes: it either throws ParseError or returns measurements that survive a round
// trip through our own writer.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

#include "fuzz/harness.hpp"
#include "gar/errors.hpp"
#include "gar/fit.hpp"
#include "gar/profile_io.hpp"

namespace {

using gar::fuzz::require;

std::string written(const gar::Measurements& measurements) {
  std::ostringstream out;
  gar::write_measurements(measurements, out);
  return out.str();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const gar::Measurements m = gar::parse_measurements(text, "fuzz.json");
    for (const gar::Observation& o : m.observations) {
      require(!o.seconds.empty() && !o.servers.empty() && o.servers.back() < m.topology.num_servers());
    }
    const std::string once = written(m);
    require(written(gar::parse_measurements(once, "back.json")) == once);
  } catch (const gar::ParseError&) {
  }
  return 0;
}
