#include "runtime/transports/tcp/announcement.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>

#include "base/hash.hpp"
#include "runtime/transports/tcp/words.hpp"

namespace gar {

namespace {

constexpr std::string_view kTableMark = "gar-tcp-2";
constexpr std::string_view kFailureMark = "gar-tcp-failed ";

}  // namespace

std::string write_announcement(const Announcement& announcement) {
  std::string out =
      fmt::format("{} {:x} {:x}", to_string(announcement.address), announcement.host, announcement.num_cores);
  for (const std::uint64_t option : announcement.options) out += fmt::format(" {:x}", option);
  if (announcement.switches.host != 0) {
    out += fmt::format(" {:x}", announcement.switches.host);
    for (const std::uint64_t one : announcement.switches.switches) out += fmt::format(" {:x}", one);
  }
  return out;
}

std::optional<Announcement> read_announcement(std::string_view text) {
  constexpr std::uint64_t kMostCores = 1U << 20U;
  Announcement out;
  const std::optional<Address> address = read_address(take_word(text));
  std::uint64_t cores = 0;
  if (!address || !take_number(text, out.host) || !take_number(text, cores) || cores < 1 || cores > kMostCores) {
    return std::nullopt;
  }
  for (std::uint64_t& option : out.options) {
    if (!take_number(text, option)) return std::nullopt;
  }
  if (text.find_first_not_of(' ') != std::string_view::npos) {
    if (!take_number(text, out.switches.host)) return std::nullopt;
    for (std::uint64_t& one : out.switches.switches) {
      if (!take_number(text, one)) return std::nullopt;
    }
  }
  if (!take_word(text).empty()) return std::nullopt;
  out.address = *address;
  out.num_cores = static_cast<int>(cores);
  return out;
}

std::optional<Nonce> read_nonce(std::string_view text) {
  Nonce out{};
  if (text.size() != 2 * out.size()) return std::nullopt;
  for (std::size_t i = 0; i < out.size(); ++i) {
    unsigned value = 0;
    const char* begin = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(begin, begin + 2, value, 16);
    if (error != std::errc() || end != begin + 2) return std::nullopt;
    out[i] = static_cast<std::byte>(value);
  }
  return out;
}

std::string write_table(const JobTable& table) {
  if (!table.failure.empty()) return std::string(kFailureMark) + table.failure;
  std::string out = fmt::format("{} {}\n", kTableMark, to_hex(table.nonce));
  for (const Announcement& rank : table.ranks) out += write_announcement(rank) + "\n";
  return out;
}

std::optional<JobTable> read_table(std::string_view text) {
  JobTable out;
  if (text.substr(0, kFailureMark.size()) == kFailureMark) {
    out.failure = std::string(text.substr(kFailureMark.size()));
    return out;
  }
  std::string_view first = take_line(text);
  if (take_word(first) != kTableMark) return std::nullopt;
  const std::optional<Nonce> nonce = read_nonce(take_word(first));
  if (!nonce) return std::nullopt;
  out.nonce = *nonce;
  while (!text.empty()) {
    const std::optional<Announcement> rank = read_announcement(take_line(text));
    if (!rank) return std::nullopt;
    out.ranks.push_back(*rank);
  }
  return out;
}

std::uint64_t host_identity() {
  std::uint64_t out = mix_in(1, static_cast<std::uint64_t>(geteuid()));
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  out = mix_in(out, std::string_view(boot));
  struct stat about = {};
  if (stat(kMeetingDirectory, &about) == 0) out = mix_in(out, static_cast<std::uint64_t>(about.st_dev));
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return mix_in(out, std::string_view(name.data()));
}

int own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int bound = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  return std::max({1, bound, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))});
}

HostMap map_hosts(const std::vector<Announcement>& ranks, int rank, int num_fakes) {
  std::map<std::uint64_t, std::vector<int>> real;
  for (std::size_t r = 0; r < ranks.size(); ++r) real[ranks[r].host].push_back(static_cast<int>(r));
  std::vector<std::pair<std::uint64_t, std::int64_t>> place(ranks.size());  // host, pretended host of it
  for (const auto& [host, members] : real) {
    const auto size = static_cast<std::int64_t>(members.size());
    for (std::int64_t i = 0; i < size; ++i) {
      place[static_cast<std::size_t>(members[static_cast<std::size_t>(i)])] = {host, i * num_fakes / size};
    }
  }
  HostMap out;
  std::map<std::pair<std::uint64_t, std::int64_t>, int> numbers;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    out.host_of.push_back(numbers.try_emplace(place[r], static_cast<int>(numbers.size())).first->second);
    out.numa_of.push_back(-1);
    out.cores_of.push_back(static_cast<double>(ranks[r].num_cores) / num_fakes);
    if (place[r] == place[static_cast<std::size_t>(rank)]) out.members.push_back(static_cast<int>(r));
  }
  out.num_hosts = static_cast<int>(numbers.size());
  std::vector<SwitchPath> paths;
  for (const Announcement& one : ranks) paths.push_back(one.switches);
  out.switches_of = switch_levels(paths, out.host_of, num_fakes > 1);
  return out;
}

}  // namespace gar
