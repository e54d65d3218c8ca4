// MPI's return codes as exceptions, and the tags that the messages of a communicator use.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "gar/errors.hpp"

namespace gar {

/// MPI's own words for a code.
inline std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return "code " + std::to_string(code);
  return {text, static_cast<std::size_t>(length)};
}

/// Throws TransportError when `code`, which `function` returned, is an error.
inline void check_mpi(int code, const char* function) {
  if (code != MPI_SUCCESS) throw TransportError(std::string(function) + " failed: " + mpi_error_text(code));
}

/// The tags of a communicator, below MPI_TAG_UB (at least 32767 everywhere). The upper half is for everything but data.
/// Data: some bits of a hash of the operation, the slot of the chunk, the step. The hash keeps ranks apart that have
/// called different things: a message that does not fit its receive would be a fatal error of MPI, which is raised on
/// MPI_COMM_WORLD.
class MpiTags {
 public:
  static constexpr int kMaxSlots = 8;
  static constexpr int kMaxRounds = 8;

  explicit MpiTags(int largest_tag) {
    int bits = 14;
    while (bits < 29 && largest_tag >= (1 << (bits + 2)) - 1) ++bits;
    reserved_ = 1 << bits;
    step_limit_ = 1 << std::min(bits - 3, 12);
    num_hashes_ = static_cast<std::uint32_t>(reserved_ / kMaxSlots / step_limit_);
  }
  /// Messages of a chunk whose step numbers stay below this have tags of their own.
  [[nodiscard]] int step_limit() const { return step_limit_; }
  [[nodiscard]] int data(std::uint64_t hash, int slot, std::int64_t step_number) const {
    const auto operation = static_cast<int>(hash % num_hashes_);
    return (operation * kMaxSlots + slot) * step_limit_ + static_cast<int>(step_number % step_limit_);
  }
  [[nodiscard]] int signature() const { return reserved_; }
  [[nodiscard]] int abort() const { return reserved_ + 1; }
  [[nodiscard]] int gone() const { return reserved_ + 2; }
  /// Admissions. Two of them may be the same: then the first that is awaited gets the first that comes.
  [[nodiscard]] int admission(int slot, std::int64_t step_number) const {
    return reserved_ + 2048 + (slot * step_limit_ + static_cast<int>(step_number % step_limit_)) % (reserved_ - 2048);
  }
  /// Of a gather. A rank is never 128 operations ahead of another.
  [[nodiscard]] int exchange(std::uint64_t sequence, int round) const {
    return reserved_ + 16 + static_cast<int>(sequence % 128) * kMaxRounds + round;
  }

 private:
  int reserved_ = 0;
  int step_limit_ = 0;
  std::uint32_t num_hashes_ = 1;
};

}  // namespace gar
