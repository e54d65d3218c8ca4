#include "runtime/switches.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/hash.hpp"

namespace gar {

namespace {

std::vector<std::string_view> split_at_dots(std::string_view text, std::size_t most) {
  std::vector<std::string_view> out;
  while (out.size() + 1 < most) {
    const std::size_t dot = text.find('.');
    if (dot == std::string_view::npos) break;
    out.push_back(text.substr(0, dot));
    text.remove_prefix(dot + 1);
  }
  out.push_back(text);
  return out;
}

/// Numbers from 0 in the order of the first ranks; nothing where equal values do not follow each other.
std::vector<int> number_runs(const std::vector<std::uint64_t>& values) {
  std::map<std::uint64_t, int> numbers;
  std::vector<int> out;
  for (const std::uint64_t value : values) {
    const int number = numbers.try_emplace(value, static_cast<int>(numbers.size())).first->second;
    if (!out.empty() && number < out.back()) return {};
    out.push_back(number);
  }
  return out;
}

bool are_complete(const std::vector<SwitchPath>& paths, const std::vector<int>& host_of, bool may_share) {
  const auto depth = [](const SwitchPath& path) {
    return std::find(path.switches.begin(), path.switches.end(), 0U) - path.switches.begin();
  };
  std::map<int, std::uint64_t> place_of;
  std::map<std::uint64_t, int> host_at;
  for (std::size_t r = 0; r < paths.size(); ++r) {
    if (paths[r].host == 0 || depth(paths[r]) != depth(paths.front())) return false;
    if (place_of.try_emplace(host_of[r], paths[r].host).first->second != paths[r].host) return false;
    if (!may_share && host_at.try_emplace(paths[r].host, host_of[r]).first->second != host_of[r]) return false;
  }
  return !paths.empty();
}

}  // namespace

SwitchPath switch_path(std::string_view address, std::string_view pattern) {
  constexpr std::string_view kSwitch = "switch";
  constexpr std::size_t kMostWords = 64;
  const std::vector<std::string_view> kinds = split_at_dots(pattern, kMostWords);
  const std::vector<std::string_view> names = split_at_dots(address, kinds.size());
  SwitchPath out;
  if (kinds.size() < 2 || names.size() != kinds.size() || kinds.back() != "node") return out;
  if (std::any_of(names.begin(), names.end(), [](std::string_view name) { return name.empty(); })) return out;
  std::vector<std::uint64_t> above;
  std::uint64_t hash = 1;
  for (std::size_t i = 0; i + 1 < names.size(); ++i) {
    if (kinds[i] != kSwitch) return out;
    hash = mix_in(hash, names[i]);
    above.push_back(std::max<std::uint64_t>(hash, 1));
  }
  if (above.size() > out.switches.size()) above.erase(above.begin(), above.end() - std::ssize(out.switches));
  std::copy(above.begin(), above.end(), out.switches.begin());
  out.host = std::max<std::uint64_t>(mix_in(hash, names.back()), 1);
  return out;
}

SwitchPath own_switch_path() {
  const char* address = std::getenv("SLURM_TOPOLOGY_ADDR");
  const char* pattern = std::getenv("SLURM_TOPOLOGY_ADDR_PATTERN");
  return address == nullptr || pattern == nullptr ? SwitchPath{} : switch_path(address, pattern);
}

std::vector<std::vector<int>> switch_levels(const std::vector<SwitchPath>& paths, const std::vector<int>& host_of,
                                            bool may_share) {
  if (!are_complete(paths, host_of, may_share)) return {};
  const std::vector<int> hosts = number_runs({host_of.begin(), host_of.end()});
  if (hosts.empty()) return {};
  std::vector<std::vector<int>> out;
  for (std::size_t level = 0; level < SwitchPath::kMostLevels; ++level) {
    std::vector<std::uint64_t> switches;
    for (const SwitchPath& path : paths) switches.push_back(path.switches[level]);
    if (switches.front() == 0) break;
    std::vector<int> numbers = number_runs(switches);
    if (numbers.empty()) return {};
    if (numbers.back() == 0 || numbers == hosts || (!out.empty() && numbers == out.back())) continue;
    out.push_back(std::move(numbers));
  }
  return out;
}

}  // namespace gar
