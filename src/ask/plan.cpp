// Plans and their proofs.
#include <sstream>

#include "ask/question.hpp"
#include "gar/documents.hpp"
#include "gar/errors.hpp"
#include "gar/planner.hpp"
#include "gar/verify.hpp"

namespace gar::ask {

std::string ask_plan(const Question& question) {
  const VectorSize size = question.size();
  const PlanRequest request{.topology = question.network().topology,
                            .size_floats = size.floats(),
                            .algorithms = question.algorithms("gentree+"),
                            .model = question.model(),
                            .collective = question.collective()};
  PlanAnswer found = plan(request);
  found.plan.count = size.count;
  const std::vector<StageCost> stages = found.priced->critical_stages(size.floats());
  std::ostringstream out;
  write_plan_document(request, found, stages, question.flag("explain") ? PlanDetail::kExplained : PlanDetail::kPlain,
                      out);
  return out.str();
}

std::string ask_verify(const Question& question) {
  const std::optional<Plan> plan = question.plan();
  if (!plan) throw ParseError("question: the field \"plan\" is missing; expected the text of a plan file");
  VerifyOptions options;
  if (question.has("seed")) options.seed = parse_proof_seed(question.text("seed"));
  return verify_document(*plan, verify(*plan, options), question.text("name"));
}

}  // namespace gar::ask
