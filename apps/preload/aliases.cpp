#include "apps/preload/aliases.hpp"

#include <cstring>
#include <memory>
#include <vector>

#include "apps/preload/real.hpp"

namespace gar::preload {

namespace {

// MPICH ends a program in which its own copy from the input to the output would overlap; Open MPI does not look.
#ifdef OPEN_MPI
constexpr bool kStopsAtOverlap = false;
#else
constexpr bool kStopsAtOverlap = true;
#endif

std::size_t place_of(const Operation& operation) {
  switch (operation.call.collective) {
    case Collective::kAllReduce:
      return operation.is_blocking ? 0 : 1;
    case Collective::kReduceScatter:
      return 2;
    case Collective::kAllGather:
      break;
  }
  return 3;
}

}  // namespace

void Aliases::find(MPI_Comm self) {
  const ErrorsReturned quiet;
  for (const int count : {1, 2}) {
    std::array<int, 2> buffer{};
    int* both = buffer.data();
    MPI_Request request = MPI_REQUEST_NULL;
    const auto is_refused = [](int code) { return code != MPI_SUCCESS; };
    const auto column = static_cast<std::size_t>(count - 1);
    is_refused_[0][column] = is_refused(real().all_reduce(both, both, count, MPI_INT, MPI_SUM, self));
    is_refused_[1][column] = is_refused(real().iall_reduce(both, both, count, MPI_INT, MPI_SUM, self, &request));
    if (!is_refused_[1][column]) MPI_Wait(&request, MPI_STATUS_IGNORE);
    is_refused_[2][column] = is_refused(real().reduce_scatter_block(both, both, count, MPI_INT, MPI_SUM, self));
    is_refused_[3][column] = is_refused(real().all_gather(both, count, MPI_INT, both, count, MPI_INT, self));
  }
}

bool Aliases::refuses_gather(const GatherArguments& given, int rank) const {
  if (!is_refused_[3][given.in_count > 1 ? 1 : 0]) return false;
  // MPICH compares handles, and takes the bytes of an element for its extent.
  if (given.in_type != given.out_type || given.in_count != given.out_count) return false;
  int bytes = 0;
  MPI_Type_size(given.out_type, &bytes);
  const std::int64_t distance = static_cast<std::int64_t>(rank) * given.out_count * bytes;
  return given.in == static_cast<const std::byte*>(given.out) + distance;
}

bool Aliases::settle(Operation& operation, int num_ranks, const void* own) const {
  CollectiveCall& call = operation.call;
  const auto in = reinterpret_cast<std::uintptr_t>(call.in);
  const auto out = reinterpret_cast<std::uintptr_t>(call.out);
  const auto length = static_cast<std::size_t>(in_bytes(call, num_ranks));
  if (in + length <= out || out + static_cast<std::size_t>(out_bytes(call, num_ranks)) <= in) return true;
  if (call.in == own) {
    if (call.collective == Collective::kAllGather) return true;
    const std::size_t column = operation.mpi_count > 1 ? 1 : 0;
    return !is_refused_[place_of(operation)][column];
  }
  if (kStopsAtOverlap && call.collective == Collective::kAllReduce) return false;
  operation.copied = std::make_shared<std::vector<std::byte>>(length);
  std::memcpy(operation.copied->data(), call.in, length);
  call.in = operation.copied->data();
  return true;
}

}  // namespace gar::preload
