// The folder in which decisions are kept.
//
// A file gets its name when it is complete (save_file), so whoever reads it sees an old one or a new one, never a part
// of one, and a process that is killed leaves the old one. Jobs that end at the same time take turns through a lock on
// the folder, which the kernel drops with the process; so none loses what another one has written. Where the file
// system has no locks, the last one wins. The lock is waited for only briefly: decisions are not worth a job that
// hangs.
//
// A file is read only if it is a plain file of this user: decisions of somebody else could be wrong on purpose.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/clock.hpp"
#include "base/hash.hpp"
#include "gar/decisions.hpp"
#include "gar/environment.hpp"
#include "gar/errors.hpp"
#include "gar/files.hpp"
#include "io/descriptor.hpp"

namespace gar {
namespace {

constexpr double kLockPatienceS = 5;
constexpr std::chrono::milliseconds kLockPause(2);

/// A variable that is not ours. Empty when it is not set, or not to be trusted.
std::string folder_variable(const char* name) {
  const char* value = secure_getenv(name);  // NOLINT(concurrency-mt-unsafe): only read
  // Relative paths mean nothing there, says the XDG specification.
  return value != nullptr && value[0] == '/' ? std::string(value) : std::string();
}

/// Makes the folder and its parent, for this user alone. Throws std::runtime_error.
void make_folder(const std::string& folder) {
  const std::filesystem::path path(folder);
  for (const std::filesystem::path& each : {path.parent_path(), path}) {
    if (!each.empty() && mkdir(each.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
      throw std::runtime_error(fmt::format("{}: cannot be made: {}", each.string(), std::strerror(errno)));
    }
  }
}

/// Takes the lock of a folder, if it can be had; it goes with the descriptor.
Descriptor lock_folder(const std::string& folder) {
  Descriptor out(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto deadline = seconds_from_now(kLockPatienceS);
  while (out.is_open() && flock(out.number(), LOCK_EX | LOCK_NB) != 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || milliseconds_until(deadline) == 0) break;
    std::this_thread::sleep_for(kLockPause);
  }
  return out;
}

std::string path_of(const std::string& folder, const DecisionPlace& place) {
  return (std::filesystem::path(folder) / decisions_file_name(place)).string();
}

/// The old ones, with the new ones in the place of those that they meet.
std::vector<Decision> merged(std::vector<Decision> old_ones, const std::vector<Decision>& new_ones) {
  for (const Decision& decision : new_ones) {
    std::erase_if(old_ones, [&](const Decision& other) {
      return other.from_bytes <= decision.to_bytes && decision.from_bytes <= other.to_bytes;
    });
    old_ones.push_back(decision);
  }
  std::sort(old_ones.begin(), old_ones.end(),
            [](const Decision& a, const Decision& b) { return a.from_bytes < b.from_bytes; });
  return old_ones;
}

}  // namespace

std::string decisions_file_name(const DecisionPlace& place) {
  std::uint64_t hash = mix_in(1, place.digest);
  hash = mix_in(hash, std::string_view(place.transport));
  hash = mix_in(hash, place.num_ranks);
  hash = mix_in(hash, std::string_view(place.library));
  return fmt::format("decisions-{:016x}.json", hash);
}

std::string decisions_folder() {
  if (getauxval(AT_SECURE) != 0) return {};
  std::string given = environment::text(environment::kDecisions);
  if (given == "0") return {};
  if (!given.empty()) return given;
  if (const std::string cache = folder_variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/gar";
  const std::string home = folder_variable("HOME");
  return home.empty() ? std::string() : home + "/.cache/gar";
}

KeptDecisions load_decisions(const std::string& folder, const DecisionPlace& place) {
  KeptDecisions out;
  if (folder.empty()) return out;
  try {
    const std::string path = path_of(folder, place);
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) {
      if (errno != ENOENT && errno != ENOTDIR) out.problem = fmt::format("{}: {}", path, std::strerror(errno));
      return out;
    }
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid()) {
      out.problem = fmt::format("{}: expected a plain file of this user", path);
      return out;
    }
    Decisions found = read_decisions_file(path);
    // Two places with the same name of a file, or a file that was copied from another machine.
    found.place.network = place.network;
    if (found.place != place) {
      out.problem = fmt::format("{}: is about another network, transport, number of ranks or MPI library", path);
      return out;
    }
    out.decisions = std::move(found.decisions);
  } catch (const std::exception& e) {
    out.problem = e.what();
  }
  return out;
}

std::string keep_decisions(const std::string& folder, const Decisions& decisions) {
  if (folder.empty() || decisions.decisions.empty()) return {};
  try {
    make_folder(folder);
    const Descriptor lock = lock_folder(folder);
    Decisions all = decisions;
    all.decisions = merged(load_decisions(folder, decisions.place).decisions, decisions.decisions);
    const std::string path = path_of(folder, decisions.place);
    save_file(path, [&](std::ostream& out) { write_decisions(all, out); });
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

}  // namespace gar
