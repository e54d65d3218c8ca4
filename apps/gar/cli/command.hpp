// This command, for pages that say where their numbers come from.
#pragma once

#include <string>

namespace gar::cli {

/// "2026-11-19T04:00:00Z".
std::string date_of_now();
/// The command line of this process as it could be typed again.
std::string own_command();

}  // namespace gar::cli
