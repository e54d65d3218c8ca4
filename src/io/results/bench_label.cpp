// The last column of gar bench's table, written and read in one place: NAME[, reproducible][: PLAN][, N chunks], and in
// a narrow table NAME[, repr.][: PLAN].
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "gar/results_io.hpp"

namespace gar {
namespace {

constexpr std::string_view kReproducible = ", reproducible";
constexpr std::string_view kShortReproducible = ", repr.";
constexpr std::string_view kChunks = " chunks";

}  // namespace

std::string to_string(const BenchLabel& label) {
  std::string out = label.name;
  if (label.is_reproducible) out += kReproducible;
  if (!label.plan.empty() && label.plan != label.name) out += ": " + label.plan;
  if (label.num_chunks > 1) out += fmt::format(", {}{}", label.num_chunks, kChunks);
  return out;
}

std::string to_short_string(const BenchLabel& label) {
  if (label.is_reproducible) return label.name + std::string(kShortReproducible);
  const bool is_library = label.name == "native" || label.plan.empty() || label.plan == label.name;
  if (is_library) return label.name;
  // One word of several says enough.
  const bool is_one_word = label.plan.find(' ') == std::string::npos;
  return label.name + ": " + (is_one_word ? label.plan : label.plan.substr(0, label.plan.find_first_of(" -")));
}

BenchLabel parse_bench_label(std::string_view text) {
  BenchLabel out;
  if (const std::size_t comma = text.rfind(", "); text.ends_with(kChunks) && comma != std::string_view::npos) {
    const std::string number(text.substr(comma + 2, text.size() - kChunks.size() - std::min(text.size(), comma + 2)));
    const std::int64_t value = std::strtoll(number.c_str(), nullptr, 10);
    if (value > 1 && number == std::to_string(value)) {  // as to_string writes it; anything else is part of a name
      out.num_chunks = value;
      text = text.substr(0, comma);
    }
  }
  const std::size_t colon = text.find(": ");
  if (colon != std::string_view::npos) {
    out.plan = text.substr(colon + 2);
    text = text.substr(0, colon);
  }
  for (const std::string_view word : {kReproducible, kShortReproducible}) {
    if (!text.ends_with(word)) continue;
    out.is_reproducible = true;
    text.remove_suffix(word.size());
    break;
  }
  out.name = text;
  return out;
}

}  // namespace gar
