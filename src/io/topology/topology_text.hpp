// The files of data/topologies, which the library carries within itself.
#pragma once

#include <string_view>

namespace gar {

/// The text of a file, by its name without the ending: "mixed-fleet"; empty: there is no such file.
std::string_view topology_text(std::string_view name);

}  // namespace gar
