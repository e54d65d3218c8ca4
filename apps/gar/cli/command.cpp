#include "apps/gar/cli/command.hpp"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "apps/gar/cli/output.hpp"

namespace gar::cli {

std::string date_of_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32] = {};
  if (gmtime_r(&now, &parts) == nullptr) return "";
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts));
}

std::string own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  std::string out;
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find('\0', begin), words.size());
    std::string word = words.substr(begin, end - begin);
    // The path of the program is that of this machine.
    if (begin == 0) word = std::filesystem::path(word).filename().string();
    out += (out.empty() ? "" : " ") + shell_word(word);
    begin = end + 1;
  }
  return out;
}

}  // namespace gar::cli
