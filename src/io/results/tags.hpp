// What launchers put before every line that a rank prints.
#pragma once

#include <string>
#include <string_view>

namespace gar {

/// The text without the tags of `mpirun --tag-output` (Open MPI: "[1,0]<stdout>:", "[prterun-host-17@1,0]<stdout>: "),
/// `mpirun -l` (MPICH: "[0] ") and `srun -l` ("0: "). Lines without a tag stay as they are, and lines that are tagged
/// as anything but standard output become empty, so that lines keep their numbers.
std::string without_tags(std::string_view text);

}  // namespace gar
