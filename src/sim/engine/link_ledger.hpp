// What the links have carried, in all and by stage of the plan, for the report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/link_sums.hpp"

namespace gar::sim {

/// What a link did while flows of one stage were on it. While there are any, `sums` lack what the link's own sums say
/// now; they are complete again when the last of them has left.
struct StageLoad {
  std::uint32_t stage = 0;
  double num_flows = 0;
  double max_senders = 0;  ///< of all stages, when a flow of this one came or went last
  LinkSums sums;
};

/// Equal flows of a stage.
struct StageFlows {
  std::uint32_t stage = 0;
  double count = 0;
  double floats = 0;  ///< of each
};

/// The account of a link.
struct LinkAccount {
  double floats = 0;
  std::uint32_t current = 0;  ///< the entry of `stages` that was used last
  std::vector<StageLoad> stages;
};

class LinkLedger {
 public:
  explicit LinkLedger(std::size_t num_links) : accounts_(num_links) {}

  [[nodiscard]] const LinkAccount& of(LinkIndex link) const { return accounts_[link]; }
  [[nodiscard]] const std::vector<LinkAccount>& accounts() const { return accounts_; }

  /// Flows begin on a link that has these sums.
  void add(LinkIndex link, const StageFlows& flows, const LinkSums& sums) {
    StageLoad& load = find(accounts_[link], flows.stage);
    if (!(load.num_flows > 0)) load.sums -= sums;
    load.num_flows += flows.count;
    accounts_[link].floats += flows.count * flows.floats;
  }
  /// They end.
  void remove(LinkIndex link, const StageFlows& flows, const LinkSums& sums) {
    StageLoad& load = find(accounts_[link], flows.stage);
    load.num_flows -= flows.count;
    if (load.num_flows >= kNoFlow) return;
    load.num_flows = 0;
    load.sums += sums;
  }
  /// Notes how many distinct senders are on a link whose flows have just changed.
  void note_senders(LinkIndex link, double senders) {
    LinkAccount& account = accounts_[link];
    if (account.current >= account.stages.size()) return;
    StageLoad& load = account.stages[account.current];
    if (senders > load.max_senders) load.max_senders = senders;
  }
  /// The run is over: flows that are still on the link end.
  void close(LinkIndex link, const LinkSums& sums);
  /// Adds what has been added since `before` another `times` times.
  void repeat(double times, const std::vector<LinkAccount>& before);

 private:
  static StageLoad& find(LinkAccount& account, std::uint32_t stage) {
    std::vector<StageLoad>& stages = account.stages;
    if (account.current >= stages.size() || stages[account.current].stage != stage) {
      account.current = 0;
      while (account.current < stages.size() && stages[account.current].stage != stage) ++account.current;
      if (account.current == stages.size()) stages.push_back({.stage = stage, .sums = {}});
    }
    return stages[account.current];
  }

  std::vector<LinkAccount> accounts_;
};

}  // namespace gar::sim
