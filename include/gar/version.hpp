// The version of the library.
#pragma once

#include <string_view>

#include "gar/language.hpp"

/// GenAllReduce: plans, proves, prices, simulates and runs AllReduce. The main page says which header answers which
/// question.
namespace gar {

/// The version of the library, "0.1.0".
std::string_view version();

}  // namespace gar
