// The page: what holds its parts together, and how text gets onto it.
#include <fmt/format.h>

#include "gar/format.hpp"
#include "gar/version.hpp"
#include "report/html.hpp"

namespace gar {

namespace report {

std::string html(std::string_view text) {
  std::string out;
  for (const char c : escaped(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string table_html(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"table\"><table>\n<thead><tr>";
  for (const std::string& title : titles) out += "<th scope=\"col\">" + html(title) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      constexpr std::size_t kLong = 40;  // a sentence and no number
      const char* cell = row[i].size() > kLong ? "<td class=\"words\">" : "<td>";
      out += (i == 0 ? "<th scope=\"row\">" : cell) + html(row[i]) + (i == 0 ? "</th>" : "</td>");
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace report

namespace {

// Nothing is loaded, and nothing runs: the page needs no script.
constexpr std::string_view kHead = R"(<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
)";

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --back: #ffffff; --paper: #f6f7f9; --text: #1b1f24; --quiet: #57606a; --grid: #e3e6ea;
  --good: #116329; --bad: #b42318; --accent: #0a58ca;
  --s0: #0b62b8; --s1: #c2410c; --s2: #0f766e; --s3: #7e22ce; --s4: #be123c; --s5: #854d0e; --s6: #1d9bd1; --s7: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --back: #14171c; --paper: #1d2129; --text: #e8eaed; --quiet: #a3adb8;
  --grid: #2b313a; --good: #7ddf95; --bad: #ff8f85; --accent: #7cb4ff;
  --s0: #6db3ff; --s1: #ff9a5c; --s2: #4fd1c5; --s3: #c792ff; --s4: #ff7d95; --s5: #e0b060; --s6: #7fe0ff; --s7: #aab2bd; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0.2rem 0 0.6rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 0.4rem; border-bottom: 1px solid var(--grid); }
h3 { font-size: 1rem; margin: 1.2rem 0 0.2rem; }
p { margin: 0.4rem 0; }
.verdict { background: var(--paper); border-left: 4px solid var(--accent); border-radius: 4px; padding: 0.4rem 0.9rem; }
.verdict p { font-size: 1.08rem; }
.good::before { content: "\2713\00a0"; color: var(--good); font-weight: 700; }
.bad::before { content: "\2717\00a0"; color: var(--bad); font-weight: 700; }
.quiet { color: var(--quiet); font-size: 0.9rem; }
.scroll { overflow-x: auto; }
.scroll:focus-visible { outline: 3px solid var(--accent); }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { text-align: right; padding: 2px 10px 2px 0; border-bottom: 1px solid var(--grid); white-space: nowrap; }
th:first-child { text-align: left; }
td.words { text-align: left; white-space: normal; min-width: 16rem; }
pre { background: var(--paper); border-radius: 6px; padding: 0.6rem; white-space: pre-wrap; }
figure { margin: 0.4rem 0; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--text); font: 12px system-ui, sans-serif; }
svg .tick { fill: var(--quiet); }
@media (max-width: 560px) { svg text { font-size: 15.5px; } }
.grid { stroke: var(--grid); }
.line { fill: none; stroke-width: 2; } .dashed { stroke-dasharray: 6 4; }
.interval { stroke-width: 1.5; opacity: 0.6; }
.s0 { --own: var(--s0); } .s1 { --own: var(--s1); } .s2 { --own: var(--s2); } .s3 { --own: var(--s3); }
.s4 { --own: var(--s4); } .s5 { --own: var(--s5); } .s6 { --own: var(--s6); } .s7 { --own: var(--s7); }
.line, .interval, .hollow { stroke: var(--own); } .dot, .part { fill: var(--own); }
.hollow { fill: none; stroke-width: 1.5; stroke-dasharray: 6 4; } .whisker { fill: none; stroke: var(--text); stroke-width: 1.5; }
.legend { display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; font-size: 0.9rem; }
.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 5px; background: var(--own); }
details { margin: 0.3rem 0 0.8rem; }
@media print { details { display: none; } }
)";

}  // namespace

ReportPage::ReportPage(std::string title) : title_(std::move(title)) {}

void ReportPage::verdict(Tone tone, const std::string& sentence) {
  const std::string_view kind = tone == Tone::kGood ? " class=\"good\"" : tone == Tone::kBad ? " class=\"bad\"" : "";
  verdicts_ += fmt::format("<p{}>{}</p>\n", kind, report::html(sentence));
}

void ReportPage::section(const std::string& title) { body_ += "<h2>" + report::html(title) + "</h2>\n"; }

void ReportPage::heading(const std::string& title) { body_ += "<h3>" + report::html(title) + "</h3>\n"; }

void ReportPage::paragraph(const std::string& text) { body_ += "<p>" + report::html(text) + "</p>\n"; }

void ReportPage::list(const std::vector<std::string>& items) {
  if (items.empty()) return;
  body_ += "<ul>\n";
  for (const std::string& item : items) body_ += "<li>" + report::html(item) + "</li>\n";
  body_ += "</ul>\n";
}

void ReportPage::code(const std::string& text) {
  // Line ends are kept here and nowhere else.
  std::string lines;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines += report::html(std::string_view(text).substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  body_ += "<pre>" + lines + "</pre>\n";
}

void ReportPage::chart(const Chart& chart) { body_ += report::chart_html(chart); }

void ReportPage::bars(const std::string& title, const std::vector<Bar>& bars) {
  body_ += report::bars_html(title, bars);
}

void ReportPage::table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows) {
  if (!rows.empty()) body_ += report::table_html(titles, rows);
}

std::string ReportPage::html(const std::string& date) const {
  const std::string made = date.empty() ? "" : ", " + report::html(date);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n{}<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n"
      "<h1>{}</h1>\n{}{}</main>\n<footer><p class=\"quiet\">Made by gar {}{}. This page loads nothing and runs "
      "nothing.</p></footer>\n</body>\n</html>\n",
      kHead, report::html(title_), kStyle, report::html(title_),
      verdicts_.empty() ? "" : "<div class=\"verdict\">\n" + verdicts_ + "</div>\n", body_, version(), made);
}

}  // namespace gar
