// A rank of the same user that runs wild: garbage in what rank 0 hands out, and in the memory that ranks share, ends in
// errors, not in crashes. (Sums may be wrong: a rank that writes into the data of others cannot be noticed.)
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gar/communicator.hpp"
#include "runtime/transports/shared/greeting.hpp"
#include "runtime/transports/shared/meeting_place.hpp"
#include "runtime/transports/shared/segment.hpp"
#include "support/collective_cases.hpp"
#include "support/rank_groups.hpp"
#include "support/seed.hpp"
#include "support/shared_array.hpp"

namespace gar {
namespace {

using test::check;
using test::Processes;

constexpr std::int64_t kPage = 4096;

// --- greetings -------------------------------------------------------------------------------------------------------

/// What a real rank 0 of that name and shape hands out.
Handed real_greeting(const std::string& name, const SegmentShape& shape) {
  std::atomic<bool> is_done = false;
  std::thread rank0([&] {
    while (!is_done) {
      try {
        join_segment(name, 0, shape, 0.2);
      } catch (const TransportError&) {  // nobody joins
      }
    }
  });
  std::optional<Handed> out;
  while (!out) out = visit_meeting_place(name, true, 1000);
  is_done = true;
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

/// The words that ranks share when they join: zero as rank 0 has left them, or garbage.
void fill_memory(int fd, const SegmentShape& shape, bool is_garbage, std::mt19937_64& random) {
  const std::int64_t total = Segment::total_bytes(shape);
  const std::int64_t region = (total - kPage) / shape.num_ranks;
  std::vector<std::uint64_t> words(kPage / sizeof(std::uint64_t));
  for (int part = 0; part <= shape.num_ranks; ++part) {  // the header is a page, a rank's part begins with its block
    for (std::uint64_t& word : words) {
      const std::uint64_t kind = is_garbage ? random() % 4 : 0;
      word = kind == 0 ? 0 : kind == 1 ? random() : random() % 8;
    }
    const std::int64_t at = part == 0 ? 0 : kPage + (part - 1) * region;
    check(pwrite(fd, words.data(), kPage, at) == kPage, "pwrite");
  }
}

/// What rank 1 says that was given this; empty: it has joined. A rank 0 that is late is waited for, however busy the
/// machine is: what rank 1 was given decides, not the time.
std::string outcome_of_joining(const std::string& name, const SegmentShape& shape, MeetingPlace& place,
                               std::span<const std::byte> greeting, int fd, bool is_ignored) {
  for (double timeout_s = 0.005; timeout_s < test::kLongestWait; timeout_s *= 2) {
    std::atomic<bool> is_done = false;
    int num_served = 0;
    std::thread rank0([&] {
      while (!is_done) num_served += place.serve(greeting, fd, 1);
    });
    std::string out;
    try {
      join_segment(name, 1, shape, timeout_s);
    } catch (const TransportError& error) {
      out = error.what();
    }
    is_done = true;
    rank0.join();
    const bool has_waited = out.find(" for rank 0, which makes the shared memory") != std::string::npos;
    if (has_waited == is_ignored && num_served > 0) return out;
    if (!has_waited) return "what should be passed over was used: " + out;
  }
  return "nothing was handed out";
}

TEST(Corruption, OfWhatRankZeroHandsOut) {
  const SegmentShape shape = suitable_shape(4, 64 << 10);
  const std::string name = test::unique_name("greeting");
  const Handed real = real_greeting(name, shape);
  const std::vector<File> files = descriptors(real.file, Segment::total_bytes(shape));
  std::mt19937_64 random(test::seed(17));
  MeetingPlace place(name);
  int num_refused = 0;
  int num_ignored = 0;
  int num_mapped = 0;
  for (int trial = 0; trial < test::scaled(300, 1'000, 10'000); ++trial) {
    SCOPED_TRACE(trial);
    std::vector<std::byte> greeting = to_bytes(real.greeting);
    if (trial % 4 != 0) mutate(greeting, random);
    if (random() % 16 == 0) greeting.resize(random() % greeting.size());
    const File& file = files[random() % 4 == 0 ? random() % files.size() : 0];
    const bool is_garbage = random() % 4 != 0;
    fill_memory(real.file.fd, shape, is_garbage, random);
    const std::string text(reinterpret_cast<const char*>(greeting.data()), greeting.size());
    std::string refusal;
    bool is_ignored = text.empty();  // as from somebody who hangs up
    try {
      is_ignored = is_ignored || !Greeting::read(text, file.fd, name);
    } catch (const TransportError& error) {
      refusal = error.what();
    }
    const std::string outcome = outcome_of_joining(name, shape, place, greeting, file.fd, is_ignored);
    if (!refusal.empty()) {
      ++num_refused;
      EXPECT_EQ(outcome, refusal);
    } else if (is_ignored) {
      ++num_ignored;
      EXPECT_NE(outcome, "");
    } else {
      // Nobody else comes: rank 1 can only be content when garbage says that all are there.
      ++num_mapped;
      EXPECT_TRUE(is_garbage || !outcome.empty());
    }
    EXPECT_FALSE(outcome.starts_with("what should") || outcome.starts_with("nothing was")) << outcome;
  }
  std::cout << num_refused << " greetings refused, " << num_ignored << " passed over, " << num_mapped
            << " believed, with their memory\n";
  EXPECT_GT(num_refused, 0);
  EXPECT_GT(num_ignored, 0);
  EXPECT_GT(num_mapped, 0);
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

/// Writes into the control words of all ranks, most of which are small numbers. Returns how many it has changed.
int scribble(std::mt19937_64& random, int num_ranks) {
  int out = 0;
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
      ++out;
    }
  }
  return out;
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
  const int least_words = test::scaled(100, 300, 10'000);
  int num_words = 0;
  int num_noticed = 0;
  int trial = 0;
  double timeout_s = 0.3;
  for (; num_words < least_words || trial < test::scaled(10, 25, 500); ++trial) {
    const std::string name = test::unique_name("words");
    test::SharedArray shared(2);
    Processes processes;
    for (int rank = 0; rank < kRanks; ++rank) {
      processes.start([=, &shared] {
        CommunicatorOptions options;
        options.timeout_s = timeout_s;
        Communicator communicator = shared_memory_communicator(name, rank, kRanks, options);
        std::mt19937_64 same(test::seed(static_cast<std::uint64_t>(trial)));
        std::mt19937_64 own(test::seed(static_cast<std::uint64_t>(trial * kRanks + rank)));
        work(communicator, same, [&] {
          if (rank == 1) shared[0] += static_cast<std::uint64_t>(scribble(own, kRanks));
        });
      });
    }
    bool is_noticed = false;
    for (const Processes::Outcome& outcome : processes.collect()) {
      EXPECT_TRUE(outcome.ended) << "trial " << trial << ": " << outcome.text;
      const bool is_error =
          outcome.text.starts_with("TransportError: ") || outcome.text.starts_with("InvalidArgument: ");
      EXPECT_TRUE(outcome.text.empty() || is_error) << "trial " << trial << ": " << outcome.text;
      is_noticed |= is_error;
    }
    // On a busy machine ranks may not find each other in that time: such a trial has tested nothing.
    const auto words = static_cast<int>(shared[0].load());
    if (words == 0) {
      timeout_s *= 2;
      ASSERT_LT(timeout_s, test::kLongestWait) << "the ranks do not find each other";
      continue;
    }
    num_words += words;
    num_noticed += is_noticed ? 1 : 0;
  }
  std::cout << num_words << " control words in " << trial << " trials, " << num_noticed << " ended in errors\n";
  EXPECT_GT(num_noticed, 0);
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
