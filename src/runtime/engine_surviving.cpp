// Operations of communicators that go on without ranks that are lost (on_failure = shrink; docs/failures.md).
//
// An operation is given to the caller when all members have its result: after it the ranks meet. When a peer is lost
// before that, the survivors agree (runtime/survival) who they are and whether all of them have the result. If so it
// stands, over the members of before; otherwise it runs again between the survivors, from inputs that nothing has
// written to.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "runtime/engine.hpp"
#include "runtime/survival/peer_lost.hpp"

namespace gar {

namespace {

bool can_run_again(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kAllGather;
}

/// Where the members are among those that a call was made for.
std::vector<std::size_t> positions(const Members& members, const Members& layout) {
  std::vector<std::size_t> out;
  for (const int rank : members.ranks) {
    const auto found = std::lower_bound(layout.ranks.begin(), layout.ranks.end(), rank);
    out.push_back(static_cast<std::size_t>(found - layout.ranks.begin()));
  }
  return out;
}

bool is_written(const CollectiveCall& call, int num_ranks) {
  const auto in = reinterpret_cast<std::uintptr_t>(call.in);
  const auto out = reinterpret_cast<std::uintptr_t>(call.out);
  const auto in_end = in + static_cast<std::uintptr_t>(in_bytes(call, num_ranks));
  const auto out_end = out + static_cast<std::uintptr_t>(out_bytes(call, num_ranks));
  return in < out_end && out < in_end;
}

}  // namespace

void Engine::survive(std::unique_ptr<Survival> survival, const std::string& algorithm) {
  if (survival == nullptr) {
    throw InvalidArgument(fmt::format(
        "on_failure = shrink over {}; expected a communicator over threads, shared memory or TCP", transport_->name()));
  }
  if (options_.on_failure == OnFailure::kShrinkAndGrow && survival->grower() == nullptr) {
    throw InvalidArgument(
        fmt::format("on_failure = shrink and grow over {}; expected a communicator over TCP", transport_->name()));
  }
  survival_ = std::move(survival);
  options_.algorithm = algorithm;
  visible_ = last_members_ = survival_->members();
}

Path Engine::path_to_run(const CollectiveCall& call, bool explores, bool is_meeting) {
  if (survival_ == nullptr) return path_of(call, explores, is_meeting);
  check_process(name_of(call.collective));
  if (!can_run_again(call.collective)) {
    throw InvalidArgument(
        fmt::format("{} on a communicator with on_failure = shrink; expected all_reduce, reduce_scatter, all_gather or "
                    "barrier, which can "
                    "run again between the ranks that are left",
                    name_of(call.collective)));
  }
  // How it runs depends on who is there when it does. The caller's memory is laid out for those whom the caller sees.
  Path out;
  const std::lock_guard lock(mutex_);
  out.members = visible_;
  return out;
}

void Engine::see(const std::shared_ptr<const Members>& members) {
  if (members != nullptr && (visible_ == nullptr || members->generation > visible_->generation)) visible_ = members;
}

/// Null: nobody is ever lost here.
std::shared_ptr<const Members> Engine::visible() const {
  if (survival_ == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  return visible_;
}

int Engine::visible_size() const {
  const std::shared_ptr<const Members> seen = visible();
  return seen == nullptr ? size() : static_cast<int>(seen->ranks.size());
}

int Engine::visible_rank() const {
  const std::shared_ptr<const Members> seen = visible();
  if (seen == nullptr) return rank();
  const auto found = std::lower_bound(seen->ranks.begin(), seen->ranks.end(), survival_->first_rank());
  return static_cast<int>(found - seen->ranks.begin());
}

Members Engine::visible_members() const {
  if (const std::shared_ptr<const Members> seen = visible()) return *seen;
  Members out;
  for (int rank = 0; rank < size(); ++rank) out.ranks.push_back(rank);
  return out;
}

Members Engine::members_of(const Task& task) {
  {
    const std::lock_guard lock(mutex_);
    if (task.members != nullptr) return *task.members;
  }
  return visible_members();
}

void Engine::run_surviving(const CollectiveCall& call, const Path& path) {
  const std::shared_ptr<const Members> layout = path.members;
  const auto num_ranks = static_cast<int>(layout->ranks.size());
  CollectiveCall again = call;
  if (call.count > 0 && is_written(call, num_ranks)) {
    const auto* in = static_cast<const std::byte*>(call.in);
    kept_input_.assign(in, in + in_bytes(call, num_ranks));
    again.in = kept_input_.data();
  }
  const std::uint64_t number = ++num_calls_;
  bool is_first = true;
  bool is_done = false;
  while (true) {
    try {
      run_between_members(is_first ? call : again, *layout);
      is_done = true;
      last_members_ = survival_->members();
      meet();
      break;
    } catch (const PeerLost& lost) {
      if (recover(lost, {.num_begun = number, .num_done = is_done ? number : number - 1})) break;
      is_first = is_done = false;
    } catch (const PlanError&) {
      throw;  // on all ranks, and nothing has begun
    } catch (const std::exception& error) {
      survival_->give_up(error.what());
      throw;
    }
  }
  survival_->note_progress(number);
}

/// Returns when every member has called it, and so has the result of what it ran before.
void Engine::meet() {
  if (size() == 1) return;
  std::int8_t token = 0;
  const CollectiveCall call{.in = &token, .out = &token, .count = 1, .type = DataType::kInt8};
  run_once(call, path_of(call, false, true));
}

/// Blocks lie where they belong with the ranks that the caller saw; those of ranks that are lost are left out.
void Engine::run_between_members(const CollectiveCall& call, const Members& layout) {
  const Members& members = *survival_->members();
  const bool has_blocks = call.collective != Collective::kAllReduce && call.count > 0;
  if (!has_blocks || members.ranks.size() == layout.ranks.size()) {
    run_once(call, path_of(call, false));
    return;
  }
  const std::vector<std::size_t> places = positions(members, layout);
  const auto block = static_cast<std::size_t>(call.count * size_of(call.type));
  std::vector<std::byte> packed(block * places.size());
  CollectiveCall inner = call;
  if (call.collective == Collective::kReduceScatter) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      std::memcpy(&packed[i * block], static_cast<const std::byte*>(call.in) + places[i] * block, block);
    }
    inner.in = packed.data();
    run_once(inner, path_of(inner, false));
    return;
  }
  inner.out = packed.data();
  run_once(inner, path_of(inner, false));
  auto* out = static_cast<std::byte*>(call.out);
  std::memset(out, 0, block * layout.ranks.size());
  for (std::size_t i = 0; i < places.size(); ++i) std::memcpy(out + places[i] * block, &packed[i * block], block);
}

/// True: the operation stands as it is.
bool Engine::recover(const PeerLost& lost, const Survival::Progress& progress) {
  try {
    const Members before = *survival_->members();
    Survival::Recovered recovered = survival_->recover(lost.silent(), progress);
    const bool stands = recovered.num_standing >= progress.num_begun;
    if (recovered.transport == nullptr) return stands;
    replace_transport(std::move(recovered));
    const Members& members = *survival_->members();
    if (log_) {
      std::vector<int> gone;
      std::set_difference(before.ranks.begin(), before.ranks.end(), members.ranks.begin(), members.ranks.end(),
                          std::back_inserter(gone));
      log_(fmt::format(
          "generation {}: {} ranks go on without rank{} {} of the first ones; the operation under way {} ({})",
          members.generation, members.ranks.size(), gone.size() == 1 ? "" : "s", fmt::join(gone, ", "),
          stands ? "stands" : "runs again", lost.what()));
    }
    return stands;
  } catch (const std::exception& error) {
    survival_->give_up(error.what());
    throw;
  }
}

/// The plans are made anew, for the network without the servers that are gone.
void Engine::replace_transport(Survival::Recovered recovered) {
  const std::vector<std::int64_t> kept(recovered.kept.begin(), recovered.kept.end());
  const std::lock_guard lock(choice_mutex_);
  install(std::move(recovered.transport), place_ranks(chooser_.topology(), kept),
          place_ranks(chooser_.near_topology(), kept));
}

void Engine::install(std::unique_ptr<Transport> transport, const Topology& topology,
                     std::optional<Topology> short_network) {
  chooser_ = Chooser(options_between(options_, transport->size()), topology, transport->size(),
                     transport->limits().least_chunk_bytes, {transport->quick_gather(), std::move(short_network)});
  paths_.clear();
  recent_paths_ = {};
  transport_ = std::move(transport);
  rank_ = transport_->rank();
  size_ = transport_->size();
  sequence_ = kFirstSequence;
  serial_ = 1;
  has_failed_ = false;
}

}  // namespace gar
