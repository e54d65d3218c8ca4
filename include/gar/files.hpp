// Writing result files.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "gar/language.hpp"

namespace gar {

/// Writes a file through `write`. An existing file, or link, is replaced only once the new one is complete; a file of
/// the user keeps its permissions. Pipes, devices and /dev/stdout are written to as they are; a link to a pipe or
/// device is refused, and so is a pipe that nobody reads for GAR_INPUT_TIMEOUT. Throws std::runtime_error (exit code 4)
/// that names the path and the reason.
void save_file(const std::string& path, const std::function<void(std::ostream&)>& write);

/// Throws std::runtime_error when save_file could not write `path`: better now than after a long measurement. `flag`,
/// where the path comes from, stands in the message. An empty path is not checked.
void check_writable(std::string_view flag, const std::string& path);

}  // namespace gar
