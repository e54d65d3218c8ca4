// Counters of congestion: what TCP sent again, and how often a NIC was told to pause.
#pragma once

#include <string>
#include <string_view>

namespace gar::measure {

/// -1: not known.
struct CongestionCount {
  double retransmits = -1;   ///< TCP segments of this network namespace since it exists
  double pause_frames = -1;  ///< sent and received by all its NICs
};
CongestionCount read_congestion();

/// TCP segments of this network namespace since it exists; -1: not known.
struct TcpSegments {
  double sent = -1;   ///< for the first time
  double again = -1;  ///< because they, or their acknowledgements, were lost
};
TcpSegments read_segments();

/// A counter of TCP in the text of /proc/net/snmp, such as OutSegs; -1: it is not there.
double parse_tcp_counter(std::string_view snmp, std::string_view name);
/// RetransSegs of the text of /proc/net/snmp; -1: it is not there.
double parse_retransmits(std::string_view snmp);
/// Does a NIC's statistic of this name count pause frames (not their duration, nor something else about them)?
bool is_pause_counter(std::string_view name);

/// What network this process sees, for telling which processes count the same segments: a name that no other has.
std::string network_identity();

}  // namespace gar::measure
