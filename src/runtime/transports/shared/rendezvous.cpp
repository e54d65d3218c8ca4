// Processes find each other through a name in /dev/shm.
//
// Rank 0 makes the segment without a name, takes its lock, fills in the header, and only then links it to its name:
// a rank that can open it finds it complete and its maker alive. A file whose byte 0 is not locked is a leftover of a
// job that was killed while it started; ranks that look for the name ignore it, and the next rank 0 of the same user
// removes it. As soon as all ranks have joined, the name goes away again.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "gar/errors.hpp"
#include "runtime/transports/shared/segment.hpp"

namespace gar {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMagic = 0x31'30'72'61'67U + (sizeof(RankBlock) << 40U);  // our version's layout
constexpr const char* kDirectory = "/dev/shm";
constexpr int kJoinSliceUs = 20'000;

std::string prefix() { return fmt::format("gar-{}-", geteuid()); }

struct File {
  explicit File(int descriptor = -1) : fd(descriptor) {}
  File(File&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd >= 0) close(fd);
  }
  int fd;
};

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
  void map(std::size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd, 0);
    if (memory == MAP_FAILED) {
      throw TransportError(fmt::format("cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno)));
    }
    if (base_ != nullptr) munmap(base_, mapped_bytes_);
    base_ = static_cast<std::byte*>(memory);
    mapped_bytes_ = bytes;
    madvise(memory, bytes, MADV_HUGEPAGE);  // where the system offers it
  }
  void map_header() { map(static_cast<std::size_t>(header_bytes())); }
  void map_all() { map(static_cast<std::size_t>(total_bytes(shape_))); }
  void adopt_shape() { shape_ = header().shape; }
  void construct_all() { construct(); }
  void construct_failed(int rank, const std::string& text) {
    new (base_) SegmentHeader;
    header().shape = shape_;
    set_failure(rank, text);
  }
  static std::int64_t bytes_of(const SegmentShape& shape) { return total_bytes(shape); }
  static std::int64_t bytes_of_header() { return header_bytes(); }

 private:
  int rank_;
  File file_;
  std::size_t mapped_bytes_ = 0;
};

/// Removes the name when it goes out of scope.
class Name {
 public:
  explicit Name(std::string path) : path_(std::move(path)) {}
  ~Name() { remove(); }
  Name(const Name&) = delete;
  Name& operator=(const Name&) = delete;
  void remove() {
    if (!path_.empty()) unlink(path_.c_str());
    path_.clear();
  }

 private:
  std::string path_;
};

/// Removes what killed jobs of this user have left.
void sweep() {
  DIR* directory = opendir(kDirectory);
  if (directory == nullptr) return;
  const std::string start = prefix();
  while (const dirent* entry = readdir(directory)) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
    const std::string name = static_cast<const char*>(entry->d_name);
    if (!name.starts_with(start)) continue;
    const std::string path = fmt::format("{}/{}", kDirectory, name);
    const File file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (file.fd >= 0 && !is_locked(file.fd, 0)) unlink(path.c_str());
  }
  closedir(directory);
}

std::string space_words(std::int64_t needed, int num_ranks, int error) {
  struct statvfs space {};
  const bool is_known = statvfs(kDirectory, &space) == 0;
  return fmt::format(
      "cannot get {} bytes of shared memory for {} ranks: {}{}; accepted is a smaller staging_bytes (GAR_STAGING), or "
      "a larger {}",
      needed, num_ranks, std::strerror(error),
      is_known ? fmt::format(" ({} has {} bytes free)", kDirectory, space.f_bavail * space.f_frsize) : "", kDirectory);
}

bool is_full() {
  struct statvfs space {};
  return statvfs(kDirectory, &space) == 0 &&
         space.f_bavail * space.f_frsize < static_cast<std::uint64_t>(MappedSegment::bytes_of_header());
}

void link_name(int fd, const std::string& path, std::string_view name) {
  const std::string source = fmt::format("/proc/self/fd/{}", fd);
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (linkat(AT_FDCWD, source.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
    if (errno != EEXIST) {
      throw TransportError(fmt::format("cannot make the shared memory {}: {}", path, std::strerror(errno)));
    }
    const File other(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (other.fd >= 0 && is_locked(other.fd, 0)) {
      throw TransportError(fmt::format(
          "the name '{}' is in use by a job that is just starting; accepted is a name that only one job uses", name));
    }
    if (other.fd >= 0) unlink(path.c_str());
  }
  throw TransportError(fmt::format("cannot make the shared memory {}: somebody else makes it again and again", path));
}

std::string missing_ranks(const Segment& segment) {
  std::string out;
  for (int r = 0; r < segment.shape().num_ranks; ++r) {
    if (segment.block(r).has_joined.load() == 0) out += fmt::format("{}{}", out.empty() ? "" : ", ", r);
  }
  return out;
}

[[noreturn]] void give_up(const Segment& segment, int rank, const std::string& text) {
  segment.set_failure(rank, text);
  throw TransportError(text);
}

/// Waits until all ranks have joined.
void await_all(const Segment& segment, int rank, std::string_view name, Clock::time_point deadline, double timeout_s) {
  const auto size = static_cast<std::uint32_t>(segment.shape().num_ranks);
  while (!wait_for(segment.header().num_joined, size, {}, kJoinSliceUs)) {
    if (const std::string failure = segment.failure(); !failure.empty()) throw TransportError(failure);
    for (int r = 0; r < segment.shape().num_ranks; ++r) {
      const bool has_come = r == 0 || segment.block(r).has_joined.load() != 0;
      if (has_come && !segment.is_alive(r)) {
        // It may have given up because of another, and said so before it ended.
        if (const std::string failure = segment.failure(); !failure.empty()) throw TransportError(failure);
        give_up(segment, rank, fmt::format("rank {} died while the communicator '{}' was being made", r, name));
      }
    }
    if (Clock::now() > deadline) {
      give_up(segment, rank,
              fmt::format("communicator '{}': after {} s rank{} {} of {} did not come; accepted is that every rank "
                          "calls with this name "
                          "and size, or a longer timeout_s (GAR_TIMEOUT)",
                          name, timeout_s, missing_ranks(segment).find(',') == std::string::npos ? "" : "s",
                          missing_ranks(segment), size));
    }
  }
  if (const std::string failure = segment.failure(); !failure.empty()) throw TransportError(failure);
}

std::shared_ptr<Segment> make_segment(std::string_view name, const std::string& path, const SegmentShape& shape,
                                      double timeout_s) {
  const Clock::time_point deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_s));
  sweep();
  File file(open(kDirectory, O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file.fd < 0 || !take_lock(file.fd, 0)) {
    throw TransportError(fmt::format("cannot make shared memory in {}: {}", kDirectory, std::strerror(errno)));
  }
  auto segment = std::make_shared<MappedSegment>(shape, 0, std::move(file));
  const std::int64_t bytes = MappedSegment::bytes_of(shape);
  const int error = posix_fallocate(segment->fd(), 0, bytes);
  if (error != 0) {
    const std::string text = space_words(bytes, shape.num_ranks, error);
    // Tell the others, if there is room for as much as a header.
    if (ftruncate(segment->fd(), 0) == 0 && posix_fallocate(segment->fd(), 0, MappedSegment::bytes_of_header()) == 0) {
      segment->map_header();
      segment->construct_failed(0, text);
      segment->header().magic = kMagic;
      link_name(segment->fd(), path, name);
      const Name link(path);
      const auto others = static_cast<std::uint32_t>(shape.num_ranks - 1);
      const Clock::time_point last_call = std::min(deadline, Clock::now() + std::chrono::seconds(5));
      while (Clock::now() < last_call && !wait_for(segment->header().num_joined, others, {}, kJoinSliceUs)) {
      }
    }
    throw TransportError(text);
  }
  segment->map_all();
  segment->construct_all();
  segment->header().magic = kMagic;
  segment->block(0).has_joined.store(1);
  link_name(segment->fd(), path, name);
  Name link(path);
  increase(segment->header().num_joined);
  await_all(*segment, 0, name, deadline, timeout_s);
  return segment;
}

/// The segment under that name, when it is there and its maker lives.
std::shared_ptr<MappedSegment> find_segment(const std::string& path, int rank, const SegmentShape& shape) {
  File file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (file.fd < 0) {
    if (errno == ENOENT) return nullptr;
    throw TransportError(fmt::format("cannot open the shared memory {}: {}", path, std::strerror(errno)));
  }
  struct stat status {};
  if (!is_locked(file.fd, 0) || fstat(file.fd, &status) != 0 || status.st_size < MappedSegment::bytes_of_header()) {
    return nullptr;
  }
  auto segment = std::make_shared<MappedSegment>(shape, rank, std::move(file));
  segment->map_header();
  return segment;
}

void check_header(const Segment& segment, int rank, int size, std::string_view name) {
  if (segment.header().magic != kMagic) {
    throw TransportError(fmt::format("communicator '{}': rank 0 runs another version of the library", name));
  }
  const int made_for = segment.header().shape.num_ranks;
  if (made_for != size) {
    give_up(segment, rank,
            fmt::format(
                "communicator '{}': rank {} asks for {} ranks, rank 0 for {}; accepted is the same size on all ranks",
                name, rank, size, made_for));
  }
}

std::shared_ptr<Segment> enter_segment(std::string_view name, const std::string& path, int rank,
                                       const SegmentShape& shape, double timeout_s) {
  const Clock::time_point deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_s));
  // Without room for a single page rank 0 cannot tell why it does not come. (It may just be about to use the last
  // ones.)
  const Clock::time_point full_after = Clock::now() + std::chrono::milliseconds(500);
  std::shared_ptr<MappedSegment> segment;
  while (segment == nullptr) {
    segment = find_segment(path, rank, shape);
    if (segment != nullptr) break;
    if (Clock::now() > full_after && is_full()) {
      throw TransportError(space_words(MappedSegment::bytes_of(shape), shape.num_ranks, ENOSPC));
    }
    if (Clock::now() > deadline) {
      throw TransportError(
          fmt::format("communicator '{}': rank {} waited {} s for rank 0, which makes the shared memory; accepted is "
                      "that every rank calls with this "
                      "name, or a longer timeout_s (GAR_TIMEOUT)",
                      name, rank, timeout_s));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  check_header(*segment, rank, shape.num_ranks, name);
  if (const std::string failure = segment->failure(); !failure.empty()) {
    increase(segment->header().num_joined);
    throw TransportError(failure);
  }
  segment->adopt_shape();
  segment->map_all();
  if (!take_lock(segment->fd(), rank) || segment->block(rank).has_joined.exchange(1) != 0) {
    const std::string text = fmt::format("communicator '{}': there are two processes with rank {}", name, rank);
    give_up(*segment, rank, text);
  }
  increase(segment->header().num_joined);
  try {
    await_all(*segment, rank, name, deadline, timeout_s);
  } catch (const TransportError&) {
    if (!segment->is_alive(0)) unlink(path.c_str());
    throw;
  }
  return segment;
}

}  // namespace

std::shared_ptr<Segment> join_segment(std::string_view name, int rank, const SegmentShape& shape, double timeout_s) {
  const std::string path = fmt::format("{}/{}{}", kDirectory, prefix(), name);
  return rank == 0 ? make_segment(name, path, shape, timeout_s) : enter_segment(name, path, rank, shape, timeout_s);
}

}  // namespace gar
