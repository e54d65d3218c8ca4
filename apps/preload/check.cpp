#include "apps/preload/check.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "apps/preload/real.hpp"
#include "runtime/transports/mpi/mpi_call.hpp"
#include "runtime/transports/mpi/polite.hpp"

namespace gar::preload {

namespace {

template <class T>
struct Typed {};

/// Calls f with the element type; 16-bit floats do not come from MPI.
template <class F>
auto with_type(DataType type, const F& f) {
  switch (type) {
    case DataType::kInt8:
      return f(Typed<std::int8_t>());
    case DataType::kInt16:
      return f(Typed<std::int16_t>());
    case DataType::kUint16:
      return f(Typed<std::uint16_t>());
    case DataType::kInt32:
      return f(Typed<std::int32_t>());
    case DataType::kUint32:
      return f(Typed<std::uint32_t>());
    case DataType::kInt64:
      return f(Typed<std::int64_t>());
    case DataType::kUint64:
      return f(Typed<std::uint64_t>());
    case DataType::kFloat32:
      return f(Typed<float>());
    case DataType::kFloat64:
      return f(Typed<double>());
    default:
      return f(Typed<std::uint8_t>());
  }
}

bool is_float(DataType type) { return type == DataType::kFloat32 || type == DataType::kFloat64; }

bool needs_magnitudes(const CollectiveCall& call) {
  return is_float(call.type) && call.op == ReduceOp::kSum && call.collective != Collective::kAllGather;
}

/// The function that the program would have called.
void run_real(const NativeCall& call, MPI_Comm comm) {
  const auto& [collective, in, out, count, type, op] = call;
  switch (collective) {
    case Collective::kAllReduce:
      check_mpi(real().all_reduce(in, out, count, type, op, comm), "MPI_Allreduce");
      break;
    case Collective::kReduceScatter:
      check_mpi(real().reduce_scatter_block(in, out, count, type, op, comm), "MPI_Reduce_scatter_block");
      break;
    case Collective::kAllGather:
      check_mpi(real().all_gather(in, count, type, out, count, type, comm), "MPI_Allgather");
      break;
  }
}

template <class T>
T element(const std::byte* memory, std::int64_t index) {
  T out;
  std::memcpy(&out, memory + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return out;
}

/// How far two floating point results of the same operands may be apart.
template <class T>
double allowed(ReduceOp op, int num_ranks, T theirs, double magnitude) {
  const double n = (num_ranks - 1) * static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  const double relative = 2.02 * n / (1 - n);  // 1%: the magnitudes are rounded as well
  const auto tiny = static_cast<double>(std::numeric_limits<T>::denorm_min());
  if (op == ReduceOp::kSum) return relative * magnitude + num_ranks * tiny;
  if (op == ReduceOp::kProd) return relative * std::abs(static_cast<double>(theirs));
  return 0;
}

template <class T>
bool agrees(const CollectiveCall& call, int num_ranks, T ours, T theirs, double magnitude) {
  if (ours == theirs) return true;
  if constexpr (std::is_floating_point_v<T>) {
    if (call.collective == Collective::kAllGather) return false;
    const bool is_order = call.op == ReduceOp::kMin || call.op == ReduceOp::kMax;
    if (is_order) return std::isnan(ours) || std::isnan(theirs);  // MPI leaves open what a NaN does
    if (!std::isfinite(ours) || !std::isfinite(theirs)) {
      return call.op == ReduceOp::kProd || !std::isfinite(magnitude) || (std::isnan(ours) && std::isnan(theirs));
    }
    if (call.op == ReduceOp::kProd &&
        (std::abs(ours) < std::numeric_limits<T>::min() * 2 || std::abs(theirs) < std::numeric_limits<T>::min() * 2)) {
      return true;
    }
    const double distance = std::abs(static_cast<double>(ours) - static_cast<double>(theirs));
    return distance <= allowed(call.op, num_ranks, theirs, magnitude);
  }
  return false;
}

}  // namespace

NativeCall Check::copy(const Operation& operation, MPI_Comm comm) {
  check_mpi(MPI_Comm_size(comm, &num_ranks_), "MPI_Comm_size");
  input_.resize(static_cast<std::size_t>(in_bytes(operation.call, num_ranks_)));
  std::memcpy(input_.data(), operation.call.in, input_.size());
  expected_.resize(static_cast<std::size_t>(out_bytes(operation.call, num_ranks_)));
  return {operation.call.collective, input_.data(),      expected_.data(),
          operation.mpi_count,       operation.mpi_type, operation.mpi_op};
}

void Check::start(const Operation& operation, MPI_Comm comm) {
  const Inside inside;
  const NativeCall native = copy(operation, comm);
  requests_.push_back(start_native(native, comm));
  if (needs_magnitudes(operation.call)) start_magnitudes(native, operation.call.type, comm);
}

Turns Check::take_turns(const Operation& operation, MPI_Comm comm, bool is_ours_first,
                        const std::function<void()>& ours) {
  const Inside inside;
  const NativeCall native = copy(operation, comm);
  const auto timed = [comm](const auto& run) {
    barrier_politely(comm);
    const auto begin = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const auto theirs = [&] { run_real(native, comm); };
  Turns out;
  if (is_ours_first) out.ours = timed(ours);
  out.theirs = timed(theirs);
  if (!is_ours_first) out.ours = timed(ours);
  if (needs_magnitudes(operation.call)) start_magnitudes(native, operation.call.type, comm);
  return out;
}

void Check::start_magnitudes(NativeCall native, DataType type, MPI_Comm comm) {
  magnitudes_ = input_;
  sum_magnitudes_.resize(expected_.size());
  const auto num_elements = static_cast<std::int64_t>(input_.size()) / size_of(type);
  with_type(type, [&]<class T>(Typed<T> /*type*/) {
    for (std::int64_t i = 0; i < num_elements; ++i) {
      if constexpr (std::is_floating_point_v<T>) {
        const T magnitude = std::abs(element<T>(input_.data(), i));
        std::memcpy(magnitudes_.data() + i * static_cast<std::int64_t>(sizeof(T)), &magnitude, sizeof(T));
      }
    }
  });
  // A complex number is two of them; the sum of its parts' magnitudes is what we need, so its own type will do.
  native.in = magnitudes_.data();
  native.out = sum_magnitudes_.data();
  native.op = MPI_SUM;
  requests_.push_back(start_native(native, comm));
}

std::optional<Difference> Check::finish(const Operation& operation) {
  const Inside inside;
  wait_politely(requests_);
  requests_.clear();
  const auto* ours = static_cast<const std::byte*>(operation.call.out);
  const auto num_elements = static_cast<std::int64_t>(expected_.size()) / size_of(operation.call.type);
  std::optional<Difference> out;
  with_type(operation.call.type, [&]<class T>(Typed<T> /*type*/) {
    for (std::int64_t i = 0; i < num_elements; ++i) {
      const T a = element<T>(ours, i);
      const T b = element<T>(expected_.data(), i);
      const double magnitude =
          sum_magnitudes_.empty() ? 0.0 : static_cast<double>(element<T>(sum_magnitudes_.data(), i));
      if (agrees(operation.call, num_ranks_, a, b, magnitude)) continue;
      if (!out) out = Difference{i, 0, fmt::format("{}", a), fmt::format("{}", b)};
      ++out->num_wrong;
    }
  });
  std::memcpy(operation.call.out, expected_.data(), expected_.size());
  return out;
}

}  // namespace gar::preload
