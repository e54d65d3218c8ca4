// Plans and choices in a few words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gar/planner.hpp"

namespace gar {

std::string plan_words(const std::vector<SwitchChoice>& switches) {
  std::string out;
  for (const SwitchChoice& s : switches) {
    out += fmt::format("{}{} {} {}{}", out.empty() ? "" : "; ", s.name, s.algorithm, factor_words(s.factors),
                       s.is_rearranged ? " rearranged" : "");
  }
  return out.empty() ? "nothing to do" : out;
}

namespace {

// "groups of 8, then of 3"; the last group alone may have words of its own.
std::string group_words(const std::vector<std::int64_t>& factors) {
  return fmt::format("groups of {}", fmt::join(factors, ", then of "));
}

// How the children of a switch are combined; nothing for what has a name alone.
std::string combined_words(const SwitchChoice& s) {
  const std::string& name = s.algorithm;
  if (name == "cps") return fmt::format("all {} at once", s.factors.empty() ? 0 : s.factors.front());
  if (name == "hcps") return group_words(s.factors);
  if (name == "ring") return s.factors.size() > 1 ? "rings in " + group_words(s.factors) : "a ring";
  if (name == "rhd") return "halves, then doubles";
  if (name == "acps") return "each piece goes straight to its owner";
  if (name == "shares") return "unequal shares of the vector";
  if (name == "hcps+exchange") return group_words(s.factors) + ", which exchange all that they hold";
  return "";
}

}  // namespace

std::string plan_sentence(const std::vector<SwitchChoice>& switches) {
  std::string out;
  for (const SwitchChoice& s : switches) {
    const std::string where = switches.size() > 1 ? s.name + ": " : "";
    const std::string name = fmt::format("{} {}", s.algorithm, factor_words(s.factors));
    const std::string words = combined_words(s);
    out += fmt::format("{}{}{}{}", out.empty() ? "" : "; ", where,
                       words.empty() ? name : fmt::format("{} ({})", words, name),
                       s.is_rearranged ? ", results on fewer servers first" : "");
  }
  return out.empty() ? "nothing to do" : out;
}

std::string exchange_words(const SwitchChoice& choice) {
  const bool ends_in_one = choice.algorithm.ends_with("+exchange");
  const bool is_one = choice.algorithm == "gather" || choice.algorithm.starts_with("recursive-");
  if (!ends_in_one && !is_one) return "";
  return fmt::format("{} exchange all that they hold, so nothing has to be gathered back: fewer steps, more bytes",
                     ends_in_one ? fmt::format("the last groups of {}", choice.factors.back()) : "groups");
}

std::string plan_name(const PlanAnswer& answer) {
  if (answer.switches.size() != 1 || answer.spec.name != "gentree+") return answer.plan.algorithm;
  const SwitchChoice& choice = answer.switches.front();
  if (find_algorithm(choice.algorithm) == nullptr) return answer.plan.algorithm;
  if (choice.algorithm == "recursive-doubling") return choice.algorithm;
  if (choice.factors.size() < 2) return choice.algorithm;
  return fmt::format("{}:{}", choice.algorithm, factor_words(choice.factors));
}

std::string choice_words(const PlanAnswer& answer, const Topology& topology) {
  if (answer.passed_over) {
    return fmt::format(
        "predicted to take {:.1f}% longer than {} on '{}', but such plans were measured to take {:.1f}% longer there "
        "than predicted, compared with rings",
        100 * answer.passed_over->excess, answer.passed_over->algorithm, topology.name(),
        100 * (answer.passed_over->overlap - 1));
  }
  std::string out = answer.switches.size() > 1 ? plan_words(answer.switches) + "; " : "";
  out += fmt::format("{}least predicted time on '{}'", answer.is_quick ? "all vectors at once; " : "", topology.name());
  for (const PlanCandidate& other : answer.considered) {
    // The same plan may be there under several names.
    const double excess = other.seconds() / answer.considered.front().seconds() - 1;
    if (excess > 1e-3) return fmt::format("{}; next is {}, {:.1f}% longer", out, other.algorithm, 100 * excess);
  }
  return out;
}

}  // namespace gar
