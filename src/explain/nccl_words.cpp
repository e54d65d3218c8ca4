// What a log of NCCL means: where its ranks are, how they reach each other, what was forced, and what it chose.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "gar/explain_nccl.hpp"
#include "gar/format.hpp"

namespace gar {
namespace {

std::string plural(std::int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

const std::string* setting_of(const NcclLog& log, std::string_view name) {
  const auto found = std::find_if(log.settings.begin(), log.settings.end(),
                                  [&](const NcclSetting& setting) { return setting.name == name; });
  return found == log.settings.end() ? nullptr : &found->value;
}

bool is_on(const NcclLog& log, std::string_view name) {
  const std::string* value = setting_of(log, name);
  return value != nullptr && *value != "0" && !value->empty();
}

std::set<std::string> hosts_of(const NcclLog& log) {
  std::set<std::string> out;
  for (const auto& [rank, host] : log.hosts) out.insert(host);
  return out;
}

std::int64_t num_hosts_of(const NcclLog& log) {
  return log.num_nodes > 0 ? log.num_nodes : static_cast<std::int64_t>(hosts_of(log).size());
}

/// Ranks of each host, where all have the same number; 0 otherwise.
std::int64_t local_ranks_of(const NcclLog& log) {
  const std::int64_t hosts = num_hosts_of(log);
  if (hosts > 0 && log.num_ranks % hosts == 0) return log.num_ranks / hosts;
  return 0;
}

/// "NET/Socket" of "NET" and "Socket/0", "NET/IB/GDRDMA" of "IB/3/GDRDMA".
std::string kind_of(const NcclLink& link) {
  std::string out = link.transport;
  std::string_view rest = link.detail;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const bool is_number = !part.empty() && part.front() >= '0' && part.front() <= '9';  // of a card: "0", "0(8)"
    if (!part.empty() && !is_number) out += "/" + std::string(part);
  }
  return out;
}

std::vector<NcclLinkKind> link_kinds(const NcclLog& log) {
  std::vector<NcclLinkKind> out;
  for (const NcclLink& link : log.links) {
    const auto from = log.hosts.find(link.from);
    const auto to = log.hosts.find(link.to);
    NcclLinkKind kind;
    kind.is_known = from != log.hosts.end() && to != log.hosts.end();
    kind.is_local = kind.is_known ? from->second == to->second : link.transport != "NET";
    kind.name = kind_of(link);
    auto known = std::find_if(out.begin(), out.end(), [&](const NcclLinkKind& k) {
      return k.is_local == kind.is_local && k.is_known == kind.is_known && k.name == kind.name;
    });
    if (known == out.end()) known = out.insert(out.end(), kind);
    ++known->count;
  }
  std::stable_sort(out.begin(), out.end(), [](const NcclLinkKind& a, const NcclLinkKind& b) {
    if (a.is_local != b.is_local) return a.is_local;
    return a.count > b.count;
  });
  return out;
}

std::int64_t count_links(const std::vector<NcclLinkKind>& kinds, bool is_local, std::string_view start) {
  std::int64_t out = 0;
  for (const NcclLinkKind& kind : kinds) {
    if (kind.is_known && kind.is_local == is_local && kind.name.starts_with(start)) out += kind.count;
  }
  return out;
}

class NcclWords {
 public:
  explicit NcclWords(const NcclLog& log) : log_(log) {
    out_.links = link_kinds(log);
    out_.num_hosts = num_hosts_of(log);
    out_.summary = summary();
  }

  NcclExplanation run() {
    jobs();
    network();
    local_links();
    settings();
    warnings();
    channels();
    out_.ranges = ranges();
    choice();
    out_.network = guess();
    std::stable_partition(out_.findings.begin(), out_.findings.end(),
                          [](const NcclFinding& finding) { return finding.is_problem; });
    return std::move(out_);
  }

 private:
  void problem(std::string words) { out_.findings.push_back({true, std::move(words)}); }
  void plain(std::string words) { out_.findings.push_back({false, std::move(words)}); }

  [[nodiscard]] std::string summary() const {
    std::string out = log_.version.empty() ? "NCCL" : "NCCL " + log_.version;
    if (log_.num_ranks == 0) return out + ", and no line says how many ranks there are";
    out += ", " + plural(log_.num_ranks, "rank", "ranks");
    const std::int64_t hosts = num_hosts_of(log_);
    if (hosts == 0) return out;
    out += " on " + plural(hosts, "host", "hosts");
    const std::int64_t local = local_ranks_of(log_);
    return hosts > 1 && local > 0 ? out + fmt::format(", {} on each", local) : out;
  }

  void jobs() {
    if (!log_.doubled.empty()) {
      problem(
          fmt::format("rank {} is on more than one host: these are several separate jobs, or logs of "
                      "several runs; look at how the job is started (nccl-tests is to be built with MPI=1 for mpirun)",
                      log_.doubled.front()));
    }
    const auto known = static_cast<std::int64_t>(log_.hosts.size());
    if (known > 0 && known < log_.num_ranks) {
      plain(fmt::format("the log is from {} of {} ranks; of the others nothing is known", known, log_.num_ranks));
    }
  }

  void network() {
    const std::int64_t hosts = num_hosts_of(log_);
    if (log_.network.empty() || hosts < 2) return;
    const std::string cards = log_.interfaces.empty() ? "" : fmt::format(" ({})", log_.interfaces);
    if (log_.network != "Socket") {
      plain(fmt::format("between hosts it uses {}{}", log_.network, cards));
      const std::int64_t all = count_links(out_.links, false, "NET/IB");
      const std::int64_t direct =
          count_links(out_.links, false, "NET/IB/GDRDMA") + count_links(out_.links, false, "NET/IB/Shared/GDRDMA");
      if (all > direct) {
        problem(fmt::format(
            "{} of {} links between hosts pass through the memory of the host: the card does not read the GPU's memory "
            "(GPUDirect RDMA needs nvidia-peermem or DMA-BUF, and a card close to the GPU)",
            all - direct, all));
      }
      return;
    }
    std::string why;
    if (is_on(log_, "NCCL_IB_DISABLE")) {
      why = "because NCCL_IB_DISABLE is set";
    } else if (setting_of(log_, "NCCL_NET") != nullptr) {
      why = fmt::format("because NCCL_NET={} is set", *setting_of(log_, "NCCL_NET"));
    } else if (log_.has_no_infiniband) {
      why =
          "because it has found no InfiniBand or RoCE card; if the hosts have some, a container may hide "
          "/dev/infiniband, or libibverbs is missing";
    } else if (log_.has_infiniband) {
      why = "though it has found InfiniBand or RoCE cards on some hosts; all hosts need them";
    } else {
      why = "and does not say why; NCCL_DEBUG_SUBSYS=INIT,NET tells which cards it looks at";
    }
    problem(fmt::format("between hosts it uses TCP sockets{}, {}", cards, why));
  }

  void local_links() {
    std::int64_t all = 0;
    for (const NcclLinkKind& kind : out_.links) all += kind.is_known && kind.is_local ? kind.count : 0;
    const std::int64_t shm = count_links(out_.links, true, "SHM");
    const std::int64_t net = count_links(out_.links, true, "NET");
    if (net > 0) {
      problem(
          fmt::format("{} of {} links inside of a host go over the network: neither GPUs nor shared memory are "
                      "reached directly{}",
                      net, all,
                      is_on(log_, "NCCL_SHM_DISABLE") ? ", because NCCL_SHM_DISABLE is set"
                                                      : " (in containers: --ipc=host, or a larger --shm-size)"));
    }
    if (shm > 0) {
      problem(fmt::format("{} of {} links inside of a host go through the host's memory (SHM){}", shm, all,
                          is_on(log_, "NCCL_P2P_DISABLE")
                              ? ", because NCCL_P2P_DISABLE is set"
                              : ": these GPUs do not reach each other; nvidia-smi topo -p2p r says which can"));
    }
  }

  void settings() {
    // What takes a choice away from NCCL.
    constexpr std::string_view kForcing[] = {"NCCL_ALGO",
                                             "NCCL_PROTO",
                                             "NCCL_MAX_NCHANNELS",
                                             "NCCL_MIN_NCHANNELS",
                                             "NCCL_NCHANNELS_PER_NET_PEER",
                                             "NCCL_MAX_CTAS",
                                             "NCCL_P2P_DISABLE",
                                             "NCCL_SHM_DISABLE",
                                             "NCCL_P2P_LEVEL",
                                             "NCCL_NET_GDR_LEVEL",
                                             "NCCL_NET_GDR_READ",
                                             "NCCL_NVLS_ENABLE",
                                             "NCCL_BUFFSIZE",
                                             "NCCL_NTHREADS",
                                             "NCCL_TREE_THRESHOLD",
                                             "NCCL_CROSS_NIC",
                                             "NCCL_COLLNET_ENABLE",
                                             "NCCL_TOPO_FILE",
                                             "NCCL_GRAPH_FILE",
                                             "NCCL_TUNER_PLUGIN"};
    std::string forced;
    std::string others;
    for (const NcclSetting& setting : log_.settings) {
      const bool is_forcing = std::find(std::begin(kForcing), std::end(kForcing), setting.name) != std::end(kForcing);
      std::string& list = is_forcing ? forced : others;
      list += fmt::format("{}{}={}", list.empty() ? "" : ", ", setting.name, setting.value);
    }
    if (!forced.empty()) problem("set by hand, so that NCCL does not choose: " + forced);
    if (!others.empty()) plain("also set: " + others);
  }

  void warnings() {
    for (const NcclWarning& warning : log_.warnings) {
      problem(fmt::format("NCCL warns{}{}: {}", warning.host.empty() ? "" : " on " + warning.host,
                          warning.count > 1 ? fmt::format(" ({} times)", warning.count) : "", warning.text));
    }
  }

  void channels() {
    for (const NcclGraph& graph : log_.graphs) {
      if (graph.num_channels == 0 || graph.pattern.empty() || !(graph.local_gb_per_s > 0)) continue;
      const std::string net =
          graph.net_gb_per_s > 0 && num_hosts_of(log_) > 1
              ? fmt::format(", {:.4g} GB/s between hosts (path to the card: {})",
                            graph.net_gb_per_s * static_cast<double>(graph.num_channels), graph.net_type)
              : "";
      plain(fmt::format("{}: {}, {:.4g} GB/s inside of a host (worst path: {}){}", graph.pattern,
                        plural(graph.num_channels, "channel", "channels"),
                        graph.local_gb_per_s * static_cast<double>(graph.num_channels), graph.local_type, net));
    }
    if (log_.graphs.empty() && log_.num_channels > 0) {
      plain(plural(log_.num_channels, "channel", "channels") + ", which share every vector");
    }
  }

  /// What takes least by NCCL's own table: latency and bytes over bandwidth.
  [[nodiscard]] std::vector<NcclRange> ranges() const {
    constexpr double kFirst = 1024;
    constexpr double kLast = 1024.0 * 1024 * 1024;
    std::vector<NcclRange> out;
    for (double bytes = kFirst; bytes <= kLast; bytes *= 2) {
      const NcclTuning* best = nullptr;
      double least = 0;
      for (const NcclTuning& cell : log_.tuning) {
        if (cell.collective != "AllReduce" || !(cell.bytes_per_s > 0)) continue;
        const double seconds = cell.latency_s + bytes / cell.bytes_per_s;
        if (best != nullptr && seconds >= least) continue;
        best = &cell;
        least = seconds;
      }
      if (best == nullptr) return {};
      if (!out.empty() && out.back().algorithm == best->algorithm && out.back().protocol == best->protocol) continue;
      out.push_back({bytes, best->algorithm, best->protocol});
    }
    return out;
  }

  void choice() {
    if (!out_.ranges.empty()) {
      std::string words;
      for (const NcclRange& range : out_.ranges) {
        words += words.empty() ? fmt::format("{}/{}", range.algorithm, range.protocol)
                               : fmt::format(", {}/{} from about {}", range.algorithm, range.protocol,
                                             format_binary_bytes(static_cast<std::int64_t>(range.from_bytes)));
      }
      plain("by its own table of latencies and bandwidths AllReduce takes least with " + words +
            " (NCCL corrects the table for short vectors, which it does not log)");
    } else if (log_.choices.empty()) {
      plain("the log does not say which algorithm ran; NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING,ENV adds that");
    }
  }

  /// "tree:2x8@190Gbit/s+96Gbit/s": what the rings of NCCL can carry.
  [[nodiscard]] std::string guess() const {
    const std::int64_t hosts = num_hosts_of(log_);
    const std::int64_t local = local_ranks_of(log_);
    if (hosts < 1 || local < 1 || log_.num_ranks < 2) return "";
    double local_gb = 0;
    double net_gb = 0;
    for (const NcclGraph& graph : log_.graphs) {
      if (graph.pattern != "ring") continue;
      local_gb = std::max(local_gb, graph.local_gb_per_s * static_cast<double>(graph.num_channels));
      net_gb = std::max(net_gb, graph.net_gb_per_s * static_cast<double>(graph.num_channels));
    }
    if (local_gb == 0) {
      // A ring sends 2 (N - 1) / N of the vector over its slowest link.
      for (const NcclTuning& cell : log_.tuning) {
        if (cell.collective != "AllReduce" || cell.algorithm != "Ring" || cell.protocol != "Simple") continue;
        const auto ranks = static_cast<double>(log_.num_ranks);
        local_gb = net_gb = cell.bytes_per_s / 1e9 * 2 * (ranks - 1) / ranks;
      }
    }
    const auto speed = [](double gb) { return fmt::format("{:.4g}Gbit/s", 8 * gb); };
    if (!(local_gb > 0) || (hosts > 1 && !(net_gb > 0))) return "";
    if (hosts == 1) return fmt::format("star:{}@{}", local, speed(local_gb));
    if (local == 1) return fmt::format("star:{}@{}", hosts, speed(net_gb));
    return fmt::format("tree:{}x{}@{}+{}", hosts, local, speed(local_gb), speed(net_gb));
  }

  const NcclLog& log_;
  NcclExplanation out_;
};

}  // namespace

NcclExplanation explain_nccl_log(const NcclLog& log) { return NcclWords(log).run(); }

void add_log_words(const NcclLog& log, std::vector<std::string>& words) {
  for (const NcclFinding& finding : explain_nccl_log(log).findings) {
    if (finding.is_problem) words.push_back("the log of NCCL: " + finding.words);
  }
}

}  // namespace gar
