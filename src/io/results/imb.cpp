// IMB-MPI1: for every benchmark and every number of processes "# Benchmarking Allreduce", "# #processes = 4", a head
// "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]" and rows. Taken are the AllReduces of most processes, with
// t_max, when the last rank is done.
#include <fmt/format.h>

#include "io/results/formats.hpp"

namespace gar {
namespace {

class ImbReader final : public TableReader {
 public:
  void read_comment(const TableLine& line) override {
    const Words& words = line.words;
    if (words.size() > 1 && words[0] == "Benchmarking") is_all_reduce_ = words[1] == "Allreduce";
    if (words.size() < 3 || words[0] != "#processes" || !is_all_reduce_) return;
    const std::int64_t processes = small_count(words[2]);
    is_taken_ = processes >= num_ranks_;
    if (processes > num_ranks_) rows().clear();
    if (is_taken_) num_ranks_ = processes;
  }

  void read_row(const TableLine& line, double bytes) override {
    if (!is_all_reduce_ || !is_taken_) return;
    if (line.words.size() < 5) {
      fail(fmt::format("has {} columns; expected bytes, repetitions, t_min, t_max and t_avg", line.words.size()));
    }
    add_row({.bytes = bytes, .seconds = 1e-6 * positive_number(line.words[3], "t_max"), .algorithm = "", .label = ""});
  }

  [[nodiscard]] std::int64_t num_ranks() const override { return num_ranks_; }

 private:
  bool is_all_reduce_ = false;
  bool is_taken_ = false;
  std::int64_t num_ranks_ = 0;
};

}  // namespace

bool is_imb_opening(const TableLine& comment) {
  return comment.text.find("MPI Benchmarks") != std::string_view::npos ||
         (comment.words.size() > 1 && comment.words[0] == "Benchmarking");
}

bool is_imb_head(std::string_view comment) {
  return comment.find("#repetitions") != std::string_view::npos && comment.find("[usec]") != std::string_view::npos;
}

std::unique_ptr<TableReader> imb_reader() { return std::make_unique<ImbReader>(); }

}  // namespace gar
