// What `gar simulate` says about simulated plans, for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/gar/views/term_table.hpp"
#include "gar/scene.hpp"

namespace gar::cli {

struct ReportOptions {
  std::int64_t max_links = 10;  ///< -1: all
  bool all_hops = false;        ///< the critical path hop by hop
  bool is_verbose = false;      ///< also how it was computed
  bool color = false;
  TermNames names = TermNames::kPlain;
};

/// One plan in full.
void print_simulation(const Scene& scene, const SimulatedPlan& plan, const ReportOptions& options);
/// Several plans, best first.
void print_simulations(const Scene& scene, const std::vector<SimulatedPlan>& plans, const ReportOptions& options);

/// A plan beside others: its algorithm, and in how many chunks it runs.
struct ChunkedName {
  std::string algorithm;
  std::int64_t num_chunks = 1;
};
/// A line that says which plans of a table run in chunks; empty where all run in one piece.
std::string chunk_line(const std::vector<ChunkedName>& plans);

}  // namespace gar::cli
