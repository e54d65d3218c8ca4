// osu_allreduce: "# Size  Avg Latency(us)", then a size in bytes and a time in every line.
#include <fmt/format.h>

#include "io/results/formats.hpp"
#include "io/text_file.hpp"

namespace gar {
namespace {

class OsuReader final : public TableReader {
 public:
  void read_comment(const TableLine& line) override {
    if (is_osu_opening(line) && line.text.find("Allreduce") == std::string_view::npos) {
      fail(fmt::format("'{}' is not about AllReduce; expected the output of osu_allreduce", printable(line.text)));
    }
  }

  void read_row(const TableLine& line, double bytes) override {
    if (line.words.size() < 2) fail("has 1 column; expected a size and its average latency, \"4096  12.5\"");
    add_row({.bytes = bytes,
             .seconds = 1e-6 * positive_number(line.words[1], "the average latency"),
             .algorithm = "",
             .label = ""});
  }
};

}  // namespace

bool is_osu_opening(const TableLine& comment) {
  return comment.words[0] == "OSU" && comment.text.find("Test") != std::string_view::npos;
}

bool is_osu_head(std::string_view comment) { return comment.find("Latency(us)") != std::string_view::npos; }

std::unique_ptr<TableReader> osu_reader() { return std::make_unique<OsuReader>(); }

}  // namespace gar
