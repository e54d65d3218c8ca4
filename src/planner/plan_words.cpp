// Plans and choices in a few words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <cmath>
#include <functional>
#include <map>

#include "gar/planner.hpp"

namespace gar {

std::string fan_in_words(const SwitchChoice& choice) {
  return (choice.is_uneven ? "~" : "") + factor_words(choice.factors);
}

namespace {

/// Children that own the same.
struct EqualShares {
  std::string share;               // "25.0%"
  std::vector<std::string> names;  // of children, or "rack0 to rack3"
  std::size_t count = 0;
};

/// "rack0" and "rack3": names that differ in digits alone.
bool is_numbered_alike(std::string a, std::string b) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  std::erase_if(a, is_digit);
  std::erase_if(b, is_digit);
  return a == b;
}

/// By share, the largest first; neighbours are told by the first and the last of them.
std::vector<EqualShares> equal_shares(const std::vector<ChildShare>& shares) {
  std::map<double, EqualShares, std::greater<>> by_share;
  for (std::size_t begin = 0; begin < shares.size();) {
    const auto rounded = [&](std::size_t i) { return std::round(1e3 * shares[i].share); };
    std::size_t end = begin + 1;
    while (end < shares.size() && rounded(end) == rounded(begin) &&
           is_numbered_alike(shares[end].name, shares[begin].name)) {
      ++end;
    }
    EqualShares& group = by_share[rounded(begin)];
    group.share = shares[begin].share > 0 ? fmt::format("{:.1f}%", 100 * shares[begin].share) : "nothing";
    group.count += end - begin;
    if (end - begin > 2) {
      group.names.push_back(fmt::format("{} to {}", shares[begin].name, shares[end - 1].name));
    } else {
      for (std::size_t i = begin; i < end; ++i) group.names.push_back(shares[i].name);
    }
    begin = end;
  }
  std::vector<EqualShares> out;
  for (auto& [share, group] : by_share) out.push_back(std::move(group));
  return out;
}

// "a", "a and b", "a, b and c".
std::string list_words(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  return fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

}  // namespace

std::string share_words(const SwitchChoice& choice) {
  constexpr std::size_t kMost = 8;  // shares that are told
  constexpr std::size_t kLast = 3;
  const std::vector<EqualShares> groups = equal_shares(choice.shares);
  std::string out;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!out.empty()) out += "; ";
    if (groups.size() > kMost && i == kMost - kLast) {
      i = groups.size() - kLast;
      out += "...; ";
    }
    out += fmt::format("{} {}{}", list_words(groups[i].names), groups[i].share,
                       groups[i].count > 1 && groups[i].share != "nothing" ? " each" : "");
  }
  return out;
}

std::string plan_words(const std::vector<SwitchChoice>& switches) {
  std::string out;
  for (const SwitchChoice& s : switches) {
    out += fmt::format("{}{} {} {}{}", out.empty() ? "" : "; ", s.name, s.algorithm, fan_in_words(s),
                       s.is_rearranged ? " rearranged" : "");
  }
  return out.empty() ? "nothing to do" : out;
}

namespace {

// "groups of 8, then of 3"; the last group alone may have words of its own.
std::string group_words(const std::vector<std::int64_t>& factors, bool is_uneven = false) {
  return fmt::format("groups of {}{}", is_uneven ? "up to " : "", fmt::join(factors, ", then of "));
}

// How the children of a switch are combined; nothing for what has a name alone.
std::string combined_words(const SwitchChoice& s) {
  const std::string& name = s.algorithm;
  if (name == "cps") return fmt::format("all {} at once", s.factors.empty() ? 0 : s.factors.front());
  if (name == "hcps") return group_words(s.factors, s.is_uneven);
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
    const std::string name = fmt::format("{} {}", s.algorithm, fan_in_words(s));
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
  return fmt::format("{}:{}", choice.algorithm, fan_in_words(choice));
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
