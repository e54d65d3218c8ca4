// A /dev/shm of our own, so that what is left in it is ours.
#pragma once

#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/rank_groups.hpp"

namespace gar::test {

/// Without root, mounting needs a namespace of users in which we are root; not every system allows one.
inline bool become_root_of_a_namespace() {
  const std::string user = std::to_string(geteuid());
  const std::string group = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  return static_cast<bool>(std::ofstream("/proc/self/uid_map") << "0 " << user << " 1" << std::flush) &&
         static_cast<bool>(std::ofstream("/proc/self/gid_map") << "0 " << group << " 1" << std::flush);
}

/// Gives this process and its children a private, empty /dev/shm of a size such as "64m", and private semaphores. Where
/// that is not allowed it says why.
inline std::string enter_shm_sandbox(const std::string& size) {
  const auto failed = [](const char* what) { return std::string(what) + ": " + std::strerror(errno); };
  if (geteuid() != 0 && !become_root_of_a_namespace()) return failed("not root, and a namespace of users");
  if (unshare(CLONE_NEWNS | CLONE_NEWIPC) != 0) return failed("unshare");
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return failed("making mounts private");
  const std::string options = "size=" + size;
  if (mount("tmpfs", "/dev/shm", "tmpfs", 0, options.c_str()) != 0) return failed("mounting a tmpfs");
  return "";
}

/// What lies in /dev/shm and, in its place, in the directory of a user; outside a sandbox nobody knows whose it is:
/// nothing.
inline std::vector<std::string> shm_entries(bool is_private) {
  std::vector<std::string> out;
  if (!is_private) return out;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    std::error_code ignored;  // it may go away meanwhile
    const std::string name = entry.path().filename().string();
    const bool is_home = name.starts_with("gar-") && name.find_first_not_of("0123456789", 4) == std::string::npos;
    const std::size_t before = out.size();
    if (is_home && entry.is_directory(ignored)) {
      for (std::filesystem::directory_iterator i(entry.path(), ignored), end; !ignored && i != end;
           i.increment(ignored)) {
        out.push_back(i->path().filename().string());
      }
    }
    if (out.size() == before) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Waits until a rank 0 can be met in the private /dev/shm of a sandbox.
inline void await_shm_entry() {
  const auto start = Clock::now();
  const auto is_complete = [](const std::string& name) {
    return std::count(name.begin(), name.end(), '-') == 3 && name.starts_with("gar-") && !name.ends_with('~');
  };
  while (true) {
    const std::vector<std::string> names = shm_entries(true);
    if (std::any_of(names.begin(), names.end(), is_complete)) return;
    check(seconds_since(start) < kLongestWait, "nothing has appeared in /dev/shm");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// System V shared memory and semaphores of this namespace.
inline int num_sysv_objects() {
  int out = 0;
  for (const char* path : {"/proc/sysvipc/shm", "/proc/sysvipc/sem"}) {
    std::ifstream file(path);
    int lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    out += std::max(0, lines - 1);  // A line of titles.
  }
  return out;
}

inline std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : " ") + name;
  return out;
}

}  // namespace gar::test
