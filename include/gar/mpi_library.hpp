// Which MPI library it is, from what the library or its launcher says about itself. This needs no mpi.h, for programs
// that have no MPI, or do not know yet which one, read such texts as well.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "gar/language.hpp"

namespace gar {

/// The MPI libraries that are supported.
enum class MpiLibrary { kOpenMpi, kMpich };

/// From what MPI_Get_library_version or `mpirun --version` says; nothing for a library that we do not know. MPICH's
/// relatives count as MPICH, because they share its binary interface (the MPICH ABI Compatibility Initiative).
inline std::optional<MpiLibrary> mpi_library_of(std::string_view text) {
  const auto has_any = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return text.find(name) != std::string_view::npos; });
  };
  if (has_any({"Open MPI", "OpenRTE", "open-mpi"})) return MpiLibrary::kOpenMpi;
  if (has_any({"MPICH", "HYDRA", "MVAPICH", "Intel(R) MPI"})) return MpiLibrary::kMpich;
  return std::nullopt;
}

/// Name and number from what MPI_Get_library_version says: "Open MPI 4.1.4" from "Open MPI v4.1.4, package: ...",
/// "MPICH 4.0.2" from "MPICH Version:\t4.0.2\n...". Of any other library, what comes before the first comma or line
/// end.
inline std::string mpi_library_name(std::string_view version) {
  const std::string_view line = version.substr(0, version.find_first_of(",\n"));
  for (const std::string_view title : {std::string_view("Open MPI"), std::string_view("MPICH")}) {
    const std::size_t digit = line.find_first_of("0123456789");
    if (!line.starts_with(title) || digit == std::string_view::npos) continue;
    return std::string(title) + " " + std::string(line.substr(digit));
  }
  std::string out(line);
  std::replace(out.begin(), out.end(), '\t', ' ');
  return out;
}

}  // namespace gar
