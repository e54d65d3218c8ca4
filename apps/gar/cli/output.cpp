#include "apps/gar/cli/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "gar/version.hpp"

namespace gar::cli {
namespace {

std::string_view escape_of(Paint paint) {
  switch (paint) {
    case Paint::kBold:
      return "\x1b[1m";
    case Paint::kDim:
      return "\x1b[2m";
    case Paint::kGreen:
      return "\x1b[32m";
    case Paint::kYellow:
      return "\x1b[33m";
    case Paint::kRed:
      return "\x1b[31m";
    case Paint::kCyan:
      return "\x1b[36m";
    case Paint::kPlain:
      break;
  }
  return "";
}

constexpr std::string_view kPlainAgain = "\x1b[0m";

/// The bytes of the escape sequence of ours that `text` begins with; 0 when it begins with none.
std::size_t own_escape(std::string_view text) {
  if (text.starts_with(kPlainAgain)) return kPlainAgain.size();
  for (const Paint paint : {Paint::kBold, Paint::kDim, Paint::kGreen, Paint::kYellow, Paint::kRed, Paint::kCyan}) {
    if (text.starts_with(escape_of(paint))) return escape_of(paint).size();
  }
  return 0;
}

/// What goes to a terminal: lines, tabs and our own colours. All else that is no plain text is escaped.
std::string for_terminal(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t special = std::min(text.find_first_of("\n\t\x1b"), text.size());
    out += escaped(text.substr(0, special));
    text.remove_prefix(special);
    if (text.empty()) break;
    const std::size_t kept = text.front() == '\x1b' ? own_escape(text) : 1;
    out += kept > 0 ? std::string(text.substr(0, kept)) : escaped(text.substr(0, 1));
    text.remove_prefix(std::max<std::size_t>(kept, 1));
  }
  return out;
}

}  // namespace

bool use_color(ColorMode mode, std::FILE* stream) {
  if (mode != ColorMode::kAuto) return mode == ColorMode::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return isatty(fileno(stream)) == 1;
}

std::string paint(std::string_view text, Paint paint, bool enabled) {
  if (!enabled || paint == Paint::kPlain || text.empty()) return std::string(text);
  return fmt::format("{}{}{}", escape_of(paint), text, kPlainAgain);
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

void Table::add_row(std::vector<Cell> cells) {
  cells.resize(columns_.size(), Cell(""));
  for (Cell& cell : cells) cell.text = escaped(cell.text);
  rows_.push_back(std::move(cells));
}

std::string Table::to_string(bool color) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c].text));
    widths.push_back(width);
  }
  std::string out;
  const auto add_line = [&](const std::vector<Cell>& cells) {
    std::string gap;  // blanks that are only written when something follows
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const Cell& cell = cells[c];
      const std::string padding(widths[c] - display_width(cell.text), ' ');
      if (columns_[c].is_number) gap += padding;
      if (!cell.text.empty()) {
        out += gap;
        out += paint(cell.text, cell.paint, color);
        gap.clear();
      }
      if (!columns_[c].is_number) gap += padding;
      gap += "  ";
    }
    out += '\n';
  };
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.emplace_back(column.title, Paint::kBold);
  add_line(titles);
  for (const auto& row : rows_) add_line(row);
  return out;
}

std::string list_item(std::string_view item) {
  constexpr std::size_t kColumns = 120;
  const std::string safe = escaped(item);
  std::string_view text = safe;
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

std::string shell_word(std::string_view word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-+=/.,:@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  const bool has_special = escaped(word) != word;
  std::string out;
  for (const char c : word) {
    if (c == '\'') {
      out += has_special ? "\\'" : "'\\''";
    } else {
      out += has_special && c == '\\' ? "\\\\" : std::string(1, c);
    }
  }
  return has_special ? fmt::format("$'{}'", escaped(out)) : fmt::format("'{}'", out);
}

void print(std::string_view text) {
  const std::string shown = for_terminal(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string out;
  for (const std::string& cell : cells) {
    if (!out.empty() || &cell != cells.data()) out += ',';
    if (cell.find_first_of(",\"\n") == std::string::npos) {
      out += cell;
      continue;
    }
    out += '"';
    for (const char c : cell) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    out += '"';
  }
  return out + "\n";
}

std::string list_document(const std::vector<std::string>& documents) {
  std::string list;
  for (std::string_view document : documents) {
    while (document.ends_with('\n')) document.remove_suffix(1);
    list += fmt::format("{}{}", list.empty() ? "" : ",\n", document);
  }
  return fmt::format("{{\n\"gar_version\": \"{}\",\n\"schema\": \"gar.list/1\",\n\"documents\": [\n{}\n]\n}}\n",
                     version(), list);
}

}  // namespace gar::cli
