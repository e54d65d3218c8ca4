// Writing result files.
#pragma once

#include <functional>
#include <ostream>
#include <string>

namespace gar {

/// Writes a file through `write`. An existing file is replaced only once the new one is complete. Throws
/// std::runtime_error (exit code 4) that names the path and the reason.
void save_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace gar
