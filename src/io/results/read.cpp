// What benchmarks printed, to rows of one shape.
//
// The tags of launchers are taken off first. A file is recognised by its content. It is a document when it begins with
// a brace, and its schema tells which; otherwise the first comment that one of the tables knows decides. Below the head
// of the table, a line whose first word is a whole number is a row and must be sound; other lines, which libraries and
// launchers write, are passed over.
#include <fmt/format.h>

#include <algorithm>
#include <istream>

#include "gar/errors.hpp"
#include "gar/results_io.hpp"
#include "io/json_reader.hpp"
#include "io/results/formats.hpp"
#include "io/results/tags.hpp"
#include "io/text_file.hpp"

namespace gar {
namespace {

constexpr std::int64_t kMaxResultsFileBytes = std::int64_t{16} << 20;
constexpr const char* kAcceptedResults =
    "the table of gar bench or nccl-tests (with a line \"# size ... algbw busbw\"), that of osu_allreduce (with a line "
    "\"# Size  Avg Latency(us)\"), that of IMB-MPI1, or the document of gar bench --json";

TableLine split(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  TableLine out{text, {}};
  while (true) {
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return out;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(kBlanks), text.size());
    out.words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

/// The same without the # that it begins with.
TableLine comment_of(TableLine line) {
  line.words[0].remove_prefix(1);
  if (line.words[0].empty()) line.words.erase(line.words.begin());
  return line;
}

class TableScan {
 public:
  TableScan(std::string_view text, const std::string& source) : source_(source) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      lines_.push_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  [[nodiscard]] bool has_table() const { return recognise() != nullptr; }

  Results run() {
    format_ = recognise();
    const std::unique_ptr<TableReader> reader = format_ == nullptr ? nullptr : format_->reader();
    for (std::size_t i = 0; i < lines_.size() && reader != nullptr; ++i) {
      reader->set_place(source_, static_cast<std::int64_t>(i) + 1);
      read_line(split(lines_[i]), i, *reader);
    }
    check_head();
    if (reader->rows().empty()) {
      fail(head_line_, "begins a table without rows; expected lines below it that begin with a size in bytes above 0");
    }
    return {std::string(format_->name), reader->num_ranks(), std::move(reader->rows()), {}};
  }

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& problem) const {
    throw ParseError(fmt::format("{}: line {}: {}", source_, line + 1, problem));
  }

  /// The format whose opening or head comes first; null when no line is known.
  [[nodiscard]] const ResultsTable* recognise() const {
    for (const std::string_view text : lines_) {
      const TableLine line = split(text);
      if (line.words.empty() || !line.words[0].starts_with('#')) continue;
      const TableLine comment = comment_of(line);
      if (comment.words.empty()) continue;
      for (const ResultsTable& format : results_tables()) {
        if (format.is_head(text) || format.is_opening(comment)) return &format;
      }
    }
    return nullptr;
  }

  void read_line(const TableLine& line, std::size_t number, TableReader& reader) {
    if (line.words.empty()) return;
    if (line.words[0].starts_with('#')) {
      const TableLine comment = comment_of(line);
      if (!comment.words.empty()) read_comment(comment, number, reader);
    } else if (has_head_ && is_whole(line.words[0])) {
      const std::optional<double> bytes = to_number(line.words[0]);
      if (!bytes || *bytes > kMaxResultBytes) {
        fail(number,
             fmt::format("size is '{}'; expected bytes, up to {:g}", printable(line.words[0]), kMaxResultBytes));
      }
      if (*bytes > 0) reader.read_row(line, *bytes);  // of an empty vector nothing was reduced
    }
  }

  void read_comment(const TableLine& comment, std::size_t number, TableReader& reader) {
    for (const ResultsTable& format : results_tables()) {
      if (!format.is_head(comment.text)) continue;
      if (&format != format_) {
        fail(number,
             fmt::format("begins a table of another kind than line {}; expected one kind per file", head_line_ + 1));
      }
      has_head_ = true;
      head_line_ = number;
      reader.read_head(comment);
      return;
    }
    reader.read_comment(comment);
  }

  void check_head() const {
    if (has_head_) return;
    const auto first =
        std::find_if(lines_.begin(), lines_.end(), [](std::string_view text) { return !split(text).words.empty(); });
    if (first == lines_.end()) throw ParseError(fmt::format("{}: is empty; expected {}", source_, kAcceptedResults));
    if (std::any_of(lines_.begin(), lines_.end(), is_nccl_log)) {
      throw ParseError(fmt::format(
          "{}: a log of NCCL without results; expected the table of nccl-tests with it (gar nccl explain reads the log "
          "alone)",
          source_));
    }
    fail(
        static_cast<std::size_t>(first - lines_.begin()),
        fmt::format("'{}', and no line that begins a table follows; expected {}", printable(*first), kAcceptedResults));
  }

  const std::string& source_;
  std::vector<std::string_view> lines_;
  const ResultsTable* format_ = nullptr;
  bool has_head_ = false;
  std::size_t head_line_ = 0;  // counted from 0
};

/// The document whose family of schemas this text has; the first one says what is wrong with any other.
const ResultsDocument& document_format(std::string_view text) {
  const std::string schema = peek_schema(text);
  const std::span<const ResultsDocument> all = results_documents();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const ResultsDocument& d) { return schema.starts_with(d.schemas); });
  return found == all.end() ? all.front() : *found;
}

bool begins_document(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{';
}

/// What NCCL says it took for vectors of these lengths, where it took one thing alone.
void add_log(Results& results, NcclLog log) {
  for (ResultRow& row : results.rows) {
    const NcclChoice* taken = nullptr;
    bool is_one = true;
    for (const NcclChoice& choice : log.choices) {
      const bool is_all_reduce = choice.collective.empty() || choice.collective == "AllReduce";
      if (!is_all_reduce || choice.bytes != row.bytes) continue;
      is_one = taken == nullptr;
      taken = &choice;
      if (!is_one) break;
    }
    if (taken == nullptr || !is_one) continue;
    row.algorithm = taken->algorithm == "Ring" ? "ring" : "";
    row.label += fmt::format(", {}/{}", taken->algorithm, taken->protocol);
  }
  if (results.num_ranks == 0) results.num_ranks = log.num_ranks;
  results.nccl = std::move(log);
}

Results read_document(std::string_view text, const std::string& source) {
  const ResultsDocument& format = document_format(text);
  Results out = format.read(text, source);
  out.format = format.name;
  return out;
}

}  // namespace

Results parse_results(std::string_view text, const std::string& source) {
  if (begins_document(text)) return read_document(text, source);
  const std::string plain = without_tags(text);
  if (begins_document(plain)) return read_document(plain, source);
  Results out = TableScan(plain, source).run();
  if (out.format == "nccl-tests" && is_nccl_log(plain)) add_log(out, parse_nccl_log(plain, source));
  return out;
}

bool has_results(std::string_view text) {
  static const std::string kNoName;
  const std::string plain = without_tags(text);
  return begins_document(plain) || TableScan(plain, kNoName).has_table();
}

Results read_results(std::istream& in, const std::string& source) {
  std::string text;
  std::vector<char> chunk(std::size_t{1} << 16);
  while (in.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || in.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > static_cast<std::size_t>(kMaxResultsFileBytes))
      throw ParseError(fmt::format("{}: longer than {} bytes; expected up to that", source, kMaxResultsFileBytes));
  }
  if (in.bad()) throw ParseError(fmt::format("{}: cannot be read", source));
  return parse_results(text, source);
}

Results read_results_file(const std::string& path) {
  return parse_results(read_text_file(path, kMaxResultsFileBytes), path);
}

}  // namespace gar
