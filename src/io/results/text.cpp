// What benchmarks printed, to rows of one shape: gar bench (its table or its document), nccl-tests and osu_allreduce.
//
// A file is recognised by itself. It is a document when it begins with a brace; otherwise the head of its table
// decides: a comment with "Latency(us)" is OSU's, one with "algbw" and "busbw" is that of nccl-tests, whose columns gar
// bench has too, followed by its own ("predicted", ...). Below the head, a line whose first word is a whole number is a
// row and must be sound; comments and what libraries and launchers write in between are passed over.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/io.hpp"
#include "io/json_reader.hpp"
#include "io/text_file.hpp"

namespace gar {
namespace {

constexpr std::int64_t kMaxResultsBytes = std::int64_t{16} << 20;
constexpr std::size_t kMaxRows = 2'000;
constexpr double kMaxVectorBytes = 1e18;
constexpr double kLeastMicroseconds = 1e-9;
constexpr const char* kAcceptedResults =
    "the table of gar bench or nccl-tests (with a line \"# size count type redop ... algbw busbw\"), that of "
    "osu_allreduce (with a line \"# Size  Avg Latency(us)\"), or the document of gar bench --json";

enum class TableFormat { kNone, kBench, kNccl, kOsu };

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  Words out;
  while (true) {
    const std::size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return out;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
    out.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

bool is_whole(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<double> to_number(std::string_view word) {
  const std::string text(word);
  if (text.empty() || text.find_first_not_of("0123456789.eE+-") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// The algorithm that ran, when a model knows it by this name alone.
std::string known_algorithm(const std::string& plan) {
  try {
    const AlgorithmSpec spec = parse_algorithm(plan);
    return needs_factors(spec) || is_tree_planner(spec) ? "" : to_string(spec);
  } catch (const InvalidArgument&) {
    return "";
  }
}

/// The last words of a line of gar bench: "auto: cps, 4 chunks" ran cps.
std::string plan_in_words(std::string text) {
  if (text.ends_with(" chunks")) text.erase(std::min(text.rfind(", "), text.size()));
  const std::size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

std::optional<std::int64_t> bytes_of_type(std::string_view type) {
  struct TypeSize {
    std::string_view name;
    std::int64_t bytes;
  };
  static constexpr TypeSize kTypes[] = {{"int8", 1},    {"uint8", 1},  {"fp8e4m3", 1},  {"f8e4m3", 1}, {"fp8e5m2", 1},
                                        {"f8e5m2", 1},  {"half", 2},   {"bfloat16", 2}, {"int16", 2},  {"uint16", 2},
                                        {"float16", 2}, {"int32", 4},  {"uint32", 4},   {"float", 4},  {"float32", 4},
                                        {"int64", 8},   {"uint64", 8}, {"double", 8},   {"float64", 8}};
  for (const TypeSize& t : kTypes) {
    if (t.name == type) return t.bytes;
  }
  return std::nullopt;
}

class TableReader {
 public:
  TableReader(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  Results run() {
    while (!text_.empty()) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      const std::string_view line = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++line_;
      const Words words = words_of(line);
      if (words.empty()) continue;
      if (first_line_ == 0) {
        first_line_ = line_;
        first_text_ = printable(line);
      }
      if (words[0].starts_with('#')) {
        read_comment(line, words);
      } else if (format_ != TableFormat::kNone && is_whole(words[0])) {
        read_row(line, words);
      }
    }
    finish();
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw ParseError(fmt::format("{}: line {}: {}", source_, line_, problem));
  }

  void finish() {
    if (first_line_ == 0) throw ParseError(fmt::format("{}: is empty; accepted: {}", source_, kAcceptedResults));
    if (format_ == TableFormat::kNone) {
      throw ParseError(fmt::format("{}: line {}: '{}', and no line that begins a table follows; accepted: {}", source_,
                                   first_line_, first_text_, kAcceptedResults));
    }
    if (out_.rows.empty()) {
      throw ParseError(fmt::format(
          "{}: line {}: begins a table without rows; accepted: lines below it that begin with a size in bytes above 0",
          source_, head_line_));
    }
    if (out_.num_ranks == 0) out_.num_ranks = num_rank_lines_ > 0 ? num_rank_lines_ : num_devices_;
    out_.format = format_ == TableFormat::kBench ? "gar bench" : format_ == TableFormat::kNccl ? "nccl-tests" : "OSU";
  }

  void set_format(TableFormat format) {
    if (format_ != TableFormat::kNone && format_ != format) {
      fail(fmt::format("begins a table of another kind than line {}; accepted: one kind per file", head_line_));
    }
    format_ = format;
    head_line_ = line_;
  }

  void read_comment(std::string_view line, Words words) {
    words[0].remove_prefix(1);
    if (words[0].empty()) words.erase(words.begin());
    if (words.empty()) return;
    if (contains(line, "Latency(us)")) {
      set_format(TableFormat::kOsu);
    } else if (contains(line, "algbw") && contains(line, "busbw")) {
      set_format(contains(line, "predicted") ? TableFormat::kBench : TableFormat::kNccl);
    } else if (words[0] == "OSU" && contains(line, "Test") && !contains(line, "Allreduce")) {
      fail(fmt::format("'{}' is not about AllReduce; accepted: the output of osu_allreduce", printable(line)));
    } else if (words.size() > 1 && words[0] == "Rank" && is_whole(words[1])) {
      ++num_rank_lines_;
    } else if (words.size() > 3 && words[0] == "nThread" && words[2] == "nGpus") {
      num_devices_ = small_count(words[1]) * small_count(words[3]);
    } else if (words.size() > 3 && words[1] == "between") {
      if (words[0] != "allreduce") {
        fail(fmt::format("the results are of {}; accepted: allreduce", printable(words[0])));
      }
      out_.num_ranks = small_count(words[2]);
    }
  }

  /// 0: not said.
  static std::int64_t small_count(std::string_view word) {
    return is_whole(word) && word.size() <= 6 ? std::strtoll(std::string(word).c_str(), nullptr, 10) : 0;
  }

  double positive_number(std::string_view word, const char* column) const {
    const std::optional<double> value = to_number(word);
    if (!value || *value < kLeastMicroseconds) {
      fail(fmt::format("{} is '{}'; accepted: a finite number above 0", column, printable(word)));
    }
    return *value;
  }

  void add_row(double bytes, double microseconds, std::string algorithm, std::string label) {
    if (out_.rows.size() == kMaxRows) fail(fmt::format("more than {} rows; accepted: up to that", kMaxRows));
    out_.rows.push_back({line_, bytes, 1e-6 * microseconds, std::move(algorithm), std::move(label)});
  }

  void read_row(std::string_view line, const Words& words) {
    const std::optional<double> bytes = to_number(words[0]);
    if (!bytes || *bytes > kMaxVectorBytes) {
      fail(fmt::format("size is '{}'; accepted: bytes, up to {:g}", printable(words[0]), kMaxVectorBytes));
    }
    if (*bytes == 0) return;  // nothing was reduced
    if (format_ == TableFormat::kOsu) {
      if (words.size() < 2) fail("has 1 column; accepted: a size and its average latency, \"4096  12.5\"");
      add_row(*bytes, positive_number(words[1], "the average latency"), "", "");
    } else if (format_ == TableFormat::kBench) {
      read_bench_row(line, words, *bytes);
    } else {
      read_nccl_row(words, *bytes);
    }
  }

  void check_operation(const Words& words, double bytes) const {
    if (words[3] == "none") {
      fail("redop is 'none', as in results of AllGather or Broadcast; accepted: those of AllReduce");
    }
    const std::optional<std::int64_t> size = bytes_of_type(words[2]);
    const std::optional<double> count = to_number(words[1]);
    if (size && count && std::abs(*count * static_cast<double>(*size) - bytes) > 8) {
      fail(fmt::format(
          "{} elements of {} are not {} bytes, as in results of ReduceScatter; accepted: those of AllReduce",
          printable(words[1]), printable(words[2]), printable(words[0])));
    }
  }

  void read_bench_row(std::string_view line, const Words& words, double bytes) {
    constexpr std::size_t kAlgorithmColumn = 12;
    if (words.size() <= kAlgorithmColumn) {
      fail(fmt::format("has {} columns; accepted: 13 or more, as gar bench prints them", words.size()));
    }
    check_operation(words, bytes);
    const auto offset = static_cast<std::size_t>(words[kAlgorithmColumn].data() - line.data());
    std::string label(line.substr(offset));
    while (!label.empty() && std::isspace(static_cast<unsigned char>(label.back())) != 0) label.pop_back();
    if (contains(label, ", reproducible")) return;
    label = printable(label);
    add_row(bytes, positive_number(words[5], "time"), known_algorithm(plan_in_words(label)), label);
  }

  void read_nccl_row(const Words& words, double bytes) {
    // Old versions have no column for the root; versions and options without "in-place" have half as many times.
    const std::size_t first_time = words.size() % 4 == 1 ? 5 : 4;
    if (words.size() != first_time + 4 && words.size() != first_time + 8) {
      fail(fmt::format(
          "has {} columns; accepted: size count type redop root, then time algbw busbw #wrong once or twice",
          words.size()));
    }
    check_operation(words, bytes);
    add_row(bytes, positive_number(words[first_time], "time"), "", "out of place");
    if (words.size() > first_time + 4) add_row(bytes, positive_number(words[first_time + 4], "time"), "", "in place");
  }

  std::string_view text_;
  const std::string& source_;
  Results out_;
  TableFormat format_ = TableFormat::kNone;
  std::int64_t line_ = 0;
  std::int64_t first_line_ = 0;
  std::string first_text_;
  std::int64_t head_line_ = 0;
  std::int64_t num_rank_lines_ = 0;
  std::int64_t num_devices_ = 0;
};

Results read_bench_document(std::string_view text, const std::string& source) {
  const nlohmann::json json = parse_json(text, source);
  const JsonPlace document(json, source);
  check_schema(document, "gar.bench/2", "what gar bench --json prints");
  const JsonPlace collective = document.at("collective", "\"allreduce\"");
  if (collective.text() != "allreduce") collective.refuse("\"allreduce\"");
  Results out;
  out.format = "gar bench";
  out.num_ranks = document.at("ranks", "the number of ranks").whole(1, kMaxServers);
  const JsonPlace results = document.at("results", "a list of results");
  for (const JsonPlace& item : results.items("a list of results")) {
    const double bytes = item.at("bytes", "bytes of the vector").number(0, kMaxVectorBytes);
    const auto reproducible = item.find("reproducible");
    if (bytes == 0 || (reproducible && reproducible->boolean())) continue;
    const std::string algorithm = item.at("algorithm", "an algorithm").text();
    const auto plan_place = item.find("plan");
    const std::string plan = plan_place ? plan_place->text() : algorithm;
    ResultRow row;
    row.bytes = bytes;
    row.seconds = item.at("seconds", "seconds of one AllReduce").positive();
    row.label = printable(plan.empty() || plan == algorithm ? algorithm : algorithm + ": " + plan);
    row.algorithm = algorithm == "native" ? "" : known_algorithm(plan);
    if (out.rows.size() == kMaxRows) results.fail(fmt::format("more than {} results; accepted: up to that", kMaxRows));
    out.rows.push_back(std::move(row));
  }
  if (out.rows.empty()) results.fail("holds no result of a vector; accepted: at least one");
  return out;
}

}  // namespace

Results parse_results(std::string_view text, const std::string& source) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && text[begin] == '{') return read_bench_document(text, source);
  return TableReader(text, source).run();
}

Results read_results_file(const std::string& path) {
  return parse_results(read_text_file(path, kMaxResultsBytes), path);
}

}  // namespace gar
