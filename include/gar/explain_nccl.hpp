// What a log of NCCL means, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gar/nccl_log.hpp"

namespace gar {

/// A sentence about a log.
struct NcclFinding {
  bool is_problem = false;  ///< costs time, or keeps NCCL from choosing by itself
  std::string words;        ///< without a full stop at its end
};
/// What NCCL takes from some length on, according to its own table.
struct NcclRange {
  double from_bytes = 0;  ///< the first length that was looked at from which on it is so
  std::string algorithm;  ///< "Ring"
  std::string protocol;   ///< "Simple"
};
/// Links that are alike.
struct NcclLinkKind {
  bool is_local = false;   ///< inside of a host
  bool is_known = false;   ///< whether the log says on which hosts its ranks are
  std::string name;        ///< "P2P/IPC", "NET/Socket"
  std::int64_t count = 0;  ///< how many
};
/// Everything that can be said about a log.
struct NcclExplanation {
  std::string summary = {};                ///< "NCCL 2.20.5, 16 ranks on 2 hosts, 8 on each"
  std::int64_t num_hosts = 0;              ///< 0: not said
  std::vector<NcclFinding> findings = {};  ///< problems first
  std::vector<NcclLinkKind> links = {};    ///< those inside of hosts first
  std::vector<NcclRange> ranges = {};      ///< of AllReduce, from 1 KiB to 1 GiB; empty: the log has no table
  std::string network = {};                ///< a guess of the network, as -t takes it; empty: too little is said
};
/// Explains a log.
NcclExplanation explain_nccl_log(const NcclLog& log);
/// Adds the problems of a log to what is said about results that were measured with it.
void add_log_words(const NcclLog& log, std::vector<std::string>& words);

}  // namespace gar
