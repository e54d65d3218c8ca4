// The key that clients of a store prove to know.
#pragma once

#include <string_view>

#include "runtime/transports/tcp/secret.hpp"

namespace gar {

inline Digest store_key(std::string_view secret) { return derive_key(secret, "gar store"); }

}  // namespace gar
