// GAR_CHECK=1: every call that is taken over is also made with the MPI library's own function.
//
// Integers, minima, maxima, bits and truth values must be the same. Sums and products of floating point numbers depend
// on the order of the operands; any order of n operands x_i gives the true sum up to
//     (n - 1) u / (1 - (n - 1) u) * sum |x_i|,       u = 2^-24 or 2^-53
// (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2), so two of them may differ by twice that. The
// sums of |x_i| come from the MPI library as well. Products: the same relative to the result. Where a result is
// infinite, not a number or (in a product) too small for full precision, rounding can lead anywhere, and the two may
// differ.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/preload/operation.hpp"
#include "runtime/transports/mpi/native.hpp"

namespace gar::preload {

/// Says what differs: "element 17 of 1000 float32, sum: 2.5, but ... says 3".
struct Difference {
  std::int64_t index = 0;
  std::int64_t num_wrong = 0;
  std::string ours;
  std::string theirs;
};

/// Seconds of one call, here and in the MPI library.
struct Turns {
  double ours = 0;
  double theirs = 0;
};

/// The library's own run of one operation, next to ours. Collective calls on `comm` in the order of start().
class Check {
 public:
  /// Before our own run, for it may overwrite the input. Throws TransportError.
  void start(const Operation& operation, MPI_Comm comm);
  /// Instead of start(), for a blocking call: runs `ours` and the library's function one after the other, all ranks
  /// beginning at the same time, and times both. The library gets a copy of the input. Throws TransportError and what
  /// `ours` throws.
  Turns take_turns(const Operation& operation, MPI_Comm comm, bool is_ours_first, const std::function<void()>& ours);
  /// After our own run: compares, and leaves the library's result in the operation's output.
  std::optional<Difference> finish(const Operation& operation);

 private:
  /// Makes the copies, and the library's call on them.
  NativeCall copy(const Operation& operation, MPI_Comm comm);
  void start_magnitudes(NativeCall native, DataType type, MPI_Comm comm);

  int num_ranks_ = 1;
  std::vector<std::byte> input_;
  std::vector<std::byte> expected_;
  std::vector<std::byte> magnitudes_;      ///< of this rank's operands
  std::vector<std::byte> sum_magnitudes_;  ///< of all ranks'
  std::vector<MPI_Request> requests_;
};

}  // namespace gar::preload
