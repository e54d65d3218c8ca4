// Files that somebody has damaged, through every verb that reads them: whatever stands in a file, the program ends
// soon, by itself and with an answer or an error in words.
//
//   verbs GAR CORPUS [NUMBER [SEED [FIRST]]]
//
// Mutates files of the corpus, NUMBER of them (default 300), some not at all, and gives each to one command. Input i
// depends on SEED (default 1, or what GAR_TEST_SEED makes of it) and i alone, so that FIRST = i and NUMBER = 1 repeat
// it. The process may take 4 GiB of addresses and 20 s of processor time. A failure is: a signal; an exit code that is
// not 0 to 3 (memory that runs out is 4); processes that outlive the command; a number in the answer that is not
// finite; a control character in what is printed, or a line that the file's name has forged; no message where there
// should be one. The input is then left in verbs-I.in.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fuzz/mutations.hpp"
#include "support/seed.hpp"
#include "support/temp_folder.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace {

using gar::fuzz::below;
using gar::fuzz::Bytes;

constexpr std::size_t kDefaultNumber = 300;
constexpr int kMostFailures = 10;
constexpr rlim_t kAddressBytes = rlim_t{4} << 30U;
constexpr rlim_t kProcessorSeconds = 20;
constexpr rlim_t kOutputBytes = rlim_t{1} << 30U;
constexpr int kMostWaitSeconds = 600;  // finds what sleeps for ever
constexpr int kMostAfterSeconds = 60;  // finds who outlives the command, on a busy machine too
constexpr int kMostStarted = 8;        // ranks of a bench

/// What reads a kind of file. @ stands for the file, % for the corpus, # for the ranks that a plan says it has, & for
/// so many that can be started here. NAME=VALUE in front goes into the environment.
struct Kind {
  const char* folder;
  std::vector<const char*> commands;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kKinds{
      {"topology",
       {"topo show @",
        "topo show @ --full --json",
        "topo check @",
        "topo check @ --json",
        "topo convert @",
        "topo convert @ --format dot",
        "topo import @",
        "predict -t @ --count 1e6",
        "predict -t @ --size 4GiB --json",
        "plan -t @ --count 1e6 --explain",
        "plan -t @ --count 1 --json --algo gentree",
        "plan -t @ --counts 1e3..1e5",
        "plan -t @ --count 1e6 --algo all --policy runtime",
        "simulate -t @ --algo gentree+ --count 1e6",
        "simulate -t @ --algo ring,cps --count 1e4 --json",
        "simulate -t @ --algo ring --count 1e6 --jitter 0.1",
        "simulate -t @ --algo gentree --count 1e5 --jitter 0.1",
        "simulate -t @ --algo rhd --count 1e7 --barrier --path",
        "compare -t @ --counts 1e3,1e8 --algo cps,hcps,gentree",
        "compare -t @ --counts 1e6 --algo ring,rhd --json",
        "bench --local 6 -t @ -b 1KiB -e 1KiB -n 1 -w 0",
        "bench --local 6 -t @ --transport threads --algo gentree+,ring --sizes 1KiB,1MiB -n 1 -w 0 --json",
        "GAR_TOPOLOGY=@ bench --local 6 --algo gentree -b 64KiB -e 64KiB -n 1 -w 0",
        "GAR_TOPOLOGY=@ fit --local 6 --budget 1ms",
        "fit --local 6 -t @ --budget 1ms",
        "mpirun -t @ --dry-run -- mpirun -n 6 true",
        "mpirun --mpi mpich -t @ -- true"}},
      {"plan",
       {"verify @", "verify @ --json", "simulate -t star:# --plan @ --count 1e6",
        "simulate -t star:# --plan @ --count 1e3 --json", "simulate -t star:# --plan @",
        "bench --local & --plan @ -b 1KiB -e 1KiB -n 1 -w 0",
        "bench --local & --plan @ -t star:& --transport threads --sizes 1KiB,1MiB -n 1 -w 0 --json"}},
      {"profile",
       {"profile show @",
        "profile show @ --json",
        "profile diff @ %/profile/june.json",
        "profile diff @ @ --all --json",
        "predict -p @ --count 1e6",
        "predict -p @ -t tree:4x6 --count 1e6 --json",
        "plan -p @ --count 1e5",
        "plan -p @ -t star:6 --counts 1e3..1e5 --json",
        "simulate -p @ --algo gentree+ --count 1e6",
        "compare -p @ --counts 1e3,1e8",
        "compare -p @ -t star:6 --counts 1e6 --algo ring,rhd,cps --json",
        "topo show -p @",
        "topo check @",
        "topo check -p @",
        "topo convert -p @ -t tree:2x3",
        "bench --local 6 -p @ -b 1KiB -e 1KiB -n 1 -w 0",
        "bench --local 6 -p @ -t star:6 --transport threads --algo gentree+ -b 64KiB -e 64KiB -n 1 -w 0 --json",
        "GAR_TOPOLOGY=@ bench --local 6 --algo gentree -b 64KiB -e 64KiB -n 1 -w 0",
        "mpirun -p @ --dry-run -- mpirun -n 6 true",
        "mpirun --mpi openmpi -p @ -- true",
        "diagnose -p @ --results %/results/nccl.txt",
        "diagnose -p @ --results %/results/bench.json --json"}},
      {"decisions", {"profile show @", "profile show @ --json"}},
      {"measurements",
       {"fit --from @", "fit --from @ --json", "fit --from @ --validate", "fit --from @ --from @",
        "reproduce fig:incast --measured @", "reproduce fig:incast --measured @ --json",
        "reproduce table:gentreereal --measured @", "reproduce table:gentreereal --measured @ --json",
        "reproduce all --measured @"}},
      {"results",
       {"diagnose -p %/profile/star6.json --results @", "diagnose -p %/profile/june.json --results @ --json",
        "diagnose -p %/profile/june.json --results @ --ranks 4", "report @ -o /dev/null",
        "diagnose -t star:4@100Gbit/s @ --plot=always"}},
      {"nccl_log",
       {"nccl explain @", "nccl explain @ --json", "nccl explain @ @", "report @ -o /dev/null",
        "diagnose -t star:4@100Gbit/s @"}}};
  return kKinds;
}

struct Outcome {
  int status = 0;
  std::string output;
  std::string errors;
  bool was_stopped = false;
  bool left_processes = false;
};

std::string text_of(const std::string& path) {
  const Bytes bytes = gar::fuzz::read_file(path);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::string> words_of(const std::string& command) {
  std::istringstream in(command);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

void limit(int resource, rlim_t most) {
  const rlimit value{most, most};
  setrlimit(static_cast<__rlimit_resource>(resource), &value);
}

[[noreturn]] void run_child(const std::string& gar, const std::vector<std::string>& words, const std::string& folder) {
  const auto redirect = [](const std::string& path, int flags, int to) {
    const int file = open(path.c_str(), flags | O_CLOEXEC, 0600);
    if (file < 0 || dup2(file, to) < 0) _exit(127);
  };
  redirect("/dev/null", O_RDONLY, STDIN_FILENO);
  redirect(folder + "/out", O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  redirect(folder + "/err", O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, kProcessorSeconds);
  limit(RLIMIT_FSIZE, kOutputBytes);
#ifndef GAR_SANITIZED  // sanitizers reserve terabytes of addresses
  limit(RLIMIT_AS, kAddressBytes);
#endif
  std::vector<char*> argv{const_cast<char*>(gar.c_str())};
  for (const std::string& word : words) {
    if (argv.size() == 1 && word.starts_with("GAR_")) {
      putenv(const_cast<char*>(word.c_str()));
    } else {
      argv.push_back(const_cast<char*>(word.c_str()));
    }
  }
  argv.push_back(nullptr);
  execv(gar.c_str(), argv.data());
  _exit(127);
}

/// The processes that this one has to wait for.
std::vector<pid_t> children() {
  std::vector<pid_t> out;
  std::ifstream file("/proc/thread-self/children");
  for (pid_t pid = 0; file >> pid;) out.push_back(pid);
  return out;
}

/// The ranks that a command has started end with it, or soon after. Whoever does not is this process's child then
/// (PR_SET_CHILD_SUBREAPER), and is ended here. True: there was one.
bool end_what_is_left() {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(kMostAfterSeconds);
  bool out = false;
  while (true) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG);
    if (pid < 0) return out;
    if (pid > 0) continue;
    if (std::chrono::steady_clock::now() > limit) {
      out = true;
      for (const pid_t left : children()) kill(left, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Outcome run(const std::string& gar, const std::vector<std::string>& words, const std::string& folder) {
  std::cout.flush();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    std::cerr << "verbs: cannot start a process: " << std::strerror(errno) << "\n";
    std::exit(2);
  }
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    run_child(gar, words, folder);
  }
  Outcome out;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kMostWaitSeconds);
  while (waitpid(pid, &out.status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      out.was_stopped = true;
      kill(pid, SIGKILL);
      waitpid(pid, &out.status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  out.left_processes = end_what_is_left();
  out.output = text_of(folder + "/out");
  out.errors = text_of(folder + "/err");
  return out;
}

/// Does a word such as nan or inf stand in the text?
bool has_unfinite(const std::string& text) {
  std::string word;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (word == "nan" || word == "inf" || word == "infinity") return true;
    word.clear();
  }
  return false;
}

bool has_control(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n') || byte == 0x7f;
  });
}

/// The file's name: printed as it is, it begins a line of its own in a colour of ours.
constexpr const char* kFileName = "in\n\x1b[31mforged.json";

bool has_forged(const std::string& text) {
  return text.find("\nforged") != std::string::npos || text.find("\n\x1b[31mforged") != std::string::npos;
}

/// Is all that is wrong that this machine, or what is built here, has no such MPI?
bool is_without_mpi(const std::string& errors) {
  return errors.starts_with("gar: there is no libgar-preload-") ||
         errors.find(": there is no such program on the PATH; ") != std::string::npos;
}

/// What is wrong; empty: nothing.
std::string judge(const Outcome& outcome, const std::string& input) {
  if (outcome.was_stopped) return "did not end";
  if (outcome.left_processes) return "has left processes behind";
  if (WIFSIGNALED(outcome.status)) {
    const int number = WTERMSIG(outcome.status);
    return number == SIGXCPU || number == SIGKILL ? "took more than 20 s of processor time"
                                                  : std::string("was ended by: ") + strsignal(number);
  }
  const int code = WEXITSTATUS(outcome.status);
  if (code > 3 && !is_without_mpi(outcome.errors)) {
    return "exit code " + std::to_string(code) + ": " + outcome.errors.substr(0, 300);
  }
  if (outcome.errors.find("runtime error:") != std::string::npos) return outcome.errors.substr(0, 600);
  if (code >= 2 && outcome.errors.find("gar: ") == std::string::npos && outcome.output.empty()) {
    return "exit code " + std::to_string(code) + " without a word";
  }
  if (has_forged(outcome.output) || has_forged(outcome.errors)) return "the name of the file makes a line of its own";
  if (has_control(outcome.output) || has_control(outcome.errors)) return "a control character is printed";
  if (code < 2 && has_unfinite(outcome.output) && !has_unfinite(input)) return "the answer has nan or inf in it";
  return "";
}

std::string replaced(std::string text, char what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, 1, by);
  }
  return text;
}

/// The number behind "num_ranks", as far as a topology has so many servers.
std::string ranks_of(const std::string& plan) {
  const std::size_t at = plan.find("\"num_ranks\"");
  const std::size_t first = at == std::string::npos ? at : plan.find_first_of("0123456789", at);
  if (first == std::string::npos) return "4";
  const std::size_t last = std::min(plan.find_first_not_of("0123456789", first), plan.size());
  const std::string digits = plan.substr(first, std::min<std::size_t>(last - first, 8));
  return digits.find_first_not_of('0') == std::string::npos ? "4" : digits;
}

struct Settings {
  std::string gar;
  std::string corpus;
  std::size_t number = kDefaultNumber;
  std::uint64_t seed = gar::test::seed(1);
  std::size_t first = 0;
};

/// Runs input `i`; true when all is well.
bool run_input(const Settings& settings, std::size_t i, const std::string& folder) {
  std::seed_seq seeds{settings.seed, static_cast<std::uint64_t>(i)};
  std::mt19937_64 random(seeds);
  const Kind& kind = kinds()[below(kinds().size(), random)];
  const auto files = gar::fuzz::corpus_files(std::filesystem::path(settings.corpus) / kind.folder);
  Bytes bytes = gar::fuzz::read_file(files[below(files.size(), random)]);
  for (std::size_t edits = below(4, random); edits > 0; --edits) gar::fuzz::mutate(bytes, random);
  const std::string input(bytes.begin(), bytes.end());
  const std::string path = folder + "/" + kFileName;
  std::ofstream(path, std::ios::binary) << input;
  const std::string ranks = ranks_of(input);
  const std::string started = std::to_string(std::min(std::stoi(ranks), kMostStarted));
  std::string command = replaced(kind.commands[below(kind.commands.size(), random)], '%', settings.corpus);
  command = replaced(replaced(command, '#', ranks), '&', started);
  std::vector<std::string> words = words_of(command);
  for (std::string& word : words) word = replaced(word, '@', path);
  const std::string problem = judge(run(settings.gar, words, folder), input);
  if (problem.empty()) return true;
  const std::string kept = "verbs-" + std::to_string(i) + ".in";
  std::filesystem::copy_file(path, kept, std::filesystem::copy_options::overwrite_existing);
  std::cout << "verbs: seed " << settings.seed << ", input " << i << " (left in " << kept << "): gar "
            << replaced(command, '@', kept) << ": " << problem << "\n";
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: " << argv[0] << " GAR CORPUS [NUMBER [SEED [FIRST]]]\n";
    return 2;
  }
  Settings settings{argv[1], argv[2]};
  if (argc > 3) settings.number = std::strtoull(argv[3], nullptr, 10);
  if (argc > 4) settings.seed = std::strtoull(argv[4], nullptr, 10);
  if (argc > 5) settings.first = std::strtoull(argv[5], nullptr, 10);
  std::vector<std::string> ours;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "GAR_", 4) == 0) ours.emplace_back(*entry, std::strcspn(*entry, "="));
  }
  for (const std::string& name : ours) unsetenv(name.c_str());
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const gar::test::TempFolder folder;
  int failures = 0;
  for (std::size_t i = settings.first; i < settings.first + settings.number && failures < kMostFailures; ++i) {
    if (!run_input(settings, i, folder.path())) ++failures;
  }
  std::cout << settings.number << " inputs of seed " << settings.seed << ", " << failures << " failures\n";
  return failures == 0 ? 0 : 1;
}
