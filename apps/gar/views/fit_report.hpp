// What `gar fit` prints: parameters with their intervals, incast beside its cause, residuals, and what is not known.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/gar/views/json_output.hpp"
#include "gar/fit.hpp"
#include "gar/profile.hpp"

namespace gar::cli {

struct FitReport {
  Profile profile;
  const Measurements& measurements;
  bool is_validated = false;
};

/// The same servers and length as a mesh, where all but one send at once, and as a shift, where one does.
struct IncastPoint {
  int level = 0;
  std::int64_t num_ranks = 0;
  std::int64_t num_children = 0;  ///< of the switch that the set is about
  std::int64_t per_child = 1;
  double size_floats = 0;
  double mesh_s = 0;
  double shift_s = -1;     ///< -1: not measured
  double admitted_s = -1;  ///< the mesh when receivers admit senders; -1: not measured
  double mesh_retransmits = -1;
  double shift_retransmits = -1;
  double mesh_pauses = -1;
  double shift_pauses = -1;
};
/// Of the largest length that a set was measured with.
std::vector<IncastPoint> incast_curve(const Measurements& measurements);

std::string fit_text(const FitReport& report, bool color);
Json fit_document(const FitReport& report);

}  // namespace gar::cli
