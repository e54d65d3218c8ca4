// A rank of a job that runs random operations for as long as steady.py lets it, and says how much it holds:
//
//   steady DIRECTORY SEED INTERVAL_S tcp|hosts|both     with RANK and WORLD_SIZE in the environment
//
// Collectives of all types, shapes and ways of calling, movements, several under way at once, on communicators that
// stay and on others that come and go; every result is checked. DIRECTORY/rank-R.log gets a line now and then, when
// nothing is under way: seconds, operations, kB in memory, bytes of the heap, descriptors, threads. Then "finished", or
// what went wrong.
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gar/tcp.hpp"
#include "support/collective_cases.hpp"
#include "support/movement_cases.hpp"
#include "support/rank_log.hpp"

namespace {

using gar::test::Clock;

std::int64_t resident_kib() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  file >> all >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

struct SteadyCommunicator {
  gar::Communicator communicator;
  bool is_shrinking;  ///< movements cannot run again
};

struct SteadyCall {
  std::unique_ptr<gar::test::CaseRun> run;
  gar::Request request;
};

/// What the ranks do is the same on all of them; in which order one completes what is under way is its own choice.
class SteadyRun {
 public:
  SteadyRun(const gar::EnvironmentJob& job, std::uint64_t seed, const std::string& way)
      : job_(job),
        way_(way),
        shared_(seed),
        own_(seed * 1000 + static_cast<std::uint64_t>(job.rank)),
        dealer_(seed),
        ops_(gar::test::typed_ops(), seed + 7) {
    for (const int kind : {0, 4, kShrinking}) staying_.push_back(make(kind));
  }

  /// False: all ranks stop, because one of them wants to.
  bool round(bool wants_to_stop) {
    for (int i = 0; i < kSteps; ++i) step(staying_[shared_() % staying_.size()]);
    if (num_rounds_++ % kRoundsOfOne == 0) {
      SteadyCommunicator passing = make(static_cast<int>(shared_() % kKinds));
      for (int i = 0; i < kSteps; ++i) step(passing);
      complete_all();
    }
    complete_all();
    std::vector<std::int32_t> stops{wants_to_stop ? 1 : 0};
    staying_.front().communicator.all_reduce(stops, gar::ReduceOp::kMax);
    return stops.front() == 0;
  }
  [[nodiscard]] std::int64_t num_operations() const { return num_operations_; }

 private:
  static constexpr int kSteps = 20;
  static constexpr int kRoundsOfOne = 10;  // that a communicator lives for
  static constexpr int kKinds = 8;
  static constexpr int kShrinking = 7;

  SteadyCommunicator make(int kind) {
    gar::CommunicatorOptions options;
    options.timeout_s = gar::test::kNoLimit;
    if (kind == 1) options.algorithm = "ring";
    if (kind == 2) options.algorithm = "cps";
    if (kind == 3) options.algorithm = "rhd";
    if (kind == 3) options.staging_bytes = 64 << 10;
    if (kind == 4) options.latency_bytes = 0;
    if (kind == 5) options.latency_bytes = std::int64_t{1} << 30;
    if (kind == 6) options.reproducible = true;
    if (kind == kShrinking) options.on_failure = gar::OnFailure::kShrink;
    const bool is_hierarchy = way_ == "hosts" || (way_ == "both" && num_made_ % 2 == 0);
    ++num_made_;
    gar::TcpOptions tcp;
    tcp.path = is_hierarchy ? gar::TcpPath::kHierarchy : gar::TcpPath::kMessages;
    return {gar::communicator_from_environment(options, tcp), kind == kShrinking};
  }

  void step(SteadyCommunicator& on) {
    ++num_operations_;
    const std::uint64_t choice = shared_() % 24;
    const std::uint64_t salt = shared_();
    if (choice == 0) return on.communicator.barrier();
    if (choice < 6 && !on.is_shrinking) return gar::test::run_move(on.communicator, deal_move(), salt);
    gar::test::Case c = shared_() % 100 == 0 ? dealer_.deal_large(job_.size) : dealer_.deal(job_.size);
    if (shared_() % 3 == 0) c.count = static_cast<std::int64_t>(shared_() % 3000);
    auto run = std::make_unique<gar::test::CaseRun>(c, job_.rank, job_.size, salt);
    if (choice < 14) {
      run->run(on.communicator);
      run->verify();
      return;
    }
    gar::Request request = run->start(on.communicator);
    if (own_() % 4 == 0) request.test();
    under_way_.push_back({std::move(run), std::move(request)});
    while (under_way_.size() > 6) complete_one();
  }

  gar::test::MoveCase deal_move() {
    constexpr std::array<std::int64_t, 6> kCounts{0, 1, 97, 1024, 4099, 65'537};
    gar::test::MoveCase out;
    out.movement = static_cast<gar::Movement>(shared_() % 5);  // without transfers, which are between two
    const bool has_blocks = out.movement != gar::Movement::kBroadcast && out.movement != gar::Movement::kReduce;
    const gar::test::TypedOp typed = ops_.draw();
    out.type = typed.type;
    out.op = typed.op;
    out.count = kCounts[shared_() % (has_blocks ? 5 : 6)];
    out.root = static_cast<int>(shared_() % static_cast<std::uint64_t>(job_.size));
    out.is_in_place = shared_() % 2 == 0;
    out.is_uneven = out.movement == gar::Movement::kAllToAll && shared_() % 2 == 0;
    out.is_started = shared_() % 3 == 0;
    return out;
  }

  void complete_one() {
    const auto at = under_way_.begin() + static_cast<std::ptrdiff_t>(own_() % under_way_.size());
    at->request.wait();
    at->run->verify();
    under_way_.erase(at);
  }
  void complete_all() {
    while (!under_way_.empty()) complete_one();
  }

  gar::EnvironmentJob job_;
  std::string way_;
  std::mt19937_64 shared_;
  std::mt19937_64 own_;
  gar::test::CaseDealer dealer_;
  gar::test::Deck<gar::test::TypedOp> ops_;
  std::vector<SteadyCommunicator> staying_;
  std::deque<SteadyCall> under_way_;
  std::int64_t num_made_ = 0;  ///< communicators
  std::int64_t num_rounds_ = 0;
  std::int64_t num_operations_ = 0;
};

std::string sample(double seconds, std::int64_t num_operations) {
  malloc_trim(0);  // what is free says nothing
  const struct mallinfo2 heap = mallinfo2();
  return "sample " + std::to_string(seconds) + " " + std::to_string(num_operations) + " " +
         std::to_string(resident_kib()) + " " + std::to_string(heap.uordblks + heap.hblkhd) + " " +
         std::to_string(gar::test::num_descriptors()) + " " + std::to_string(gar::test::num_entries("/proc/self/task"));
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<gar::EnvironmentJob> job = gar::environment_job();
  if (argc != 5 || !job) {
    std::cerr << "usage: steady DIRECTORY SEED INTERVAL_S tcp|hosts|both, with RANK and WORLD_SIZE\n";
    return 2;
  }
  const std::string directory = argv[1];
  const double interval_s = std::atof(argv[3]);
  const std::string stop = directory + "/stop";
  const gar::test::RankLog log(directory, job->rank);
  std::string outcome = "finished";
  const Clock::time_point begin = Clock::now();
  try {
    SteadyRun run(*job, std::strtoull(argv[2], nullptr, 10), argv[4]);
    double last_s = -interval_s;
    while (run.round(access(stop.c_str(), F_OK) == 0)) {
      const double now_s = gar::test::seconds_since(begin);
      if (now_s - last_s < interval_s) continue;
      last_s = now_s;
      log.line(sample(now_s, run.num_operations()));
    }
  } catch (const std::exception& error) {
    outcome = std::string("error ") + gar::test::text_of(error);
  }
  log.line(outcome);
  return outcome == "finished" ? 0 : 1;
}
