#include "sim/engine/link_ledger.hpp"

namespace gar::sim {

void LinkLedger::close(LinkIndex link, const LinkSums& sums) {
  for (StageLoad& load : accounts_[link].stages) {
    if (load.num_flows > 0) load.sums += sums;
  }
}

void LinkLedger::repeat(double times, const std::vector<LinkAccount>& before) {
  for (std::size_t i = 0; i < accounts_.size(); ++i) {
    LinkAccount& account = accounts_[i];
    account.floats += times * (account.floats - before[i].floats);
    for (std::size_t k = 0; k < account.stages.size(); ++k) {
      const bool was_there = k < before[i].stages.size();
      account.stages[k].sums.repeat(times, was_there ? before[i].stages[k].sums : LinkSums{});
    }
  }
}

}  // namespace gar::sim
