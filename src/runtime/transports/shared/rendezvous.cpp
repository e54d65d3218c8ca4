// How the processes of a job come to share a segment.
//
// Rank 0 makes the memory without a name (memfd), seals its length, so that nobody can take a part of it away under the
// others, and hands it out at a meeting place, together with how it is divided. What the others get they check before
// they use it: whose it is, how long it is, and whether the numbers fit that length.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "gar/errors.hpp"
#include "runtime/survival/peer_lost.hpp"
#include "runtime/transports/shared/greeting.hpp"
#include "runtime/transports/shared/meeting_place.hpp"
#include "runtime/transports/shared/segment.hpp"

namespace gar {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kServeMs = 1;  // how long rank 0 waits for a visitor before it looks after those who came
constexpr int kJoinSliceUs = 20'000;
constexpr int kLookEvery = 20;        // of these visits: whether all who came are still alive
constexpr int kVisitMs = 1000;        // how long to wait for rank 0's answer before looking for it again
constexpr int kEverywhereEvery = 16;  // of these visits: where strangers may have left much to look at
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// Open-file-description locks: they belong to this opening of the file, so two communicators of one process do not
/// mix.
struct flock lock_of(int rank) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

bool take_lock(int fd, int rank) {
  struct flock lock = lock_of(rank);
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/// Does another opening of the file hold the lock?
bool is_locked(int fd, int rank) {
  struct flock lock = lock_of(rank);
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

class MappedSegment final : public Segment {
 public:
  MappedSegment(const SegmentShape& shape, int rank, File file) : Segment(shape), rank_(rank), file_(std::move(file)) {}
  ~MappedSegment() override {
    if (base_ != nullptr) munmap(base_, mapped_bytes_);
  }
  MappedSegment(const MappedSegment&) = delete;
  MappedSegment& operator=(const MappedSegment&) = delete;

  [[nodiscard]] bool is_alive(int rank) const override { return rank == rank_ || is_locked(file_.fd, rank); }
  [[nodiscard]] std::string_view kind() const override { return "shm"; }

  [[nodiscard]] int fd() const { return file_.fd; }
  void map() {
    const auto bytes = static_cast<std::size_t>(total_bytes(shape_));
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd, 0);
    if (memory == MAP_FAILED) {
      throw TransportError(fmt::format("cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno)));
    }
    base_ = static_cast<std::byte*>(memory);
    mapped_bytes_ = bytes;
    madvise(memory, bytes, MADV_HUGEPAGE);  // where the system offers it
  }
  void construct_all() { construct(); }

 private:
  int rank_;
  File file_;
  std::size_t mapped_bytes_ = 0;
};

/// More than this machine can spare would not fail, but end some process of it.
std::int64_t most_bytes() {
  const std::int64_t half = sysconf(_SC_PHYS_PAGES) / 2 * sysconf(_SC_PAGESIZE);
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kTitle = "MemAvailable:";
    if (line.starts_with(kTitle)) return std::min<std::int64_t>(half, std::atoll(line.c_str() + kTitle.size()) * 1024);
  }
  return half;
}

std::string space_words(std::int64_t needed, int num_ranks, std::string_view why) {
  return fmt::format(
      "cannot get {} bytes of shared memory for {} ranks: {}; expected a smaller staging_bytes (GAR_STAGING)", needed,
      num_ranks, why);
}

/// Memory of that length, without a name. Throws TransportError.
File make_memory(const SegmentShape& shape) {
  const std::int64_t bytes = Segment::total_bytes(shape);
  const std::int64_t most = most_bytes();
  if (bytes > most) {
    throw TransportError(space_words(
        bytes, shape.num_ranks, fmt::format("this machine has {} bytes to spare", std::max(most, std::int64_t{0}))));
  }
  constexpr unsigned kNoExecSeal = 8;  // newer than some of the headers that we are built with
  File out(memfd_create("gar", MFD_CLOEXEC | MFD_ALLOW_SEALING | kNoExecSeal));
  if (out.fd < 0 && errno == EINVAL) out = File(memfd_create("gar", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (out.fd < 0) throw TransportError(space_words(bytes, shape.num_ranks, std::strerror(errno)));
  // Piece by piece: a signal, such as a profiler's, undoes the call that it interrupts.
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  for (std::int64_t begin = 0; begin < bytes;) {
    const int error = posix_fallocate(out.fd, begin, std::min(kPiece, bytes - begin));
    if (error == 0) begin += kPiece;
    if (error != 0 && error != EINTR) throw TransportError(space_words(bytes, shape.num_ranks, std::strerror(error)));
  }
  if (fcntl(out.fd, F_ADD_SEALS, kSeals) != 0) {
    throw TransportError(fmt::format("cannot seal shared memory: {}", std::strerror(errno)));
  }
  return out;
}

std::vector<int> missing_ranks(const Segment& segment) {
  std::vector<int> out;
  for (int r = 0; r < segment.shape().num_ranks; ++r) {
    if (segment.block(r).has_joined.load() == 0) out.push_back(r);
  }
  return out;
}

[[noreturn]] void give_up(const Segment& segment, const std::string& text) {
  segment.set_failure(text);
  throw TransportError(text);
}

[[noreturn]] void give_up_ranks(const Segment& segment, const std::string& text, std::vector<int> ranks) {
  segment.set_failure(text);
  throw PeerLost(text, std::move(ranks));
}

std::uint32_t idx32(int value) { return static_cast<std::uint32_t>(value); }

/// While not all ranks have joined: throws when one of those who have is dead, or has failed, or when it takes too
/// long.
void look_after_all(const Segment& segment, std::string_view name, Clock::time_point deadline, double timeout_s) {
  if (const std::string failure = segment.failure(); !failure.empty()) throw TransportError(failure);
  for (int r = 0; r < segment.shape().num_ranks; ++r) {
    const bool has_come = r == 0 || segment.block(r).has_joined.load() != 0;
    if (has_come && !segment.is_alive(r)) {
      // It may have given up because of another, and said so before it ended.
      if (const std::string failure = segment.failure(); !failure.empty()) throw TransportError(failure);
      give_up_ranks(segment, fmt::format("rank {} died while the communicator '{}' was being made", r, name), {r});
    }
  }
  if (Clock::now() <= deadline) return;
  const std::vector<int> missing = missing_ranks(segment);
  give_up_ranks(
      segment,
      fmt::format("communicator '{}': after {} s rank{} {} of {} did not come; expected that every rank "
                  "calls with this name "
                  "and size, or a longer timeout_s (GAR_TIMEOUT)",
                  name, timeout_s, missing.size() == 1 ? "" : "s", fmt::join(missing, ", "), segment.shape().num_ranks),
      missing);
}

/// Tells the others, as they come, that there is no memory.
void serve_failure(MeetingPlace& place, const Greeting& greeting, Clock::time_point deadline) {
  const Clock::time_point last_call = std::min(deadline, seconds_from_now(5));
  int num_told = 0;
  while (num_told < greeting.shape().num_ranks - 1 && Clock::now() < last_call) {
    num_told += place.serve(greeting.bytes(), -1, kServeMs);
  }
}

std::shared_ptr<Segment> make_segment(std::string_view name, const SegmentShape& shape, double timeout_s,
                                      const std::function<void()>& look) {
  const Clock::time_point deadline = seconds_from_now(timeout_s);
  sweep_meeting_places();
  MeetingPlace place(name);
  if (place.has_rival()) {
    throw TransportError(fmt::format(
        "the name '{}' is in use by a job that is just starting; expected a name that only one job uses", name));
  }
  File file;
  try {
    file = make_memory(shape);
  } catch (const TransportError& e) {
    serve_failure(place, Greeting(name, shape, e.what()), deadline);
    throw;
  }
  const Greeting greeting(name, shape);
  // Visitors get an opening without the lock: otherwise one that is stopped while it has it would make us look alive.
  const File shown(open(fmt::format("/proc/self/fd/{}", file.fd).c_str(), O_RDWR | O_CLOEXEC));
  if (shown.fd < 0) throw TransportError(fmt::format("cannot open the shared memory: {}", std::strerror(errno)));
  if (!take_lock(file.fd, 0)) {
    throw TransportError(fmt::format("cannot lock shared memory: {}", std::strerror(errno)));
  }
  auto segment = std::make_shared<MappedSegment>(shape, 0, std::move(file));
  segment->map();
  segment->construct_all();
  segment->block(0).has_joined.store(1);
  increase(segment->header().num_joined);
  for (int visit = 1; !has_reached(segment->header().num_joined, idx32(shape.num_ranks)); ++visit) {
    place.serve(greeting.bytes(), shown.fd, kServeMs);
    if (visit % kLookEvery == 0 && look) look();
    if (visit % kLookEvery == 0) look_after_all(*segment, name, deadline, timeout_s);
  }
  if (const std::string failure = segment->failure(); !failure.empty()) throw TransportError(failure);
  return segment;
}

/// Rank 0's greeting and the memory, when rank 0 is there.
std::optional<std::pair<Greeting, File>> find_greeting(std::string_view name, bool everywhere, int milliseconds) {
  std::optional<Handed> handed = visit_meeting_place(name, everywhere, milliseconds);
  if (!handed) return std::nullopt;
  std::optional<Greeting> greeting = Greeting::read(handed->greeting, handed->file.fd, name);
  if (!greeting) return std::nullopt;
  // An opening of its own: locks belong to it.
  File own(open(fmt::format("/proc/self/fd/{}", handed->file.fd).c_str(), O_RDWR | O_CLOEXEC));
  if (own.fd < 0) throw TransportError(fmt::format("cannot open the shared memory: {}", std::strerror(errno)));
  return std::pair(*greeting, std::move(own));
}

/// Without room for a directory rank 0 cannot tell why it does not come.
bool is_full() {
  struct statvfs space {};
  return statvfs(kMeetingDirectory, &space) == 0 && space.f_files > 0 && space.f_favail == 0;
}

std::pair<Greeting, File> await_greeting(std::string_view name, int rank, Clock::time_point deadline, double timeout_s,
                                         const std::function<void()>& look) {
  const Clock::time_point full_after = seconds_from_now(0.5);
  for (int attempt = 0;; ++attempt) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const bool everywhere = attempt % kEverywhereEvery == kEverywhereEvery - 1;
    if (auto found = find_greeting(name, everywhere, static_cast<int>(std::clamp<std::int64_t>(left, 1, kVisitMs)))) {
      return std::move(*found);
    }
    if (Clock::now() > full_after && is_full()) {
      throw TransportError(fmt::format("cannot make a directory in {}, where the ranks of a host meet: {}",
                                       kMeetingDirectory, std::strerror(ENOSPC)));
    }
    if (Clock::now() > deadline) {
      throw PeerLost(
          fmt::format("communicator '{}': rank {} waited {} s for rank 0, which makes the shared memory; expected "
                      "that every rank calls with this "
                      "name, or a longer timeout_s (GAR_TIMEOUT)",
                      name, rank, timeout_s),
          {0});
    }
    if (look && attempt % kLookEvery == kLookEvery - 1) look();
    std::this_thread::sleep_for(std::chrono::milliseconds(attempt < 100 ? 1 : 5));
  }
}

std::shared_ptr<Segment> enter_segment(std::string_view name, int rank, int size, double timeout_s,
                                       const std::function<void()>& look) {
  const Clock::time_point deadline = seconds_from_now(timeout_s);
  auto [greeting, file] = await_greeting(name, rank, deadline, timeout_s, look);
  const int made_for = greeting.shape().num_ranks;
  auto segment = std::make_shared<MappedSegment>(greeting.shape(), rank, std::move(file));
  segment->map();
  if (made_for != size) {
    give_up(
        *segment,
        fmt::format("communicator '{}': rank {} asks for {} ranks, rank 0 for {}; expected the same size on all ranks",
                    name, rank, size, made_for));
  }
  if (!take_lock(segment->fd(), rank) || segment->block(rank).has_joined.exchange(1) != 0) {
    give_up(*segment, fmt::format("communicator '{}': there are two processes with rank {}", name, rank));
  }
  increase(segment->header().num_joined);
  try {
    Patience at_once;
    while (!wait_for(segment->header().num_joined, idx32(size), at_once, kJoinSliceUs)) {
      if (look) look();
      look_after_all(*segment, name, deadline, timeout_s);
    }
  } catch (const TransportError&) {
    if (!segment->is_alive(0)) sweep_meeting_places();
    throw;
  }
  if (const std::string failure = segment->failure(); !failure.empty()) throw TransportError(failure);
  return segment;
}

}  // namespace

std::shared_ptr<Segment> join_segment(std::string_view name, int rank, const SegmentShape& shape, double timeout_s,
                                      const std::function<void()>& look) {
  return rank == 0 ? make_segment(name, shape, timeout_s, look)
                   : enter_segment(name, rank, shape.num_ranks, timeout_s, look);
}

}  // namespace gar
