// send and recv of the backend `gar` (gar.torch): a communicator of two ranks for each direction between two ranks,
// made when the first message goes that way. A message is two transfers: its tag and length, then its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "gar/communicator.hpp"
#include "meeting.hpp"

namespace gar::python {

/// In place of a rank: whoever sends first.
inline constexpr int kAnySource = -1;

/// Called once by some thread, without Python's lock, when a message has gone or come, or what happened instead. `peer`
/// is who has sent it, or got it.
using Delivery = std::function<void(const std::exception_ptr& failure, int peer)>;

/// Memory that lives until `done` is called, and what is to happen with it.
struct Parcel {
  std::byte* memory = nullptr;
  std::int64_t bytes = 0;
  int tag = 0;
  int peer = 0;
  Delivery done;
};

/// A rank of a process group.
struct GroupPlace {
  std::string name;
  int rank = 0;
  int size = 1;
  double timeout_s = 0;
  std::shared_ptr<PythonStore> store;

  /// Where those say so who want to send something to `destination`.
  [[nodiscard]] std::string box(int destination) const { return "gar/" + name + "-to-" + std::to_string(destination); }
};

/// One end of a way between two ranks.
class Channel {
 public:
  /// Waits for the other end, no longer than `timeout_s`, and so does every transfer afterwards.
  Channel(const GroupPlace& place, int source, int destination, double timeout_s);
  /// Of `count` elements, to or from `memory`. Throws TransportError in the words of the process group.
  void transfer(void* memory, std::int64_t count, DataType type);

 private:
  /// The same with the ranks of the process group.
  [[noreturn]] void rethrow(const TransportError& error) const;

  int source_;
  int destination_;
  bool receives_;
  std::unique_ptr<Communicator> communicator_;
};

class Inbox;
class Outbox;

/// Messages of one rank, without Python's lock.
class Channels {
 public:
  explicit Channels(GroupPlace place);
  void send(Parcel parcel);
  void receive(Parcel parcel);
  /// What was started is completed first, which may never happen: nobody waits for that.
  void close();
  /// The process ends.
  void abandon();

 private:
  GroupPlace place_;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Outbox>> outboxes_;
  std::shared_ptr<Inbox> inbox_;
};

}  // namespace gar::python
