// Files that are read and written, when somebody has put something else in their place.
#include "gar/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "gar/errors.hpp"
#include "gar/plan_io.hpp"
#include "io/text_file.hpp"
#include "support/temp_folder.hpp"

namespace {

/// The file from which read() gets nothing yet, as from some files of the kernel; 0 for none.
ino_t silent_inode = 0;

}  // namespace

// Takes the place of the C library's for this whole program.
extern "C" ssize_t read(int file, void* to, std::size_t size) {
  struct stat status {};
  if (silent_inode != 0 && fstat(file, &status) == 0 && status.st_ino == silent_inode) {
    errno = EAGAIN;
    return -1;
  }
  return syscall(SYS_read, file, to, size);
}

namespace gar {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMany = 1 << 20;

/// Sets how long a pipe may be silent.
class Patience {
 public:
  explicit Patience(const char* seconds) { setenv("GAR_INPUT_TIMEOUT", seconds, 1); }
  ~Patience() { unsetenv("GAR_INPUT_TIMEOUT"); }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
};

std::string problem_of(const std::string& path, std::int64_t max_bytes = kMany) {
  try {
    (void)read_text_file(path, max_bytes);
  } catch (const ParseError& error) {
    return error.what();
  }
  return "";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string text_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(lstat(path.c_str(), &status), 0);
  return status.st_mode & 07777U;
}

class Files : public testing::Test {
 protected:
  std::string make_pipe() {
    std::string path = folder_.file("pipe");
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    return path;
  }

  test::TempFolder folder_;
};

TEST_F(Files, ReadsAFile) {
  write_text(folder_.file("a"), std::string(100'000, 'x') + "y");
  EXPECT_EQ(read_text_file(folder_.file("a"), kMany), std::string(100'000, 'x') + "y");
  write_text(folder_.file("empty"), "");
  EXPECT_EQ(read_text_file(folder_.file("empty"), kMany), "");
  EXPECT_EQ(problem_of(folder_.file("a"), 100'000), folder_.file("a") + ": has 100001 bytes; expected at most 100000");
}

TEST_F(Files, PipeWithoutWriterIsRefused) {
  const Patience patience("0.05");
  const std::string path = make_pipe();
  expect_contains(problem_of(path),
                  "is a pipe that nobody has written to for 0.05 s (GAR_INPUT_TIMEOUT sets that time)");
  EXPECT_THROW((void)read_plan_file(path), ParseError);
}

TEST_F(Files, PipeWithASilentWriterIsRefused) {
  const Patience patience("0.05");
  const std::string path = make_pipe();
  const int writer = open(path.c_str(), O_RDWR | O_CLOEXEC);  // of Linux: does not wait for a reader
  ASSERT_GE(writer, 0);
  expect_contains(problem_of(path), "is a pipe that has been silent for 0.05 s");
  ASSERT_EQ(write(writer, "abc", 3), 3);
  expect_contains(problem_of(path), "is a pipe that has been silent");
  close(writer);
}

TEST_F(Files, PipeIsReadToItsEnd) {
  const std::string path = make_pipe();
  const std::string text(300'000, 'z');  // more than a pipe holds
  std::thread writer([&] { write_text(path, text); });
  EXPECT_EQ(read_text_file(path, kMany), text);
  writer.join();
  std::thread silent([&] { write_text(path, ""); });
  EXPECT_EQ(read_text_file(path, kMany), "");
  silent.join();
}

// As root, /proc/kmsg is such a file; but reading it takes the kernel's messages away from others.
TEST_F(Files, SilentFileIsRefused) {
  const Patience patience("0.05");
  write_text(folder_.file("silent"), "text");
  struct stat status {};
  ASSERT_EQ(stat(folder_.file("silent").c_str(), &status), 0);
  silent_inode = status.st_ino;
  const std::string problem = problem_of(folder_.file("silent"));
  silent_inode = 0;
  expect_contains(problem, "is not a stored file and has given nothing for 0.05 s (GAR_INPUT_TIMEOUT sets that time)");
}

TEST_F(Files, PipeWithoutEndIsCutOff) {
  const std::string path = make_pipe();
  std::thread writer([&] {
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
    const std::string some(4096, 'a');
    while (write(file, some.data(), some.size()) > 0) {
    }
    close(file);
  });
  expect_contains(problem_of(path, 1'000'000), "has more than 1000000 bytes; expected at most 1000000");
  writer.join();
}

TEST_F(Files, WhatIsNoFileIsRefused) {
  expect_contains(problem_of("/dev/zero"), "/dev/zero: is a device; expected a file");
  expect_contains(problem_of(folder_.path()), "is a directory; expected a file");
  EXPECT_EQ(problem_of(folder_.file("nothing")), folder_.file("nothing") + ": there is no such file");
  const int plug = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, folder_.file("socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(plug, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  expect_contains(problem_of(folder_.file("socket")), "is a socket; expected a file");
  close(plug);
  EXPECT_THROW((void)read_plan_file("/dev/zero"), ParseError);
}

TEST_F(Files, SavedFileHasTheUsualPermissions) {
  const mode_t before = umask(027);
  save_file(folder_.file("new"), [](std::ostream& out) { out << "text"; });
  umask(before);
  EXPECT_EQ(text_of(folder_.file("new")), "text");
  EXPECT_EQ(mode_of(folder_.file("new")), 0640U);
}

TEST_F(Files, ReplacedFileKeepsItsPermissions) {
  for (const mode_t mode : {mode_t{0600}, mode_t{0644}, mode_t{0666}, mode_t{0444}}) {
    write_text(folder_.file("old"), "old");
    ASSERT_EQ(chmod(folder_.file("old").c_str(), mode), 0);
    save_file(folder_.file("old"), [](std::ostream& out) { out << "new"; });
    EXPECT_EQ(text_of(folder_.file("old")), "new");
    EXPECT_EQ(mode_of(folder_.file("old")), mode);
    fs::remove(folder_.file("old"));
  }
}

// Somebody who may write to the folder has guessed the name of the file that is written first.
TEST_F(Files, NothingIsWrittenThroughALink) {
  write_text(folder_.file("victim"), "precious");
  for (const std::string& guess :
       {folder_.file("plan") + "." + std::to_string(getpid()) + ".part", folder_.file("plan")}) {
    fs::create_symlink(folder_.file("victim"), guess);
  }
  save_file(folder_.file("plan"), [](std::ostream& out) { out << "text"; });
  EXPECT_EQ(text_of(folder_.file("victim")), "precious");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder_.file("plan"))));
  EXPECT_EQ(text_of(folder_.file("plan")), "text");
}

TEST_F(Files, FailureLeavesNothingBehind) {
  write_text(folder_.file("kept"), "old");
  EXPECT_THROW(save_file(folder_.file("kept"),
                         [](std::ostream& out) {
                           out << "half";
                           throw ParseError("stop");
                         }),
               ParseError);
  EXPECT_THROW(save_file(folder_.file("kept"), [](std::ostream& out) { out.setstate(std::ios::badbit); }),
               std::runtime_error);
  EXPECT_EQ(text_of(folder_.file("kept")), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
  EXPECT_THROW(save_file(folder_.file("no/such/folder"), [](std::ostream&) {}), std::runtime_error);
  EXPECT_THROW(save_file("/dev/full", [](std::ostream& out) { out << "text"; }), std::runtime_error);
}

std::string problem_of_saving(const std::string& path, const std::string& text = "text") {
  try {
    save_file(path, [&](std::ostream& out) { out << text; });
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST_F(Files, LinksToPipesAndDevicesAreRefused) {
  const std::string pipe = make_pipe();
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  fs::create_symlink(pipe, folder_.file("to_pipe"));
  fs::create_symlink("/dev/null", folder_.file("to_device"));
  fs::create_symlink(folder_.path(), folder_.file("to_folder"));
  const std::string accepted =
      "; expected a file in a folder that can be written, a pipe that somebody reads or a device, each under its "
      "own "
      "name, or /dev/stdout";
  for (const auto& [name, what] :
       {std::pair{"to_pipe", "a pipe"}, {"to_device", "a device"}, {"to_folder", "a directory"}}) {
    const std::string path = folder_.file(name);
    const std::string words = std::string(": is a link to ") + what + ", which is not followed" + accepted;
    EXPECT_EQ(problem_of_saving(path), path + words);
    try {
      check_writable("-o", path);
      ADD_FAILURE() << path;
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "-o " + path + words);
    }
  }
  EXPECT_EQ(problem_of_saving(folder_.path()), folder_.path() + ": is a directory" + accepted);
  close(reader);
  EXPECT_EQ(problem_of_saving("/dev/null"), "");
}

TEST_F(Files, PipeThatNobodyReadsIsRefused) {
  const Patience patience("0.05");
  const std::string pipe = make_pipe();
  expect_contains(problem_of_saving(pipe), "is a pipe that nobody has opened for reading for 0.05 s");
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  expect_contains(problem_of_saving(pipe, std::string(1 << 20, 'x')),
                  "is a pipe whose reader has taken nothing for 0.05 s (GAR_INPUT_TIMEOUT sets that time)");
  close(reader);
}

// Somebody who may write to the folder exchanges a pipe for a link to a file, or for the file itself, and back, all the
// time.
TEST_F(Files, ExchangedPipeCostsNobodyHisFile) {
  write_text(folder_.file("victim"), "precious");
  fs::create_symlink(folder_.file("victim"), folder_.file("link"));
  fs::create_symlink(folder_.file("reader"), folder_.file("link_to_pipe"));
  ASSERT_EQ(mkfifo(folder_.file("reader").c_str(), 0600), 0);
  const int reader = open(folder_.file("reader").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  const std::string plan = folder_.file("plan");
  std::atomic<bool> is_over = false;
  std::thread attacker([&] {
    for (int i = 0; !is_over; ++i) {
      const char* const other[] = {"reader", "link", "reader", "victim", "link_to_pipe"};
      (void)unlink(folder_.file("next").c_str());
      if (linkat(AT_FDCWD, folder_.file(other[i % 5]).c_str(), AT_FDCWD, folder_.file("next").c_str(), 0) == 0) {
        (void)rename(folder_.file("next").c_str(), plan.c_str());
      }
    }
  });
  const Patience patience("0.05");
  std::array<char, 64> drain{};
  for (int i = 0; i < 3000 && text_of(folder_.file("victim")) == "precious"; ++i) {
    (void)problem_of_saving(plan);
    while (read(reader, drain.data(), drain.size()) > 0) {
    }
  }
  is_over = true;
  attacker.join();
  close(reader);
  EXPECT_EQ(text_of(folder_.file("victim")), "precious");
}

TEST_F(Files, KilledWriterLeavesNothingBehind) {
  const int probe = open(folder_.path().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (probe < 0) GTEST_SKIP() << "a file system without nameless files";
  close(probe);
  const pid_t child = fork();
  if (child == 0) {
    save_file(folder_.file("plan"), [](std::ostream& out) {
      out << "half" << std::flush;
      (void)raise(SIGKILL);
    });
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(fs::directory_iterator(folder_.path()), fs::directory_iterator());
}

TEST_F(Files, PipesAndOwnDescriptorsAreWrittenTo) {
  const std::string path = make_pipe();
  std::string got;
  std::thread reader([&] { got = text_of(path); });
  save_file(path, [](std::ostream& out) { out << "through the pipe"; });
  reader.join();
  EXPECT_EQ(got, "through the pipe");
  EXPECT_TRUE(fs::is_fifo(path));
  // A descriptor that is a file: what stands there stays, as with any other output to it.
  const int file = open(folder_.file("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(write(file, "first\n", 6), 6);
  save_file("/dev/fd/" + std::to_string(file), [](std::ostream& out) { out << "second\n"; });
  ASSERT_EQ(write(file, "third\n", 6), 6);
  close(file);
  EXPECT_EQ(text_of(folder_.file("log")), "first\nsecond\nthird\n");
}

}  // namespace
}  // namespace gar
