// Taking newcomers in (Communicator::grow; runtime/survival/growth.hpp says why it is safe).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/engine.hpp"

namespace gar {

namespace {

constexpr std::int64_t kMostInvitation = 1 << 20;  // bytes

}  // namespace

/// Blocks of a request are those of the ranks that it was prepared for; newcomers have none there.
void Engine::check_layout(const Task& task) const {
  if (task.path.members == nullptr || task.call.collective == Collective::kAllReduce || task.call.count == 0) return;
  const std::vector<int>& layout = task.path.members->ranks;
  const std::shared_ptr<const Members> seen = visible();
  if (std::includes(layout.begin(), layout.end(), seen->ranks.begin(), seen->ranks.end())) return;
  throw InvalidArgument(fmt::format(
      "start: the {} was prepared for {} ranks, and {} are members now; expected one that is prepared after "
      "newcomers were taken in",
      task.call.collective == Collective::kAllGather ? "all_gather" : "reduce_scatter", layout.size(),
      seen->ranks.size()));
}

Growth Engine::grow() {
  check_process("grow");
  Grower* grower = survival_ == nullptr ? nullptr : survival_->grower();
  if (grower == nullptr) {
    throw InvalidArgument(fmt::format(
        "grow: nobody can be taken in over {}; expected a communicator over TCP with on_failure = shrink and grow",
        transport_->name()));
  }
  drain();
  survival_->begin_growth();
  Growth out;
  std::string invitation;
  try {
    if (rank() == 0) invitation = grower->invite();
  } catch (const std::exception& error) {
    out.problem = error.what();
  }
  const bool has_invited = !invitation.empty();
  const std::optional<Growing> growing = tell_invitation(std::move(invitation));
  if (!growing) {
    grower->end();
    if (has_invited) out.problem = "a rank was lost while newcomers were invited";
    if (log_ && !out.problem.empty()) log_(fmt::format("nobody is taken in: {}", out.problem));
    return out;
  }
  std::optional<Grown> grown;
  try {
    grown = grower->connect(*growing);
  } catch (const std::exception& error) {
    out.problem = error.what();
    survival_->call_off(out.problem);
  }
  if (!is_decided(out.problem.empty(), growing->generation - 1)) {
    if (out.problem.empty()) out.problem = "another rank has no connection with the newcomers, or was lost meanwhile";
    if (grown) grown->survival->give_up("it was decided not to grow: " + out.problem);
    grower->end();
    if (log_) log_(fmt::format("nobody is taken in: {}", out.problem));
    return out;
  }
  const int first_newcomer = grown->first_newcomer;
  adopt(std::move(*grown));
  for (const int member : visible_members().ranks) out.num_new += member >= first_newcomer ? 1 : 0;
  if (log_) {
    const Members members = visible_members();
    log_(fmt::format("generation {}: {} ranks go on, {} of them new", members.generation, members.ranks.size(),
                     out.num_new));
  }
  return out;
}

/// What the lowest rank has found out goes to all, and where each of them will listen. These are operations as any
/// other: whoever is lost meanwhile, all who are left see the same.
std::optional<Growing> Engine::tell_invitation(std::string invitation) {
  std::int64_t length = std::min(static_cast<std::int64_t>(invitation.size()), kMostInvitation + 1);
  run_call({.in = &length, .out = &length, .count = 1, .type = DataType::kInt64}, false, std::nullopt);
  if (length == 0 || length > kMostInvitation) return std::nullopt;
  invitation.resize(static_cast<std::size_t>(length));
  run_call({.in = invitation.data(), .out = invitation.data(), .count = length, .type = DataType::kUint8}, false,
           std::nullopt);
  Growing out;
  const Members members = visible_members();
  std::string own;
  try {
    own = survival_->grower()->prepare();
  } catch (const std::exception&) {  // without an address: all see that this rank cannot be found
    own.clear();
  }
  own.resize(kMostAddressBytes);
  std::string all(kMostAddressBytes * members.ranks.size(), '\0');
  run_call({.collective = Collective::kAllGather,
            .in = own.data(),
            .out = all.data(),
            .count = static_cast<std::int64_t>(kMostAddressBytes),
            .type = DataType::kUint8},
           false, std::nullopt);
  for (std::size_t i = 0; i < members.ranks.size(); ++i) {
    const std::string block = all.substr(i * kMostAddressBytes, kMostAddressBytes);
    out.addresses.emplace_back(block.c_str());
  }
  const bool is_complete = invitation.front() != '\0' && visible_members().generation == members.generation &&
                           std::none_of(out.addresses.begin(), out.addresses.end(),
                                        [](const std::string& address) { return address.empty(); });
  if (!is_complete) return std::nullopt;
  out.invitation = std::move(invitation);
  out.members = members.ranks;
  out.generation = members.generation + 1;
  out.look = [this, generation = members.generation] { survival_->look_growing(generation); };
  return out;
}

/// The decision: an operation of the old group. It is for the larger one if all members have said that they are
/// connected, and are the members still.
bool Engine::is_decided(bool is_connected, std::uint64_t generation) {
  std::int32_t num_missing = is_connected ? 0 : 1;
  run_call({.in = &num_missing, .out = &num_missing, .count = 1, .type = DataType::kInt32}, false, std::nullopt);
  return num_missing == 0 && visible_members().generation == generation;
}

/// It has been decided. Who has not come so far yet still hears from this rank, and that it has left the old group with
/// the result of the decision.
void Engine::adopt(Grown grown) {
  grown.survival->welcome();
  const std::unique_ptr<Transport> before = std::move(transport_);
  {
    const std::lock_guard lock(choice_mutex_);
    install(std::move(grown.transport), grown.topology, std::move(grown.short_network));
  }
  survival_ = std::move(grown.survival);
  num_calls_ = 0;
  last_members_ = survival_->members();
  {
    const std::lock_guard lock(mutex_);
    visible_ = last_members_;
  }
  barrier();
}

}  // namespace gar
