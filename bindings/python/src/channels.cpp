#include "channels.hpp"

#include <utility>

#include "gar/errors.hpp"
#include "gar/tcp.hpp"
#include "gar/topology.hpp"
#include "inbox.hpp"
#include "outbox.hpp"

namespace gar::python {

Channel::Channel(const GroupPlace& place, int source, int destination, double timeout_s)
    : source_(source), destination_(destination), receives_(place.rank == destination) {
  CommunicatorOptions options;
  // Nothing is planned here, so nothing has to be measured; and what GAR_ variables say is for the whole group.
  options.algorithm = "ring";
  options.topology = topology_from_spec("star:2");
  options.timeout_s = timeout_s;
  const std::string name = place.name + "-" + std::to_string(source) + "-" + std::to_string(destination);
  try {
    communicator_ = std::make_unique<Communicator>(tcp_communicator(*place.store, name, receives_ ? 1 : 0, 2, options));
  } catch (const TransportError& error) {
    rethrow(error);
  }
}

void Channel::transfer(void* memory, std::int64_t count, DataType type) {
  MovementCall call{.movement = Movement::kTransfer, .count = count, .type = type, .root = 0};
  if (receives_) {
    call.out = memory;
  } else {
    call.in = memory;
  }
  try {
    communicator_->move(call);
  } catch (const TransportError& error) {
    rethrow(error);
  }
}

void Channel::rethrow(const TransportError& error) const {
  const std::string from = std::to_string(source_);
  const std::string to = std::to_string(destination_);
  throw TransportError(
      (receives_ ? "recv from rank " + from + " by rank " + to : "send from rank " + from + " to " + to) +
      ", which are 0 and 1 here: " + error.what());
}

Channels::Channels(GroupPlace place) : place_(std::move(place)) {}

void Channels::send(Parcel parcel) {
  std::shared_ptr<Outbox> outbox;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Outbox>& known = outboxes_[parcel.peer];
    if (!known) {
      known = std::make_shared<Outbox>(place_, parcel.peer);
      known->start();
    }
    outbox = known;
  }
  outbox->put(std::move(parcel));
}

void Channels::receive(Parcel parcel) {
  std::shared_ptr<Inbox> inbox;
  {
    const std::lock_guard lock(mutex_);
    if (!inbox_) {
      inbox_ = std::make_shared<Inbox>(place_);
      inbox_->start();
    }
    inbox = inbox_;
  }
  inbox->want(std::move(parcel));
}

void Channels::close() {
  const std::lock_guard lock(mutex_);
  for (const auto& [peer, outbox] : outboxes_) outbox->close();
  if (inbox_) inbox_->close();
}

void Channels::abandon() {
  const std::lock_guard lock(mutex_);
  for (const auto& [peer, outbox] : outboxes_) outbox->abandon();
  if (inbox_) inbox_->abandon();
}

}  // namespace gar::python
