// Output for people: colour, aligned tables and lists. Everything goes to standard output.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "gar/explain.hpp"
#include "gar/format.hpp"

namespace gar::cli {

enum class ColorMode { kAuto, kAlways, kNever };

/// Whether output to `stream` is coloured: --color when it says so, otherwise a terminal that NO_COLOR and TERM=dumb
/// do not forbid.
bool use_color(ColorMode mode, std::FILE* stream);

/// False where LC_ALL, LC_CTYPE or LANG says C, POSIX or another set of characters than UTF-8.
bool is_utf8_shown();

/// A drawing with lines of boxes; in plain letters where LC_ALL, LC_CTYPE or LANG says C, POSIX or another set of
/// characters than UTF-8.
std::string lines_for_locale(std::string drawing);

enum class Paint { kPlain, kBold, kDim, kGreen, kYellow, kRed, kCyan, kBlue, kMagenta };

/// `text` in a colour, or as it is when `enabled` is false.
std::string paint(std::string_view text, Paint paint, bool enabled);

/// Columns that a terminal needs for UTF-8 text: its code points.
std::size_t display_width(std::string_view text);

struct Column {
  std::string title;
  bool is_number = false;  ///< aligned to the right
  bool begins = false;     ///< where a table is too wide for one line, it goes on with this column below the others
};

struct Cell {
  Cell(std::string cell_text, Paint cell_paint = Paint::kPlain)  // NOLINT(google-explicit-constructor)
      : text(std::move(cell_text)), paint(cell_paint) {}
  Cell(const char* cell_text) : text(cell_text) {}  // NOLINT(google-explicit-constructor)
  std::string text;
  Paint paint = Paint::kPlain;
};

/// A table with a title line and aligned columns.
class Table {
 public:
  /// `num_keys`: columns that say what a row is about; folded() repeats them.
  explicit Table(std::vector<Column> columns, std::size_t num_keys = 1)
      : columns_(std::move(columns)), num_keys_(num_keys) {}
  /// Cells from the left; missing ones stay empty. Texts are escaped (gar::escaped).
  void add_row(std::vector<Cell> cells);
  /// folded() leaves no row out: the keys are a drawing, whose lines hang together.
  void keep_empty_rows() { keeps_empty_rows_ = true; }
  /// The lines, each with its end of line and without blanks before it.
  [[nodiscard]] std::string to_string(bool color) const;
  /// The same in lines that fit the terminal: columns that do not come below the others with the keys again, without
  /// the rows that are empty there, and a text that is too wide for its column is broken at blanks.
  [[nodiscard]] std::string folded(bool color) const;

 private:
  using Shown = std::vector<std::size_t>;  // columns, from the left
  [[nodiscard]] std::vector<std::size_t> widths() const;
  [[nodiscard]] std::vector<std::vector<Cell>> rows_with_more_than_keys(const Shown& shown) const;
  [[nodiscard]] std::string lines(const Shown& shown, const std::vector<std::vector<Cell>>& rows, std::size_t most,
                                  bool color) const;
  std::vector<Column> columns_;
  std::size_t num_keys_;
  bool keeps_empty_rows_ = false;
  std::vector<std::vector<Cell>> rows_;
};

/// Columns of the terminal that `stream` is; 80 when it is none, and at least 40.
std::size_t terminal_columns(std::FILE* stream = stdout);
/// `text` in lines of at most `columns`, broken at blanks: `first` before the first one and as many blanks as `rest`
/// says before the others. A word that is longer than a line stays whole.
std::string wrapped(std::string first, std::size_t rest, std::string_view text, std::size_t columns);
/// Lines of text; those that do not fit the terminal are broken at blanks. Colours count nothing.
std::string fitted(std::string_view text);
/// Text under a label of at most 11 columns, broken at blanks so that every line fits the terminal.
std::string labelled(std::string_view label, std::string_view text);

/// An item of a list: two blanks before its first line, four before the others, as wide as the terminal, broken at
/// blanks.
std::string list_item(std::string_view item);

/// Text as comment lines of a table: each begins with #, and fits the terminal.
std::string commented(std::string_view text);

/// A line of comma-separated values, with its end of line.
std::string csv_line(const std::vector<std::string>& cells);
/// Several documents as one, of schema "gar.list/1": {"gar_version", "schema", "documents": [...]}.
std::string list_document(const std::vector<std::string>& documents);

/// A word as it can be typed into a shell; what `escaped` would change is written as in $'a\\x0ab'.
std::string shell_word(std::string_view word);

/// Writes text to standard output; a terminal gets nothing but lines, tabs, text and colours. That does not tell our
/// lines and colours from those of somebody's file name: data are escaped (gar::escaped) where they become part of a
/// text.
void print(std::string_view text);
/// The same for people: lines that fit the terminal.
void say(std::string_view text);

}  // namespace gar::cli
