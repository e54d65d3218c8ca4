#include "apps/gar/cli/output.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <numeric>

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
    case Paint::kBlue:
      return "\x1b[34m";
    case Paint::kMagenta:
      return "\x1b[35m";
    case Paint::kPlain:
      break;
  }
  return "";
}

constexpr std::string_view kPlainAgain = "\x1b[0m";

/// The bytes of the escape sequence of ours that `text` begins with; 0 when it begins with none.
std::size_t own_escape(std::string_view text) {
  if (text.starts_with(kPlainAgain)) return kPlainAgain.size();
  for (const Paint paint : {Paint::kBold, Paint::kDim, Paint::kGreen, Paint::kYellow, Paint::kRed, Paint::kCyan,
                            Paint::kBlue, Paint::kMagenta}) {
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

/// Columns of text with our own colours in it.
std::size_t painted_width(std::string_view text) {
  std::size_t hidden = 0;
  for (std::size_t at = text.find('\x1b'); at != std::string_view::npos; at = text.find('\x1b', at + 1)) {
    hidden += own_escape(text.substr(at));
  }
  return display_width(text) - hidden;
}

/// A cell that begins `before` columns into a line and goes on below itself.
std::string broken_cell(std::string_view text, std::size_t before, std::size_t columns) {
  std::string out = wrapped(std::string(before, ' '), before, text, columns);
  out.pop_back();
  return out.substr(before);
}

}  // namespace

std::string wrapped(std::string first, std::size_t rest, std::string_view text, std::size_t columns) {
  std::string out;
  std::string line = std::move(first);
  bool is_empty = true;  // of words
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!is_empty && painted_width(line) + 1 + painted_width(word) > columns) {
      out += line + '\n';
      line = std::string(rest, ' ');
      is_empty = true;
    }
    if (!is_empty) line += ' ';
    line += word;
    is_empty = false;
  }
  return out + line + '\n';
}

bool use_color(ColorMode mode, std::FILE* stream) {
  if (mode != ColorMode::kAuto) return mode == ColorMode::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return isatty(fileno(stream)) == 1;
}

bool is_utf8_shown() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text(value);
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return true;  // nothing is said: what reads UTF-8 is everywhere
}

std::string lines_for_locale(std::string drawing) {
  if (is_utf8_shown()) return drawing;
  struct Line {
    std::string_view box;
    std::string_view plain;
  };
  constexpr Line kLines[] = {{"└", "`"}, {"├", "|"}, {"│", "|"}, {"─", "-"}};
  for (const Line& line : kLines) {
    for (std::size_t at = drawing.find(line.box); at != std::string::npos; at = drawing.find(line.box, at + 1)) {
      drawing.replace(at, line.box.size(), line.plain);
    }
  }
  return drawing;
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

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> out;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c].text));
    out.push_back(width);
  }
  return out;
}

// The rows that say something in these columns beside their keys. Where the first key, which stands for all rows of its
// group, is that of a row without anything, the next row of the group has it.
std::vector<std::vector<Cell>> Table::rows_with_more_than_keys(const Shown& shown) const {
  std::vector<std::vector<Cell>> out;
  Cell group("");
  for (const std::vector<Cell>& row : rows_) {
    if (!row.front().text.empty()) group = row.front();
    if (std::all_of(shown.begin(), shown.end(), [&](std::size_t c) { return c < num_keys_ || row[c].text.empty(); })) {
      continue;
    }
    out.push_back(row);
    if (!group.text.empty()) out.back().front() = group;
    group.text.clear();
  }
  return out;
}

// Some of the columns. The text of the last one is broken where the line would be longer than `most`.
std::string Table::lines(const Shown& shown, const std::vector<std::vector<Cell>>& rows, std::size_t most,
                         bool color) const {
  const std::vector<std::size_t> width = widths();
  std::size_t before_last = 0;
  for (std::size_t i = 0; i + 1 < shown.size(); ++i) before_last += width[shown[i]] + 2;
  std::string out;
  const auto add_line = [&](const std::vector<Cell>& cells) {
    std::string gap;  // blanks that are only written when something follows
    for (const std::size_t c : shown) {
      const Cell& cell = cells[c];
      const std::size_t room = most > before_last ? most - before_last : 1;
      const bool is_broken = c == shown.back() && !columns_[c].is_number && display_width(cell.text) > room;
      const std::string text = is_broken ? broken_cell(cell.text, before_last, most) : cell.text;
      const std::string padding(is_broken ? 0 : width[c] - display_width(text), ' ');
      if (columns_[c].is_number) gap += padding;
      if (!text.empty()) {
        out += gap;
        out += paint(text, cell.paint, color);
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
  for (const auto& row : rows) add_line(row);
  return out;
}

std::string Table::to_string(bool color) const {
  Shown all(columns_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return lines(all, rows_, std::string::npos, color);
}

std::string Table::folded(bool color) const {
  const std::size_t most = terminal_columns();
  const std::vector<std::size_t> width = widths();
  std::size_t whole = 0;
  for (const std::size_t w : width) whole += w + (whole == 0 ? 0 : 2);
  Shown keys(std::min(num_keys_, columns_.size()));
  std::iota(keys.begin(), keys.end(), std::size_t{0});
  std::size_t used_by_keys = 0;
  for (const std::size_t key : keys) used_by_keys += width[key] + (key == 0 ? 0 : 2);
  std::vector<Shown> blocks{{}};
  std::size_t used = 0;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const bool is_empty = blocks.back().empty();
    // Text at the end may be broken, if it has half of the line.
    const bool is_last_text = c + 1 == columns_.size() && !columns_[c].is_number && used + 2 <= most / 2;
    const bool begins = whole > most && columns_[c].begins;
    const bool is_too_wide = used + 2 + width[c] > most && !is_last_text;
    if (!is_empty && blocks.back().size() > keys.size() && (begins || is_too_wide)) {
      blocks.push_back(keys);
      used = used_by_keys;
    }
    used += width[c] + (blocks.back().empty() ? 0 : 2);
    blocks.back().push_back(c);
  }
  std::string out = lines(blocks.front(), rows_, most, color);
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    const std::vector<std::vector<Cell>> rows = keeps_empty_rows_ ? rows_ : rows_with_more_than_keys(blocks[i]);
    if (!rows.empty()) out += "\n" + lines(blocks[i], rows, most, color);
  }
  return out;
}

std::size_t terminal_columns(std::FILE* stream) {
  constexpr std::size_t kUsual = 80;
  constexpr std::size_t kLeast = 40;
  winsize size{};
  const int file = fileno(stream);
  if (isatty(file) == 0 || ioctl(file, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return std::max<std::size_t>(size.ws_col, kLeast);
}

std::string fitted(std::string_view text) {
  const std::size_t columns = terminal_columns();
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    const std::string_view line = text.substr(0, end + 1);
    text.remove_prefix(end + 1);
    const bool has_end = line.ends_with('\n');
    const std::string_view words = line.substr(0, line.size() - (has_end ? 1 : 0));
    if (painted_width(words) <= columns) {
      out += line;
      continue;
    }
    // The blanks that the line begins with stay.
    const std::size_t indent = std::min(words.find_first_not_of(' '), words.size());
    // Text behind a label goes on below itself, other text a little to the right.
    constexpr std::size_t kMostLabel = 12;
    const std::size_t gap = indent == 0 ? words.find("  ") : std::string_view::npos;
    const std::size_t behind = gap == std::string_view::npos ? gap : words.find_first_not_of(' ', gap);
    const bool has_label = behind <= kMostLabel;
    const std::size_t first = has_label ? behind : indent;
    out += wrapped(std::string(words.substr(0, first)), has_label ? behind : indent + 4, words.substr(first), columns);
    if (!has_end) out.pop_back();
  }
  return out;
}

std::string labelled(std::string_view label, std::string_view text) {
  constexpr std::size_t kIndent = 12;
  std::string first = escaped(label);
  first.resize(std::max(first.size() + 1, kIndent), ' ');
  return wrapped(std::move(first), kIndent, escaped(text), terminal_columns());
}

std::string list_item(std::string_view item) { return wrapped("  ", 4, escaped(item), terminal_columns()); }

std::string commented(std::string_view text) {
  std::string out = wrapped("# ", 4, escaped(text), terminal_columns());
  for (std::size_t end = out.find('\n'); end + 1 < out.size(); end = out.find('\n', end + 1)) out[end + 1] = '#';
  return out;
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

void say(std::string_view text) { print(fitted(text)); }

}  // namespace gar::cli
