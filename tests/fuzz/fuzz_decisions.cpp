// The reader of decisions on arbitrary bytes: it either throws ParseError or returns decisions that survive a round
// trip through our own writer, and whose winners are candidates that were measured.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

#include "fuzz/harness.hpp"
#include "gar/decisions.hpp"
#include "gar/errors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using gar::fuzz::require;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const gar::Decisions decisions = gar::parse_decisions(text, "fuzz.json");
    std::int64_t end = 0;
    for (const gar::Decision& decision : decisions.decisions) {
      const gar::DecisionCandidate* winner = decision.find(decision.winner);
      require(winner != nullptr && winner->seconds > 0 && winner->num_calls > 0);
      require(decision.from_bytes > end && decision.to_bytes >= decision.from_bytes);
      end = decision.to_bytes;
    }
    std::ostringstream out;
    gar::write_decisions(decisions, out);
    require(gar::parse_decisions(out.str(), "back.json") == decisions);
    (void)gar::decisions_file_name(decisions.place);
  } catch (const gar::ParseError&) {
  }
  return 0;
}
