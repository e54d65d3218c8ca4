// Answers as JSON documents: what `--json` prints, for every program that asks the library the same questions.
//
// Every function returns the text of one document with a newline at its end. A document begins with "gar_version" and
// "schema"; names that are not UTF-8 are replaced instead of refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "gar/compare.hpp"
#include "gar/explain_nccl.hpp"
#include "gar/fit_report.hpp"
#include "gar/link_limit.hpp"
#include "gar/model.hpp"
#include "gar/plan.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "gar/profile.hpp"
#include "gar/quantity.hpp"
#include "gar/results_io.hpp"
#include "gar/scene.hpp"
#include "gar/topology.hpp"
#include "gar/verify.hpp"

namespace gar {

/// Schema "gar.topo/1": totals, and one entry for each distinct subtree.
std::string topology_document(const Topology& topology);
/// Schema "gar.topo-check/1": totals and remarks of a valid topology.
std::string topology_check_document(const Topology& topology);
/// The same for a topology that is not valid.
std::string topology_error_document(const std::string& error);

/// A topology that was written in some format.
struct WrittenTopology {
  const Topology& topology;  ///< must outlive this
  std::string format;        ///< name of a TopologyWriter: "dot"
  std::string path;          ///< the file that it was written to; empty: none
  std::string text;          ///< what was written
};
/// Schema "gar.topo-convert/1": where it was written to, or the text itself.
std::string topology_written_document(const WrittenTopology& written);
/// Schema "gar.topo-list/1": the networks that have names, and the generators.
std::string topology_list_document();
/// Schema "gar.topo-classes/1": the links and memories that files and generators know.
std::string network_classes_document();

/// Schema "gar.predict/1"; `correction` is that of a profile for this size, where there is one.
std::string predict_document(const Topology& topology, const VectorSize& size, const ModelOptions& options,
                             const PredictAnswer& answer, const std::optional<SizeCorrection>& correction = {});

/// How much of an answer of the planner goes into its document.
enum class PlanDetail { kPlain, kExplained };
/// Writes the plan file (schema "gar.plan/2", or "gar.plan/3" if it has exchanges) with what the planner knows about
/// the plan as notes, as a stream. `stages` are those of the plan as it is written; kExplained adds what was considered
/// and why it was chosen.
void write_plan_document(const PlanRequest& request, const PlanAnswer& answer, const std::vector<StageCost>& stages,
                         PlanDetail detail, std::ostream& out);

/// Schema "gar.plan-table/1": a decision table.
std::string plan_table_document(const Topology& topology, DataType dtype, const std::vector<DecisionRow>& rows);

/// Schema "gar.verify/1"; `file` is where the plan comes from.
std::string verify_document(const Plan& plan, const VerifyReport& report, const std::string& file);

/// How much of a simulation goes into its document.
struct SimulationDetail {
  std::int64_t max_links = -1;  ///< busiest links; -1: all
  bool all_hops = false;        ///< the critical path hop by hop instead of condensed
};
/// Schema "gar.simulate/2": "results" has all plans, best first; the fields beside it are those of the best one.
/// `is_complete` is false when plans are missing.
std::string simulate_document(const Scene& scene, const std::vector<SimulatedPlan>& plans, bool is_complete,
                              const SimulationDetail& detail);
/// Schema "gar.trace/1": what a trace is about, on one line without a newline. `error` says why the simulation failed;
/// empty: it did not.
std::string trace_summary(const Scene& scene, const SimulatedPlan& plan, const std::string& error = "");

/// Schema "gar.compare/1".
std::string compare_document(const Comparison& comparison);

/// Schema "gar.fit/1": the profile, incast curves and what was held out.
std::string fit_document(const FitReport& report);
/// Schema "gar.profile-show/1": the profile with its residuals in short; `file` is where it comes from.
std::string profile_document(const Profile& profile, const std::string& file);
/// Schema "gar.profile-diff/1"; `before` and `after` are the two files.
std::string profile_diff_document(const std::vector<ProfileChange>& changes, const std::string& before,
                                  const std::string& after);

/// The answer of `gar demo`: an AllReduce of ours, and one of somebody else's.
struct DemoAnswer {
  std::string where;             ///< "cluster", "processes" or "simulator"
  std::int64_t num_ranks = 0;    ///< of both
  std::int64_t bytes = 0;        ///< of the vector
  std::string algorithm;         ///< what ran
  double seconds = 0;            ///< ours
  double predicted_seconds = 0;  ///< of ours, by the model
  std::string other;             ///< "Open MPI 4.1.4"
  double other_seconds = 0;      ///< the other's; 0: there was none
};
/// Schema "gar.demo/1".
std::string demo_document(const DemoAnswer& answer);

/// Schema "gar.page/1": a page that was written to a file.
std::string page_document(const std::string& file, std::int64_t bytes);

/// Schema "gar.nccl/1": a log of NCCL and what it means.
std::string nccl_document(const NcclLog& log, const NcclExplanation& explained);

/// The answer of `gar diagnose`.
struct DiagnoseAnswer {
  std::string profile_file;                      ///< path of the profile
  std::string results_file;                      ///< path of the benchmark's output
  const Results& results;                        ///< what the results file says; must outlive this
  const std::vector<Observation>& observations;  ///< one for each row of the results
  std::int64_t num_ranks = 0;                    ///< ranks that were measured
  const Diagnosis& diagnosis;                    ///< with one row for each observation
};
/// Schema "gar.diagnose/1".
std::string diagnose_document(const DiagnoseAnswer& answer);

/// The answer of `gar diagnose -t`.
struct DiagnoseLimitAnswer {
  std::string topology;             ///< the network as it was named
  std::string results_file;         ///< path of the benchmark's output
  const Results& results;           ///< what the results file says; must outlive this
  std::int64_t num_ranks = 0;       ///< ranks that were measured
  const LimitDiagnosis& diagnosis;  ///< with one row for each row of the results
};
/// Schema "gar.diagnose/1": the same fields, and what the links allow.
std::string diagnose_limit_document(const DiagnoseLimitAnswer& answer);

}  // namespace gar
