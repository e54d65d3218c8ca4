// The profile reader on arbitrary bytes: it either throws ParseError or returns a profile that survives a round trip
// through our own writer, and that can be laid over a tree and compared with itself.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

#include "fuzz/harness.hpp"
#include "gar/errors.hpp"
#include "gar/profile.hpp"
#include "gar/profile_io.hpp"

namespace {

using gar::fuzz::require;

std::string written(const gar::Profile& profile) {
  std::ostringstream out;
  gar::write_profile(profile, out);
  return out.str();
}

void check(const gar::Profile& profile) {
  require(static_cast<int>(profile.levels.size()) == profile.topology.height(profile.topology.root()));
  const std::string text = written(profile);
  const gar::Profile back = gar::parse_profile(text, "back.json");
  require(back.levels == profile.levels && back.links == profile.links && back.residuals == profile.residuals);
  require(written(back) == text);
  for (const gar::ProfileChange& change : gar::compare_profiles(profile, back)) require(!change.is_significant);
  try {
    (void)gar::lay_over(profile, gar::topology_from_spec("tree:2x3x4"));
  } catch (const gar::InvalidArgument&) {  // sums of huge numbers are not finite
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    check(gar::parse_profile(text, "fuzz.json"));
  } catch (const gar::ParseError&) {
  }
  return 0;
}
