#include "apps/gar/views/diagnose_report.hpp"

#include <fmt/format.h>

#include "apps/gar/cli/output.hpp"
#include "gar/fit_report.hpp"

namespace gar::cli {
namespace {

Paint paint_of(Verdict verdict) {
  if (verdict == Verdict::kUnknown) return Paint::kYellow;
  return verdict == Verdict::kNormal ? Paint::kGreen : Paint::kRed;
}

Cell verdict_cell(Verdict verdict) { return {std::string(to_string(verdict)), paint_of(verdict)}; }

std::string head(const DiagnosedResults& what) {
  return fmt::format("{}: {}, {} ranks (as {} says)\n\n", escaped(what.file), what.results.format, what.num_ranks,
                     what.ranks_source == what.file ? "it" : escaped(what.ranks_source));
}

/// "ring", or with a ? what is taken for it.
std::string algorithm_words(const ResultRow& row, const Observation& observation) {
  return to_string(observation.algorithm) + (row.algorithm.empty() ? "?" : "");
}

std::string last_line(const char* words, Paint color_of, bool color) {
  return "\n" + paint(words, color_of, color) + "\n";
}

}  // namespace

std::string diagnose_text(const DiagnosedResults& what, const std::vector<Observation>& observations,
                          const Diagnosis& diagnosis, bool color) {
  Table table(
      {{"size", true}, {"algorithm"}, {"measured", true}, {"expected", true}, {"ratio", true}, {"verdict"}, {"row"}},
      2);
  bool has_assumed = false;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const Residual& r = diagnosis.rows[i];
    const ResultRow& row = what.results.rows[i];
    has_assumed = has_assumed || row.algorithm.empty();
    table.add_row({format_bytes(row.bytes), algorithm_words(row, observations[i]), format_seconds(r.measured_s),
                   format_seconds(r.fitted_s), fmt::format("{:.2f}", r.measured_s / r.fitted_s),
                   verdict_cell(verdict_of(diagnosis, i)), row.label});
  }
  std::string out = fitted(head(what)) + table.folded(color) + "\n";
  if (has_assumed) {
    out += list_item(
        "?: the results do not say which algorithm ran; they are compared with the best algorithm for that size "
        "by the model");
  }
  for (const std::string& line : diagnosis.words) out += list_item(line);
  if (!diagnosis.is_judged) return out + last_line("NOT judged: this profile is too rough", Paint::kYellow, color);
  return diagnosis.is_normal ? out : out + last_line("NOT normal for this network", Paint::kRed, color);
}

std::string diagnose_text(const DiagnosedResults& what, const LimitDiagnosis& diagnosis, bool color) {
  Table table({{"size", true}, {"measured", true}, {"busbw", true}, {"reached", true}, {"verdict"}, {"row"}});
  for (std::size_t i = 0; i < diagnosis.rows.size(); ++i) {
    const LimitRow& r = diagnosis.rows[i];
    const Cell verdict = r.is_judged ? verdict_cell(r.verdict) : Cell("-", Paint::kDim);
    table.add_row({format_bytes(r.bytes), format_seconds(r.measured_s), format_bytes(r.bus_bytes_per_s) + "/s",
                   fmt::format("{:.0f}%", 100 * r.share()), verdict, what.results.rows[i].label});
  }
  std::string out = fitted(head(what)) + table.folded(color) + "\n";
  for (const std::string& line : diagnosis.words) out += list_item(line);
  if (!diagnosis.is_judged) return out + last_line("NOT judged: these vectors are too short", Paint::kYellow, color);
  return diagnosis.is_normal ? out : out + last_line("NOT normal for such a network", Paint::kRed, color);
}

std::string diagnose_csv(const DiagnosedResults& what, const std::vector<Observation>& observations,
                         const Diagnosis& diagnosis) {
  std::string out =
      csv_line({"bytes", "algorithm", "is_assumed", "measured_seconds", "expected_seconds", "ratio", "verdict", "row"});
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const Residual& r = diagnosis.rows[i];
    const ResultRow& row = what.results.rows[i];
    out += csv_line({fmt::to_string(row.bytes), to_string(observations[i].algorithm),
                     row.algorithm.empty() ? "true" : "false", fmt::to_string(r.measured_s), fmt::to_string(r.fitted_s),
                     fmt::to_string(r.measured_s / r.fitted_s), std::string(to_string(verdict_of(diagnosis, i))),
                     row.label});
  }
  return out;
}

std::string diagnose_csv(const DiagnosedResults& what, const LimitDiagnosis& diagnosis) {
  std::string out = csv_line({"bytes", "measured_seconds", "busbw_bytes_per_s", "limit_seconds", "of_limit",
                              "expected_seconds", "verdict", "row"});
  for (std::size_t i = 0; i < diagnosis.rows.size(); ++i) {
    const LimitRow& r = diagnosis.rows[i];
    out += csv_line({fmt::to_string(r.bytes), fmt::to_string(r.measured_s), fmt::to_string(r.bus_bytes_per_s),
                     fmt::to_string(r.limit_s), fmt::to_string(r.share()), fmt::to_string(r.expected_s),
                     std::string(to_string(r.verdict)), what.results.rows[i].label});
  }
  return out;
}

}  // namespace gar::cli
