// A rank of the same user that runs wild: garbage in what rank 0 hands out, and in the memory that ranks share, ends in
// errors, not in crashes. (Sums may be wrong: a rank that writes into the data of others cannot be noticed.)
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gar/communicator.hpp"
#include "runtime/transports/shared/meeting_place.hpp"
#include "runtime/transports/shared/segment.hpp"
#include "support/collective_cases.hpp"
#include "support/rank_groups.hpp"
#include "support/seed.hpp"

namespace gar {
namespace {

using test::check;
using test::Processes;

// --- greetings -------------------------------------------------------------------------------------------------------

/// What a real rank 0 of that name and shape hands out.
Handed real_greeting(const std::string& name, const SegmentShape& shape) {
  std::thread rank0([&] {
    try {
      join_segment(name, 0, shape, 0.2);
    } catch (const TransportError&) {  // nobody joins
    }
  });
  std::optional<Handed> out;
  while (!out) out = visit_meeting_place(name, true, 1000);
  rank0.join();
  return std::move(*out);
}

std::vector<std::byte> to_bytes(const std::string& text) {
  std::vector<std::byte> out(text.size());
  std::memcpy(out.data(), text.data(), text.size());
  return out;
}

/// All sorts of descriptors, the right one among them.
std::vector<File> descriptors(const File& right, std::int64_t bytes) {
  std::vector<File> out;
  out.emplace_back(dup(right.fd));
  out.emplace_back();
  out.emplace_back(open("/dev/null", O_RDWR | O_CLOEXEC));
  out.emplace_back(open("/", O_RDONLY | O_CLOEXEC));
  for (const std::int64_t length : {bytes, std::int64_t{0}, bytes - 4096, bytes + 4096}) {
    for (const int seals : {0, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL}) {
      File file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      check(file.fd >= 0 && ftruncate(file.fd, length) == 0, "memfd");
      check(seals == 0 || fcntl(file.fd, F_ADD_SEALS, seals) == 0, "seals");
      out.push_back(std::move(file));
    }
  }
  return out;
}

/// Changes a few bytes: anywhere, or to values that are often at the edge of something.
void mutate(std::vector<std::byte>& bytes, std::mt19937_64& random) {
  constexpr std::size_t kNumbers = 64;  // magic, shape and length are at the beginning
  const std::size_t changes = 1 + random() % 3;
  for (std::size_t i = 0; i < changes; ++i) {
    const bool is_number = random() % 4 != 0;
    const std::size_t at = is_number ? random() % kNumbers : random() % bytes.size();
    static constexpr std::array<std::int64_t, 8> kEdges{0, -1, 1, 1 << 20, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    if (random() % 2 == 0) {
      bytes[at] = static_cast<std::byte>(random());
    } else {
      const std::int64_t value = kEdges[random() % kEdges.size()];
      const std::size_t width = random() % 2 == 0 ? 4 : 8;
      const std::size_t begin = std::min(at / width * width, bytes.size() - width);
      std::memcpy(bytes.data() + begin, &value, width);
    }
  }
}

TEST(Corruption, OfWhatRankZeroHandsOut) {
  SegmentShape shape = suitable_shape(4, 64 << 10);
  const std::string name = test::unique_name("greeting");
  const Handed real = real_greeting(name, shape);
  const std::vector<File> files = descriptors(real.file, Segment::total_bytes(shape));
  std::mt19937_64 random(test::seed(17));
  MeetingPlace place(name);
  for (int trial = 0; trial < test::scaled(300, 2'000, 20'000); ++trial) {
    SCOPED_TRACE(trial);
    std::vector<std::byte> greeting = to_bytes(real.greeting);
    if (trial % 8 != 0) mutate(greeting, random);
    if (random() % 16 == 0) greeting.resize(random() % greeting.size());
    const File& file = files[random() % 4 == 0 ? random() % files.size() : 0];
    std::atomic<bool> is_done = false;
    std::thread rank0([&] {
      while (!is_done) place.serve(greeting, file.fd, 1);
    });
    // Nobody else comes: even what looks right ends in an error.
    EXPECT_THROW(join_segment(name, 1, shape, 0.005), TransportError);
    is_done = true;
    rank0.join();
  }
}

// --- control words ---------------------------------------------------------------------------------------------------

/// The shared memory of this process, as the kernel lists it.
std::vector<std::span<std::uint64_t>> shared_memory() {
  std::vector<std::span<std::uint64_t>> out;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:gar") == std::string::npos) continue;
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    out.emplace_back(reinterpret_cast<std::uint64_t*>(begin), (end - begin) / sizeof(std::uint64_t));
  }
  return out;
}

/// Writes into the control words of all ranks, most of which are small numbers.
void scribble(std::mt19937_64& random, int num_ranks) {
  for (const std::span<std::uint64_t> words : shared_memory()) {
    // The header is a page, a rank's part begins with its block.
    const std::size_t region = (words.size() - 512) / static_cast<std::size_t>(num_ranks);
    for (int i = 0; i < 5; ++i) {
      const std::size_t rank = random() % static_cast<std::size_t>(num_ranks);
      const std::size_t at = random() % 4 == 0
                                 ? random() % 512
                                 : 512 + rank * region + random() % (sizeof(RankBlock) / sizeof(std::uint64_t));
      const std::uint64_t value = random() % 2 == 0 ? random() : random() % 300;
      std::atomic_ref(words[at]).store(value);
    }
  }
}

void work(Communicator& communicator, std::mt19937_64& random, const std::function<void()>& between) {
  std::vector<float> values(50'000, 1);
  for (int i = 0; i < 20; ++i) {
    between();
    const std::size_t count = i % 2 == 0 ? 1 + random() % 100 : values.size();
    communicator.all_reduce(std::span(values).first(count));
  }
}

TEST(Corruption, OfControlWords) {
  thread_communicators(2);  // measures this machine once, for all children
  constexpr int kRanks = 3;
  for (int trial = 0; trial < test::scaled(10, 40, 2'000); ++trial) {
    const std::string name = test::unique_name("words");
    Processes processes;
    for (int rank = 0; rank < kRanks; ++rank) {
      processes.start([=] {
        CommunicatorOptions options;
        options.timeout_s = 0.3;
        Communicator communicator = shared_memory_communicator(name, rank, kRanks, options);
        std::mt19937_64 same(test::seed(static_cast<std::uint64_t>(trial)));
        std::mt19937_64 own(test::seed(static_cast<std::uint64_t>(trial * kRanks + rank)));
        work(communicator, same, [&] {
          if (rank == 1) scribble(own, kRanks);
        });
      });
    }
    for (const Processes::Outcome& outcome : processes.collect()) {
      EXPECT_TRUE(outcome.ended) << "trial " << trial << ": " << outcome.text;
      const bool is_error =
          outcome.text.starts_with("TransportError: ") || outcome.text.starts_with("InvalidArgument: ");
      EXPECT_TRUE(outcome.text.empty() || is_error) << "trial " << trial << ": " << outcome.text;
    }
  }
}

// Nobody can take a part of the memory away: that would end every rank that touches it (SIGBUS).
TEST(Corruption, MemoryCannotBeCutOff) {
  const std::vector<std::string> outcomes = test::run_processes(3, [](test::Member& member) {
    Communicator communicator = member.communicator({});
    bool is_found = false;
    for (int fd = 0; fd < 256; ++fd) {
      const std::string path = "/proc/self/fd/" + std::to_string(fd);
      std::array<char, 64> target{};
      if (readlink(path.c_str(), target.data(), target.size() - 1) < 0) continue;
      if (std::string_view(target.data()).find("memfd:gar") == std::string_view::npos) continue;
      is_found = true;
      check(ftruncate(fd, 0) != 0, "the memory could be made shorter");
    }
    check(is_found, "the descriptor was not found");
    std::vector<float> values(1000, 1);
    communicator.all_reduce(std::span(values));
    check(values[0] == 3, "the sum");
  });
  EXPECT_EQ(test::failures(outcomes), "");
}

}  // namespace
}  // namespace gar
