// gar bench: its document, and its table, whose columns are found by their titles.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "gar/limits.hpp"
#include "gar/topology.hpp"
#include "io/json_reader.hpp"
#include "io/results/formats.hpp"
#include "io/text_file.hpp"

namespace gar {
namespace {

class BenchReader final : public TableReader {
 public:
  void read_head(const TableLine& line) override {
    time_ = column(line, "time");
    algorithm_ = column(line, "algorithm");
  }

  void read_comment(const TableLine& line) override {
    const Words& words = line.words;
    if (is_label_below_) {
      is_label_below_ = false;
      add_labelled(std::string(line.text.substr(static_cast<std::size_t>(words[0].data() - line.text.data()))), below_);
    }
    if (!is_bench_opening(line)) return;
    if (words[0] != "allreduce") fail(fmt::format("the results are of {}; expected allreduce", printable(words[0])));
    num_ranks_ = small_count(words[2]);
  }

  void read_row(const TableLine& line, double bytes) override {
    const Words& words = line.words;
    const std::size_t last = std::max(algorithm_, time_);
    if (words.size() <= last) {
      fail(fmt::format("has {} columns; expected {} or more, as gar bench prints them", words.size(), last + 1));
    }
    check_all_reduce(line, bytes);
    // The last column holds blanks.
    const auto offset = static_cast<std::size_t>(words[algorithm_].data() - line.text.data());
    const ResultRow row{.bytes = bytes, .seconds = 1e-6 * positive_number(words[time_], "time")};
    is_label_below_ = words[algorithm_] == kLabelBelow;
    below_ = row;
    if (!is_label_below_) add_labelled(std::string(line.text.substr(offset)), row);
  }

  [[nodiscard]] std::int64_t num_ranks() const override { return num_ranks_; }

 private:
  std::size_t column(const TableLine& head, std::string_view title) const {
    const auto found = std::find(head.words.begin(), head.words.end(), title);
    if (found == head.words.end()) fail(fmt::format("has no column \"{}\"; expected the head of gar bench", title));
    return static_cast<std::size_t>(found - head.words.begin());
  }

  void add_labelled(std::string text, ResultRow row) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
    const BenchLabel label = parse_bench_label(text);
    if (label.is_reproducible) return;
    row.algorithm = known_algorithm(label.plan.empty() ? label.name : label.plan);
    row.label = printable(text);
    add_row(std::move(row));
  }

  bool is_label_below_ = false;  // the next line has it
  ResultRow below_;
  std::size_t time_ = 0;
  std::size_t algorithm_ = 0;
  std::int64_t num_ranks_ = 0;
};

/// A time that a result may have; -1 where it is missing, or null.
double seconds_or_nothing(const JsonPlace& item, std::string_view field) {
  const auto place = item.find(field);
  return place && !place->value().is_null() ? place->number(0, kMaxSeconds) : -1;
}

Origin origin_of(const JsonPlace& document) {
  constexpr std::size_t kMostFacts = 200;
  Origin out;
  const auto place = document.find("origin");
  if (!place) return out;
  for (const JsonPlace& fact : place->at("facts", "a list of facts").items("a list of facts")) {
    if (out.facts.size() == kMostFacts) break;
    out.facts.emplace_back(fact.at("name", "a name").text(), fact.at("value", "a text").text());
  }
  for (const JsonPlace& command : place->at("commands", "a list of commands").items("a list of commands")) {
    if (out.commands.size() < kMostFacts) out.commands.push_back(command.text());
  }
  return out;
}

}  // namespace

bool is_bench_head(std::string_view comment) {
  const auto has = [&](std::string_view title) { return comment.find(title) != std::string_view::npos; };
  return has("algbw") && has("busbw") && has("algorithm");
}

bool is_bench_opening(const TableLine& comment) { return comment.words.size() > 3 && comment.words[1] == "between"; }

std::unique_ptr<TableReader> bench_reader() { return std::make_unique<BenchReader>(); }

Results read_bench_document(std::string_view text, const std::string& source) {
  constexpr std::string_view kSchemas[] = {"gar.bench/2", "gar.bench/1"};
  const nlohmann::json json = parse_json(text, source);
  const JsonPlace document(json, source);
  check_schema(document, kSchemas, "what gar bench --json prints");
  const JsonPlace collective = document.at("collective", "\"allreduce\"");
  if (collective.text() != "allreduce") collective.refuse("\"allreduce\"");
  Results out;
  out.num_ranks = document.at("ranks", "the number of ranks").whole(1, kMaxServers);
  const JsonPlace results = document.at("results", "a list of results");
  for (const JsonPlace& item : results.items("a list of results")) {
    const double bytes = item.at("bytes", "bytes of the vector").number(0, kMaxResultBytes);
    const auto reproducible = item.find("reproducible");
    if (bytes == 0 || (reproducible && reproducible->boolean())) continue;
    const std::string algorithm = item.at("algorithm", "an algorithm").text();
    const auto resent = item.find("resent");
    const auto plan_place = item.find("plan");
    const std::string plan = plan_place ? plan_place->text() : algorithm;
    if (out.rows.size() == kMaxResults)
      results.fail(fmt::format("more than {} results; expected up to that", kMaxResults));
    out.rows.push_back({.line = 0,
                        .bytes = bytes,
                        .seconds = item.at("seconds", "seconds of one AllReduce").number(kLeastSeconds, kMaxSeconds),
                        .algorithm = algorithm == "native" ? "" : known_algorithm(plan),
                        .label = printable(plan.empty() || plan == algorithm ? algorithm : algorithm + ": " + plan),
                        .resent = resent && !resent->value().is_null() ? resent->number(0, kMaxResultBytes) : -1});
    out.details.push_back({seconds_or_nothing(item, "p10"), seconds_or_nothing(item, "p90"),
                           seconds_or_nothing(item, "predicted_seconds")});
  }
  out.origin = origin_of(document);
  if (out.rows.empty()) results.fail("holds no result of a vector; expected at least one");
  return out;
}

}  // namespace gar
