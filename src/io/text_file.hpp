// Reading a whole file, with errors that name it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gar {

/// Reads a file or a pipe of at most `max_bytes` (see InputFile). Throws ParseError that says what is wrong with it.
std::string read_text_file(const std::string& path, std::int64_t max_bytes);

/// Text from a file, fit for a message: at most `max_bytes`, bytes outside printable ASCII as \xNN.
std::string printable(std::string_view text, std::size_t max_bytes = 60);

}  // namespace gar
