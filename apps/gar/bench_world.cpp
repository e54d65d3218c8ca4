// The ranks of a benchmark.
#include "apps/gar/bench_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace gar::cli {
namespace {

std::string processes(int count) { return count == 1 ? "1 process" : fmt::format("{} processes", count); }

class ThreadWorld : public BenchWorld {
 public:
  ThreadWorld(ThreadHall& hall, int rank, std::function<bool()> is_stopping)
      : hall_(hall), rank_(rank), is_stopping_(std::move(is_stopping)) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return hall_.size(); }
  [[nodiscard]] std::string words() const override {
    return fmt::format("{} thread{} of one process", size(), size() == 1 ? "" : "s");
  }
  Communicator communicator(const CommunicatorOptions& options) override { return hall_.take(rank_, options); }
  [[nodiscard]] bool is_stopping() const override { return is_stopping_(); }

 private:
  ThreadHall& hall_;
  int rank_;
  std::function<bool()> is_stopping_;
};

class ProcessGroup : public BenchGroup {
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

class ProcessWorld : public GroupWorld {
 public:
  explicit ProcessWorld(const LocalRank& rank) : rank_(rank) {}
  [[nodiscard]] int rank() const override { return rank_.rank; }
  [[nodiscard]] int size() const override { return rank_.size; }
  [[nodiscard]] std::string words() const override { return processes(size()) + " of this host"; }
  Communicator communicator(const CommunicatorOptions& options) override {
    return shared_memory_communicator(fmt::format("{}-{}", rank_.name, num_made_++), rank_.rank, rank_.size, options);
  }
  [[nodiscard]] bool is_stopping() const override { return rank_.is_stopping(); }
  std::unique_ptr<BenchGroup> group(const std::vector<int>& ranks) override {
    const int number = num_groups_++;
    const auto self = std::find(ranks.begin(), ranks.end(), rank_.rank);
    if (self == ranks.end()) return nullptr;
    return std::make_unique<ProcessGroup>(fmt::format("{}-g{}", rank_.name, number),
                                          static_cast<int>(self - ranks.begin()), static_cast<int>(ranks.size()));
  }

 private:
  LocalRank rank_;
  int num_made_ = 0;
  int num_groups_ = 0;
};

class CudaGroup : public BenchGroup {
 public:
  CudaGroup(CudaSession& session, CudaPath path, CudaPlace place)
      : session_(session), path_(path), place_(std::move(place)) {}
  Communicator communicator(const CommunicatorOptions& options) override {
    CudaPlace place = place_;
    place.name += fmt::format("-{}", num_made_++);
    return session_.communicator(place, options, path_);
  }

 private:
  CudaSession& session_;
  CudaPath path_;
  CudaPlace place_;
  int num_made_ = 0;
};

class CudaWorld : public GroupWorld {
 public:
  CudaWorld(const LocalRank& rank, CudaSession& session, CudaPath path)
      : rank_(rank), session_(session), path_(path), all_(session, path, {rank.name + "-d", rank.rank, rank.size}) {}
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
    return session_.communicator(place, options, CudaPath::kNcclNative);
  }
  [[nodiscard]] bool is_stopping() const override { return rank_.is_stopping(); }
  std::unique_ptr<BenchGroup> group(const std::vector<int>& ranks) override {
    const int number = num_groups_++;
    const auto self = std::find(ranks.begin(), ranks.end(), rank_.rank);
    if (self == ranks.end()) return nullptr;
    const CudaPlace place{fmt::format("{}-g{}", rank_.name, number), static_cast<int>(self - ranks.begin()),
                          static_cast<int>(ranks.size())};
    return std::make_unique<CudaGroup>(session_, path_, place);
  }

 private:
  LocalRank rank_;
  CudaSession& session_;
  CudaPath path_;
  CudaGroup all_;
  int num_made_ = 0;
  int num_native_ = 0;
  int num_groups_ = 0;
};

class JobGroup : public BenchGroup {
 public:
  JobGroup(std::unique_ptr<MpiGroup> group, MpiPath path) : group_(std::move(group)), path_(path) {}
  Communicator communicator(const CommunicatorOptions& options) override {
    return group_->communicator(options, path_);
  }
  MpiGroup* mpi() override { return group_.get(); }

 private:
  std::unique_ptr<MpiGroup> group_;
  MpiPath path_;
};

class MpiWorld : public GroupWorld {
 public:
  MpiWorld(MpiSession& session, BenchTransport transport, std::function<bool()> is_stopping)
      : session_(session), is_stopping_(std::move(is_stopping)) {
    if (transport == BenchTransport::kShm) path_ = MpiPath::kShared;
    if (transport == BenchTransport::kMpi) path_ = MpiPath::kMessages;
  }
  [[nodiscard]] int rank() const override { return session_.rank(); }
  [[nodiscard]] int size() const override { return session_.size(); }
  [[nodiscard]] std::string words() const override {
    return processes(size()) + " under " + session_.library_version();
  }
  Communicator communicator(const CommunicatorOptions& options) override {
    // The first one is for control, which should not depend on what is measured.
    return session_.communicator(options, num_made_++ == 0 ? MpiPath::kHierarchy : path_);
  }
  MpiSession* mpi() override { return &session_; }
  [[nodiscard]] bool is_stopping() const override { return is_stopping_(); }
  std::unique_ptr<BenchGroup> group(const std::vector<int>& ranks) override {
    std::unique_ptr<MpiGroup> made = session_.group(ranks);
    if (!made) return nullptr;
    return std::make_unique<JobGroup>(std::move(made), path_);
  }

 private:
  MpiSession& session_;
  MpiPath path_ = MpiPath::kHierarchy;
  std::function<bool()> is_stopping_;
  int num_made_ = 0;
};

Communicator control_communicator(BenchWorld& world, double timeout_s) {
  CommunicatorOptions options;
  options.timeout_s = std::max(timeout_s, 10.0);
  // Any parameters will do, and none have to be measured.
  options.topology = topology_from_spec(fmt::format("star:{}", world.size()));
  options.log = [](std::string_view) {};  // what GAR_DEBUG asks about is what is measured
  return world.communicator(options);
}

}  // namespace

Communicator ThreadHall::take(int rank, const CommunicatorOptions& options) {
  const std::lock_guard lock(mutex_);
  const std::size_t number = num_taken_[static_cast<std::size_t>(rank)]++;
  if (number == made_.size()) made_.push_back(thread_communicators(size_, options));
  return std::move(made_[number][static_cast<std::size_t>(rank)]);
}

std::unique_ptr<BenchWorld> thread_world(ThreadHall& hall, int rank, std::function<bool()> is_stopping) {
  return std::make_unique<ThreadWorld>(hall, rank, std::move(is_stopping));
}

std::unique_ptr<GroupWorld> process_world(const LocalRank& rank) { return std::make_unique<ProcessWorld>(rank); }

std::unique_ptr<GroupWorld> cuda_world(const LocalRank& rank, CudaSession& session, CudaPath path) {
  return std::make_unique<CudaWorld>(rank, session, path);
}

std::unique_ptr<GroupWorld> mpi_world(MpiSession& session, BenchTransport transport,
                                      std::function<bool()> is_stopping) {
  return std::make_unique<MpiWorld>(session, transport, std::move(is_stopping));
}

int ranks_per_gpu(const CudaSession& session, int num_ranks) {
  return (num_ranks + session.num_devices() - 1) / session.num_devices();
}

Control::Control(BenchWorld& world, double timeout_s) : communicator_(control_communicator(world, timeout_s)) {}

std::vector<double> Control::gather(std::span<const double> values) {
  std::vector<double> out(values.size() * static_cast<std::size_t>(communicator_.size()));
  communicator_.all_gather(values, std::span(out));
  return out;
}

std::vector<double> Control::largest(std::span<const double> values) {
  const std::vector<double> all = gather(values);
  std::vector<double> out(values.begin(), values.end());
  for (std::size_t i = 0; i < all.size(); ++i) out[i % out.size()] = std::max(out[i % out.size()], all[i]);
  return out;
}

double Control::sum(double value) {
  const std::vector<double> all = gather(std::span(&value, 1));
  return std::accumulate(all.begin(), all.end(), 0.0);
}

}  // namespace gar::cli
