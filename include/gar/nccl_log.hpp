// What NCCL writes with NCCL_DEBUG=INFO about a communicator: where its ranks are, how they are linked, what it expects
// of its algorithms and which one it takes. gar/results_io.hpp reads such logs, gar/explain_nccl.hpp says what they
// mean.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gar {

/// How two ranks reach each other.
struct NcclLink {
  std::int64_t from = 0;  ///< rank
  std::int64_t to = 0;    ///< rank
  std::string transport;  ///< "P2P", "SHM", "NET"
  std::string detail;     ///< what follows it: "IPC", "Socket/0", "IB/0/GDRDMA"
};
/// A pattern that NCCL has found inside of a host, and what it takes its channels for.
struct NcclGraph {
  std::string pattern;            ///< "ring", "tree", "NVLS" or a number that is not known here
  std::int64_t num_channels = 0;  ///< of this pattern
  double local_gb_per_s = 0;      ///< of one channel inside of a host, in GB/s (1e9 bytes)
  double net_gb_per_s = 0;        ///< of one channel between hosts
  std::string local_type;         ///< the worst path between GPUs: "NVL", "PIX", "SYS"
  std::string net_type;           ///< the worst path to a network card
};
/// A cell of the table that NCCL_DEBUG_SUBSYS=TUNING adds.
struct NcclTuning {
  std::string collective;  ///< "AllReduce"
  std::string algorithm;   ///< "Tree", "Ring", "CollNetDirect", "NVLS"
  std::string protocol;    ///< "LL", "LL128", "Simple"
  double latency_s = 0;    ///< of a short vector
  double bytes_per_s = 0;  ///< bytes of the vector per second; 0: not to be used
};
/// What NCCL has taken for vectors of one length.
struct NcclChoice {
  std::string collective;  ///< empty: older versions do not say
  double bytes = 0;        ///< of the vector
  std::string algorithm;   ///< "Ring"
  std::string protocol;    ///< "Simple"
  double seconds = -1;     ///< what it expects; -1: newer versions do not say
  std::int64_t count = 1;  ///< how often the log says so
};
/// An environment variable that NCCL says it has read.
struct NcclSetting {
  std::string name;   ///< "NCCL_ALGO"
  std::string value;  ///< "Ring"
};
/// A line of NCCL WARN.
struct NcclWarning {
  std::string host;        ///< the first that said it; empty: unknown
  std::string text;        ///< what it says
  std::int64_t count = 1;  ///< how often
};
/// A log, or the logs of all ranks together. Of several communicators the largest one counts.
struct NcclLog {
  std::string version = {};                        ///< "2.20.5+cuda12.4"; empty: not said
  std::string network = {};                        ///< what it uses between hosts: "IB", "Socket"; empty: not said
  std::string interfaces = {};                     ///< which cards: "[0]mlx5_0:1/IB"; empty: not said
  bool has_no_infiniband = false;                  ///< "NET/IB : No device found"
  bool has_infiniband = false;                     ///< "NET/IB : Using ..."
  std::int64_t num_ranks = 0;                      ///< of the communicator; 0: not said
  std::int64_t num_nodes = 0;                      ///< hosts according to NCCL; 0: not said
  std::int64_t local_ranks = 0;                    ///< ranks of a host according to NCCL; 0: not said
  std::map<std::int64_t, std::string> hosts = {};  ///< host of each rank that the log is from
  std::vector<std::int64_t> doubled = {};          ///< ranks that are on two hosts: several jobs, or several logs
  std::int64_t num_channels = 0;                   ///< 0: not said
  std::vector<std::int64_t> ring = {};             ///< order of the ranks in channel 0
  std::vector<NcclLink> links = {};                ///< each once
  std::vector<NcclGraph> graphs = {};              ///< each once
  std::vector<NcclTuning> tuning = {};             ///< in the order of the log
  std::vector<NcclChoice> choices = {};            ///< by collective and length
  std::vector<NcclSetting> settings = {};          ///< each once
  std::vector<NcclWarning> warnings = {};          ///< each once
};

}  // namespace gar
