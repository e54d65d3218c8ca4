// What programs that are ranks of a job write for the script that has started them, and what they hold.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace gar::test {

/// DIRECTORY/rank-R.log.
class RankLog {
 public:
  RankLog(const std::string& directory, int rank)
      : fd_(open((directory + "/rank-" + std::to_string(rank) + ".log").c_str(),
                 O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}
  /// At once: the process may be killed after it.
  void line(const std::string& text) const {
    const std::string whole = text + "\n";
    if (write(fd_, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) std::exit(3);
  }

 private:
  int fd_;
};

inline int num_entries(const char* path) {
  int out = 0;
  DIR* directory = opendir(path);
  while (directory != nullptr && readdir(directory) != nullptr) ++out;
  if (directory != nullptr) closedir(directory);
  return out;
}
inline int num_descriptors() { return num_entries("/proc/self/fd"); }

}  // namespace gar::test
