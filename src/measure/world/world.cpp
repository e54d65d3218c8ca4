// The kinds of worlds.
#include "gar/measure/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/index.hpp"
#include "gar/errors.hpp"
#include "gar/tcp.hpp"
#include "runtime/transports/tcp/announcement.hpp"

namespace gar::measure {
namespace {

std::string processes(int count) { return count == 1 ? "1 process" : fmt::format("{} processes", count); }

/// Where this rank stands among the ranks of a group; nothing: it is not one of them.
std::optional<int> place_in(const std::vector<int>& ranks, int rank) {
  const auto self = std::find(ranks.begin(), ranks.end(), rank);
  if (self == ranks.end()) return std::nullopt;
  return static_cast<int>(self - ranks.begin());
}

/// For what is measured of the network itself. Parameters decide nothing where the algorithm is given.
CommunicatorOptions plain_options(int size, double timeout_s) {
  CommunicatorOptions out;
  out.timeout_s = timeout_s;
  out.algorithm = "cps";
  out.topology = topology_from_spec(fmt::format("star:{}", size));
  out.explores = false;
  out.log = [](std::string_view) {};  // what GAR_DEBUG asks about is what is measured
  return out;
}

class ThreadGroup : public Group {
 public:
  ThreadGroup(ThreadCommunicators& communicators, int rank) : communicators_(communicators), rank_(rank) {}
  Communicator communicator(const CommunicatorOptions& options) override { return communicators_.take(rank_, options); }

 private:
  ThreadCommunicators& communicators_;
  int rank_;
};

class ThreadWorld : public World {
 public:
  ThreadWorld(ThreadCommunicators& communicators, int rank, std::function<bool()> is_stopping)
      : communicators_(communicators), rank_(rank), is_stopping_(std::move(is_stopping)) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return communicators_.size(); }
  [[nodiscard]] std::string words() const override {
    return fmt::format("{} thread{} of one process", size(), size() == 1 ? "" : "s");
  }
  Communicator communicator(const CommunicatorOptions& options) override { return communicators_.take(rank_, options); }
  std::unique_ptr<Group> group(const std::vector<int>& ranks) override {
    const std::size_t number = num_groups_++;
    const std::optional<int> self = place_in(ranks, rank_);
    if (!self) return nullptr;
    return std::make_unique<ThreadGroup>(communicators_.group(number, static_cast<int>(ranks.size())), *self);
  }
  [[nodiscard]] bool is_stopping() const override { return is_stopping_(); }

 private:
  ThreadCommunicators& communicators_;
  int rank_;
  std::function<bool()> is_stopping_;
  std::size_t num_groups_ = 0;
};

class ProcessGroup : public Group {
 public:
  ProcessGroup(std::string name, int rank, int size) : name_(std::move(name)), rank_(rank), size_(size) {}
  Communicator communicator(const CommunicatorOptions& options) override {
    return shared_memory_communicator(fmt::format("{}-{}", name_, num_made_++), rank_, size_, options);
  }

 private:
  std::string name_;
  int rank_;
  int size_;
  int num_made_ = 0;
};

class ProcessWorld : public World {
 public:
  explicit ProcessWorld(const LocalRank& rank) : rank_(rank) {}
  [[nodiscard]] int rank() const override { return rank_.rank; }
  [[nodiscard]] int size() const override { return rank_.size; }
  [[nodiscard]] std::string words() const override { return processes(size()) + " of this host"; }
  Communicator communicator(const CommunicatorOptions& options) override {
    return shared_memory_communicator(fmt::format("{}-{}", rank_.name, num_made_++), rank_.rank, rank_.size, options);
  }
  [[nodiscard]] bool is_stopping() const override { return rank_.is_stopping(); }
  std::unique_ptr<Group> group(const std::vector<int>& ranks) override {
    const int number = num_groups_++;
    const std::optional<int> self = place_in(ranks, rank_.rank);
    if (!self) return nullptr;
    return std::make_unique<ProcessGroup>(fmt::format("{}-g{}", rank_.name, number), *self,
                                          static_cast<int>(ranks.size()));
  }

 private:
  LocalRank rank_;
  int num_made_ = 0;
  int num_groups_ = 0;
};

TcpOptions tcp_options(TransportKind transport) {
  TcpOptions out;
  out.path = transport == TransportKind::kShmTcp ? TcpPath::kHierarchy : TcpPath::kMessages;
  return out;
}

/// What all groups of a world over TCP have in common.
struct TcpPlace {
  Store& store;
  TransportKind transport;
  double timeout_s;
};

class TcpGroup : public Group {
 public:
  TcpGroup(const TcpPlace& place, std::string name, int rank, int size)
      : place_(place), name_(std::move(name)), rank_(rank), size_(size) {}
  Communicator communicator(const CommunicatorOptions& options) override {
    return tcp_communicator(place_.store, fmt::format("{}-{}", name_, num_made_++), rank_, size_, options,
                            tcp_options(place_.transport));
  }
  void gather_to_first(const void* in, void* out, std::int64_t bytes) override {
    // The first one's block lies where it belongs.
    plain().gather(rank_ == 0 ? out : in, rank_ == 0 ? out : nullptr, bytes, DataType::kUint8, 0);
  }
  /// Of two ranks.
  void exchange(void* out, std::int64_t bytes) {
    plain().all_gather(static_cast<std::byte*>(out) + rank_ * bytes, out, bytes, DataType::kUint8);
  }

 private:
  Communicator& plain() {
    if (!plain_) plain_.emplace(communicator(plain_options(size_, place_.timeout_s)));
    return *plain_;
  }

  TcpPlace place_;
  std::string name_;
  int rank_;
  int size_;
  int num_made_ = 0;
  std::optional<Communicator> plain_;
};

class TcpWorld : public World {
 public:
  TcpWorld(const LocalRank& rank, std::unique_ptr<Store> store, TransportKind transport, double timeout_s)
      : rank_(rank),
        store_(std::move(store)),
        place_{*store_, transport, timeout_s},
        all_(place_, rank.name, rank.rank, rank.size) {}
  [[nodiscard]] int rank() const override { return rank_.rank; }
  [[nodiscard]] int size() const override { return rank_.size; }
  [[nodiscard]] std::string words() const override { return processes(size()) + " over TCP, without MPI"; }
  Communicator communicator(const CommunicatorOptions& options) override { return all_.communicator(options); }
  [[nodiscard]] bool is_stopping() const override { return rank_.is_stopping(); }
  std::unique_ptr<Group> group(const std::vector<int>& ranks) override {
    const int number = num_groups_++;
    const std::optional<int> self = place_in(ranks, rank_.rank);
    if (!self) return nullptr;
    return std::make_unique<TcpGroup>(place_, fmt::format("{}-g{}", rank_.name, number), *self,
                                      static_cast<int>(ranks.size()));
  }
  std::vector<int> hosts(Control& control) override {
    const std::uint64_t own = host_identity();
    std::vector<Announcement> ranks;
    for (const std::uint64_t host : control.gather(std::span(&own, 1))) ranks.emplace_back().host = host;
    return map_hosts(ranks, rank(), fake_hosts_from_environment()).host_of;
  }
  void exchange(int partner, const void* /*in*/, void* out, std::int64_t bytes) override {
    const int first = std::min(rank(), partner);
    const int second = std::max(rank(), partner);
    auto found = pairs_.find(partner);
    if (found == pairs_.end()) {
      const std::string name = fmt::format("{}-p{}-{}", rank_.name, first, second);
      found = pairs_.try_emplace(partner, place_, name, rank() == first ? 0 : 1, 2).first;
    }
    found->second.exchange(out, bytes);
  }

 private:
  LocalRank rank_;
  std::unique_ptr<Store> store_;
  TcpPlace place_;
  TcpGroup all_;
  int num_groups_ = 0;
  std::map<int, TcpGroup> pairs_;  ///< with others
};

class CudaGroup : public Group {
 public:
  CudaGroup(CudaSession& session, TransportKind transport, CudaPlace place)
      : session_(session), transport_(transport), place_(std::move(place)) {}
  Communicator communicator(const CommunicatorOptions& options) override {
    CudaPlace place = place_;
    place.name += fmt::format("-{}", num_made_++);
    return session_.communicator(place, options, transport_);
  }

 private:
  CudaSession& session_;
  TransportKind transport_;
  CudaPlace place_;
  int num_made_ = 0;
};

class CudaWorld : public World {
 public:
  CudaWorld(const LocalRank& rank, CudaSession& session, TransportKind transport)
      : rank_(rank),
        session_(session),
        transport_(transport),
        all_(session, transport, {rank.name + "-d", rank.rank, rank.size}) {}
  [[nodiscard]] int rank() const override { return rank_.rank; }
  [[nodiscard]] int size() const override { return rank_.size; }
  [[nodiscard]] std::string words() const override {
    const int num_gpus = std::min(session_.num_devices(), size());
    return fmt::format("{} of this host on {} ({})", processes(size()),
                       num_gpus == 1 ? "one GPU" : fmt::format("{} GPUs", num_gpus), session_.words());
  }
  Communicator communicator(const CommunicatorOptions& options) override {
    // The first one is for control, on host memory.
    if (num_made_++ == 0) return shared_memory_communicator(rank_.name, rank_.rank, rank_.size, options);
    return all_.communicator(options);
  }
  CudaSession* cuda() override { return &session_; }
  std::optional<Communicator> native_communicator(const CommunicatorOptions& options) override {
    const CudaPlace place{fmt::format("{}-n{}", rank_.name, num_native_++), rank_.rank, rank_.size};
    return session_.native_communicator(place, options);
  }
  [[nodiscard]] bool is_stopping() const override { return rank_.is_stopping(); }
  std::unique_ptr<Group> group(const std::vector<int>& ranks) override {
    const int number = num_groups_++;
    const std::optional<int> self = place_in(ranks, rank_.rank);
    if (!self) return nullptr;
    const CudaPlace place{fmt::format("{}-g{}", rank_.name, number), *self, static_cast<int>(ranks.size())};
    return std::make_unique<CudaGroup>(session_, transport_, place);
  }

 private:
  LocalRank rank_;
  CudaSession& session_;
  TransportKind transport_;
  CudaGroup all_;
  int num_made_ = 0;
  int num_native_ = 0;
  int num_groups_ = 0;
};

class JobGroup : public Group {
 public:
  JobGroup(std::unique_ptr<MpiGroup> group, TransportKind transport)
      : group_(std::move(group)), transport_(transport) {}
  Communicator communicator(const CommunicatorOptions& options) override {
    return group_->communicator(options, transport_);
  }
  MpiGroup* mpi() override { return group_.get(); }
  void gather_to_first(const void* in, void* out, std::int64_t bytes) override {
    group_->gather_to_first(in, out, bytes);
  }

 private:
  std::unique_ptr<MpiGroup> group_;
  TransportKind transport_;
};

class MpiWorld : public World {
 public:
  MpiWorld(MpiSession& session, TransportKind transport, std::function<bool()> is_stopping)
      : session_(session), transport_(transport), is_stopping_(std::move(is_stopping)) {}
  [[nodiscard]] int rank() const override { return session_.rank(); }
  [[nodiscard]] int size() const override { return session_.size(); }
  [[nodiscard]] std::string words() const override {
    return processes(size()) + " under " + session_.library_version();
  }
  Communicator communicator(const CommunicatorOptions& options) override {
    // The first one is for control, which should not depend on what is measured.
    return session_.communicator(options, num_made_++ == 0 ? TransportKind::kAuto : transport_);
  }
  MpiSession* mpi() override { return &session_; }
  std::vector<int> hosts(Control& /*control*/) override { return session_.hosts(); }
  void exchange(int partner, const void* in, void* out, std::int64_t bytes) override {
    session_.exchange(partner, in, out, bytes);
  }
  [[nodiscard]] bool is_stopping() const override { return is_stopping_(); }
  std::unique_ptr<Group> group(const std::vector<int>& ranks) override {
    std::unique_ptr<MpiGroup> made = session_.group(ranks);
    if (!made) return nullptr;
    return std::make_unique<JobGroup>(std::move(made), transport_);
  }

 private:
  MpiSession& session_;
  TransportKind transport_;
  std::function<bool()> is_stopping_;
  int num_made_ = 0;
};

Communicator control_communicator(World& world, double timeout_s) {
  CommunicatorOptions options = plain_options(world.size(), std::max(timeout_s, 10.0));
  options.algorithm.clear();
  return world.communicator(options);
}

}  // namespace

void Group::gather_to_first(const void* /*in*/, void* /*out*/, std::int64_t /*bytes*/) {
  throw TransportError("these ranks send no messages that could be measured");
}

void World::exchange(int /*partner*/, const void* /*in*/, void* /*out*/, std::int64_t /*bytes*/) {
  throw TransportError("these ranks send no messages that could be measured");
}

std::vector<int> World::hosts(Control& /*control*/) { return std::vector<int>(idx(size()), 0); }

Communicator ThreadCommunicators::take(int rank, const CommunicatorOptions& options) {
  const std::lock_guard lock(mutex_);
  const std::size_t number = num_taken_[idx(rank)]++;
  if (number == made_.size()) made_.push_back(thread_communicators(size_, options));
  return std::move(made_[number][idx(rank)]);
}

ThreadCommunicators& ThreadCommunicators::group(std::size_t number, int size) {
  const std::lock_guard lock(mutex_);
  if (groups_.size() <= number) groups_.resize(number + 1);
  if (!groups_[number]) groups_[number] = std::make_unique<ThreadCommunicators>(size);
  return *groups_[number];
}

std::unique_ptr<World> thread_world(ThreadCommunicators& communicators, int rank, std::function<bool()> is_stopping) {
  return std::make_unique<ThreadWorld>(communicators, rank, std::move(is_stopping));
}

std::unique_ptr<World> process_world(const LocalRank& rank) { return std::make_unique<ProcessWorld>(rank); }

std::unique_ptr<World> cuda_world(const LocalRank& rank, CudaSession& session, TransportKind transport) {
  return std::make_unique<CudaWorld>(rank, session, transport);
}

std::unique_ptr<World> tcp_world(const LocalRank& rank, std::unique_ptr<Store> store, TransportKind transport,
                                 double timeout_s) {
  return std::make_unique<TcpWorld>(rank, std::move(store), transport, timeout_s);
}

std::unique_ptr<World> mpi_world(MpiSession& session, TransportKind transport, std::function<bool()> is_stopping) {
  return std::make_unique<MpiWorld>(session, transport, std::move(is_stopping));
}

int ranks_per_gpu(const CudaSession& session, int num_ranks) {
  return (num_ranks + session.num_devices() - 1) / session.num_devices();
}

Control::Control(World& world, double timeout_s) : communicator_(control_communicator(world, timeout_s)) {}

std::vector<std::string> Control::gather_texts(std::string_view text) {
  const auto own_length = static_cast<std::int64_t>(text.size());
  const std::vector<std::int64_t> lengths = gather(std::span(&own_length, 1));
  const std::size_t longest = idx(*std::max_element(lengths.begin(), lengths.end()));
  std::vector<std::uint8_t> own(text.begin(), text.end());
  own.resize(longest);
  const std::vector<std::uint8_t> all = gather(std::span<const std::uint8_t>(own));
  std::vector<std::string> out;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(r * longest);
    out.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(lengths[r]));
  }
  return out;
}

}  // namespace gar::measure
