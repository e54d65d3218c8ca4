// What is accepted as a number, and how much work an input may ask for.
//
// Times are sums and products of a few parameters, sizes and counts, and rates are their inverses. Within the bounds
// below all of them stay far inside of what a double holds, so nothing that computes with them meets an infinity.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gar/language.hpp"

namespace gar {

/// The largest alpha (in seconds), mu (per message), beta, epsilon, gamma and delta (in seconds per float).
inline constexpr double kMaxParameter = 1e6;
/// A parameter above 0 but below this counts as 0: a vector of 2^60 floats would not show it.
inline constexpr double kLeastParameter = 1e-30;
/// The largest incast_threshold and max_senders.
inline constexpr double kMaxThreshold = 1e9;
/// The longest time that is accepted as measured, or as a time limit: thirty years.
inline constexpr double kMaxSeconds = 1e9;
/// The shortest time that is accepted as measured.
inline constexpr double kLeastSeconds = 1e-12;
/// The longest vector, in floats of 4 bytes: kMaxVectorBytes.
inline constexpr double kMaxFloats = 1152921504606846976.0;  // 2^60
/// Factors (what-ifs, corrections) lie between 1 / kMaxFactor and kMaxFactor, or are 0 where that has a meaning.
inline constexpr double kMaxFactor = 1e9;
/// The largest random extra share of latencies and calculations.
inline constexpr double kMaxJitter = 1e6;
/// The largest number of a file that no other bound is for.
inline constexpr double kMaxNumber = 1e30;

/// Returns `value`. Throws InvalidArgument when it is not finite; `what` says what it is: "the cost of ring".
double require_finite(double value, std::string_view what);

/// The nearest whole number; the ends of the range for what lies beyond them, and 0 for what is no number.
std::int64_t to_whole(double value);

/// How many things are worked on one by one. A short input can stand for more of them than any machine can hold, so
/// this is checked before the work begins. The environment variable GAR_LIMIT is a factor for all of these limits.
struct WorkLimit {
  std::string_view things;  ///< "servers and switches"
  double most = 0;          ///< without GAR_LIMIT
};

/// Servers and switches that are priced or simulated one by one.
inline constexpr WorkLimit kNodeLimit{"servers and switches", 2e6};
/// Ranks of a plan that is taken apart.
inline constexpr WorkLimit kRankLimit{"ranks", 2e6};
/// Messages that are proved one by one.
inline constexpr WorkLimit kMessageLimit{"messages to be proved", 2e8};

/// Messages of plans that are written out, one program per rank.
inline constexpr WorkLimit kExplicitLimit{"messages to be written one by one", 2e7};
/// Messages that are simulated one by one, those of all chunks.
inline constexpr WorkLimit kFlowLimit{"messages to be simulated one by one", 2e6};
/// Ranks times chunks that are simulated.
inline constexpr WorkLimit kLaneLimit{"ranks times chunks to be simulated", 2e7};
/// Links and messages that are looked at one by one while plans are priced; a message counts as four links.
inline constexpr WorkLimit kPricingLimit{"links and messages to be priced", 5e8};

/// The same for all sizes of a decision table together.
inline constexpr WorkLimit kTableLimit{"links and messages to be priced for a table", 1e9};
/// Ranks of all rows of a table of results together.
inline constexpr WorkLimit kResultLimit{"ranks times rows of results", 2e7};

/// All of these limits, in the order of the documentation.
inline constexpr WorkLimit kWorkLimits[] = {kNodeLimit, kRankLimit, kPricingLimit, kMessageLimit, kExplicitLimit,
                                            kFlowLimit, kLaneLimit, kTableLimit,   kResultLimit};

/// Adds up work, and ends it at a limit.
class WorkMeter {
 public:
  /// `what` is what asks for the work, for messages: "the network 'star:100000000'".
  WorkMeter(const WorkLimit& limit, std::string what);
  /// Call it before the work. Throws InvalidArgument when all together is beyond the limit.
  void spend(double amount) {
    spent_ += amount;
    if (spent_ > most_) refuse();
  }
  /// What has been spent so far.
  [[nodiscard]] double spent() const { return spent_; }

 private:
  [[noreturn]] void refuse() const;

  WorkLimit limit_;
  std::string what_;
  double most_;
  double spent_ = 0;
};

/// Throws InvalidArgument when `amount` is beyond the limit; `what` is what asks for it: "the network 'x'".
void check_work(const WorkLimit& limit, double amount, std::string_view what);

}  // namespace gar
