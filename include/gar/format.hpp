// Numbers with units, as people read them: "12.34 ms", "400 MB", "1e8"; and text that is safe to show.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gar/language.hpp"

namespace gar {

/// "1.234 s", "12.34 ms", "45.60 us", "7.000 ns": `digits` significant digits, "0 s" for nothing.
std::string format_seconds(double seconds, int digits = 4);
/// "400 MB", "1.5 GB": powers of 1000 and at most four significant digits.
std::string format_bytes(double bytes);
/// As it could be typed: "1e8", "3.2e7", "12345".
std::string format_count(std::int64_t count);
/// "100,000".
std::string format_grouped(std::int64_t count);
/// "12.3%".
std::string format_percent(double fraction);
/// "50 Gbit/s" for a time per float of 4 bytes; "unlimited" for 0.
std::string format_link_speed(double seconds_per_float);
/// "4 KiB", "1.5 MiB", "1000 B".
std::string format_binary_bytes(std::int64_t bytes);
/// "4.20 TB/s".
std::string format_memory_bandwidth(double bytes_per_s);

/// Text of unknown origin (a file's name, a name inside of a file), fit for a terminal: bytes that are no UTF-8,
/// control characters, line ends and marks that change the direction of writing become `\\xNN`. What is shown twice is
/// the same.
std::string escaped(std::string_view text);

}  // namespace gar
