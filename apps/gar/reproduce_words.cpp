// Costs in words.
#include "apps/gar/reproduce_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/gar/cli/output.hpp"

namespace gar::cli {
std::string difference_words(const Terms& base, const Terms& other) {
  const auto parts = largest_first(other - base);
  std::string words;
  for (const auto& [term, seconds] : parts) {
    if (seconds == 0 || std::abs(seconds) < 0.02 * std::abs(parts.front().seconds)) continue;
    words += fmt::format("{}{} {} {} ({})", words.empty() ? "" : ", ", format_seconds(std::abs(seconds), 3),
                         seconds > 0 ? "more" : "less", term->words, term->name);
  }
  return words.empty() ? "no difference in any term" : words;
}

std::string share_words(const Terms& terms) {
  std::string words;
  for (const auto& [term, seconds] : largest_first(terms)) {
    const double share = terms.total() > 0 ? seconds / terms.total() : 0;
    if (share < 0.01) continue;
    words += fmt::format("{}{:.0f}% {} ({})", words.empty() ? "" : ", ", 100 * share, term->words, term->name);
  }
  return words.empty() ? "nothing" : words;
}

std::string list_item(std::string_view text) {
  constexpr std::size_t kColumns = 120;
  std::string out;
  std::string line = "  ";
  bool is_empty = true;  // of words
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!is_empty && display_width(line) + 1 + display_width(word) > kColumns) {
      out += line + '\n';
      line = "    ";
      is_empty = true;
    }
    if (!is_empty) line += ' ';
    line += word;
    is_empty = false;
  }
  return out + line + '\n';
}

std::string factors_text(const std::vector<std::int64_t>& factors) {
  std::string text;
  for (const std::int64_t f : factors) text += fmt::format("{}{}", text.empty() ? "" : "x", f);
  return text;
}

}  // namespace gar::cli
