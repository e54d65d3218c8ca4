// The files of data/paper, which the program carries within itself.
#pragma once

#include <string_view>

namespace gar::cli {

/// The text of a file, by its name without the ending: "calc-cpu", "calc-gpu", "incast", "costmodel".
std::string_view paper_text(std::string_view name);

}  // namespace gar::cli
