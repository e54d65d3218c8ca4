// The files of data/topologies, which the library carries within itself.
#pragma once

#include <span>
#include <string_view>

namespace gar {

/// The text of a file, by its name without the ending: "mixed-fleet"; empty: there is no such file.
std::string_view topology_text(std::string_view name);
/// The names, in alphabetical order.
std::span<const std::string_view> topology_text_names();

}  // namespace gar
