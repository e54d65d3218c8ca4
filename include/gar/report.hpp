// Pages for people: a report of measurements as one HTML file without anything outside of it, and the explorer page
// with a network inside.
//
// Whatever comes from a file or a person is text and stays text: nothing of it can become markup or run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gar/fit_report.hpp"
#include "gar/model.hpp"
#include "gar/profile.hpp"
#include "gar/results_io.hpp"
#include "gar/scene.hpp"
#include "gar/topology.hpp"

namespace gar {

/// How a sentence of the verdict is to be taken.
enum class Tone { kGood, kPlain, kBad };

/// One value of a curve, with the interval in which it lies.
struct ChartPoint {
  double x = 0;      ///< above 0 on a logarithmic axis
  double y = 0;      ///< above 0 on a logarithmic axis
  double low = -1;   ///< lower end of its interval; -1: none
  double high = -1;  ///< upper end of its interval; -1: none
};
/// A line of a chart.
struct ChartLine {
  std::string name;                     ///< in the legend
  std::vector<ChartPoint> points = {};  ///< ascending by x
  bool is_dashed = false;               ///< for what is predicted and not measured
  int color = -1;  ///< lines of one number have one colour, and the first of them the legend; -1: its own
};
/// What an axis counts, and so how its ticks are written.
enum class ChartUnit { kSeconds, kBytes, kNumber, kPercent };
/// Lines over a logarithmic or linear x, y logarithmic where that is asked for.
struct Chart {
  std::string title;                       ///< above it
  std::string x_title;                     ///< below the x axis
  ChartUnit x_unit = ChartUnit::kBytes;    ///< of the x axis
  ChartUnit y_unit = ChartUnit::kSeconds;  ///< of the y axis
  bool is_x_log = true;                    ///< logarithmic x
  bool is_y_log = true;                    ///< logarithmic y
  std::vector<ChartLine> lines = {};       ///< in the order of the legend
};
/// A part of a stacked bar.
struct BarPart {
  std::string name;  ///< in the legend; the same name has the same colour
  double value = 0;  ///< in seconds
};
/// A stacked bar.
struct Bar {
  std::string name;                 ///< beside it
  std::vector<BarPart> parts = {};  ///< from the left
};

/// What was measured against the size of the vector, a line for each contestant, and dashed what was predicted of it.
Chart results_chart(const Results& results);
/// What the links of a level do when senders meet.
struct IncastCharts {
  int level = 0;  ///< as in Profile::levels
  Chart times;    ///< of all to all, and of one to one, against the number of ranks
  Chart resent;   ///< TCP segments sent again; no lines: they were not counted
};
/// One for each level of links that was measured with meshes.
std::vector<IncastCharts> incast_charts(const FitReport& report);
/// The terms of a cost as a bar.
Bar terms_bar(const std::string& name, const Terms& terms);
/// Where the time of the critical paths goes, in the simulator and by the model.
std::vector<Bar> simulation_bars(const std::vector<SimulatedPlan>& plans);

/// A page that is written from top to bottom; verdicts come first wherever they were added.
class ReportPage {
 public:
  /// `title` is the page's heading.
  explicit ReportPage(std::string title);

  void verdict(Tone tone, const std::string& sentence);               ///< a line of the verdict, which opens the page
  void section(const std::string& title);                             ///< a heading
  void heading(const std::string& title);                             ///< a smaller one, within a section
  void paragraph(const std::string& text);                            ///< a paragraph
  void list(const std::vector<std::string>& items);                   ///< a list
  void code(const std::string& text);                                 ///< commands, or what a program printed
  void chart(const Chart& chart);                                     ///< a picture; lines without points are left out
  void bars(const std::string& title, const std::vector<Bar>& bars);  ///< stacked bars of seconds
  /// A table; the first column is that of names, the others are numbers.
  void table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows);

  /// The whole page, made by the given version of the program at this moment ("2026-11-19T04:00:00Z", may be empty).
  [[nodiscard]] std::string html(const std::string& date) const;

 private:
  std::string title_;
  std::string verdicts_;
  std::string body_;
};

/// Adds a profile: what the network is, its parameters with intervals, errors and regret, what could not be told.
void add_to_report(ReportPage& page, const Profile& profile, const std::string& source);
/// Adds a fit: the profile, incast curves with their causes, what was held out beside what was predicted.
void add_to_report(ReportPage& page, const FitReport& report, const std::string& source);
/// Adds results of a benchmark: curves with intervals, and how they compare with what the profile (may be null) says,
/// and with the lower limit of the network; without one (null), of the profile's.
void add_to_report(ReportPage& page, const Results& results, const Profile* profile, const std::string& source,
                   const Topology* network = nullptr);
/// Adds what NCCL logged and what it means.
void add_to_report(ReportPage& page, const NcclLog& log, const std::string& source);
/// Adds simulated plans, best first: times, where they go, what limits each stage.
void add_to_report(ReportPage& page, const Scene& scene, const std::vector<SimulatedPlan>& plans);
/// Adds what the files hold: profiles, measurements (without a profile of the same network they are fitted), results
/// of benchmarks and logs of NCCL, in any number. Throws ParseError that names file, field and what is accepted.
void add_files_to_report(ReportPage& page, const std::vector<std::string>& paths);
/// Adds the machine that a page was made on, and the commands.
void add_to_report(ReportPage& page, const Origin& origin);

/// What the explorer page starts with; the network of a profile when no topology is given.
struct ExplorerStart {
  std::optional<Topology> topology = {};  ///< the network
  std::string spec = {};                  ///< how it can be typed: "tree:16x24"; empty: only its text
  std::string name = {};                  ///< of its file; empty: none
  std::optional<Profile> profile = {};    ///< measured parameters, with their intervals
  double bytes = 0;                       ///< of the vector; 0: the page's own choice
};
/// The page with that inside. `empty_page` is what `make web` has built. Throws ParseError when it is no such page.
std::string explorer_page(std::string_view empty_page, const ExplorerStart& start);

}  // namespace gar
