// Counters of congestion. TCP's are a line of names and a line of values in /proc/net/snmp; NICs have their own, whose
// names the driver chooses (ETHTOOL_GSTRINGS, ETHTOOL_GSTATS).
#include "measure/fit/counters.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <vector>

namespace gar::measure {
namespace {

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The statistics of one NIC.
class NicStatistics {
 public:
  NicStatistics(int socket, std::string name) : socket_(socket), name_(std::move(name)) {}

  /// Pause frames; -1: the NIC does not count them. Where every priority has its own counter, others count the same
  /// frames once more.
  double pause_frames() {
    const std::uint32_t count = num_statistics();
    if (count == 0 || count > 100'000) return -1;
    const std::vector<std::string> names = read_names(count);
    const std::vector<std::uint64_t> values = read_values(count);
    if (names.empty() || values.empty()) return -1;
    double all = -1;
    double by_priority = -1;
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_pause_counter(names[i])) continue;
      const auto value = static_cast<double>(values[i]);
      all = std::max(all, 0.0) + value;
      if (names[i].find("prio") != std::string::npos) by_priority = std::max(by_priority, 0.0) + value;
    }
    return by_priority >= 0 ? by_priority : all;
  }

 private:
  bool ask(void* request) {
    ifreq packet = {};
    name_.copy(packet.ifr_name, sizeof packet.ifr_name - 1);
    packet.ifr_data = static_cast<char*>(request);
    return ioctl(socket_, SIOCETHTOOL, &packet) == 0;
  }
  std::uint32_t num_statistics() {
    ethtool_drvinfo info = {};
    info.cmd = ETHTOOL_GDRVINFO;
    return ask(&info) ? info.n_stats : 0;
  }
  std::vector<std::string> read_names(std::uint32_t count) {
    std::vector<std::uint32_t> memory((sizeof(ethtool_gstrings) + count * ETH_GSTRING_LEN) / 4 + 1);
    ethtool_gstrings head = {};
    head.cmd = ETHTOOL_GSTRINGS;
    head.string_set = ETH_SS_STATS;
    head.len = count;
    std::memcpy(memory.data(), &head, sizeof head);
    if (!ask(memory.data())) return {};
    const char* names = reinterpret_cast<const char*>(memory.data()) + sizeof head;
    std::vector<std::string> out;
    for (std::uint32_t i = 0; i < count; ++i) {
      const char* name = names + static_cast<std::size_t>(i) * ETH_GSTRING_LEN;
      out.emplace_back(name, strnlen(name, ETH_GSTRING_LEN));
    }
    return out;
  }
  std::vector<std::uint64_t> read_values(std::uint32_t count) {
    std::vector<std::uint64_t> memory(sizeof(ethtool_stats) / 8 + count + 1);
    ethtool_stats head = {};
    head.cmd = ETHTOOL_GSTATS;
    head.n_stats = count;
    std::memcpy(memory.data(), &head, sizeof head);
    if (!ask(memory.data())) return {};
    std::vector<std::uint64_t> out(count);
    std::memcpy(out.data(), reinterpret_cast<const char*>(memory.data()) + sizeof head, count * sizeof(std::uint64_t));
    return out;
  }

  int socket_;
  std::string name_;
};

double read_pause_frames() {
  const int handle = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (handle < 0) return -1;
  double sum = -1;
  if (struct if_nameindex* nics = ::if_nameindex(); nics != nullptr) {
    for (const struct if_nameindex* nic = nics; nic->if_index != 0 && nic->if_name != nullptr; ++nic) {
      const double own = NicStatistics(handle, nic->if_name).pause_frames();
      if (own >= 0) sum = std::max(sum, 0.0) + own;
    }
    if_freenameindex(nics);
  }
  close(handle);
  return sum;
}

}  // namespace

double parse_tcp_counter(std::string_view snmp, std::string_view wanted) {
  std::istringstream lines{std::string(snmp)};
  std::string names;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("Tcp:")) continue;
    if (names.empty()) {
      names = line;
      continue;
    }
    std::istringstream name_words(names);
    std::istringstream value_words(line);
    std::string name;
    std::string value;
    while (name_words >> name && value_words >> value) {
      if (name != wanted) continue;
      std::uint64_t count = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
      return error == std::errc() && end == value.data() + value.size() ? static_cast<double>(count) : -1;
    }
  }
  return -1;
}

double parse_retransmits(std::string_view snmp) { return parse_tcp_counter(snmp, "RetransSegs"); }

TcpSegments read_segments() {
  const std::string snmp = text_of("/proc/net/snmp");
  return {parse_tcp_counter(snmp, "OutSegs"), parse_tcp_counter(snmp, "RetransSegs")};
}

bool is_pause_counter(std::string_view name) {
  const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  return has("pause") && !has("duration") && !has("transition") && !has("storm") && !has("error") && !has("discard");
}

CongestionCount read_congestion() { return {parse_retransmits(text_of("/proc/net/snmp")), read_pause_frames()}; }

std::string network_identity() {
  std::error_code ignored;
  const std::string network = std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
  return text_of("/proc/sys/kernel/random/boot_id") + network;
}

}  // namespace gar::measure
