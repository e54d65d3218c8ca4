#include "runtime/transports/cuda/host_meeting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "gar/cuda.hpp"

namespace gar {

namespace {

constexpr std::int64_t kExchangeBytes = 1024;  // more than any rank tells at once

}  // namespace

void require_cuda(const char* function) {
  std::string why;
  if (num_cuda_devices(&why) == 0) throw DeviceError(fmt::format("{}: no GPU: {}", function, why));
}

void check_alike(const std::vector<int>& has_topology, const char* function) {
  if (std::adjacent_find(has_topology.begin(), has_topology.end(), std::not_equal_to<>()) == has_topology.end()) return;
  throw InvalidArgument(fmt::format(
      "{}: some ranks have a topology (options, GAR_TOPOLOGY) and some do not; expected the same on all", function));
}

HostMeeting::HostMeeting(std::string_view name, int rank, int size, double timeout_s)
    : rank_(rank), size_(size), timeout_s_(timeout_s) {
  SegmentShape shape;
  shape.num_ranks = size;
  shape.num_slots = 1;
  shape.exchange_bytes = kExchangeBytes;
  segment_ = join_segment(name, rank, shape, timeout_s);
}

}  // namespace gar
