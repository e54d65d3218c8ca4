// What a node may be called.
#pragma once

#include <string>
#include <string_view>

namespace gar {

/// Says what is wrong with a name and what is accepted; empty when nothing is wrong.
std::string name_problem(std::string_view name);

}  // namespace gar
