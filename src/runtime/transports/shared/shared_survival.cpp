#include "runtime/transports/shared/shared_survival.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <string>

#include "gar/errors.hpp"
#include "runtime/transports/shared/neighbours.hpp"

namespace gar {

namespace {

// --- threads ---------------------------------------------------------------------------------------------------------

/// Where the threads of a group find the memory of a generation: the first of them makes it.
class SharedMemories {
 public:
  std::shared_ptr<Segment> of(std::uint64_t generation, const SegmentShape& shape) {
    const std::lock_guard lock(mutex_);
    // The newest stays while a slower thread has not come for it, though the others may have left already.
    segments_.erase(segments_.begin(), segments_.lower_bound(generation));
    std::shared_ptr<Segment>& out = segments_[generation];
    if (out == nullptr) out = make_private_segment(shape);
    return out;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Segment>> segments_;
};

class ThreadRebuilder final : public Rebuilder {
 public:
  ThreadRebuilder(std::shared_ptr<SharedMemories> memories, const CommunicatorOptions& options)
      : memories_(std::move(memories)), staging_bytes_(options.staging_bytes), timeout_s_(options.timeout_s) {}
  std::string prepare() override { return {}; }
  std::unique_ptr<Transport> rebuild(const Regrouping& group) override {
    const auto size = static_cast<int>(group.members.size());
    return std::make_unique<SharedTransport>(memories_->of(group.generation, suitable_shape(size, staging_bytes_)),
                                             Membership{group.rank, size, {}}, timeout_s_);
  }

 private:
  std::shared_ptr<SharedMemories> memories_;
  std::int64_t staging_bytes_;
  double timeout_s_;
};

// --- processes -------------------------------------------------------------------------------------------------------

class ProcessRebuilder final : public Rebuilder {
 public:
  ProcessRebuilder(std::string_view name, const CommunicatorOptions& options)
      : name_(name), staging_bytes_(options.staging_bytes), timeout_s_(options.timeout_s) {}
  /// A part of the name of the new memory, which nobody else has.
  std::string prepare() override {
    std::uint64_t bits = 0;
    if (getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
      throw TransportError(fmt::format("cannot get random numbers: {}", std::strerror(errno)));
    }
    return fmt::format("{:016x}", bits);
  }
  std::unique_ptr<Transport> rebuild(const Regrouping& group) override {
    const auto size = static_cast<int>(group.members.size());
    const std::shared_ptr<Segment> segment =
        join_segment(fmt::format("{}-{}", name_, group.addresses.front()), group.rank,
                     suitable_shape(size, staging_bytes_), timeout_s_, group.look);
    return std::make_unique<SharedTransport>(segment, Membership{group.rank, size, {}}, timeout_s_);
  }

 private:
  std::string name_;
  std::int64_t staging_bytes_;
  double timeout_s_;
};

Survival::Setup survival_setup(int rank, int size, const CommunicatorOptions& options) {
  std::vector<int> members(static_cast<std::size_t>(size));
  std::iota(members.begin(), members.end(), 0);
  return {.rank = rank, .members = std::move(members), .timeout_s = options.timeout_s, .closing_is_death = true};
}

}  // namespace

std::vector<std::unique_ptr<Survival>> survivals_of_threads(int num_ranks, const CommunicatorOptions& options) {
  const auto size = static_cast<std::size_t>(num_ranks);
  std::vector<std::vector<File>> links(size);
  for (std::vector<File>& own : links) own.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      int ends[2] = {-1, -1};
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, static_cast<int*>(ends)) != 0) {
        throw TransportError(fmt::format("cannot connect {} threads with each other: {}", size, std::strerror(errno)));
      }
      links[i][j] = File(ends[0]);
      links[j][i] = File(ends[1]);
    }
  }
  const auto memories = std::make_shared<SharedMemories>();
  std::vector<std::unique_ptr<Survival>> out;
  for (int rank = 0; rank < num_ranks; ++rank) {
    out.push_back(std::make_unique<Survival>(survival_setup(rank, num_ranks, options),
                                             std::move(links[static_cast<std::size_t>(rank)]),
                                             std::make_unique<ThreadRebuilder>(memories, options)));
  }
  return out;
}

std::unique_ptr<Survival> survival_of_processes(SharedTransport& transport, std::string_view name,
                                                const CommunicatorOptions& options, std::uint64_t sequence) {
  return std::make_unique<Survival>(survival_setup(transport.rank(), transport.size(), options),
                                    connect_neighbours(transport, options.timeout_s, sequence),
                                    std::make_unique<ProcessRebuilder>(name, options));
}

}  // namespace gar
