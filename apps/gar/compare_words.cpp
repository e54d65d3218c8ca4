// Why a simulation and a prediction differ, in words.
#include "apps/gar/compare_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "apps/gar/cli/output.hpp"

namespace gar::cli {
namespace {

constexpr double kNotable = 0.01;  // of the whole time
constexpr std::size_t kMaxReasons = 3;

enum class Part { kLatency, kLink, kIncast, kCalculation };

struct Difference {
  Part part;
  double before = 0;
  double after = 0;
  [[nodiscard]] double seconds() const { return after - before; }
};

const char* name_of(Part part) {
  switch (part) {
    case Part::kLatency:
      return "latency";
    case Part::kLink:
      return "link time";
    case Part::kIncast:
      return "incast";
    case Part::kCalculation:
      break;
  }
  return "calculation";
}

// Those that matter, largest first.
std::vector<Difference> differences(const Terms& a, const Terms& b) {
  std::vector<Difference> out{{Part::kLatency, a.alpha, b.alpha},
                              {Part::kLink, a.beta, b.beta},
                              {Part::kIncast, a.epsilon, b.epsilon},
                              {Part::kCalculation, a.gamma + a.delta, b.gamma + b.delta}};
  const double least = kNotable * std::max(a.total(), b.total());
  out.erase(std::remove_if(out.begin(), out.end(), [&](const Difference& d) { return std::abs(d.seconds()) <= least; }),
            out.end());
  std::stable_sort(out.begin(), out.end(), [](const Difference& x, const Difference& y) {
    return std::abs(x.seconds()) > std::abs(y.seconds());
  });
  if (out.size() > kMaxReasons) out.resize(kMaxReasons);
  return out;
}

const char* reason(const Difference& d, const RunKind& kind) {
  const bool more = d.seconds() > 0;
  switch (d.part) {
    case Part::kLatency:
      if (kind.has_chunks) return more ? "steps of the chunks wait for each other" : "chunks hide each other's latency";
      return more ? "the critical path takes longer ways" : "ranks wait for their own data, not for the longest path";
    case Part::kLink:
      if (more) {
        return kind.has_chunks ? "stages of different chunks share links"
                               : "ranks that are ahead share links with those behind";
      }
      if (kind.has_chunks) return "links carry the next chunks while the first is on its way";
      return kind.barrier ? "short paths do not wait for long ones" : "short paths and early ranks do not wait";
    case Part::kIncast:
      if (more) {
        return kind.has_chunks ? "senders of different chunks meet on a link"
                               : "senders of different steps meet on a link";
      }
      return "senders start and finish at different times, so w falls";
    case Part::kCalculation:
      if (more) return kind.has_chunks ? "reductions of several chunks share the server" : "it is not hidden";
      break;
  }
  return kind.has_chunks ? "it overlaps with communication" : "the slowest server is not on the critical path";
}

std::string amount(const Difference& d) {
  std::string out = fmt::format("{}{}", d.seconds() > 0 ? "+" : "-", format_seconds(std::abs(d.seconds()), 3));
  if (d.before > 0) out += fmt::format(" ({:+.0f}%)", 100 * d.seconds() / d.before);
  return out;
}

}  // namespace

std::string why_simulated_differs(const Terms& predicted, const Terms& simulated, const RunKind& kind) {
  std::string out;
  for (const Difference& d : differences(predicted, simulated)) {
    out += fmt::format("{}{} {}: {}", out.empty() ? "" : "; ", name_of(d.part), amount(d), reason(d, kind));
  }
  return out.empty() ? "as predicted" : out;
}

std::string what_grew(const Terms& without, const Terms& with) {
  std::string out;
  for (const Difference& d : differences(without, with)) {
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name_of(d.part), amount(d));
  }
  return out.empty() ? "no notable difference" : out;
}

}  // namespace gar::cli
