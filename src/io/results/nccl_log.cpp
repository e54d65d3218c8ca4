// What NCCL_DEBUG=INFO writes. Lines are "[time] host:pid:tid [device] file:line NCCL INFO text"; versions differ in
// what stands before the text and in the text itself, so every line is looked at by itself, and what is not known is
// passed over.
#include "gar/nccl_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/results_io.hpp"
#include "io/results/table.hpp"
#include "io/results/tags.hpp"
#include "io/text_file.hpp"

namespace gar {
namespace {

constexpr std::int64_t kMaxLogFileBytes = std::int64_t{64} << 20;
constexpr std::int64_t kMaxLogRanks = 1'000'000;
constexpr std::size_t kMaxLogLinks = 200'000;
constexpr std::size_t kMaxLogWarnings = 50;
constexpr std::size_t kMaxLogSettings = 100;
constexpr std::size_t kMaxLogChoices = 2'000;
constexpr std::size_t kMaxLogColumns = 64;
constexpr std::size_t kMaxLogGraphs = 32;
constexpr std::size_t kMaxLogRing = 4'096;
constexpr double kMostGbPerS = 1e6;

struct LogLine {
  std::string_view host;
  std::string_view text;
  bool is_warning = false;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

/// The word of "host:123:456", without its numbers; empty when it is none.
std::string_view host_of(std::string_view word) {
  const std::size_t second = word.rfind(':');
  if (second == std::string_view::npos || second == 0 || !is_whole(word.substr(second + 1))) return "";
  const std::size_t first = word.rfind(':', second - 1);
  if (first == std::string_view::npos || !is_whole(word.substr(first + 1, second - first - 1))) return "";
  return word.substr(0, first);
}

std::optional<LogLine> log_line_of(std::string_view line) {
  for (const std::string_view mark : {"NCCL INFO ", "NCCL WARN "}) {
    const std::size_t at = line.find(mark);
    if (at == std::string_view::npos || (at > 0 && line[at - 1] != ' ')) continue;
    LogLine out{"", trimmed(line.substr(at + mark.size())), mark == "NCCL WARN "};
    for (const std::string_view word : words_of(line.substr(0, at))) {
      out.host = host_of(word);
      if (!out.host.empty()) break;
    }
    return out;
  }
  return std::nullopt;
}

std::int64_t rank_of(std::string_view word) {
  const std::string_view number = word.substr(0, word.find('['));
  if (!is_whole(number) || number.size() > 7) return -1;
  const std::int64_t rank = std::strtoll(std::string(number).c_str(), nullptr, 10);
  return rank < kMaxLogRanks ? rank : -1;
}

/// "Tree/    LL" and "LL" without blanks.
std::string without_blanks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' && c != '\t' && c != '\r') out += c;
  }
  return printable(out);
}

std::vector<std::string_view> cells_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t end = std::min(text.find('|'), text.size());
    out.push_back(trimmed(text.substr(0, end)));
    if (end == text.size()) return out;
    text.remove_prefix(end + 1);
  }
}

// Numbers of algorithms and protocols in NCCL's own order; newer versions write names.
std::string algorithm_word(std::string_view word) {
  constexpr std::array<std::string_view, 7> kNames{"Tree",     "Ring", "CollNetDirect", "CollNetChain", "NVLS",
                                                   "NVLSTree", "PAT"};
  if (is_whole(word)) {
    const auto number = static_cast<std::size_t>(small_count(word));
    return word.size() < 3 && number < kNames.size() ? std::string(kNames[number]) : printable(word);
  }
  std::string lower;
  for (const char c : word)
    lower += c == '_' ? "" : std::string(1, c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
  for (const std::string_view name : kNames) {
    std::string known(name);
    std::transform(known.begin(), known.end(), known.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (known == lower) return std::string(name);
  }
  return printable(word);
}

std::string protocol_word(std::string_view word) {
  constexpr std::array<std::string_view, 3> kNames{"LL", "LL128", "Simple"};
  if (is_whole(word)) {
    const auto number = static_cast<std::size_t>(small_count(word));
    return word.size() < 3 && number < kNames.size() ? std::string(kNames[number]) : printable(word);
  }
  return word == "SIMPLE" ? "Simple" : printable(word);
}

struct LinkOrder {
  bool operator()(const NcclLink& a, const NcclLink& b) const {
    return std::tie(a.from, a.to, a.transport, a.detail) < std::tie(b.from, b.to, b.transport, b.detail);
  }
};

class NcclLogReader {
 public:
  void read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      read_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  [[nodiscard]] NcclLog finish() {
    log_.links.assign(links_.begin(), links_.end());
    log_.doubled.assign(doubled_.begin(), doubled_.end());
    std::stable_sort(log_.choices.begin(), log_.choices.end(), [](const NcclChoice& a, const NcclChoice& b) {
      return std::pair(a.collective, a.bytes) < std::pair(b.collective, b.bytes);
    });
    return std::move(log_);
  }
  [[nodiscard]] bool has_any() const { return num_lines_ > 0; }

 private:
  void read_line(std::string_view line) {
    constexpr std::string_view kVersion = "NCCL version ";
    if (const std::string_view bare = trimmed(line); bare.starts_with(kVersion)) {
      log_.version =
          printable(words_of(bare.substr(kVersion.size())).empty() ? "" : words_of(bare.substr(kVersion.size()))[0]);
      return;
    }
    const std::optional<LogLine> found = log_line_of(line);
    if (!found) return;
    ++num_lines_;
    if (found->is_warning) {
      read_warning(*found);
    } else {
      read_text(found->text, found->host);
    }
  }

  void read_warning(const LogLine& line) {
    const std::string text = printable(line.text, 200);
    const auto known =
        std::find_if(log_.warnings.begin(), log_.warnings.end(), [&](const NcclWarning& w) { return w.text == text; });
    if (known != log_.warnings.end()) {
      ++known->count;
    } else if (log_.warnings.size() < kMaxLogWarnings && !text.empty()) {
      log_.warnings.push_back({printable(line.host), text, 1});
    }
  }

  void read_text(std::string_view text, std::string_view host) {
    const auto after = [&](std::string_view start) -> std::optional<std::string_view> {
      if (!text.starts_with(start)) return std::nullopt;
      return trimmed(text.substr(start.size()));
    };
    if (const auto version = after("NCCL version ")) {
      log_.version = printable(version->substr(0, version->find(' ')));
    } else if (const auto network = after("Using network ")) {
      log_.network = printable(*network);
    } else if (text.starts_with("NET/IB : No device found")) {
      log_.has_no_infiniband = true;
    } else if (const auto cards = after("NET/IB : Using ")) {
      if (!log_.has_infiniband) log_.interfaces = printable(cards->substr(0, cards->find(';')), 200);
      log_.has_infiniband = true;
    } else if (const auto sockets = after("NET/Socket : Using ")) {
      if (log_.interfaces.empty()) log_.interfaces = printable(*sockets, 200);
    } else if (text.find("comm ") != std::string_view::npos && text.find(" rank ") != std::string_view::npos) {
      read_communicator(words_of(text), host);
    } else if (text.starts_with("Channel ") || text.starts_with("Ring ")) {
      read_channel(text);
    } else if (text.starts_with("Pattern ")) {
      read_graph(text);
    } else if (text.find('|') != std::string_view::npos) {
      read_table(text);
    } else if (text.find(" Bytes -> Algo ") != std::string_view::npos) {
      read_choice(words_of(text));
    } else if (text.find(" set by environment to ") != std::string_view::npos) {
      read_setting(text);
    } else if (text.find(" coll channels, ") != std::string_view::npos) {
      set_channels(small_count(words_of(text)[0]));
    }
  }

  void set_channels(std::int64_t count) { log_.num_channels = std::max(log_.num_channels, count); }

  // "comm 0x1 rank 3 nRanks 16 nNodes 2 localRanks 8 localRank 3 MNNVL 0"
  void read_communicator(const std::vector<std::string_view>& words, std::string_view host) {
    const auto number_behind = [&](std::string_view name) -> std::int64_t {
      for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        if (words[i] == name) return rank_of(words[i + 1]);
      }
      return -1;
    };
    const std::int64_t rank = number_behind("rank");
    const std::int64_t num_ranks = std::max(number_behind("nranks"), number_behind("nRanks"));
    if (rank < 0 || num_ranks <= rank || num_ranks < log_.num_ranks) return;
    if (num_ranks > log_.num_ranks) {
      log_.num_ranks = num_ranks;
      log_.num_nodes = 0;
      log_.local_ranks = 0;
      log_.hosts.clear();
      doubled_.clear();
    }
    log_.num_nodes = std::max(log_.num_nodes, number_behind("nNodes"));
    log_.local_ranks = std::max(log_.local_ranks, number_behind("localRanks"));
    if (host.empty()) return;
    const auto [at, is_new] = log_.hosts.emplace(rank, printable(host));
    if (!is_new && at->second != printable(host)) doubled_.insert(rank);
  }

  // "Channel 00/02 : 0 1 2 3", "Channel 00/0 : 0[7] -> 1[8] via P2P/IPC", "Ring 00 : 3 -> 4 [send] via NET/Socket/0"
  void read_channel(std::string_view text) {
    const std::size_t colon = text.find(" : ");
    if (colon == std::string_view::npos) return;
    const std::vector<std::string_view> before = words_of(text.substr(0, colon));
    const std::vector<std::string_view> words = words_of(text.substr(colon + 3));
    if (before.size() != 2 || words.empty()) return;
    const std::size_t slash = before[1].find('/');
    const std::string_view number = before[1].substr(0, slash);
    if (!is_whole(number) || number.size() > 4) return;
    if (words.size() > 3 && words[1] == "->") {
      set_channels(small_count(number) + 1);
      const std::size_t via = text.find(" via ");
      const std::int64_t from = rank_of(words[0]);
      const std::int64_t to = rank_of(words[2]);
      if (via == std::string_view::npos || from < 0 || to < 0 || links_.size() >= kMaxLogLinks) return;
      const std::string_view way = trimmed(text.substr(via + 5));
      const std::size_t end = std::min(way.find('/'), way.size());
      links_.insert({from, to, printable(way.substr(0, end)), printable(way.substr(std::min(end + 1, way.size())))});
      return;
    }
    if (slash == std::string_view::npos || !std::all_of(words.begin(), words.end(), is_whole)) return;
    set_channels(small_count(before[1].substr(slash + 1)));
    if (small_count(number) != 0 || number.find_first_not_of('0') != std::string_view::npos) return;
    log_.ring.clear();
    for (const std::string_view word : words) {
      if (log_.ring.size() == kMaxLogRing || rank_of(word) < 0) break;
      log_.ring.push_back(rank_of(word));
    }
  }

  // "Pattern 4, crossNic 0, nChannels 2, bw 12.0/12.0, type SYS/PIX, sameChannels 1"
  void read_graph(std::string_view text) {
    NcclGraph graph;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(','), text.size());
      const std::vector<std::string_view> words = words_of(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (words.size() < 2) continue;
      const std::size_t slash = std::min(words[1].find('/'), words[1].size());
      const std::string_view first = words[1].substr(0, slash);
      const std::string_view second = words[1].substr(std::min(slash + 1, words[1].size()));
      if (words[0] == "Pattern") {
        graph.pattern = words[1] == "4"                                         ? "ring"
                        : words[1] == "5"                                       ? "NVLS"
                        : words[1] == "1" || words[1] == "2" || words[1] == "3" ? "tree"
                                                                                : printable(words[1]);
      } else if (words[0] == "nChannels") {
        graph.num_channels = small_count(words[1]);
      } else if (words[0] == "bw" || words[0] == "speed") {
        graph.local_gb_per_s = speed(first);
        graph.net_gb_per_s = speed(second);
      } else if (words[0] == "type") {
        graph.local_type = printable(first);
        graph.net_type = printable(second);
      }
    }
    const auto is_same = [&](const NcclGraph& g) {
      return g.pattern == graph.pattern && g.num_channels == graph.num_channels &&
             g.local_gb_per_s == graph.local_gb_per_s && g.net_gb_per_s == graph.net_gb_per_s;
    };
    const bool is_known = std::any_of(log_.graphs.begin(), log_.graphs.end(), is_same);
    if (!is_known && log_.graphs.size() < kMaxLogGraphs) log_.graphs.push_back(std::move(graph));
  }

  static double speed(std::string_view word) {
    const std::optional<double> value = to_number(word);
    return value && *value > 0 && *value <= kMostGbPerS ? *value : 0;
  }

  // Columns are "Latency/AlgBw | Tree/ LL | ...", or in two lines "Algorithm | Tree | ..." and "Protocol | LL | ...".
  void read_table(std::string_view text) {
    const std::vector<std::string_view> cells = cells_of(text);
    if (cells[0] == "Latency/AlgBw") {
      columns_.clear();
      for (std::size_t i = 1; i < cells.size() && columns_.size() < kMaxLogColumns; ++i) {
        const std::size_t slash = cells[i].find('/');
        if (slash == std::string_view::npos) continue;
        columns_.emplace_back(algorithm_word(trimmed(cells[i].substr(0, slash))),
                              protocol_word(trimmed(cells[i].substr(slash + 1))));
      }
    } else if (cells[0] == "Algorithm") {
      table_algorithms_.clear();
      for (std::size_t i = 1; i < cells.size() && table_algorithms_.size() < kMaxLogColumns; ++i) {
        if (!cells[i].empty()) table_algorithms_.push_back(algorithm_word(without_blanks(cells[i])));
      }
    } else if (cells[0] == "Protocol") {
      columns_.clear();
      constexpr std::size_t kProtocols = 3;
      for (std::size_t i = 1; i < cells.size() && columns_.size() < kMaxLogColumns; ++i) {
        const std::size_t algorithm = (i - 1) / kProtocols;
        if (cells[i].empty() || algorithm >= table_algorithms_.size()) break;
        columns_.emplace_back(table_algorithms_[algorithm], protocol_word(cells[i]));
      }
    } else {
      read_tuning(cells);
    }
  }

  void read_tuning(const std::vector<std::string_view>& cells) {
    constexpr std::array<std::string_view, 5> kCollectives{"Broadcast", "Reduce", "AllGather", "ReduceScatter",
                                                           "AllReduce"};
    if (std::find(kCollectives.begin(), kCollectives.end(), cells[0]) == kCollectives.end()) return;
    for (std::size_t i = 1; i < cells.size() && i <= columns_.size(); ++i) {
      const std::size_t slash = cells[i].find('/');
      if (slash == std::string_view::npos) continue;
      const std::optional<double> latency = to_number(trimmed(cells[i].substr(0, slash)));
      const double gb_per_s = speed(trimmed(cells[i].substr(slash + 1)));
      if (!latency || *latency < 0 || *latency > 1e6 * kMaxSeconds) continue;
      const auto& [algorithm, protocol] = columns_[i - 1];
      if (known_cells_.size() >= kMaxLogChoices) return;
      if (!known_cells_.insert({std::string(cells[0]), algorithm, protocol}).second) continue;
      log_.tuning.push_back({std::string(cells[0]), algorithm, protocol, 1e-6 * *latency, 1e9 * gb_per_s});
    }
  }

  // "8192 Bytes -> Algo 1 proto 2 time 3.5", "AllReduce: 8192 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}"
  void read_choice(const std::vector<std::string_view>& words) {
    NcclChoice choice;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (i == 0 && words[0].ends_with(':')) choice.collective = printable(words[0].substr(0, words[0].size() - 1));
      if (words[i + 1] == "Bytes") choice.bytes = to_number(words[i]).value_or(0);
      if (words[i] == "Algo") choice.algorithm = algorithm_word(words[i + 1]);
      if (words[i] == "proto") choice.protocol = protocol_word(words[i + 1]);
      if (words[i] == "time") choice.seconds = 1e-6 * to_number(words[i + 1]).value_or(-1e6);
    }
    if (!(choice.bytes > 0) || choice.bytes > kMaxResultBytes || choice.algorithm.empty()) return;
    if (!(choice.seconds >= kLeastSeconds) || choice.seconds > kMaxSeconds) choice.seconds = -1;
    const auto key = std::tuple(choice.collective, choice.bytes, choice.algorithm, choice.protocol);
    if (const auto known = known_choices_.find(key); known != known_choices_.end()) {
      ++log_.choices[known->second].count;
    } else if (log_.choices.size() < kMaxLogChoices) {
      known_choices_.emplace(key, log_.choices.size());
      log_.choices.push_back(std::move(choice));
    }
  }

  // "NCCL_ALGO set by environment to Ring."
  void read_setting(std::string_view text) {
    constexpr std::string_view kMiddle = " set by environment to ";
    const std::size_t at = text.find(kMiddle);
    std::string_view value = trimmed(text.substr(at + kMiddle.size()));
    if (value.ends_with('.')) value.remove_suffix(1);
    const std::string name = printable(trimmed(text.substr(0, at)));
    if (name.find(' ') != std::string::npos) return;
    const auto known =
        std::find_if(log_.settings.begin(), log_.settings.end(), [&](const NcclSetting& s) { return s.name == name; });
    if (known != log_.settings.end()) {
      known->value = printable(value);
    } else if (log_.settings.size() < kMaxLogSettings) {
      log_.settings.push_back({name, printable(value)});
    }
  }

  NcclLog log_;
  std::set<NcclLink, LinkOrder> links_;
  std::set<std::int64_t> doubled_;
  std::set<std::array<std::string, 3>> known_cells_;
  std::map<std::tuple<std::string, double, std::string, std::string>, std::size_t> known_choices_;
  std::vector<std::string> table_algorithms_;
  std::vector<std::pair<std::string, std::string>> columns_;
  std::int64_t num_lines_ = 0;
};

}  // namespace

bool is_nccl_log(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::optional<LogLine> line = log_line_of(text.substr(0, end));
    if (line && !line->host.empty()) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

NcclLog parse_nccl_log(std::string_view text, const std::string& source) {
  NcclLogReader reader;
  reader.read(without_tags(text));
  if (!reader.has_any()) {
    throw ParseError(fmt::format(
        "{}: no line of NCCL; expected what a program prints with NCCL_DEBUG=INFO, such as \"host:12:34 [0] NCCL INFO "
        "Using network IB\"",
        source));
  }
  return reader.finish();
}

NcclLog read_nccl_log_files(const std::vector<std::string>& paths) {
  // A rank may have a file of its own (NCCL_DEBUG_FILE).
  std::string all;
  std::string names;
  for (const std::string& path : paths) {
    const std::int64_t room = kMaxLogFileBytes - static_cast<std::int64_t>(all.size());
    all += without_tags(read_text_file(path, std::max<std::int64_t>(room, 1)));
    all += '\n';
    names += (names.empty() ? "" : ", ") + path;
  }
  return parse_nccl_log(all, names);
}

}  // namespace gar
