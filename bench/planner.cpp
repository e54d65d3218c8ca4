// How long planning takes, and how much memory, next to the aims.
//
// Every line is the median of 20 runs (of 5 where one run takes more than a second; the column says so) with the
// fastest and the slowest, the median as a multiple of the reference of table.hpp, and the peak memory of the line
// itself. Planning includes finding the plan, its chunks and the choices per switch, not reading the network.
#include "gar/planner.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gar/topology.hpp"
#include "table.hpp"

namespace {

using gar::bench::Sample;
using gar::bench::time_text;

constexpr double kSize = 1e8;  // floats

/// Starts counting the peak anew where the system lets us.
void reset_peak() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

/// Since reset_peak(); of the whole process where that cannot be reset.
double peak_of_line_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024 / 1e6;
  }
  return gar::bench::peak_megabytes();
}

struct Aim {
  double seconds = 0;  ///< 0: none
  double megabytes = 0;
};

std::string aim_text(const Aim& aim, double seconds, double megabytes) {
  if (aim.seconds == 0) return "";
  std::string text = "< " + time_text(aim.seconds);
  if (aim.megabytes > 0) text += fmt::format(", {:.0f} MB", aim.megabytes);
  const bool met = seconds < aim.seconds && (aim.megabytes == 0 || megabytes < aim.megabytes);
  return text + (met ? ": met" : ": MISSED");
}

class Table {
 public:
  Table() {
    fmt::print("{:<52}{:>5}{:>12}{:>25}{:>13}{:>10}  {}\n", "what", "runs", "median", "fastest..slowest", "x reference",
               "peak", "aim");
    const Sample s = gar::bench::measure(gar::bench::hash_steps, 20);
    reference_s_ = s.median_s;
    print("reference: 10 million dependent hash steps", s, {});
  }

  template <class F>
  void line(const std::string& what, F f, const Aim& aim) const {
    reset_peak();
    const bool is_slow = gar::bench::measure(f, 1).median_s > 1;
    print(what, gar::bench::measure(f, is_slow ? 5 : 20), aim);
  }

 private:
  void print(const std::string& what, const Sample& s, const Aim& aim) const {
    const double peak = peak_of_line_megabytes();
    fmt::print("{:<52}{:>5}{:>12}{:>25}{:>13.3g}{:>7.0f} MB  {}\n", what, s.num_runs, time_text(s.median_s),
               time_text(s.min_s) + ".." + time_text(s.max_s), s.median_s / reference_s_, peak,
               aim_text(aim, s.median_s, peak));
    std::fflush(stdout);
  }

  double reference_s_ = 0;
};

/// Racks of 30, 31, 32, ... servers; the last one takes what is left, which no other has.
gar::Topology all_different(std::int64_t servers) {
  const gar::PaperParams p;
  std::vector<gar::Node> nodes{{"server", p.alpha, p.server_link, p.server, {}}};
  gar::Node root{"root", p.alpha, {}, {}, {}};
  const auto add_rack = [&](std::int64_t size) {
    nodes.push_back({"rack", p.alpha, p.inner_link, {}, {{0, size}}});
    root.children.push_back({static_cast<gar::NodeId>(nodes.size()) - 1, 1});
  };
  std::int64_t size = 30;
  for (; servers > 2 * size; servers -= size++) add_rack(size);
  add_rack(servers);
  nodes.push_back(std::move(root));
  const auto top = static_cast<gar::NodeId>(nodes.size()) - 1;
  return gar::Topology("all-different", std::move(nodes), top);
}

}  // namespace

int main() {
  const Table table;
  struct Case {
    std::string what;
    gar::Topology topology;
    Aim aim;
  };
  const gar::Topology different = all_different(10'000);
  const std::vector<Case> cases{
      {"sym512", gar::builtin_topology("sym512"), {}},
      {"tree:8x50x100 (40,000)", gar::topology_from_spec("tree:8x50x100"), {0.05, 0}},
      {fmt::format("{} racks, all different (10,000)", different.num_children(different.root())), different, {5, 0}},
      {"tree:64x125x125 (1,000,000)", gar::topology_from_spec("tree:64x125x125"), {1, 500}}};
  for (const Case& c : cases) {
    table.line(
        "gentree, " + c.what, [&] { return static_cast<double>(gar::gentree(c.topology, kSize).plan.subplans.size()); },
        c.aim);
    table.line(
        "gentree+, " + c.what,
        [&] { return static_cast<double>(gar::gentree_plus(c.topology, kSize).plan.num_chunks); }, c.aim);
  }
}
