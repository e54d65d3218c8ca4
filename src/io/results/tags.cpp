// Each line is looked at by itself: what the launcher says in its own name has no tag.
#include "io/results/tags.hpp"

#include <algorithm>

#include "io/results/table.hpp"

namespace gar {
namespace {

/// "1,0" or "prterun-host-17@1,0": a job and a rank.
bool is_job_and_rank(std::string_view name) {
  const std::size_t at = name.find_last_of('@');
  if (at != std::string_view::npos) name.remove_prefix(at + 1);
  const std::size_t comma = name.find(',');
  return comma != std::string_view::npos && is_whole(name.substr(0, comma)) && is_whole(name.substr(comma + 1));
}

/// "[1,0]<stdout>:text" or "[0] text".
std::string_view without_brackets(std::string_view line) {
  const std::size_t close = line.find(']');
  if (close == std::string_view::npos) return line;
  const std::string_view name = line.substr(1, close - 1);
  const std::string_view rest = line.substr(close + 1);
  if (is_whole(name)) return rest.starts_with(' ') ? rest.substr(1) : line;
  constexpr std::string_view kOutput = "<stdout>:";
  const std::size_t end = rest.find(">:");
  if (!is_job_and_rank(name) || !rest.starts_with("<std") || end == std::string_view::npos) return line;
  return rest.starts_with(kOutput) ? rest.substr(kOutput.size()) : "";
}

/// "0: text", also " 0: text" in larger jobs.
std::string_view without_number(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return line;
  std::string_view number = line.substr(0, colon);
  number.remove_prefix(std::min(number.find_first_not_of(' '), number.size()));
  const std::string_view rest = line.substr(colon + 1);
  if (!is_whole(number)) return line;
  if (rest.empty() || rest == "\r") return rest;
  return rest.starts_with(' ') ? rest.substr(1) : line;
}

}  // namespace

std::string without_tags(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    out += line.starts_with('[') ? without_brackets(line) : without_number(line);
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace gar
