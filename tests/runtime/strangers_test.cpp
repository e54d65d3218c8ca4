// Two users on one host: what one of them does in /dev/shm costs the other nothing, and shows nothing of it.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "support/collective_cases.hpp"
#include "support/rank_groups.hpp"
#include "support/seed.hpp"
#include "support/shared_array.hpp"
#include "support/shm_sandbox.hpp"

namespace gar {
namespace {

using test::check;
using test::Processes;
namespace fs = std::filesystem;

constexpr uid_t kVictim = 61'001;
constexpr uid_t kStranger = 61'002;
const fs::path kShm = "/dev/shm";
const fs::path kHome = kShm / ("gar-" + std::to_string(kVictim));  // the victim's own directory

void become(uid_t user) {
  check(setgroups(0, nullptr) == 0 && setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0,
        "cannot become another user");
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of user has cancelled it
}

/// Runs the body in a private /dev/shm that all users may write to, as root.
std::string sandboxed(const std::function<void()>& body) {
  if (geteuid() != 0) return "skip: two users need root";
  Processes process;
  process.start([&] {
    const std::string problem = test::enter_shm_sandbox("256m");
    if (!problem.empty()) throw test::Failure("skip: " + problem);
    check(chmod("/dev/shm", 01777) == 0, "chmod");
    body();
  });
  return process.collect()[0].text;
}

#define EXPECT_SANDBOXED(...)                                       \
  do {                                                              \
    const std::string text = sandboxed(__VA_ARGS__);                \
    if (text.starts_with("skip: ")) GTEST_SKIP() << text.substr(6); \
    EXPECT_EQ(text, "");                                            \
  } while (false)

void reduce(Communicator& communicator) {
  std::vector<float> values(10'007, 1);
  communicator.all_reduce(std::span(values));
  check(values == std::vector<float>(values.size(), static_cast<float>(communicator.size())), "the sum");
}

void start_victims(Processes& processes, const std::string& name, const std::function<void(Communicator&)>& body) {
  for (int rank = 0; rank < 3; ++rank) {
    processes.start([=] {
      become(kVictim);
      CommunicatorOptions options;
      options.timeout_s = test::kNoLimit;
      Communicator communicator = shared_memory_communicator(name, rank, 3, options);
      body(communicator);
    });
  }
}

std::string failures_of(Processes& processes) {
  std::vector<std::string> out;
  for (const Processes::Outcome& outcome : processes.collect()) out.push_back(outcome.text);
  return test::failures(out);
}

std::string run_victims(const std::string& name) {
  Processes processes;
  start_victims(processes, name, [](Communicator& communicator) { reduce(communicator); });
  return failures_of(processes);
}

/// What the stranger may guess: how entries of that user begin, with the name of the job itself, and with the beginning
/// of a real entry, if one was seen.
std::vector<std::string> guesses(const std::string& name, const std::string& seen) {
  const std::string user = "gar-" + std::to_string(kVictim);
  std::vector<std::string> out{user, user + "-" + name, user + "-", user + "-0000000000000000-0000000000000000"};
  if (!seen.empty()) {
    const std::string start = seen.substr(0, seen.rfind('-') + 1);
    out.push_back(start + "0000000000000000");
    out.push_back(start + "ffffffffffffffff");
  }
  return out;
}

/// How an entry of the victim's jobs of that name looks, as everybody may see it while such a job starts.
std::string seen_entry(const std::string& name) {
  Processes waiting;
  waiting.start([&] {
    become(kVictim);
    CommunicatorOptions options;
    options.timeout_s = test::kNoLimit;
    shared_memory_communicator(name, 0, 2, options);
  });
  test::await_shm_entry();
  std::string out = test::shm_entries(true).front();
  waiting.signal(0, SIGKILL);
  waiting.collect();
  fs::remove_all(kHome);
  return out;
}

/// In a process of the stranger's, which stays until the end of the object: holds what it has opened.
class Stranger {
 public:
  explicit Stranger(const std::function<void()>& act) {
    process_.start([this, act] {
      become(kStranger);
      act();
      ready_[0] = 1;
      ready_.await(1, 1);
    });
    ready_.await(0, 1);
  }
  ~Stranger() { ready_[1] = 1; }
  std::string leave() {
    ready_[1] = 1;
    return process_.collect()[0].text;
  }

 private:
  test::SharedArray ready_{2};
  Processes process_;
};

/// Something of the stranger's under each of these names, then a job of the victim's, and what is there afterwards.
void expect_harmless(const std::string& what, const std::function<void(const fs::path&)>& plant) {
  const std::string name = "job";
  const std::vector<std::string> names = guesses(name, seen_entry(name));
  Stranger stranger([&] {
    for (const std::string& entry : names) plant(kShm / entry);
  });
  for (int i = 0; i < 3; ++i) {
    const std::string problem = run_victims(name);
    check(problem.empty(), what + ": " + problem);
  }
  check(stranger.leave().empty(), what + ": the stranger failed");
  for (const std::string& entry : test::shm_entries(true)) {
    const bool is_planted = std::find(names.begin(), names.end(), entry) != names.end();
    check(is_planted || !entry.starts_with("gar-"), what + ": left behind: " + entry);
  }
  for (const std::string& entry : names) fs::remove_all(kShm / entry);
}

int open_new(const fs::path& path) {
  const int out = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  check(out >= 0 && fchmod(out, 0666) == 0, "a file of the stranger's");
  return out;
}

TEST(Strangers, Files) {
  EXPECT_SANDBOXED([] {
    expect_harmless("files", [](const fs::path& path) {
      const int file = open_new(path);
      check(ftruncate(file, 1 << 20) == 0, "ftruncate");
    });
  });
}

// As if its maker were alive.
TEST(Strangers, LockedFiles) {
  EXPECT_SANDBOXED([] {
    expect_harmless("locked files", [](const fs::path& path) {
      const int file = open_new(path);
      struct flock lock {};
      lock.l_type = F_WRLCK;
      lock.l_whence = SEEK_SET;
      check(ftruncate(file, 1 << 20) == 0 && fcntl(file, F_OFD_SETLK, &lock) == 0, "a lock");
      check(flock(file, LOCK_EX) == 0, "flock");
    });
  });
}

// Whoever opens such a file waits until its owner agrees, for 45 s as a rule.
TEST(Strangers, Leases) {
  EXPECT_SANDBOXED([] {
    expect_harmless("leases", [](const fs::path& path) {
      const int file = open_new(path);
      signal(SIGIO, SIG_IGN);
      check(fcntl(file, F_SETLEASE, F_WRLCK) == 0, "a lease");
    });
  });
}

TEST(Strangers, Pipes) {
  EXPECT_SANDBOXED(
      [] { expect_harmless("pipes", [](const fs::path& path) { check(mkfifo(path.c_str(), 0666) == 0, "mkfifo"); }); });
}

TEST(Strangers, LinksToDirectoriesOfTheVictim) {
  EXPECT_SANDBOXED([] {
    const fs::path home = "/dev/shm/home";
    check(mkdir(home.c_str(), 0700) == 0 && chown(home.c_str(), kVictim, kVictim) == 0, "a home");
    expect_harmless("links", [&](const fs::path& path) { fs::create_symlink(home, path); });
  });
}

TEST(Strangers, Directories) {
  EXPECT_SANDBOXED([] {
    for (const mode_t mode : {0700, 0777}) {
      expect_harmless("directories", [&](const fs::path& path) {
        check(mkdir(path.c_str(), 0700) == 0 && chmod(path.c_str(), mode) == 0, "mkdir");
      });
    }
  });
}

// A job of the stranger's own that the victim's ranks are to join: they would reduce for it.
TEST(Strangers, DirectoriesWithSomebodyWhoListens) {
  EXPECT_SANDBOXED([] {
    expect_harmless("listeners", [](const fs::path& path) {
      check(mkdir(path.c_str(), 0700) == 0 && chmod(path.c_str(), 0777) == 0, "mkdir");
      const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      const std::string where = (path / "socket").string();
      check(where.size() < sizeof(address.sun_path), "the path is too long");
      where.copy(static_cast<char*>(address.sun_path), where.size());
      check(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                listen(listener, 100) == 0 && chmod(where.c_str(), 0777) == 0,
            "a listener");
    });
  });
}

// The stranger runs the same program with the same name, at the same time.
TEST(Strangers, AJobOfTheSameName) {
  EXPECT_SANDBOXED([] {
    for (int i = 0; i < 5; ++i) {
      Processes theirs;
      for (int rank = 0; rank < 2; ++rank) {
        theirs.start([=] {
          become(kStranger);
          CommunicatorOptions options;
          options.timeout_s = test::kNoLimit;
          Communicator communicator = shared_memory_communicator("job", rank, 2, options);
          reduce(communicator);
        });
      }
      const std::string problem = run_victims("job") + failures_of(theirs);
      check(problem.empty(), problem);
    }
  });
}

// So many names that looking at them takes time.
TEST(Strangers, VeryManyNames) {
  EXPECT_SANDBOXED([] {
    for (const bool takes_home : {false, true}) {
      Stranger stranger([&] {
        if (takes_home) check(mkdir(kHome.c_str(), 0700) == 0, "mkdir");
        for (int i = 0; i < test::scaled(500, 5000, 100'000); ++i) {
          check(mkdir((kHome.string() + "-" + std::to_string(i)).c_str(), 0700) == 0 || errno == EEXIST, "mkdir");
        }
      });
      const std::string problem = run_victims("job");
      check(problem.empty(), problem);
      check(stranger.leave().empty(), "the stranger failed");
    }
  });
}

// The stranger sees every entry as soon as it is made, and takes the names that could be next.
TEST(Strangers, TheNameThatComesNext) {
  EXPECT_SANDBOXED([] {
    test::SharedArray shared(2);
    Processes stranger;
    stranger.start([&] {
      become(kStranger);
      check(mkdir(kHome.c_str(), 0777) == 0, "mkdir");  // inside it nothing can be seen
      const int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
      check(events >= 0 && inotify_add_watch(events, kShm.c_str(), IN_CREATE) >= 0, "inotify");
      shared[0] = 1;
      std::vector<char> buffer(1 << 16);
      while (shared[1] == 0) {
        const ssize_t length = read(events, buffer.data(), buffer.size());
        for (ssize_t at = 0; at < length;) {
          const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
          std::string name(static_cast<const char*>(event->name));
          while (!name.empty()) {  // "x~" was made: "x" may come next
            name.pop_back();
            const int file = open((kShm / name).c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
            if (file >= 0) close(file);
            if (name.size() + 4 < std::string_view(static_cast<const char*>(event->name)).size()) break;
          }
          at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
        }
      }
    });
    shared.await(0, 1);
    std::string problem;
    for (int i = 0; i < 40 && problem.empty(); ++i) problem = run_victims("job");
    shared[1] = 1;
    problem += failures_of(stranger);
    check(problem.empty(), problem);
  });
}

/// What the stranger gets hold of below /dev/shm, in /proc and among abstract sockets.
std::string reached(const std::vector<pid_t>& victims) {
  std::string out;
  const auto all = fs::directory_options::skip_permission_denied;
  for (const auto& entry : fs::recursive_directory_iterator(kShm, all)) {
    const std::string path = entry.path().string();
    if (open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC) >= 0) out += " opened " + path;
    if (rename(path.c_str(), (path + ".moved").c_str()) == 0) out += " moved " + path;
    if (remove(path.c_str()) == 0) out += " removed " + path;
    if (link(path.c_str(), (path + ".linked").c_str()) == 0) out += " linked " + path;
    const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string where = path + "/socket";
    where.copy(static_cast<char*>(address.sun_path), sizeof(address.sun_path) - 1);
    if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      out += " connected to " + where;
    }
    close(connection);
  }
  for (const pid_t pid : victims) {
    for (int fd = 0; fd < 64; ++fd) {
      const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
      if (open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC) >= 0) out += " opened " + path;
    }
  }
  return out;
}

// While a job starts, and while it runs: nothing of it can be opened, moved, linked or removed.
TEST(Strangers, ReachNothing) {
  EXPECT_SANDBOXED([] {
    test::SharedArray shared(8);
    const auto attack = [&] {
      std::vector<pid_t> pids;
      for (std::size_t i = 0; i < 3; ++i) {
        if (shared[2 + i] != 0) pids.push_back(static_cast<pid_t>(shared[2 + i].load()));
      }
      Processes stranger;
      stranger.start([&] {
        become(kStranger);
        const std::string got = reached(pids);
        check(got.empty(), "the stranger has" + got);
      });
      const std::string problem = stranger.collect()[0].text;
      check(problem.empty(), problem);
    };
    Processes victims;
    const auto start = [&](int rank) {
      victims.start([&shared, rank] {
        become(kVictim);
        shared[2 + static_cast<std::size_t>(rank)] = static_cast<std::uint64_t>(getpid());
        CommunicatorOptions options;
        options.timeout_s = test::kNoLimit;
        Communicator communicator = shared_memory_communicator("job", rank, 3, options);
        ++shared[0];
        while (shared[1] == 0) reduce(communicator);
        reduce(communicator);
      });
    };
    start(0);
    start(1);
    test::await_shm_entry();
    for (int i = 0; i < 20; ++i) attack();
    start(2);
    shared.await(0, 3);
    for (int i = 0; i < 20; ++i) attack();
    // Ranks leave the loop at different moments; the one that is ahead waits in the last reduction or fails by leaving.
    for (int rank = 0; rank < 3; ++rank) victims.signal(rank, SIGKILL);
    victims.collect();
  });
}

// Thousands of names of the stranger's, made and removed all the time, next to jobs that start and end.
TEST(Strangers, AStorm) {
  EXPECT_SANDBOXED([] {
    const std::vector<std::string> names = guesses("job", seen_entry("job"));
    test::SharedArray stop(1);
    Processes stranger;
    stranger.start([&] {
      become(kStranger);
      std::mt19937_64 random(test::seed(1));
      while (stop[0] == 0) {
        const std::string name =
            names[random() % names.size()] + (random() % 2 == 0 ? "" : std::to_string(random() % 100));
        const fs::path path = kShm / name;
        std::error_code ignored;
        switch (random() % 5) {
          case 0:
            close(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
            break;
          case 1:
            mkdir(path.c_str(), 0777);
            break;
          case 2:
            mkfifo(path.c_str(), 0666);
            break;
          case 3:
            fs::create_symlink("/dev/shm", path, ignored);
            break;
          default:
            remove(path.c_str());
        }
      }
    });
    for (int i = 0; i < test::scaled(3, 10, 100); ++i) {
      const std::string problem = run_victims("job");
      check(problem.empty(), problem);
    }
    stop[0] = 1;
    check(stranger.collect()[0].text.empty(), "the stranger failed");
  });
}

}  // namespace
}  // namespace gar
