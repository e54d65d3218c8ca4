// What makes SimGrid fast here, found by trial with 3.32:
//  - a star zone, which stores one route per server, and plain link latencies;
//  - network/optim:Full. It was faster than Lazy in every case; and Lazy leaves out links when flows enter them at the
//    same moment after their latency;
//  - raw contexts with small stacks;
//  - sends that are waited for: detached ones are on a list of all detached ones, which is searched when one ends;
//  - few messages per actor: whenever one ends, the list of its actor's activities is searched. A rank with many
//    messages leaves them to clerks.
#include "simgrid_star.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace gar::bench {
namespace {

namespace sg = simgrid::s4u;

/// SimGrid counts whole bytes; so many of them make up a float that rounding does not matter.
constexpr double kBytesPerFloat = 4096;
constexpr std::int64_t kMessagesPerClerk = 12;
constexpr std::size_t kStepsToKeep = 10;
struct Send {
  sg::Mailbox* to = nullptr;
  std::uint64_t bytes = 0;
};
struct ClerkStep {
  std::uint32_t first_send = 0;
  std::uint32_t end_send = 0;
  std::uint32_t num_receives = 0;
  std::uint32_t mailbox = 0;
};
/// Somebody who sends and receives a part of a rank's messages.
struct Clerk {
  std::vector<Send> sends;
  std::vector<ClerkStep> steps;
  std::vector<sg::Mailbox*> mailboxes;  // by step, modulo their number
  std::vector<sg::CommPtr> held;        // sends that nobody has waited for yet
  sg::SemaphorePtr may_start, has_finished;
};
struct Rank {
  std::vector<double> calculation_s;  // by step
  std::vector<std::unique_ptr<Clerk>> clerks;
};

class Star {
 public:
  Star(const Plan& plan, const Topology& topology, double size_floats, SimGridDriver driver)
      : driver_(driver), index_(plan), topology_(topology) {
    if (topology.height(topology.root()) != 1) throw std::invalid_argument("run_simgrid_on_star: not a star");
    floats_per_unit_ = size_floats / static_cast<double>(plan.num_units);
    latency_s_ = topology.path_latency(0, 1);
    // Ranks that do the same things are never two steps apart.
    num_mailboxes_ = driver == SimGridDriver::kEager ? index_.num_steps() : 2;
    make_network(plan.num_ranks);
    for (std::int64_t r = 0; r < plan.num_ranks && driver == SimGridDriver::kTuned; ++r) {
      for (const Step& step : index_.program(r).steps) {
        num_clerks_ = std::max(num_clerks_, static_cast<std::int64_t>(step.sends.size()) / kMessagesPerClerk);
      }
    }
    ranks_.resize(static_cast<std::size_t>(plan.num_ranks));
    for (std::size_t r = 0; r < ranks_.size(); ++r) make_clerks(r);
    for (std::size_t r = 0; r < ranks_.size(); ++r) read_program(static_cast<std::int64_t>(r));
  }

  void create_actors(double& end_s) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (std::size_t c = 1; c < ranks_[r].clerks.size(); ++c) {
        sg::Actor::create("clerk", hosts_[r], [this, &clerk = *ranks_[r].clerks[c]] {
          for (std::size_t s = 0; s < clerk.steps.size(); ++s) {
            clerk.may_start->acquire();
            run_clerk(clerk, s);
            clerk.has_finished->release();
          }
        });
      }
      sg::Actor::create("rank", hosts_[r], [this, &rank = ranks_[r], &end_s] {
        run_rank(rank);
        end_s = std::max(end_s, sg::Engine::get_clock());
        wait_for_sends(*rank.clerks[0]);
      });
    }
  }

  [[nodiscard]] double num_flows() const { return num_flows_; }

 private:
  [[nodiscard]] const Node& server(std::int64_t rank) const {
    return topology_.node(topology_.child_at(topology_.root(), rank).node);
  }

  void make_network(std::int64_t num_ranks) {
    sg::NetZone* zone = sg::create_star_zone("star");
    for (std::int64_t r = 0; r < num_ranks; ++r) {
      const LinkParams params = server(r).uplink;
      const double bytes_per_s = kBytesPerFloat / params.beta;
      sg::Host* host = zone->create_host("host" + std::to_string(r), 1e9);
      sg::Link* up = zone->create_link("up" + std::to_string(r), bytes_per_s)->set_latency(latency_s_ / 2)->seal();
      sg::Link* down = zone->create_link("down" + std::to_string(r), bytes_per_s)->set_latency(latency_s_ / 2);
      if (params.epsilon > 0) {
        down->set_sharing_policy(sg::Link::SharingPolicy::NONLINEAR, [params](double, int flows) {
          const double excess = std::max(flows - params.incast_threshold, 0.0);
          return kBytesPerFloat / (params.beta + excess * params.epsilon);
        });
      }
      down->seal();
      zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {sg::LinkInRoute(up)}, false);
      zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, {sg::LinkInRoute(down)}, false);
      hosts_.push_back(host);
    }
    zone->seal();
  }

  void make_clerks(std::size_t r) {
    for (std::int64_t c = 0; c < num_clerks_; ++c) {
      auto clerk = std::make_unique<Clerk>();
      for (std::int64_t i = 0; i < num_mailboxes_; ++i) {
        clerk->mailboxes.push_back(
            sg::Mailbox::by_name(std::to_string(r) + "/" + std::to_string(c) + "/" + std::to_string(i)));
      }
      clerk->may_start = sg::Semaphore::create(0);
      clerk->has_finished = sg::Semaphore::create(0);
      ranks_[r].clerks.push_back(std::move(clerk));
    }
  }

  // The clerk number `from` modulo the number of clerks takes the message of rank `from`.
  [[nodiscard]] Clerk& receiver(std::int64_t rank, std::int64_t from) const {
    return *ranks_[static_cast<std::size_t>(rank)].clerks[static_cast<std::size_t>(from % num_clerks_)];
  }

  void read_program(std::int64_t r) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    for (const Step& step : index_.program(r).steps) {
      const auto mailbox = static_cast<std::size_t>(step.number % num_mailboxes_);
      for (const auto& clerk : rank.clerks) {
        const auto first = static_cast<std::uint32_t>(clerk->sends.size());
        clerk->steps.push_back({first, first, 0, static_cast<std::uint32_t>(mailbox)});
      }
      std::map<std::int32_t, std::int64_t> units_to;
      for (const Message& m : step.sends) units_to[m.peer] += m.end - m.begin;
      for (const auto& [to, units] : units_to) {
        const double bytes = static_cast<double>(units) * floats_per_unit_ * kBytesPerFloat;
        Clerk& clerk = receiver(r, to);
        clerk.sends.push_back({receiver(to, r).mailboxes[mailbox], static_cast<std::uint64_t>(std::llround(bytes))});
        clerk.steps.back().end_send += 1;
      }
      num_flows_ += static_cast<double>(units_to.size());
      std::map<std::int32_t, double> floats_from;
      for (const Message& m : step.recvs)
        floats_from[m.peer] += static_cast<double>(m.end - m.begin) * floats_per_unit_;
      for (const auto& [from, floats] : floats_from) receiver(r, from).steps.back().num_receives += 1;
      const ServerParams& own = server(r).server;
      // All blocks of a step are the same one.
      const auto fan_in = static_cast<double>(floats_from.size()) + 1;
      const bool is_reduced = !step.recvs.empty() && step.recvs.front().accumulate;
      rank.calculation_s.push_back(
          is_reduced ? floats_from.begin()->second * ((fan_in - 1) * own.gamma + (fan_in + 1) * own.delta) : 0);
    }
  }

  void run_clerk(Clerk& clerk, std::size_t s) const {
    static int nothing = 0;
    int* received = nullptr;
    const ClerkStep& step = clerk.steps[s];
    sg::Mailbox* mailbox = clerk.mailboxes[step.mailbox];
    // Eager ranks keep their sends to the end, so there must not be many steps.
    const bool is_detached =
        driver_ == SimGridDriver::kPlain || (driver_ == SimGridDriver::kEager && clerk.steps.size() > kStepsToKeep);
    std::vector<sg::CommPtr> receives(step.num_receives);
    for (sg::CommPtr& comm : receives) comm = mailbox->get_async<int>(&received);
    for (std::uint32_t i = step.first_send; i < step.end_send; ++i) {
      sg::CommPtr comm = clerk.sends[i].to->put_init(&nothing, clerk.sends[i].bytes);
      if (is_detached) {
        comm->detach();
      } else {
        comm->start();
        clerk.held.push_back(std::move(comm));
      }
    }
    // Where everybody does the same at the same time, they end when the receives do.
    if (driver_ == SimGridDriver::kTuned) wait_for_sends(clerk);
    for (const sg::CommPtr& comm : receives) comm->wait();
  }

  static void wait_for_sends(Clerk& clerk) {
    for (const sg::CommPtr& comm : clerk.held) comm->wait();
    clerk.held.clear();
  }

  void run_rank(Rank& rank) const {
    if (driver_ == SimGridDriver::kEager) {
      for (sg::Mailbox* mailbox : rank.clerks[0]->mailboxes) mailbox->set_receiver(sg::Actor::self());
    }
    for (std::size_t s = 0; s < rank.calculation_s.size(); ++s) {
      for (std::size_t c = 1; c < rank.clerks.size(); ++c) rank.clerks[c]->may_start->release();
      run_clerk(*rank.clerks[0], s);
      for (std::size_t c = 1; c < rank.clerks.size(); ++c) rank.clerks[c]->has_finished->acquire();
      if (rank.calculation_s[s] > 0) sg::this_actor::sleep_for(rank.calculation_s[s]);
    }
  }

  SimGridDriver driver_;
  PlanIndex index_;
  const Topology& topology_;
  std::int64_t num_mailboxes_ = 0;
  double floats_per_unit_ = 0;
  double latency_s_ = 0;
  double num_flows_ = 0;
  std::int64_t num_clerks_ = 1;
  std::vector<sg::Host*> hosts_;
  std::vector<Rank> ranks_;
};

}  // namespace

SimGridResult run_simgrid_on_star(const Plan& plan, const Topology& star, double size_floats, SimGridDriver driver) {
  std::vector<std::string> words{"simgrid",
                                 "--log=root.thres:critical",
                                 "--cfg=network/model:CM02",
                                 "--cfg=network/optim:Full",
                                 "--cfg=network/TCP-gamma:1e30",
                                 "--cfg=network/latency-factor:1",
                                 "--cfg=network/bandwidth-factor:1",
                                 "--cfg=network/crosstraffic:0",
                                 "--cfg=network/weight-S:0",
                                 "--cfg=contexts/factory:raw",
                                 "--cfg=contexts/stack-size:16",
                                 "--cfg=contexts/guard-size:0"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  sg::Engine engine(&count, arguments.data());
  Star run(plan, star, size_floats, driver);
  SimGridResult result;
  result.flows = run.num_flows();
  run.create_actors(result.seconds);
  engine.run();
  return result;
}

}  // namespace gar::bench
