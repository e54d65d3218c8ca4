// What changed between two profiles of one network.
//
// A change is significant when the two 95% intervals do not overlap. That is a strict rule: two numbers of the same
// precision must lie about four standard deviations of one of them apart.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "gar/errors.hpp"
#include "gar/profile.hpp"

namespace gar {
namespace {

/// Numbers trees so that two of the same form, whatever their names and parameters, get the same number.
class TreeForms {
 public:
  int form(const Topology& topology) {
    std::vector<int> ids(static_cast<std::size_t>(topology.num_nodes()));
    for (NodeId id = 0; id < topology.num_nodes(); ++id) {
      std::vector<std::pair<int, std::int64_t>> runs;
      for (const ChildRun& run : topology.node(id).children) {
        const int child = ids[static_cast<std::size_t>(run.node)];
        if (!runs.empty() && runs.back().first == child) {
          runs.back().second += run.count;
        } else {
          runs.emplace_back(child, run.count);
        }
      }
      ids[static_cast<std::size_t>(id)] =
          known_.try_emplace(std::move(runs), static_cast<int>(known_.size())).first->second;
    }
    return ids[static_cast<std::size_t>(topology.root())];
  }

 private:
  std::map<std::vector<std::pair<int, std::int64_t>>, int> known_;
};

std::string percent(double share) {
  return share < 0.095 ? fmt::format("{:.1f}%", 100 * share) : fmt::format("{:.0f}%", 100 * share);
}

/// "30% more latency", "3.2 times the latency", "30% less latency".
std::string amount(double before, double after, const char* thing) {
  if (before == after) return fmt::format("the same {}", thing);
  if (before == 0) return fmt::format("{} where there was none", thing);
  const double ratio = after / before;
  if (ratio >= 2) return fmt::format("{:.1f} times the {}", ratio, thing);
  return fmt::format("{} {} {}", percent(std::abs(ratio - 1)), ratio > 1 ? "more" : "less", thing);
}

std::string longer(double before, double after) {
  if (before == after) return "takes as long as before";
  if (before == 0 || after >= 2 * before)
    return before == 0 ? "takes time where it took none" : fmt::format("takes {:.1f} times as long", after / before);
  return fmt::format("takes {} {}", percent(std::abs(after / before - 1)), after > before ? "longer" : "less");
}

std::string from_to(const Estimate& before, const Estimate& after, const char* unit) {
  return fmt::format("({:.3g} -> {:.3g} {})", before.value, after.value, unit);
}

class Comparison {
 public:
  Comparison(const Profile& before, const Profile& after) : before_(before), after_(after) {}

  std::vector<ProfileChange> run() {
    for (std::size_t h = 0; h < before_.levels.size(); ++h) compare_level(h);
    compare_links();
    add("gamma", before_.gamma, after_.gamma,
        fmt::format("adding {} {}", longer(before_.gamma.value, after_.gamma.value),
                    from_to(before_.gamma, after_.gamma, "s per float")));
    add("delta", before_.delta, after_.delta,
        fmt::format("memory access {} {}", longer(before_.delta.value, after_.delta.value),
                    from_to(before_.delta, after_.delta, "s per float")));
    if (before_.mu.is_identified || after_.mu.is_identified) {
      add("mu", before_.mu, after_.mu,
          fmt::format("handling a message {} {}", longer(before_.mu.value, after_.mu.value),
                      from_to(before_.mu, after_.mu, "s per message")));
    }
    add("2 beta + gamma", before_.two_beta_plus_gamma, after_.two_beta_plus_gamma,
        fmt::format("sending twice and adding (2 beta + gamma) {} {}",
                    longer(before_.two_beta_plus_gamma.value, after_.two_beta_plus_gamma.value),
                    from_to(before_.two_beta_plus_gamma, after_.two_beta_plus_gamma, "s per float")));
    compare_cores();
    std::stable_sort(changes_.begin(), changes_.end(), [](const ProfileChange& a, const ProfileChange& b) {
      return std::pair(!a.is_significant, -size(a)) < std::pair(!b.is_significant, -size(b));
    });
    return std::move(changes_);
  }

 private:
  static double size(const ProfileChange& change) {
    if (change.before.value == change.after.value) return 0;
    if (change.before.value <= 0 || change.after.value <= 0) return std::numeric_limits<double>::max();
    return std::abs(std::log(change.after.value / change.before.value));
  }

  void add(std::string what, const Estimate& before, const Estimate& after, std::string words) {
    const bool is_known = before.is_identified && after.is_identified;
    const bool is_apart = before.high < after.low || after.high < before.low;
    if (!is_known)
      words += fmt::format("; not identified {}", after.is_identified    ? "before"
                                                  : before.is_identified ? "now"
                                                                         : "in either");
    changes_.push_back({std::move(what), before, after, is_known && is_apart, std::move(words)});
  }

  void compare_beta(const std::string& what, const std::string& who, const Estimate& before, const Estimate& after) {
    // Bandwidth is 1 / beta.
    add(what, before, after,
        fmt::format("{}: {} {}", who, amount(after.value, before.value, "bandwidth"),
                    from_to(before, after, "s per float")));
  }

  void compare_level(std::size_t h) {
    const LevelProfile& a = before_.levels[h];
    const LevelProfile& b = after_.levels[h];
    const std::string links = fmt::format("links of level {} ({})", h, b.name);
    const std::string of_links = " of the " + links;
    add("alpha" + of_links, a.alpha, b.alpha,
        fmt::format("{}: {} {}", links, amount(a.alpha.value, b.alpha.value, "latency"),
                    from_to(a.alpha, b.alpha, "s")));
    compare_beta("beta" + of_links, links, a.beta, b.beta);
    const std::string verdict =
        a.incast == b.incast ? "" : fmt::format(", incast was {} and is {}", to_string(a.incast), to_string(b.incast));
    add("epsilon" + of_links, a.epsilon, b.epsilon,
        fmt::format("{}: {} {}{}", links, amount(a.epsilon.value, b.epsilon.value, "cost of incast"),
                    from_to(a.epsilon, b.epsilon, "s per float and sender"), verdict));
    const Estimate& t = a.incast_threshold;
    const Estimate& u = b.incast_threshold;
    add("incast_threshold" + of_links, t, u,
        t.value == u.value
            ? fmt::format("{}: incast begins above {:g} senders as before", links, u.value)
            : fmt::format("{}: incast begins above {:g} senders instead of {:g}", links, u.value, t.value));
  }

  /// A link that one of the profiles does not list is like the others of its level there.
  static const Estimate& beta_of(const Profile& profile, const LinkProfile& link) {
    for (const LinkProfile& other : profile.links) {
      if (other.name == link.name) return other.beta;
    }
    return profile.levels[static_cast<std::size_t>(link.level)].beta;
  }

  void compare_links() {
    std::map<std::string, const LinkProfile*> all;
    for (const LinkProfile& link : before_.links) all[link.name] = &link;
    for (const LinkProfile& link : after_.links) all[link.name] = &link;
    for (const auto& [name, link] : all) {
      if (link->level < 0 || std::cmp_greater_equal(link->level, after_.levels.size())) continue;
      compare_beta("beta of the link of " + name, (link->level == 0 ? "link of " : "uplink of ") + name,
                   beta_of(before_, *link), beta_of(after_, *link));
    }
  }

  void compare_cores() {
    if (before_.cores == after_.cores) return;
    const auto words = [](double cores) {
      return cores == 0 ? std::string("has a core of its own")
                        : fmt::format("shares {:g} cores with those on its switch", cores);
    };
    const Estimate a{before_.cores, before_.cores, before_.cores, true};
    const Estimate b{after_.cores, after_.cores, after_.cores, true};
    add("cores", a, b, fmt::format("a rank {}, where it {} before", words(after_.cores), words(before_.cores)));
  }

  const Profile& before_;
  const Profile& after_;
  std::vector<ProfileChange> changes_;
};

}  // namespace

std::vector<ProfileChange> compare_profiles(const Profile& before, const Profile& after) {
  TreeForms forms;
  const bool is_same = forms.form(before.topology) == forms.form(after.topology);
  if (!is_same || before.levels.size() != after.levels.size()) {
    throw InvalidArgument(
        fmt::format("the profiles are of different networks: '{}' has {} servers below {} switches, '{}' has {} below "
                    "{}; expected two profiles of trees with the same form",
                    before.topology.name(), before.topology.num_servers(), before.topology.num_switches(),
                    after.topology.name(), after.topology.num_servers(), after.topology.num_switches()));
  }
  return Comparison(before, after).run();
}

}  // namespace gar
