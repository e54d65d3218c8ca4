// What pictures as SVG and in letters share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace gar::report {

/// An axis: values to places, and where its ticks are.
class Axis {
 public:
  Axis(bool is_log, double from_place, double to_place) : is_log_(is_log), from_(from_place), to_(to_place) {}

  void include(double value) {
    if (!std::isfinite(value) || (is_log_ && value <= 0)) return;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  [[nodiscard]] bool is_empty() const { return low_ > high_; }
  [[nodiscard]] bool shows(double value) const { return std::isfinite(value) && (!is_log_ || value > 0); }

  /// Room at both ends; linear axes begin at 0.
  void finish(double room) {
    constexpr double kMost = 1e300;  // beyond that, room would be infinite
    if (is_log_) {
      low_ = std::clamp(low_, 1 / kMost, kMost) / room;
      high_ = std::clamp(high_, 1 / kMost, kMost) * room;
      return;
    }
    low_ = std::clamp(low_, -kMost, kMost);
    high_ = std::clamp(high_, -kMost, kMost);
    low_ = std::min(low_, 0.0);
    if (high_ <= low_) high_ = low_ + 1;
    high_ += (room - 1) * (high_ - low_);
  }

  [[nodiscard]] double at(double value) const {
    const double share = is_log_ ? (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_))
                                 : (value - low_) / (high_ - low_);
    return from_ + share * (to_ - from_);
  }

  [[nodiscard]] std::vector<double> ticks() const {
    std::vector<double> out;
    if (is_log_) {
      const int first = static_cast<int>(std::floor(std::log10(low_)));
      const int last = static_cast<int>(std::ceil(std::log10(high_)));
      const int step = std::max(1, (last - first) / static_cast<int>(kMostTicks) + 1);
      // Few decades have ticks within them, too.
      const std::vector<double> within = last - first > 3 ? std::vector<double>{1} : std::vector<double>{1, 2, 5};
      for (int e = first; e <= last; e += step) {
        for (const double digit : within) {
          const double value = digit * std::pow(10.0, e);
          if (value >= low_ && value <= high_) out.push_back(value);
        }
      }
      if (out.empty()) out = {low_, high_};
      return out;
    }
    const double rough = (high_ - low_) / 6;
    const double decade = std::pow(10.0, std::floor(std::log10(rough)));
    const double step = rough / decade < 1.5   ? decade
                        : rough / decade < 3.5 ? 2 * decade
                        : rough / decade < 7.5 ? 5 * decade
                                               : 10 * decade;
    for (double value = std::ceil(low_ / step) * step; value <= high_ && out.size() < 2 * kMostTicks; value += step)
      out.push_back(value);
    return out;
  }

 private:
  static constexpr std::size_t kMostTicks = 9;

  bool is_log_;
  double from_;
  double to_;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

}  // namespace gar::report
