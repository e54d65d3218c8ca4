// The environment variables GAR_*, looked at before a verb begins.
#pragma once

#include <functional>

#include "gar/environment.hpp"

namespace gar::cli {

/// Throws InvalidArgument that names the first of these variables that is wrong, its value, and what is expected.
/// Verbs that start ranks ask for those that the ranks read, which would find out by themselves, but later.
void check_environment(const std::function<bool(const EnvironmentVariable&)>& is_read);
/// Does the runtime read it?
bool is_read_by_ranks(const EnvironmentVariable& variable);

}  // namespace gar::cli
