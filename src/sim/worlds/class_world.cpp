#include "sim/worlds/class_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "sim/random.hpp"

namespace gar::sim {

namespace {

// Up to rounding of a plan's units.
bool is_same_part(double a, double b) { return std::abs(a - b) <= 1e-11 * b; }

}  // namespace

ClassWorld::ClassWorld(const Network& network, const PlanIndex& index, const Partition& partition)
    : network_(network), partition_(partition), num_steps_(index.num_steps()) {
  last_.assign(static_cast<std::size_t>(network.num_ranks()), kNone);
  WorkMeter messages(kFlowLimit, "the plan");
  for (std::uint32_t c = 0; c < num_ranks(); ++c) {
    servers_.push_back(network.server(partition.first_rank[c]));
    Programs programs(index.plan());
    programs.add(index, partition.first_rank[c], messages);
    add_class(c, programs);
  }
  // Paths are in the order of the flows already; patterns are sorted into it.
  std::stable_sort(memberships_.begin(), memberships_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::size_t k = 0;
  for (std::uint32_t a = 0; a < flows_.size(); ++a) {
    flows_[a].patterns = static_cast<std::uint32_t>(pattern_of_.size());
    for (; k < memberships_.size() && memberships_[k].first == a; ++k) pattern_of_.push_back(memberships_[k].second);
  }
  flows_.push_back(
      {0, static_cast<std::uint32_t>(path_.size()), static_cast<std::uint32_t>(pattern_of_.size()), 0, 0, 0, kNone});
  memberships_ = {};
  last_ = {};
  align_steps();
  count_receives();
  double flows = 0;
  for (const SimStep& s : steps_) flows += static_cast<double>(s.num_sends) * static_cast<double>(s.repeat);
  check_work(kFlowLimit, flows * static_cast<double>(index.plan().num_chunks), "the plan");
}

void ClassWorld::add_class(std::uint32_t c, const Programs& programs) {
  const auto first_flow = static_cast<std::uint32_t>(flows_.size());
  std::vector<Reached> reached;
  const auto add = [&](const SimStep& s, bool is_mirror) {
    SimStep out = s;
    if (is_mirror) {
      out.number = num_steps_ - s.number - s.repeat;
      out.adds = out.accesses = 0;
      std::swap(out.sent, out.received);
    }
    const std::uint32_t begin = s.sends + (is_mirror ? s.num_send_runs : 0);
    const std::uint32_t count = is_mirror ? s.num_recv_runs : s.num_send_runs;
    out.sends = static_cast<std::uint32_t>(flows_.size());
    if (count > 0) add_flows(c, &programs.run(begin), count, first_flow, reached);
    out.num_sends = static_cast<std::uint32_t>(flows_.size()) - out.sends;
    out.num_recv_runs = is_mirror ? s.num_sends : s.num_recvs;  // messages to be received, until they are counted
    out.num_send_runs = out.num_recvs = 0;
    for (std::uint32_t a = out.sends; a < flows_.size(); ++a) {
      num_flows_ += flows_[a].count * static_cast<double>(out.repeat);
    }
    steps_.push_back(out);
  };
  for (std::uint64_t k = programs.first(0); k < programs.end(0); ++k) add(programs.step(k), false);
  if (programs.is_mirrored()) {
    for (std::uint64_t k = programs.end(0); k-- > programs.first(0);) add(programs.step(k), true);
  }
  first_.push_back(steps_.size());
  length_.push_back(programs.length(0));
  add_patterns(c, first_flow, reached);
}

void ClassWorld::add_flows(std::uint32_t c, const PeerRun* runs, std::uint32_t num_runs, std::uint32_t first_of_class,
                           std::vector<Reached>& reached) {
  const std::int32_t rank = partition_.first_rank[c];
  const auto members = static_cast<double>(partition_.rank_count[c]);
  const auto first = static_cast<std::uint32_t>(flows_.size());
  std::vector<Draft> drafts;
  std::size_t last = 0;
  for (std::uint32_t k = 0; k < num_runs; ++k) {
    for (std::int32_t i = 0; i < runs[k].count; ++i) {
      const std::int32_t peer = runs[k].first + i * runs[k].stride;
      const std::uint32_t to = partition_.rank_class[static_cast<std::size_t>(peer)];
      const std::int32_t top = network_.meeting(rank, peer);
      const std::int32_t depth = network_.depth(top);
      const std::uint32_t known = last_[static_cast<std::size_t>(peer)];
      const std::uint32_t before = known != kNone && known >= first_of_class ? known : kNone;
      const auto fits = [&](const Draft& d) {
        return d.to == to && d.top == depth && d.before == before && is_same_part(d.part, runs[k].part);
      };
      if (last >= drafts.size() || !fits(drafts[last])) {
        last = static_cast<std::size_t>(std::find_if(drafts.begin(), drafts.end(), fits) - drafts.begin());
        if (last == drafts.size()) drafts.push_back({to, depth, peer, runs[k].part, before, 0});
      }
      drafts[last].per_member += 1;
      last_[static_cast<std::size_t>(peer)] = first + static_cast<std::uint32_t>(last);
      for (std::int32_t j = network_.leaf(peer); j != top; j = network_.span(j).parent) {
        reached.push_back({j, first + static_cast<std::uint32_t>(last)});
      }
    }
  }
  for (const Draft& d : drafts) {
    Flow flow;
    flow.to = d.to;
    flow.path = static_cast<std::uint32_t>(path_.size());
    flow.part = d.part;
    flow.latency = network_.latency(rank, d.peer, network_.meeting(rank, d.peer));
    flow.count = members * d.per_member;
    flow.before = d.before;
    network_.for_path(rank, d.peer, [&](std::int32_t i, bool is_down) {
      const std::uint32_t node = partition_.node_class[static_cast<std::size_t>(i)];
      path_.push_back({node * 2 + (is_down ? 1 : 0), flow.count / static_cast<double>(partition_.node_count[node])});
    });
    flows_.push_back(flow);
  }
}

void ClassWorld::add_patterns(std::uint32_t c, std::uint32_t first_flow, std::vector<Reached>& reached) {
  const auto members = static_cast<double>(partition_.rank_count[c]);
  const auto add_pattern = [&](std::uint32_t link, double senders) {
    patterns_.push_back({link, senders, 0});
    return static_cast<std::uint32_t>(patterns_.size() - 1);
  };
  // Up: every member is below one link of each class on its way to the root.
  const std::int32_t rank = partition_.first_rank[c];
  for (std::int32_t i = network_.leaf(rank); network_.span(i).parent >= 0; i = network_.span(i).parent) {
    const std::uint32_t node = partition_.node_class[static_cast<std::size_t>(i)];
    std::uint32_t pattern = 0;
    bool is_used = false;
    for (std::uint32_t a = first_flow; a < flows_.size(); ++a) {
      const std::uint32_t end = a + 1 < flows_.size() ? flows_[a + 1].path : static_cast<std::uint32_t>(path_.size());
      for (std::uint32_t k = flows_[a].path; k < end; ++k) {
        if (path_[k].link != node * 2) continue;
        if (!is_used) pattern = add_pattern(node * 2, members / static_cast<double>(partition_.node_count[node]));
        is_used = true;
        memberships_.emplace_back(a, pattern);
      }
    }
  }
  // Down: the links that the first member reaches, by the flows that reach them.
  const auto by_instance = [](const Reached& a, const Reached& b) {
    return a.instance != b.instance ? a.instance < b.instance : a.flow < b.flow;
  };
  if (!std::is_sorted(reached.begin(), reached.end(), by_instance)) {
    std::sort(reached.begin(), reached.end(), by_instance);
  }
  std::unordered_map<std::uint64_t, std::uint32_t> known;
  for (std::size_t k = 0; k < reached.size();) {
    const std::int32_t instance = reached[k].instance;
    const std::uint32_t node = partition_.node_class[static_cast<std::size_t>(instance)];
    const std::size_t begin = k;
    std::uint64_t hash = mix(node);
    std::uint32_t last = kNone;
    for (; k < reached.size() && reached[k].instance == instance; ++k) {
      if (reached[k].flow != last) hash = mix(hash ^ reached[k].flow);
      last = reached[k].flow;
    }
    const auto [it, is_new] = known.try_emplace(hash, 0);
    if (!is_new) {
      patterns_[it->second].senders += 1;  // links that the first member reaches, until they are all there
      continue;
    }
    it->second = add_pattern(node * 2 + 1, 1);
    last = kNone;
    for (std::size_t i = begin; i < k; ++i) {
      if (reached[i].flow != last) memberships_.emplace_back(reached[i].flow, it->second);
      last = reached[i].flow;
    }
  }
  for (const auto& [hash, pattern] : known) {
    Pattern& p = patterns_[pattern];
    p.senders = p.senders * members / static_cast<double>(partition_.node_count[p.link / 2]);
  }
}

// Equal steps that follow each other are one step with a repetition; they are cut so that all classes agree on where.
void ClassWorld::align_steps() {
  std::vector<std::int64_t> cuts;
  for (const SimStep& s : steps_) {
    cuts.push_back(s.number);
    cuts.push_back(s.number + s.repeat);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<SimStep> out;
  std::vector<std::uint64_t> first{0};
  for (std::uint32_t c = 0; c < num_ranks(); ++c) {
    for (std::uint64_t k = first_[c]; k < first_[c + 1]; ++k) {
      SimStep s = steps_[k];
      const std::int64_t end = s.number + s.repeat;
      for (auto cut = std::upper_bound(cuts.begin(), cuts.end(), s.number); s.number < end; ++cut) {
        s.repeat = *cut - s.number;
        out.push_back(s);
        s.number = *cut;
      }
    }
    first.push_back(out.size());
  }
  steps_ = std::move(out);
  first_ = std::move(first);
}

// A class receives flows by classes; each member must receive as many messages as its program says.
void ClassWorld::count_receives() {
  std::vector<double> received(steps_.size(), 0);
  const auto fail = [&](std::uint32_t c, std::int64_t number, const char* what) {
    throw PlanError(fmt::format("rank {}, step {}: {}; 'gar verify' says more", rank_id(c), number, what));
  };
  for (std::uint32_t c = 0; c < num_ranks(); ++c) {
    for (std::uint64_t k = first_[c]; k < first_[c + 1]; ++k) {
      const SimStep& s = steps_[k];
      for (std::uint32_t a = s.sends; a < s.sends + s.num_sends; ++a) {
        const std::uint32_t to = flows_[a].to;
        const auto begin = steps_.begin() + static_cast<std::ptrdiff_t>(first_[to]);
        const auto end = steps_.begin() + static_cast<std::ptrdiff_t>(first_[to + 1]);
        const auto it = std::lower_bound(begin, end, s.number,
                                         [](const SimStep& x, std::int64_t number) { return x.number < number; });
        if (it == end || it->number != s.number) fail(to, s.number, "it is sent a message that it does not receive");
        ++it->num_recvs;
        received[static_cast<std::size_t>(it - steps_.begin())] +=
            flows_[a].count / static_cast<double>(partition_.rank_count[to]);
      }
    }
  }
  for (std::uint32_t c = 0; c < num_ranks(); ++c) {
    for (std::uint64_t k = first_[c]; k < first_[c + 1]; ++k) {
      const double missing = static_cast<double>(steps_[k].num_recv_runs) - received[k];
      if (missing > 0.5) fail(c, steps_[k].number, "it waits for a message that no rank sends");
      if (missing < -0.5) fail(c, steps_[k].number, "it is sent a message that it does not receive");
    }
  }
}

}  // namespace gar::sim
