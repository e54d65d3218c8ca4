// --algo, --model and --incast-degree.
#include "apps/gar/cli/algorithms.hpp"

#include "gar/predict.hpp"

namespace gar::cli {

void add_model_options(CLI::App& verb, ModelArgs& args) {
  verb.add_option("--model", args.model,
                  "Cost model: genmodel; paper, without the cost per message (mu); or abc, also without incast and "
                  "memory access")
      ->type_name("M")
      ->check(CLI::IsMember({"genmodel", "paper", "abc"}))
      ->capture_default_str();
  verb.add_option("--incast-degree", args.degree,
                  "What incast counts on a link: its senders, or all participants as in the paper's formulas")
      ->type_name("W")
      ->check(CLI::IsMember({"senders", "participants"}))
      ->capture_default_str();
}

ModelOptions model_options(const ModelArgs& args) {
  const ModelKind kind = args.model == "abc"     ? ModelKind::kAbc
                         : args.model == "paper" ? ModelKind::kPaper
                                                 : ModelKind::kGenModel;
  return {kind, args.degree == "participants" ? IncastDegree::kParticipants : IncastDegree::kSenders};
}

std::string model_name(const ModelOptions& options) {
  switch (options.kind) {
    case ModelKind::kAbc:
      return "(alpha,beta,gamma)";
    case ModelKind::kPaper:
      return "GenModel without mu";
    case ModelKind::kGenModel:
      break;
  }
  return "GenModel";
}

CLI::Option* add_algo_option(CLI::App& verb, std::string& text, const std::string& what) {
  return verb.add_option("--algo", text, what)->type_name("A[,A...]")->capture_default_str();
}

std::vector<AlgorithmSpec> parse_algorithms(const std::string& text) { return parse_algorithm_list("--algo", text); }

}  // namespace gar::cli
