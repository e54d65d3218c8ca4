// A log of NCCL on a page: problems as its verdict, then how ranks reach each other and what was chosen.
#include <fmt/format.h>

#include "gar/explain_nccl.hpp"
#include "gar/format.hpp"
#include "gar/report.hpp"

namespace gar {

void add_to_report(ReportPage& page, const NcclLog& log, const std::string& source) {
  const NcclExplanation explained = explain_nccl_log(log);
  std::vector<std::string> facts;
  for (const NcclFinding& finding : explained.findings) {
    if (finding.is_problem) {
      page.verdict(Tone::kBad, fmt::format("{}: {}.", source, finding.words));
    } else {
      facts.push_back(finding.words);
    }
  }
  page.section("What NCCL chose: " + source);
  page.paragraph(explained.summary + ".");
  page.list(facts);
  std::vector<std::vector<std::string>> rows;
  for (const NcclLinkKind& kind : explained.links) {
    rows.push_back({kind.name, kind.is_local ? "inside of a host" : "between hosts", fmt::to_string(kind.count)});
  }
  if (!rows.empty()) page.paragraph("How the ranks reach each other:");
  page.table({"way", "where", "links"}, rows);
  rows.clear();
  for (const NcclChoice& choice : log.choices) {
    rows.push_back({format_bytes(choice.bytes), choice.algorithm + "/" + choice.protocol,
                    choice.seconds > 0 ? format_seconds(choice.seconds) : "", fmt::to_string(choice.count)});
  }
  if (!rows.empty()) page.paragraph("What it says it took:");
  page.table({"size", "taken", "expected", "times"}, rows);
  if (!explained.network.empty()) page.paragraph("A network guessed from the log, for -t: " + explained.network);
}

}  // namespace gar
