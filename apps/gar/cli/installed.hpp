// Where the parts of an installed gar lie.
#pragma once

#include <string_view>

namespace gar::cli {

/// The folder of libraries, relative to that of programs: "../lib/x86_64-linux-gnu".
std::string_view libdir_from_bindir();
/// The folder of data, relative to that of programs: "../share".
std::string_view datadir_from_bindir();

}  // namespace gar::cli
