// The tables that benchmarks print: comments that begin with #, one of them the head of the table, and rows below it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gar/results_io.hpp"

namespace gar {

/// The results of a file at most, and the longest vector.
inline constexpr std::size_t kMaxResults = 2'000;
inline constexpr double kMaxResultBytes = 1e18;

using Words = std::vector<std::string_view>;

/// A line of a table.
struct TableLine {
  std::string_view text;
  Words words;  ///< of a comment, without its #
};

/// Reads the lines of one format and collects the results. A new object for every file.
class TableReader {
 public:
  TableReader() = default;
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;
  virtual ~TableReader() = default;

  /// The head of the table.
  virtual void read_head(const TableLine& /*line*/) {}
  /// Any other comment.
  virtual void read_comment(const TableLine& /*line*/) {}
  /// A line whose first word is a whole number: `bytes`, which is above 0.
  virtual void read_row(const TableLine& line, double bytes) = 0;
  /// Ranks according to the comments; 0: they do not say.
  [[nodiscard]] virtual std::int64_t num_ranks() const { return 0; }

  /// Where the reader stands, for messages.
  void set_place(const std::string& source, std::int64_t line) {
    source_ = &source;
    line_ = line;
  }
  [[nodiscard]] std::vector<ResultRow>& rows() { return rows_; }

 protected:
  /// Throws ParseError "source: line N: problem".
  [[noreturn]] void fail(const std::string& problem) const;
  [[nodiscard]] double positive_number(std::string_view word, const char* column) const;
  void add_row(ResultRow row);
  /// Refuses rows that are not of AllReduce: `line` begins with size, count, type and operator.
  void check_all_reduce(const TableLine& line, double bytes) const;

 private:
  const std::string* source_ = nullptr;
  std::int64_t line_ = 0;
  std::vector<ResultRow> rows_;
};

bool is_whole(std::string_view word);
std::optional<double> to_number(std::string_view word);
/// A whole number of at most six digits; 0 for anything else.
std::int64_t small_count(std::string_view word);

/// The algorithm that ran, as `--algo` takes it, when a model knows it by this name alone; empty otherwise.
std::string known_algorithm(const std::string& plan);

}  // namespace gar
