// What the fields of a plan file say about each other, wherever they stand in the file.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "gar/errors.hpp"
#include "gar/topology.hpp"
#include "io/plan/json.hpp"

namespace gar {
namespace {

class FieldChecker {
 public:
  FieldChecker(const Plan& plan, const std::string& source) : plan_(plan), source_(source) {}

  void run() {
    check_form();
    for (std::size_t i = 0; i < plan_.subplans.size(); ++i) check_subplan(i);
    if (!plan_.subplans.empty()) check_root();
    for (std::size_t r = 0; r < plan_.programs.size(); ++r) {
      for (std::size_t s = 0; s < plan_.programs[r].steps.size(); ++s) {
        check_messages(plan_.programs[r].steps[s].sends, {r, s, 1});
        check_messages(plan_.programs[r].steps[s].recvs, {r, s, 2});
      }
    }
  }

 private:
  struct Place {
    std::size_t rank;
    std::size_t step;
    int list;
  };

  [[noreturn]] void fail(const std::string& where, const std::string& what) const {
    throw ParseError(fmt::format("{}: {}: {}", source_, where, what));
  }

  void check_form() const {
    if (!plan_.programs.empty() && !plan_.subplans.empty())
      fail("programs", "is there as well as \"subplans\"; expected one of them");
    if (plan_.programs.empty() && plan_.subplans.empty() && plan_.num_ranks > 1)
      fail("subplans",
           fmt::format("is missing or empty; expected \"subplans\" or \"programs\" for {} ranks", plan_.num_ranks));
    if (!plan_.programs.empty() && std::cmp_not_equal(plan_.programs.size(), plan_.num_ranks))
      fail("programs",
           fmt::format("has {} programs; expected num_ranks, which is {}", plan_.programs.size(), plan_.num_ranks));
    if (plan_.subplans.size() >= static_cast<std::size_t>(kMaxServers))
      fail("subplans", fmt::format("has {} sub-plans; expected below {}", plan_.subplans.size(), kMaxServers));
    if (plan_.subplans.empty() && plan_.root != kLeaf)
      fail("root", fmt::format("is {}, but there are no sub-plans; expected -1", plan_.root));
  }

  void check_subplan(std::size_t i) {
    const auto where = [&] { return fmt::format("subplans[{}]", i); };
    std::int64_t ranks = 0;
    int depth = 1;
    for (const SubPlanRun& run : plan_.subplans[i].children) {
      const bool is_leaf = run.subplan == kLeaf;
      const std::int64_t each = is_leaf ? 1 : num_ranks_[static_cast<std::size_t>(run.subplan)];
      if (run.count > (kMaxServers - ranks) / each)
        fail(where(), fmt::format("has more ranks than {}, the most that is accepted", kMaxServers));
      ranks += run.count * each;
      if (!is_leaf) depth = std::max(depth, depth_[static_cast<std::size_t>(run.subplan)] + 1);
    }
    if (depth > kMaxDepth)
      fail(where(), fmt::format("is nested {} sub-plans deep; expected up to {}", depth, kMaxDepth));
    for (std::size_t s = 0; s < plan_.subplans[i].stages.size(); ++s) {
      for (const Piece& piece : plan_.subplans[i].stages[s].target) {
        if (piece.owner >= ranks)
          fail(fmt::format("{}.stages[{}]", where(), s),
               fmt::format("places units [{},{}) on rank {}; expected 0 to {}, the ranks of this sub-plan", piece.begin,
                           piece.end, piece.owner, ranks - 1));
        if (piece.begin > piece.end || piece.end > plan_.num_units)
          fail(fmt::format("{}.stages[{}]", where(), s), fmt::format("places the units [{},{}); expected within [0,{})",
                                                                     piece.begin, piece.end, plan_.num_units));
      }
    }
    num_ranks_.push_back(ranks);
    depth_.push_back(depth);
  }

  void check_root() const {
    if (std::cmp_greater_equal(plan_.root, plan_.subplans.size()))
      fail("root", fmt::format("is {}; expected -1 to {}", plan_.root, plan_.subplans.size() - 1));
    const std::int64_t ranks = plan_.root == kLeaf ? 1 : num_ranks_[static_cast<std::size_t>(plan_.root)];
    if (ranks != plan_.num_ranks)
      fail("num_ranks", fmt::format("is {}, but the root sub-plan has {} ranks", plan_.num_ranks, ranks));
  }

  void check_messages(const std::vector<Message>& messages, const Place& place) const {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Message& m = messages[i];
      if (m.peer < plan_.num_ranks && m.begin <= m.end && m.end <= plan_.num_units) continue;
      const std::string where = fmt::format("programs[{}][{}][{}]", place.rank, place.step, place.list);
      if (m.peer >= plan_.num_ranks)
        fail(where, fmt::format("message {} has the peer {}; expected 0 to {}", i, m.peer, plan_.num_ranks - 1));
      fail(where,
           fmt::format("message {} has the units [{},{}); expected within [0,{})", i, m.begin, m.end, plan_.num_units));
    }
  }

  const Plan& plan_;
  const std::string& source_;
  std::vector<std::int64_t> num_ranks_;  // per sub-plan
  std::vector<int> depth_;
};

}  // namespace

void check_plan_fields(const Plan& plan, const std::string& source) { FieldChecker(plan, source).run(); }

}  // namespace gar
