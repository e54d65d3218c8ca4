// nccl-tests' all_reduce_perf: size count type redop [root], then time algbw busbw #wrong once or twice.
#include <fmt/format.h>

#include "io/results/formats.hpp"

namespace gar {
namespace {

class NcclReader final : public TableReader {
 public:
  void read_comment(const TableLine& line) override {
    const Words& words = line.words;
    if (words.size() > 1 && words[0] == "Rank" && is_whole(words[1])) ++num_rank_lines_;
    if (is_nccl_opening(line)) num_devices_ = small_count(words[1]) * small_count(words[3]);
  }

  // Old versions have no column for the root; versions and options without "in-place" have half as many times.
  void read_row(const TableLine& line, double bytes) override {
    const Words& words = line.words;
    const std::size_t first_time = words.size() % 4 == 1 ? 5 : 4;
    if (words.size() != first_time + 4 && words.size() != first_time + 8) {
      fail(
          fmt::format("has {} columns; expected size count type redop root, then time algbw busbw #wrong once or twice",
                      words.size()));
    }
    check_all_reduce(line, bytes);
    add_time(words[first_time], bytes, "out of place");
    if (words.size() > first_time + 4) add_time(words[first_time + 4], bytes, "in place");
  }

  // One GPU in a process says nothing about the job.
  [[nodiscard]] std::int64_t num_ranks() const override {
    if (num_rank_lines_ > 0) return num_rank_lines_;
    return num_devices_ > 1 ? num_devices_ : 0;
  }

 private:
  void add_time(std::string_view microseconds, double bytes, const char* label) {
    add_row({.bytes = bytes, .seconds = 1e-6 * positive_number(microseconds, "time"), .algorithm = "", .label = label});
  }

  std::int64_t num_rank_lines_ = 0;
  std::int64_t num_devices_ = 0;  // of one process
};

}  // namespace

bool is_nccl_opening(const TableLine& comment) {
  const Words& words = comment.words;
  return words.size() > 3 && words[0] == "nThread" && words[2] == "nGpus";
}

bool is_nccl_head(std::string_view comment) {
  const auto has = [&](std::string_view title) { return comment.find(title) != std::string_view::npos; };
  return has("algbw") && has("busbw") && !has("algorithm");
}

std::unique_ptr<TableReader> nccl_reader() { return std::make_unique<NcclReader>(); }

}  // namespace gar
