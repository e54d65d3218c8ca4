// Costs, and the difference of two costs, in words.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gar/explain.hpp"

namespace gar {

namespace {

const char* name_of(CostTerm term, bool with_letters) {
  switch (term) {
    case CostTerm::kLatency:
      return with_letters ? "latency (alpha)" : "latency";
    case CostTerm::kLinkTime:
      return with_letters ? "link time (beta)" : "link time";
    case CostTerm::kAdding:
      return with_letters ? "adding (gamma)" : "adding";
    case CostTerm::kMemoryAccess:
      return with_letters ? "memory access (delta)" : "memory access";
    case CostTerm::kIncast:
      return with_letters ? "incast (epsilon)" : "incast";
    case CostTerm::kHandling:
      return with_letters ? "handling messages (mu)" : "handling messages";
    case CostTerm::kCalculation:
      break;
  }
  return with_letters ? "calculation (gamma, delta)" : "calculation";
}

double notable_seconds(const std::vector<TermDifference>& sorted, const Terms& before, const Terms& after,
                       const DifferenceOptions& options) {
  double whole = 0;
  switch (options.share) {
    case NotableShare::kOfLargest:
      whole = std::abs(sorted.front().seconds());
      break;
    case NotableShare::kOfTotal:
      whole = std::abs(after.total() - before.total());
      break;
    case NotableShare::kOfCost:
      whole = std::max(before.total(), after.total());
      break;
  }
  return options.notable * whole;
}

std::string joined_by(const char* separator, const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : separator) + part;
  return out;
}

std::string sign_of(const TermDifference& d) { return d.seconds() > 0 ? "+" : "-"; }

/// "+120 ms (+40%)".
std::string amount_of(const TermDifference& d) {
  std::string out = sign_of(d) + format_seconds(std::abs(d.seconds()), 3);
  if (d.before > 0) out += fmt::format(" ({:+.0f}%)", 100 * d.seconds() / d.before);
  return out;
}

std::string words_of(const TermDifference& d, const DifferenceOptions& options) {
  const char* name = name_of(d.term, options.with_letters);
  const std::string seconds = format_seconds(std::abs(d.seconds()), 3);
  switch (options.style) {
    case DifferenceStyle::kSigned:
      return fmt::format("{}{} {}", sign_of(d), seconds, name);
    case DifferenceStyle::kRelative:
      return fmt::format("{} {}", name, amount_of(d));
    case DifferenceStyle::kMoreLess:
      break;
  }
  return fmt::format("{} {} {}", seconds, d.seconds() > 0 ? "more" : "less", name);
}

const char* words_for_none(DifferenceStyle style) {
  switch (style) {
    case DifferenceStyle::kSigned:
      return "the same";
    case DifferenceStyle::kRelative:
      return "no notable difference";
    case DifferenceStyle::kMoreLess:
      break;
  }
  return "no difference in any term";
}

/// Of a simulation: few causes, and what a server calculates is one of them.
constexpr DifferenceOptions kOfSimulations{.style = DifferenceStyle::kRelative,
                                           .share = NotableShare::kOfCost,
                                           .notable = 0.01,
                                           .joins_calculation = true,
                                           .max_terms = 3,
                                           .with_letters = false};

const char* reason_of(const TermDifference& d, const RunKind& kind) {
  const bool more = d.seconds() > 0;
  switch (d.term) {
    case CostTerm::kLatency:
      if (kind.has_chunks) return more ? "steps of the chunks wait for each other" : "chunks hide each other's latency";
      return more ? "the critical path takes longer ways" : "ranks wait for their own data, not for the longest path";
    case CostTerm::kLinkTime:
      if (more) {
        return kind.has_chunks ? "stages of different chunks share links"
                               : "ranks that are ahead share links with those behind";
      }
      if (kind.has_chunks) return "links carry the next chunks while the first is on its way";
      return kind.barrier ? "short paths do not wait for long ones"
                          : "short paths and early ranks need not wait for the others";
    case CostTerm::kIncast:
      if (more) {
        return kind.has_chunks ? "senders of different chunks meet on a link"
                               : "senders of different steps meet on a link";
      }
      return "senders start and finish at different times, so fewer meet on a link";
    case CostTerm::kHandling:
      if (more) {
        return kind.has_chunks ? "messages of several chunks share the server"
                               : "messages of different steps share the server";
      }
      return kind.has_chunks ? "it overlaps with communication" : "the server with the most messages is not waited for";
    default:
      break;
  }
  if (more) return kind.has_chunks ? "reductions of several chunks share the server" : "it is not hidden";
  return kind.has_chunks ? "it overlaps with communication" : "the slowest server is not on the critical path";
}

}  // namespace

std::vector<TermDifference> term_differences(const Terms& before, const Terms& after,
                                             const DifferenceOptions& options) {
  std::vector<TermDifference> out{{CostTerm::kLatency, before.alpha, after.alpha},
                                  {CostTerm::kLinkTime, before.beta, after.beta}};
  if (options.joins_calculation) {
    out.push_back({CostTerm::kIncast, before.epsilon, after.epsilon});
    out.push_back({CostTerm::kCalculation, before.gamma + before.delta, after.gamma + after.delta});
  } else {
    out.push_back({CostTerm::kAdding, before.gamma, after.gamma});
    out.push_back({CostTerm::kMemoryAccess, before.delta, after.delta});
    out.push_back({CostTerm::kIncast, before.epsilon, after.epsilon});
  }
  out.push_back({CostTerm::kHandling, before.mu, after.mu});
  std::stable_sort(out.begin(), out.end(), [](const TermDifference& a, const TermDifference& b) {
    return std::abs(a.seconds()) > std::abs(b.seconds());
  });
  const double least = notable_seconds(out, before, after, options);
  std::erase_if(out, [&](const TermDifference& d) { return d.seconds() == 0 || std::abs(d.seconds()) < least; });
  if (out.size() > options.max_terms) out.resize(options.max_terms);
  return out;
}

std::string difference_words(const Terms& before, const Terms& after, const DifferenceOptions& options) {
  std::vector<std::string> parts;
  for (const TermDifference& d : term_differences(before, after, options)) parts.push_back(words_of(d, options));
  return parts.empty() ? words_for_none(options.style) : joined_by(", ", parts);
}

std::string winner_words(const Contestant& better, const Contestant& other, bool with_letters) {
  const double seconds = better.terms.total();
  const double ratio = seconds > 0 ? other.terms.total() / seconds : 1;
  constexpr double kEqual = 1 + 1e-9;
  constexpr double kNearlyEqual = 1.0005;
  if (ratio < kEqual) return fmt::format("{} and {} take the same time", better.name, other.name);
  if (ratio < kNearlyEqual) return fmt::format("{} and {} take nearly the same time", better.name, other.name);
  constexpr double kInPercent = 1.1;
  constexpr double kNoDecimals = 100;
  const std::string factor = ratio < kInPercent
                                 ? fmt::format("{:.1f}% faster than", 100 * (ratio - 1))
                                 : fmt::format("{:.{}f}x as fast as", ratio, ratio < kNoDecimals ? 2 : 0);
  const DifferenceOptions options{.share = NotableShare::kOfTotal, .with_letters = with_letters};
  std::string out = fmt::format("{} is {} {}: {}", better.name, factor, other.name,
                                difference_words(other.terms, better.terms, options));
  if (better.num_chunks > 1 && other.num_chunks > 1) {
    return out +
           fmt::format(" on the critical path ({} and {} chunks, which overlap)", better.num_chunks, other.num_chunks);
  }
  if (better.num_chunks > 1)
    out += fmt::format(" on the critical path, where its {} chunks overlap", better.num_chunks);
  if (other.num_chunks > 1) {
    out += fmt::format(" on the critical path, where the {} chunks of {} overlap", other.num_chunks, other.name);
  }
  return out;
}

std::string why_simulated_differs(const Terms& predicted, const Terms& simulated, const RunKind& kind) {
  std::vector<std::string> parts;
  for (const TermDifference& d : term_differences(predicted, simulated, kOfSimulations)) {
    parts.push_back(fmt::format("{}: {}", words_of(d, kOfSimulations), reason_of(d, kind)));
  }
  return parts.empty() ? "as predicted" : joined_by("; ", parts);
}

std::string what_grew(const Terms& without, const Terms& with) {
  return difference_words(without, with, kOfSimulations);
}

}  // namespace gar
