// What the readers of tables share.
#include "io/results/table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "gar/algorithms.hpp"
#include "gar/data_type.hpp"
#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "io/text_file.hpp"

namespace gar {
namespace {

/// Element types under names that are not ours.
struct TypeSize {
  std::string_view name;
  std::int64_t bytes;
};
constexpr TypeSize kForeignTypes[] = {{"fp8e4m3", 1}, {"f8e4m3", 1}, {"fp8e5m2", 1}, {"f8e5m2", 1},
                                      {"half", 2},    {"float", 4},  {"double", 8}};

std::optional<std::int64_t> bytes_of_type(std::string_view name) {
  for (int i = 0; i < kNumDataTypes; ++i) {
    if (to_string(static_cast<DataType>(i)) == name) return size_of(static_cast<DataType>(i));
  }
  for (const TypeSize& type : kForeignTypes) {
    if (type.name == name) return type.bytes;
  }
  return std::nullopt;
}

}  // namespace

void TableReader::fail(const std::string& problem) const {
  throw ParseError(fmt::format("{}: line {}: {}", *source_, line_, problem));
}

double TableReader::positive_number(std::string_view word, const char* column) const {
  const std::optional<double> value = to_number(word);
  if (!value || *value < 1e6 * kLeastSeconds || *value > 1e6 * kMaxSeconds) {
    fail(fmt::format("{} is '{}'; expected a number from {:g} to {:g}", column, printable(word), 1e6 * kLeastSeconds,
                     1e6 * kMaxSeconds));
  }
  return *value;
}

void TableReader::add_row(ResultRow row) {
  if (rows_.size() == kMaxResults) fail(fmt::format("more than {} rows; expected up to that", kMaxResults));
  row.line = line_;
  rows_.push_back(std::move(row));
}

void TableReader::check_all_reduce(const TableLine& line, double bytes) const {
  const Words& words = line.words;
  if (words.size() < 4)
    fail(fmt::format("has {} columns; expected size, count, type, operator and more", words.size()));
  if (words[3] == "none") {
    fail("redop is 'none', as in results of AllGather or Broadcast; expected those of AllReduce");
  }
  const std::optional<std::int64_t> size = bytes_of_type(words[2]);
  const std::optional<double> count = to_number(words[1]);
  if (size && count && std::abs(*count * static_cast<double>(*size) - bytes) > 8) {
    fail(fmt::format("{} elements of {} are not {} bytes, as in results of ReduceScatter; expected those of AllReduce",
                     printable(words[1]), printable(words[2]), printable(words[0])));
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

std::int64_t small_count(std::string_view word) {
  return is_whole(word) && word.size() <= 6 ? std::strtoll(std::string(word).c_str(), nullptr, 10) : 0;
}

std::string known_algorithm(const std::string& plan) {
  try {
    const AlgorithmSpec spec = parse_algorithm(plan);
    return needs_factors(spec) || is_tree_planner(spec) ? "" : to_string(spec);
  } catch (const InvalidArgument&) {
    return "";
  }
}

}  // namespace gar
