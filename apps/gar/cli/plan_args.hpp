// --collective and plan files, which several verbs take.
#pragma once

#include <string>

#include "apps/gar/cli/common.hpp"
#include "gar/plan.hpp"

namespace gar::cli {

/// Adds `--collective`; the text goes to collective_of.
CLI::Option* add_collective_option(CLI::App& verb, std::string& collective, const std::string& what);
/// What `--collective` names.
Collective collective_of(const std::string& text);

/// Reads a plan file; - is standard input. Throws ParseError.
Plan load_plan(const std::string& path);

}  // namespace gar::cli
