// Pictures in letters: exact drawings, and that they fit the terminal whatever is in them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "gar/plot.hpp"

namespace gar {
namespace {

std::size_t columns_of(const std::string& line) {
  std::size_t out = 0;
  for (const char c : line) out += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return out;
}

void expect_fits(const std::string& text, std::size_t columns) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), columns) << line;
}

Chart two_lines() {
  return {.title = "time",
          .x_title = "size",
          .lines = {{.name = "ring", .points = {{1e3, 1e-4}, {1e6, 2e-4}, {1e9, 1e-1}}},
                    {.name = "cps", .points = {{1e3, 1e-5}, {1e6, 5e-4}, {1e9, 3e-1}}}}};
}

TEST(TextPlot, AChartInBraille) {
  EXPECT_EQ("\n" + chart_text(two_lines(), {.columns = 40, .lines = 6}), R"(
time
 100 ms ┤                         ⢀⡠⠔⣒ab
        │                     ⢀⡠⢔⣊⠥⠒⠉
        │                 ⣀⠤⢒⡪⠕⠊⠁
1.00 ms ┤            ⢀⣀⠤⣒⠭⠒⠉⠁
        │⠤⠒⠒⠒⠒⢒⣒⠶⠶⠒⠊⠉⠉⠉⠉
10.0 us ┤⠤⠤⠒⠊⠉⠁
        └┬────────┬────────┬──────────
       1 kB    100 kB    10 MB
                     size
a ring   b cps
)");
}

TEST(TextPlot, AChartInLetters) {
  EXPECT_EQ("\n" + chart_text(two_lines(), {.columns = 40, .lines = 6, .is_utf8 = false}), R"(
time
 100 ms +                             bb
        |                       bbbaaaaa
1.00 ms +                  bbbaaaaa
        |            bbbaaaaaa
10.0 us +aaaaaaaaaaaaaaa
        |bbbb
        ++---------+--------+---------+-
       1 kB     100 kB    10 MB     1 GB
                      size
a ring   b cps
)");
}

TEST(TextPlot, Bars) {
  const std::vector<Bar> bars{{"ring", {{"latency", 1e-3}, {"link time", 3e-3}}}, {"cps", {{"link time", 1.5e-3}}}};
  EXPECT_EQ("\n" + bars_text("where", bars, {.columns = 40}), R"(
where
ring ███████▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓ 4.000 ms
cps  ▓▓▓▓▓▓▓▓▓▓ 1.500 ms
█ latency   ▓ link time
)");
  EXPECT_EQ("\n" + bars_text("where", bars, {.columns = 40, .is_utf8 = false}), R"(
where
ring aaaaaaabbbbbbbbbbbbbbbbbbb 4.000 ms
cps  bbbbbbbbbb 1.500 ms
a latency   b link time
)");
}

TEST(TextPlot, TheEndOfABarIsExactToAnEighth) {
  const std::vector<Bar> bars{{"a", {{"t", 1}}}, {"b", {{"t", 0.5}}}, {"c", {{"t", 0.01}}}, {"d", {{"t", 0}}}};
  EXPECT_EQ("\n" + bars_text("t", bars, {.columns = 40}), R"(
t
a █████████████████████████████ 1.000 s
b ██████████████▌ 500.0 ms
c ▎ 10.00 ms
d 0 s
)");
}

TEST(TextPlot, ColoursAreOneForALineAndEndAgain) {
  const std::string text = chart_text(two_lines(), {.columns = 60, .lines = 8, .color = true});
  EXPECT_NE(text.find("\x1b[36ma\x1b[0m ring"), std::string::npos) << text;
  EXPECT_NE(text.find("\x1b[33mb\x1b[0m cps"), std::string::npos) << text;
  std::size_t begun = 0;
  std::size_t ended = 0;
  for (std::size_t at = text.find('\x1b'); at != std::string::npos; at = text.find('\x1b', at + 1)) {
    ++(text.compare(at, 4, "\x1b[0m") == 0 ? ended : begun);
  }
  EXPECT_EQ(begun, ended);
}

TEST(TextPlot, WhatIsPredictedSharesTheLetterOfWhatWasMeasured) {
  Chart chart = two_lines();
  chart.lines[0].color = 0;
  chart.lines[1].color = 0;
  chart.lines[1].is_dashed = true;
  const std::string text = chart_text(chart, {.columns = 60, .lines = 8});
  EXPECT_NE(text.find("\na ring\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("cps"), std::string::npos) << text;
  EXPECT_NE(text.find("dotted: predicted"), std::string::npos) << text;
}

TEST(TextPlot, OnePointAndWhatCannotBeShown) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Chart chart{
      .title = "c", .x_title = "x", .lines = {{.name = "one", .points = {{kNan, 1}, {5, 5}, {7, kInfinity}, {0, 1}}}}};
  for (const bool is_log : {true, false}) {
    chart.is_x_log = chart.is_y_log = is_log;
    for (const bool is_utf8 : {true, false}) {
      const std::string text = chart_text(chart, {.columns = 40, .lines = 5, .is_utf8 = is_utf8});
      EXPECT_NE(text.find("a one"), std::string::npos) << text;
      expect_fits(text, 40);
    }
  }
  chart.lines[0].points = {{kNan, kNan}};
  EXPECT_EQ(chart_text(chart, {}), "");
  EXPECT_EQ(bars_text("t", {{"a", {{"t", kNan}, {"u", -1}}}}, {}), "");
  EXPECT_EQ(bars_text("t", {}, {}), "");
}

TEST(TextPlot, FitsWhateverTheNamesAndNumbersAre) {
  const std::string name = "a\x1b[31m\nlong name \xc3\xa4\xc3\xb6\xc3\xbc that goes on and on and on and on and on";
  for (const std::size_t columns :
       {std::size_t{1}, std::size_t{38}, std::size_t{41}, std::size_t{80}, std::size_t{200}}) {
    for (const double largest : {1e-300, 1.0, 1e300}) {
      for (const bool is_utf8 : {true, false}) {
        for (const bool is_log : {true, false}) {
          Chart chart{.title = name,
                      .x_title = name,
                      .x_unit = ChartUnit::kNumber,
                      .is_x_log = is_log,
                      .is_y_log = is_log,
                      .lines = {}};
          for (int i = 0; i < 60; ++i) {
            chart.lines.push_back({.name = name, .points = {{1, largest}, {largest, largest / (i + 1)}}});
          }
          const std::string text = chart_text(chart, {.columns = columns, .is_utf8 = is_utf8});
          expect_fits(text, std::max<std::size_t>(columns, 30));
          EXPECT_EQ(text.find('\x1b'), std::string::npos);
          const std::string bars =
              bars_text(name, {{name, {{name, largest}, {"b", largest / 2}}}, {"c", {{"b", largest / 3}}}},
                        {.columns = columns, .is_utf8 = is_utf8});
          expect_fits(bars, std::max<std::size_t>(columns, 30));
          if (!is_utf8) {
            for (const char c : text + bars) EXPECT_LT(static_cast<unsigned char>(c), 0x80U);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace gar
